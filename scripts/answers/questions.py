"""The questions that answers are measured by, and how their answering words are looked for.

``questions.jsonl`` has one question a line, after a first line about the file. Fields:

- ``id``, ``corpus`` and ``kind`` (``KINDS``); ``q``: the question as a reader typed it; ``before``: the turns before
  it, as pairs of a question and an answer.
- ``words``: what the documentation says, each found in the source of one of ``pages``. All of them must be found; where
  one is a list, any one of that list.
- ``plan``: for a question that is hard to search for (a follow-up, a comparison, another language), the searches that a
  perfect planner would write. ``language``, where it is not English. ``slip``: with a slip in spelling.
- ``held``: kept for judging. Tune by the others only.
"""

import html
import json
import re
from pathlib import Path

import msgspec
from msgspec import Struct

QUESTIONS_FILE = Path(__file__).parent / "questions.jsonl"
KINDS = ("how-to", "comparison", "follow-up", "default", "error", "code")

_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s+\"[^\"]*\")?\)")
_ROLE = re.compile(r":[\w:+-]+:(?=`)|\{[\w:+-]+\}(?=`)")
_TARGET = re.compile(r"(?<=\S)\s*<[^<>\s]+>`__?|(?<=`)__?(?!\w)")
_MARKS = str.maketrans({**dict.fromkeys("*`_~\\[]", ""), **dict.fromkeys("|#>", " "), "’": "'", "“": '"', "”": '"'})  # noqa: RUF001


class AskedQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    corpus: str
    kind: str
    q: str
    words: tuple[str | tuple[str, ...], ...]
    pages: tuple[str, ...]
    before: tuple[tuple[str, str], ...] = ()
    plan: tuple[str, ...] = ()
    language: str = "en"
    slip: bool = False
    held: bool = False


def asked_questions(file: Path = QUESTIONS_FILE) -> list[AskedQuestion]:
    lines = file.read_text(encoding="utf-8").splitlines()[1:]
    return [msgspec.convert(json.loads(line), AskedQuestion) for line in lines]


def normalized(text: str) -> str:
    """Return the text without Markdown's marks, link targets, differences of case and runs of white space."""
    text = _TARGET.sub("", _ROLE.sub("", _LINK.sub(r"\1", html.unescape(text))))
    return " ".join(text.translate(_MARKS).split()).casefold()


def missing_words(question: AskedQuestion, normalized_text: str) -> list[str]:
    """Return those of the answering words that the text lacks."""
    choices = [(words,) if isinstance(words, str) else words for words in question.words]
    return [one[0] for one in choices if not any(normalized(words) in normalized_text for words in one)]
