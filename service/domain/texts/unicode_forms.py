"""Unicode's normal forms of texts that others wrote.

Python sorts the marks behind a letter by insertion, in one call that nothing interrupts: 30,000 marks take a second,
and a million of them minutes. So a run of marks is cut as in Unicode's Stream-Safe Text Format (UAX #15), which calls
30 of them more than any language needs.
"""

import re
import unicodedata
from typing import Literal

from service.domain.errors import Invalid

MAX_CHARACTERS = 32_768
"""For a question, a search or an instruction."""
_SLICE = 1_024
MAX_MARKS = 30
_HALFWIDTH = "\uff9e\uff9f"
"""The only letters that become marks."""
_MAY_BE_MARKS = re.compile(rf"(?:[^\w\s\0-\u02ff]|[{_HALFWIDTH}]){{{MAX_MARKS + 1},}}")


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return the normal form of a text, without the marks of a run beyond the first ``MAX_MARKS``."""
    return text if text.isascii() else unicodedata.normalize(form, _MAY_BE_MARKS.sub(_cut, text))


def is_too_large(text: str, most: int = MAX_CHARACTERS) -> bool:
    """Return whether a text has more characters than that, as it is or in the compatibility form (NFKC), in which one
    character may become eighteen: a question of 32,768 then costs those who read it as much as 600,000.
    """
    if len(text) > most:
        return True
    left = most
    for at in range(0, 0 if text.isascii() else len(text), _SLICE):  # no longer than it takes to see that it is
        left -= len(normalized("NFKC", text[at : at + _SLICE]))
        if left < 0:
            return True
    return False


def require_bounded(text: str, name: str) -> None:
    """Raise Invalid for a text that ``is_too_large``."""
    if is_too_large(text):
        sentence = f"has more than {MAX_CHARACTERS:,} characters, as it is or in Unicode's form NFKC"
        raise Invalid(f"{name}: it {sentence}.", problems=((name, sentence),) if name.startswith("$") else ())


def _cut(run: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for character in run[0]:
        marks = marks + 1 if unicodedata.category(character)[0] == "M" or character in _HALFWIDTH else 0
        if marks <= MAX_MARKS:
            kept.append(character)
    return "".join(kept)
