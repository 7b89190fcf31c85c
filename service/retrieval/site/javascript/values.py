"""Values of programs that are read and not run: those that only a run would give, and texts put together."""

from collections.abc import Sequence

MAX_TEXT = 20_000
"""Characters of a text that is put together."""


class Unknown:
    """A value that only a run of the program would give."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


def joined(values: Sequence[object]) -> object:
    texts = [str(value) for value in values if isinstance(value, str | int) and not isinstance(value, bool)]
    return "".join(texts) if len(texts) == len(values) and sum(map(len, texts)) <= MAX_TEXT else UNKNOWN


def path_of(given: Sequence[object]) -> object:
    """Return the path that ``path.resolve(__dirname, "a")`` and ``require.resolve("a")`` make."""
    parts = [each for each in given if isinstance(each, str)]
    return "/".join(parts)[:MAX_TEXT] if parts else UNKNOWN
