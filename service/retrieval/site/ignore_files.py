"""Ignore files in .gitignore's language (git-scm.com/docs/gitignore, "Pattern format"), matched in linear time.

The lines of a file are one automaton with a bit for each place in each line. Reading one character of a path moves all
bits at once, and what came of it is kept, so that a path costs a look for each of its characters however many lines
there are and however many wildcards they have. A regular expression would try every way to share a name out between
the wildcards of a line, which a hostile repository can choose.

A negation (``!``) is not understood: it ignores nothing.
"""

import re
from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct

MAX_LINES, MAX_LINE_CHARACTERS, MAX_CHARACTERS = 1_000, 500, 8_192
"""Limits for one ignore file, comments not counted; lines beyond them are not applied."""
MAX_STATES, MAX_STEPS, MAX_FOLDERS = 1_000, 200_000, 20_000
"""Kept at a time, a state with at most 2 KB; then they are found again."""


class IgnoreRules(Struct, frozen=True, dict=True):
    """The lines that are applied, and the number of those that are not because the file is too large."""

    lines: tuple[str, ...] = ()
    cut: int = 0
    file: str = ""
    """Where they are from."""

    def ignores(self, path: str) -> bool:
        """Return whether a line fits the path, which is relative to the folder of the ignore file."""
        return bool(self.lines) and self._automaton.accepts(path)

    @cached_property
    def _automaton(self) -> "_Automaton":
        return _Automaton(self.lines)


def ignore_rules(lines: Iterable[str], *, file: str = "") -> IgnoreRules:
    """Return the rules of an ignore file's lines, up to the limits."""
    kept: list[str] = []
    cut = characters = 0
    for line in (line.strip() for line in lines):
        if not line.strip("/") or line[0] in "#!":
            continue
        if len(kept) >= MAX_LINES or len(line) > MAX_LINE_CHARACTERS or characters + len(line) > MAX_CHARACTERS:
            cut += 1
            continue
        kept.append(line)
        characters += len(line)
    return IgnoreRules(tuple(kept), cut, file)


class _State:
    """Places reached in the lines, as bits, and the states that follow."""

    __slots__ = ("bits", "following")

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.following: dict[str, _State] = {}


_PARTS = re.compile(r"\*\*+/(?:\*\*+/)*|\*\*+|\*|\?|.", re.DOTALL)
_FITS = _State(-1)
"""A folder on the way is ignored, so all below it is."""


class _Automaton:
    def __init__(self, lines: Iterable[str]) -> None:
        self._letters: dict[str, int] = {}
        """By character, the places that it leads on from; so do the next three for kinds of characters."""
        self._any_letter = 0
        self._stays = 0
        """``*``: stays at its place, or is passed over."""
        self._stays_anywhere = 0
        """``**``: the same, and over slashes."""
        self._optional = 0
        """``**/``: passed over, with its three places, or walked through."""
        self._ends = self._folder_ends = 0
        self._begins = self._begins_anywhere = 0
        place = 0
        for line in lines:
            place = self._add(line, place)
        self._forget()

    def _add(self, line: str, place: int) -> int:
        """Return the first place after the line's."""
        body = line.strip("/")
        if "/" in body or line.startswith("/"):
            self._begins |= 1 << place
        else:
            self._begins_anywhere |= 1 << place
        for part in _PARTS.findall(body):
            bit = 1 << place
            if part.startswith("**") and part.endswith("/"):
                self._optional |= bit
                self._stays_anywhere |= bit << 1
                self._letters["/"] = self._letters.get("/", 0) | bit << 2
                place += 3
                continue
            if part.startswith("**"):
                self._stays_anywhere |= bit
            elif part == "*":
                self._stays |= bit
            elif part == "?":
                self._any_letter |= bit
            else:
                self._letters[part] = self._letters.get(part, 0) | bit
            place += 1
        if line.endswith("/"):
            self._folder_ends |= 1 << place
        else:
            self._ends |= 1 << place
        return place + 1

    def _forget(self) -> None:
        self._states: dict[int, _State] = {}
        self._steps = 0
        self._folders: dict[str, _State] = {"": self._state(self._begins | self._begins_anywhere)}

    def accepts(self, path: str) -> bool:
        if len(self._states) > MAX_STATES or self._steps > MAX_STEPS or len(self._folders) > MAX_FOLDERS:
            self._forget()
        folder, slash, name = path.rpartition("/")
        state = self._read(self._in_folder(folder + slash), name)
        return state is _FITS or bool(state.bits & self._ends)

    def _in_folder(self, folder: str) -> _State:
        """Return the state after a folder's path with the slash at its end; that of files beside each other is one."""
        state = self._folders.get(folder)
        if state is None:
            state = self._folders[folder] = self._read(self._state(self._begins | self._begins_anywhere), folder)
        return state

    def _read(self, state: _State, text: str) -> _State:
        for letter in text:
            if state is _FITS:
                break
            following = state.following.get(letter)
            if following is None:
                following = state.following[letter] = self._after(state.bits, letter)
                self._steps += 1
            state = following
        return state

    def _after(self, bits: int, letter: str) -> _State:
        if letter == "/":
            if bits & (self._ends | self._folder_ends):
                return _FITS
            moved = (bits & self._letters.get("/", 0)) << 1 | bits & self._stays_anywhere | self._begins_anywhere
        else:
            leads_on = self._letters.get(letter, 0) | self._any_letter
            moved = (bits & leads_on) << 1 | bits & (self._stays | self._stays_anywhere)
        return self._state(moved)

    def _state(self, bits: int) -> _State:
        """Return the state of these places and all that are reached from them without a character."""
        before = -1
        while bits != before:
            before = bits
            bits |= (bits & (self._stays | self._stays_anywhere | self._optional)) << 1
            bits |= (bits & self._optional) << 3
        state = self._states.get(bits)
        if state is None:
            state = self._states[bits] = _State(bits)
        return state
