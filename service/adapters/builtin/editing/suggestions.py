"""The known form nearest to an instruction that has none, filled in from its words.

A place that the words do not fill keeps its name in capitals, as in the list of forms.
"""

import re
from collections.abc import Callable, Collection, Sequence

from msgspec import Struct

from service.adapters.builtin.editing.forms import without_quotes
from service.adapters.builtin.editing.pages import is_page

MAX_CHARACTERS = 1_000
"""Characters of an instruction that are looked at."""
MAX_WORDS = 12
"""Words without quotes that are taken for a text."""

_PIECE = re.compile(r"\x00\d+\x00|[^\s\x00]+")
_PATH = re.compile(r"/?[\w.-]+/[\w./-]*")
_AROUND = " .,:;!?()"

_LINKS = frozenset({"link", "links", "url", "urls", "anchor", "anchors"})
_BROKEN = frozenset({"broken", "dead", "fix", "repair", "mend", "check", "rotten"})
_TITLE = frozenset({"title", "titles", "retitle", "headline", "entitle"})
_RENAME = frozenset({"rename", "renamed", "renaming", "move", "moved", "moving", "relocate", "call", "called"})
_REMOVE = frozenset({"remove", "removed", "removing", "delete", "deleted", "drop", "erase", "rid", "retire"})
_NEW = frozenset({"create", "new", "write", "make", "start", "another"})
_PAGE = frozenset({"page", "article", "guide"})
_REPLACE = frozenset({"replace", "change", "substitute", "swap", "update", "correct", "turn"})
_ADD = frozenset({"add", "append", "insert", "put", "mention", "note", "include", "say", "write", "state", "document",
                  "explain", "describe"})  # fmt: skip
_SMALL = frozenset({"a", "about", "all", "an", "called", "every", "for", "named", "occurrences", "of", "on", "our",
                    "the", "titled", "word"})  # fmt: skip
_SCOPE = frozenset({"the", "all", "every", "each", "our"})


class _Said(Struct, frozen=True):
    """An instruction, as its pieces: words, and quotations as one piece each."""

    pieces: Sequence[str]
    words: Sequence[str]
    """The pieces in lower case and without punctuation; empty for quotations."""
    texts: Sequence[str]
    """Quotations that are no paths."""
    paths: Sequence[str]

    def has(self, words: Collection[str]) -> bool:
        return any(word in words for word in self.words)

    def find(self, words: Collection[str], start: int = 0) -> int:
        """Return the index of the first of these words, or -1."""
        return next((at for at in range(start, len(self.words)) if self.words[at] in words), -1)

    def text(self, start: int, end: int | None = None) -> str:
        """Return pieces as a text: without small words before it; empty where it is too long to be one."""
        end = len(self.pieces) if end is None else end
        while start < end and self.words[start] in _SMALL:
            start += 1
        joined = " ".join(self.pieces[start:end]).strip(_AROUND)
        return joined if 0 < end - start <= MAX_WORDS else ""

    def after(self, words: Collection[str], start: int = 0) -> str:
        at = self.find(words, start)
        return "" if at < 0 else self.text(at + 1)

    def place_end(self, start: int) -> int:
        """Return where the words about the place begin: ``in the docs``, ``everywhere``."""
        for at in range(start, len(self.words)):
            following = self.words[at + 1] if at + 1 < len(self.words) else ""
            if self.words[at] in ("everywhere", "throughout") or (
                self.words[at] in ("in", "on") and (following in _SCOPE or _is_path(following))
            ):
                return at
        return len(self.words)

    @property
    def path(self) -> str:
        return self.paths[0] if self.paths else "PATH"

    @property
    def where(self) -> str:
        return f" in {self.paths[0]}" if self.paths else ""


def nearest_form(instruction: str) -> str:
    """Return it as people would write it; empty where nothing in the words leads to a form."""
    marked, quotes = without_quotes(" ".join(instruction[:MAX_CHARACTERS].split()))
    found = _PIECE.findall(marked)
    pieces = [quotes[int(piece[1:-1])] if piece[0] == "\x00" else piece for piece in found]
    bare = [piece if mark[0] == "\x00" else piece.strip(_AROUND) for piece, mark in zip(pieces, found, strict=True)]
    words = ["" if mark[0] == "\x00" else word.lower() for word, mark in zip(bare, found, strict=True)]
    paths = [each for each in bare if _is_path(each)]
    said = _Said(pieces, words, [each for each in quotes if not _is_path(each)], paths)
    return next((form for make in _FORMS if (form := make(said))), "")


def _is_path(word: str) -> bool:
    if " " in word or word.lower() == "and/or":
        return False
    return _PATH.fullmatch(word) is not None if "/" in word else is_page(word)


def _fix_links(said: _Said) -> str:
    return f"fix broken links{said.where}" if said.has(_LINKS) and said.has(_BROKEN) else ""


def _set_title(said: _Said) -> str:
    if not said.has(_TITLE) or said.has({"create", "new", "add"}):
        return ""
    title = said.texts[-1] if said.texts else said.after({"to", "as", "be", "into", "is"})
    return f'set title of {said.path} to "{title or "T"}"'


def _rename(said: _Said) -> str:
    if len(said.paths) < 2 and (not said.has(_RENAME) or said.has({"call", "called"})):
        return ""
    if said.has(_NEW) or (said.has(_REPLACE) and not said.has(_PAGE | _RENAME)):
        return ""
    to = said.paths[1] if len(said.paths) > 1 else said.after({"to", "into", "as"})
    return f"rename page {said.path} to {to if to and ' ' not in to else 'PATH'}"


def _remove(said: _Said) -> str:
    if not said.has(_REMOVE):
        return ""
    if said.texts:
        return f'replace "{said.texts[0]}" with ""{said.where}'
    if said.paths:
        return f"remove page {said.paths[0]}"
    at = said.find({"page", "pages"})
    named = "" if at < 0 else said.text(at + 1) or said.text(said.find(_REMOVE) + 1, at)
    return f"remove page {named if named and ' ' not in named else 'PATH'}"


def _create(said: _Said) -> str:
    if not said.has(_PAGE) or not said.has(_NEW) or said.has({"replace", "change"}):
        return ""
    start = said.find({"about", "titled", "called", "named", "on", "explaining"})
    end = said.find({"in", "at", "under"}, start + 1) if start >= 0 else -1
    about = "" if start < 0 else said.text(start + 1, end if end > start else None)
    title = (said.texts[0] if said.texts else about) or "T"
    return f'create page {said.path} with title "{title[:1].upper()}{title[1:]}"'


def _replace(said: _Said) -> str:
    instead = said.find({"instead", "rather", "not"})
    if len(said.texts) == 2 and not said.has({"add", "append", "insert", "under", "before", "after"}):
        old, new = said.texts if instead < 0 else said.texts[::-1]
        return f'replace "{old}" with "{new}"{said.where}'
    old = new = ""
    verb = said.find(_REPLACE)
    to = said.find({"with", "by", "to", "into"}, verb + 1)
    written = said.find({"use", "write", "say"})
    if 0 <= verb < to:
        old, new = said.text(verb + 1, to), said.text(to + 1, said.place_end(to + 1))
    elif 0 <= written < instead:
        of = instead + (2 if said.words[instead] != "not" else 1)
        old, new = said.text(of, said.place_end(of)), said.text(written + 1, instead)
    if old and new:
        return f'replace "{old}" with "{new}"{said.where}'
    return f'replace "A" with "B"{said.where}' if said.has({"replace", "substitute", "swap"}) else ""


def _add(said: _Said) -> str:
    if not said.has(_ADD):
        return ""
    colon = next((at for at, piece in enumerate(said.pieces[:-1]) if piece.endswith(":")), -1)
    text = said.texts[0] if said.texts else said.after({"that"}) or ("" if colon < 0 else said.text(colon + 1))
    if not text and not said.paths:
        return ""
    under = f' under "{said.texts[1]}"' if len(said.texts) > 1 and said.has({"under", "below", "after"}) else ""
    return f'add "{text or "TEXT"}" to {said.path}{under}'


def _change_page(said: _Said) -> str:
    return f'replace "A" with "B" in {said.paths[0]}' if said.paths else ""


_FORMS: tuple[Callable[[_Said], str], ...] = (
    _fix_links, _set_title, _rename, _remove, _create, _replace, _add, _change_page,
)  # fmt: skip
