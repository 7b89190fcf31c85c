"""The languages of pages, their copies, and the reader's language."""

import pytest

from service.markup.languages import page_language
from service.retrieval.site.translations import Copy, groups_of, text_language
from tests.retrieval.test_navigation import site_of

ENGLISH = (
    "# Keys\n\nYou can make a key in the settings of your account. It is shown only once, so copy it to a place that is"
    " safe. When you lose it, make another one.\n"
)
GERMAN = (
    "# Schlüssel\n\nEin Schlüssel wird in den Einstellungen des Kontos angelegt. Er wird nur einmal angezeigt, also"
    " kopieren Sie ihn an einen sicheren Ort. Wenn Sie ihn verlieren, legen Sie einen neuen an.\n"
)
FRENCH = (
    "# Clés\n\nVous pouvez créer une clé dans les paramètres de votre compte. Elle ne s'affiche qu'une seule fois, donc"
    " copiez-la dans un endroit sûr. Si vous la perdez, créez-en une autre.\n"
)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"),
        (GERMAN, "de"),
        (FRENCH, "fr"),
        ("# キー\n\n設定でキーを作成できます。", "ja"),
        ("```yaml\nkey: value\n```\n", ""),
        ("", ""),
    ],
)
def test_language_of_a_page_is_that_of_its_text(text, language):
    assert page_language(text) == language


@pytest.mark.parametrize(
    ("found", "told", "default", "language"),
    [
        ("en", "de", "", "en"),  # an untranslated page
        ("de", "de-AT", "", "de"),
        ("", "pt_BR", "", "pt"),
        ("es", "pt", "", "pt"),  # kindred languages
        ("fr", "", "en", "fr"),
        ("", "", "", "en"),
        ("", "", "de", "de"),
        ("it", "fi", "", "fi"),  # a language without a list of words
        ("en", "python", "", "en"),
    ],
)
def test_language_of_a_text_is_told_or_plainly_other(found, told, default, language):
    assert text_language(found, told, default) == language


SITES = {
    "folders": {"en/guide/a.md": ENGLISH, "de/guide/a.md": GERMAN, "pt-br/guide/a.md": FRENCH},
    "default at the root": {"guide/a.md": ENGLISH, "de/guide/a.md": GERMAN},
    "docusaurus": {
        "docusaurus.config.js": "module.exports = {}",
        "docs/guide/a.md": ENGLISH,
        "i18n/de/docusaurus-plugin-content-docs/current/guide/a.md": GERMAN,
    },
    "docusaurus with versions": {
        "docusaurus.config.js": "module.exports = {}",
        "versions.json": '["2.0", "1.0"]',
        "docs/guide/a.md": ENGLISH,
        "versioned_docs/version-2.0/guide/a.md": ENGLISH,
        "versioned_docs/version-1.0/guide/a.md": ENGLISH,
        "i18n/de/docusaurus-plugin-content-docs/version-2.0/guide/a.md": GERMAN,
    },
    "hugo": {
        "hugo.toml": "defaultContentLanguage = 'en'",
        "content/guide/a.md": ENGLISH,
        "content/guide/a.de.md": GERMAN,
    },
    "hugo with folders": {
        "hugo.toml": "defaultContentLanguage = 'en'",
        "content/en/guide/a.md": ENGLISH,
        "content/de/guide/a.md": GERMAN,
    },
}


@pytest.mark.parametrize("name", SITES)
def test_copies_of_a_page_share_a_key(name):
    keys = {page.copy_key for page in site_of(SITES[name]).pages.values()}
    assert len(keys) == 1


def test_two_pages_have_two_keys():
    pages = site_of({"en/a.md": ENGLISH, "en/b.md": ENGLISH, "en/sub/a.md": ENGLISH}).pages.values()
    assert len({page.copy_key for page in pages}) == 3


def test_folder_with_a_code_for_a_name_is_no_language():
    def page(language, text, content):
        return Copy("/a", language, "", text, content)

    assert groups_of({1: page("", "en", b"1"), 2: page("id", "en", b"2")}) == {}
    assert groups_of({1: page("", "en", b"1"), 2: page("id", "en", b"1")}) == {1: 1, 2: 1}
    assert groups_of({1: page("", "en", b"1"), 2: page("id", "id", b"2")}) == {1: 1, 2: 1}
