"""Terms: names of flags, options, functions and things, as headings, rows of tables and questions spell them.

One thing is spelled in many ways: the heading is ``--testNamePattern=<regex>`` or ``getByRole(name)``, with a type in
brackets or a badge behind it, and the reader types ``--test-name-pattern``, ``"getByRole"`` or "What does getByRole
do?". ``names_in`` returns the names that a heading stands for, ``names_asked`` those that a question may ask for, and
``term_key`` is the same for all spellings of a name.

``term_questions.json``: by language, the words of a question before and behind the term; ``kinds``, words that say what
sort of thing a name is, which stand beside it.
"""

import re
from collections.abc import Iterator, Mapping, Set
from functools import cache, lru_cache
from importlib import resources

import msgspec
from msgspec import Struct

from service.domain.texts.unicode_forms import normalized

MAX_TERM, MAX_NAMES = 100, 6
"""Characters of a heading or a question that may be a term, with the words around it; names of one heading."""
MAX_KEPT, MAX_KEPT_ASKED = 20_000, 256
"""Headings whose names are kept: those of a site are read again with each version and language of it. Questions: one is
compared with each section of its term.
"""
SAME, SAME_LETTERS, SAME_KEY = 0, 1, 2
"""How near two spellings are: the same, but for capitals, but for signs too."""

_MARKS = "`'\"“”„«»‘’「」*"  # noqa: RUF001
_SIGNS = re.compile(r"(?<!\d)\.|\.(?!\d)|(?<![^\W_+#])[+#]|[^\w.+#]|_")
"""What is no part of a key. ``C++`` and ``C#`` are not C, and ``2.10`` is not 210."""
_ARGUMENTS = re.compile(
    r"(?<=[^\s\[({<=])(?:\s*\\?[\[({<].*|=\s*(?:[<\[{(|\"'…]|\.\.|[A-Z][A-Z_]*\b|\Z).*|\s+v?\d+(?:\.\d+)+\S*)\Z"
    r"|(?<=\A[a-z_$])(?P<rest>[\w$.]*+)\??\s?:(?:\s\S++){1,4}\Z"
    r"|(?<=\A-)(?P<flag>-?[\w-]+)(?:\s+\w+(?:\s+Default:.*)?)\Z",
    re.DOTALL,
)
"""Arguments, a placeholder of a value, the version that has it, a type: what may follow a name in its heading. With a
value, as in ``--mode=fast``, it is a use of the name, and what stands there is about the value.
"""
_LIST = re.compile(r" ?, ?(?:(?:and|or|&) )?| [/|&] | or | and ")
_ASKING = " ?!.,;:？！。"  # noqa: RUF001
_LATIN = "\u024f"
_CODE = re.compile(r"[^\W_](?:_|\.|-|::|/)+[^\W_]|\A[^A-Z]*[a-z0-9][A-Z]|\A(?:--?|[@$.])[^\W\d_]|\(\)\Z")
_USE = re.compile(r"(?<!\S)(--?[\w-]+)=\S+")
_LABEL = re.compile(r"\A\w+:\s+(?=\S+\Z)")
"""``Class: Foo``"""


class _Lists(Struct, frozen=True):
    before: dict[str, tuple[str, ...]]
    behind: dict[str, tuple[str, ...]]
    kinds: str


@cache
def _lists() -> _Lists:
    data = resources.files("service.markup.languages").joinpath("term_questions.json").read_bytes()
    return msgspec.json.decode(data, type=_Lists)


@cache
def _kinds() -> frozenset[str]:
    return frozenset(_lists().kinds.split())


_Frames = Mapping[str, Mapping[int, Set[str]]]
"""Words by the letter that they begin or end with, and by their length, the longest first."""


@cache
def _frames() -> tuple[_Frames, _Frames]:
    """Return the words before a term, by their first letter, and those behind it, by their last one."""
    lists = _lists()
    return _by_letter(lists.before, 0), _by_letter(lists.behind, -1)


def _by_letter(lists: Mapping[str, tuple[str, ...]], at: int) -> _Frames:
    found: dict[str, dict[int, set[str]]] = {}
    for words in sorted({words for each in lists.values() for words in each}, key=len, reverse=True):
        found.setdefault(words[at], {}).setdefault(len(words), set()).add(words)
    return found


def term_key(name: str) -> str:
    """Return a key that all spellings of a name have: its letters and digits, in lower case; empty for one too long."""
    if len(name) > MAX_TERM:
        return ""
    key = _SIGNS.sub("", normalized("NFKC", name).casefold())
    return key if any(map(str.isalnum, key)) else ""


def nearness(one: str, other: str) -> int:
    """Return how near two spellings of one key are; the least is the nearest."""
    if one == other:
        return SAME
    return SAME_LETTERS if one.casefold() == other.casefold() else SAME_KEY


@lru_cache(MAX_KEPT)
def names_in(heading: str) -> tuple[str, ...]:
    """Return the names that a heading or the first cell of a row stands for: itself, and what is left of it without
    arguments and words such as "option"; of several beside each other (``-v, --verbose``) each.
    """
    if len(heading) > MAX_TERM:
        return ()
    return tuple(dict.fromkeys(name for name in _names(_bare(heading)) if term_key(name)))[:MAX_NAMES]


def _names(text: str) -> Iterator[str]:
    yield text
    name = _name(text)
    if name:
        yield name
        return
    parts = [_name(part) or part for part in map(_bare, _LIST.split(text)) if part]
    if len(parts) > 1 and all(map(is_written_as_code, parts)):
        yield from parts


def _name(text: str) -> str:
    """Return the one word that is left of a text; empty where more are."""
    words = _LABEL.sub("", text)
    while words:
        bare = _bare(_ARGUMENTS.sub(r"\g<rest>\g<flag>", words))
        if bare and " " not in bare:
            return bare
        first, _, rest = words.partition(" ")
        head, _, last = words.rpartition(" ")
        if rest and first.casefold() in _kinds():
            words = rest
        elif head and last.casefold().strip("()[]") in _kinds():
            words = head
        else:
            return ""
    return ""


def _bare(text: str) -> str:
    """Return a text without backticks, quotation marks and stars around it."""
    text = " ".join(text.split())
    while len(text) > 1 and text[0] in _MARKS and text[-1] in _MARKS and text[0] not in text.strip(text[0]):
        text = text[1:-1].strip()
    inner = text.strip("`")
    return text if "`" in inner else inner  # that is a list, `a` and `b`


def names_asked(question: str) -> tuple[str, ...]:
    """Return the names that a question may be about, each once: the question itself, as it is typed into a search
    field, and the term in "What does … do?"; none for a longer one.
    """
    return _names_asked(" ".join(question[: 2 * MAX_TERM].split()))


@lru_cache(MAX_KEPT_ASKED)
def _names_asked(question: str) -> tuple[str, ...]:
    text = _USE.sub(r"\1", question) if "=" in question else question
    if not text or len(text) > MAX_TERM:
        return ()
    found = [*names_in(text)]
    before, behind = _frames()
    asked = text.rstrip(_ASKING) if text[-1:] in _ASKING else text
    term = asked.lstrip("¿¡")
    term = term[_beginning(term, before) :].strip()
    term = term[: len(term) - _ending(term, behind)].strip()
    if term and term != text:
        found += names_in(term)
        found += names_in(_without_articles(term))
    return tuple(dict.fromkeys(found))[: 2 * MAX_NAMES]


def is_written_as_code(name: str) -> bool:
    """Return whether a name is one word that is spelled as in code: ``SKIP_BRIDGE``, ``--run``, ``getRole``. Products
    are spelled as classes are, ``GitHub``: such a name may be either.
    """
    return " " not in name and _CODE.search(name) is not None


def is_name(name: str) -> bool:
    """Return whether a heading is likely a name in code: it is spelled as such, or one word without capitals."""
    return is_written_as_code(name) or (" " not in name and name == name.lower())


def mention(name: str, text: str, folded: str) -> int | None:
    """Return how near the nearest spelling of a name in code is that a text has; None for one that it has not.

    ``folded``: the text in lower case.
    """
    if name in text:
        return SAME
    if name.casefold() in folded:
        return SAME_LETTERS
    key = term_key(name)
    return SAME_KEY if key != name.casefold().strip("-") and key in _SIGNS.sub("", folded) else None


def _beginning(text: str, frames: _Frames) -> int:
    """Return the length of the words that a text begins with, and goes on; scripts without blanks have none there."""
    for length, words in frames.get(text[:1].casefold(), {}).items():
        begun, after = text[:length].casefold(), text[length : length + 1]
        if begun in words and (after == " " or not begun[-1].isalpha() or begun[-1] > _LATIN):
            return length
    return 0


def _ending(text: str, frames: _Frames) -> int:
    for length, words in frames.get(text[-1:].casefold(), {}).items():
        end, before = text[-length:].casefold(), text[-length - 1 : -length]
        if end in words and (before == " " or (before != "" and end[0] > _LATIN)):
            return length
    return 0


def _without_articles(text: str) -> str:
    first, _, rest = text.partition(" ")
    return rest if rest and first.casefold() in ("the", "a", "an") else text
