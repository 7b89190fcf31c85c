"""The texts of the widget and the ask page: each language says all that English says."""

import json
import re
from pathlib import Path

import pytest

FOLDERS = (Path("service/web/scripts/widget/texts"), Path("service/web/ask/texts"))
LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "ko", "pt", "ru", "zh")


def texts(folder, language):
    return json.loads((folder / f"{language}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", FOLDERS, ids=("widget", "ask"))
def test_every_language_has_every_text(folder):
    assert sorted(file.stem for file in folder.iterdir()) == list(LANGUAGES)
    english = texts(folder, "en")
    for language in LANGUAGES:
        found = texts(folder, language)
        assert list(found) == list(english), language
        for key, text in found.items():
            assert text.strip() == text != "", (language, key)
            assert not re.search("[<>&]", text), (language, key)
            slots = [sorted(re.findall(r"\{\w*\}", one)) for one in (text, english[key])]
            assert slots[0] == slots[1], (language, key)


def test_arabic_alone_is_written_from_right_to_left():
    directions = {language: texts(FOLDERS[1], language)["direction"] for language in LANGUAGES}
    assert [language for language, direction in directions.items() if direction == "rtl"] == ["ar"]
    assert set(directions.values()) == {"ltr", "rtl"}
