"""The texts of the ask page in each language: those that it shares with the widget, and its own (``texts/``)."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from service.web.pages.assets import WEB

FOLDERS = (WEB / "scripts" / "widget" / "texts", Path(__file__).parent / "texts")
DEFAULT = "en"
MAX_CHOICES = 20
"""Languages of a header that are read; browsers send fewer."""


@cache
def texts_in(language: str) -> Mapping[str, str]:
    """Return the texts of one of ``languages()``, by key."""
    return {
        key: text
        for folder in FOLDERS
        for key, text in json.loads((folder / f"{language}.json").read_text(encoding="utf-8")).items()
    }


@cache
def languages() -> frozenset[str]:
    return frozenset(file.stem for file in FOLDERS[0].glob("*.json"))


def preferred_language(accepted: str) -> str:
    """Return our language that an Accept-Language header prefers (RFC 9110, section 12.5.4), else English."""
    best, most = DEFAULT, 0.0
    for choice in accepted.split(",", MAX_CHOICES)[:MAX_CHOICES]:
        tag, _, parameter = choice.partition(";")
        language = tag.strip().partition("-")[0].lower()
        weight = _weight(parameter)
        if weight > most and language in languages():
            best, most = language, weight
    return best


def _weight(parameter: str) -> float:
    """Return the weight from ``q=0.8``: 1 where it is left out, 0 for one that is no number of the header's grammar."""
    name, _, value = parameter.strip().partition("=")
    if not name:
        return 1.0
    digits = value.strip().removeprefix("0.").removeprefix("1.")
    if name.strip().lower() != "q" or not (digits.isascii() and digits.isdecimal() and len(digits) <= 3):
        return 0.0
    return min(float(value), 1.0)
