"""Two sequences compared, within a budget: difflib's search is cubic where the same items come again and again."""

from collections.abc import Hashable, Sequence
from difflib import Match, SequenceMatcher
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

Opcode = tuple[str, int, int, int, int]
"""One tuple of ``SequenceMatcher.get_opcodes``."""


class TooMuchEffort(Exception):
    """The budget does not suffice."""


class Effort:
    """A budget of steps, each of some 50 nanoseconds."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Raises TooMuchEffort: and nothing is left then."""
        self.left -= steps
        if self.left < 0:
            raise TooMuchEffort


def opcodes(
    before: Sequence[T], after: Sequence[T], effort: Effort, *, most: int, autojunk: bool = False
) -> list[Opcode] | None:
    """Return how to make one of the other; None when that takes more than ``most`` steps, or than there are left.

    What both begin with, and end with, costs nearly nothing.
    """
    head, tail = _ends(before, after)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    own = Effort(min(most, effort.left))
    granted = own.left
    found: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    try:
        own.spend(len(old) + len(new))
        for tag, a, b, c, d in _Metered(own, old, new, autojunk=autojunk).get_opcodes():
            found.append((tag, head + a, head + b, head + c, head + d))
    except TooMuchEffort:
        return None
    finally:
        effort.left -= min(granted, granted - own.left)
    if tail:
        found.append(("equal", len(before) - tail, len(before), len(after) - tail, len(after)))
    return found


def coarse_opcodes(before: Sequence[T], after: Sequence[T]) -> list[Opcode]:
    """Return opcodes that replace everything between the common beginning and the common end."""
    head, tail = _ends(before, after)
    old, new = len(before) - tail, len(after) - tail
    found: list[Opcode] = [
        ("equal", 0, head, 0, head), ("replace", head, old, head, new), ("equal", old, len(before), new, len(after))
    ]  # fmt: skip
    return [one for one in found if one[1] < one[2] or one[3] < one[4]]


def _ends(before: Sequence[T], after: Sequence[T]) -> tuple[int, int]:
    """Return how many items both begin with, and how many of the rest both end with."""
    head, tail, shorter = 0, 0, min(len(before), len(after))
    while head < shorter and before[head] == after[head]:
        head += 1
    while tail < shorter - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return head, tail


class _Metered(SequenceMatcher[T]):
    """Pays for each search before it begins: a search meets every place in ``b`` of each item of its part of ``a``."""

    def __init__(self, effort: Effort, a: Sequence[T], b: Sequence[T], *, autojunk: bool) -> None:
        super().__init__(None, a, b, autojunk)
        self._effort, self._a = effort, a

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        end = len(self._a) if ahi is None else ahi
        places: dict[T, list[int]] = vars(self)["b2j"]  # what difflib searches in; part of its documentation
        self._effort.spend(end - alo + sum(len(places.get(item, ())) for item in self._a[alo:end]))
        return super().find_longest_match(alo, ahi, blo, bhi)
