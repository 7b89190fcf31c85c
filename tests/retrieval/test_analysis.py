import pytest

from service.retrieval.search.analysis.compounds import compound_parts, vocabularies
from service.retrieval.search.analysis.terms import joined_names, parts_of


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("retryDelaySecs", ["retry", "Delay", "Secs"]),
        ("JSONPath", ["JSON", "Path"]),
        ("HTTPRoute", ["HTTP", "Route"]),
        ("macOS", ["mac", "OS"]),
        ("getURLsFor", ["get", "URLs", "For"]),
        ("getXAxis", ["get", "XAxis"]),
        ("OAuth2PasswordBearer", ["OAuth2", "Password", "Bearer", "OAuth"]),
        ("OAuth2", ["OAuth"]),
        ("HTTP2", ["HTTP"]),
        *((word, []) for word in ("IDs", "URLs", "APIs", "OAuth", "gRPC", "IPv6", "K8s", "PyPI", "iOS", "retry", "X")),
    ],
)
def test_names_are_split_into_their_parts(name: str, parts: list[str]) -> None:
    assert parts_of(name) == parts


def test_names_with_signs_are_one_word_too() -> None:
    text = "Set retry_delay_secs, --retry-delay-secs or retry.delay.secs in _config."
    assert joined_names(text) == ["retrydelaysecs"]


@pytest.mark.parametrize(
    ("word", "language", "parts"),
    [
        ("Datenbankverbindungen", "de", ("datenbank", "verbind")),
        ("Verbindungsnamen", "de", ("verbind", "nam")),
        ("Verbindungen", "de", ()),
        ("Konfiguration", "de", ()),
        ("Datenbankverbindungen", "en", ()),
    ],
)
def test_compound_has_the_parts_that_the_site_has(word: str, language: str, parts: tuple[str, ...]) -> None:
    site = vocabularies([("de", "Verbindung zur Datenbank"), ("de", "Namen")])
    assert compound_parts(word, language, lambda stem: site["de"].get(stem, 0)) == parts
