"""What is sent of an answer, with the words of links held until it is known whether they become one."""

from msgspec import Struct

MAX_LABEL = 300
"""Limit for a link's words; a longer link is text."""
MAX_DEPTH = 8
"""Limit for brackets within brackets."""


class Label(Struct):
    """The words of a link that may come."""

    is_image: bool
    stands_free: bool
    """Nothing that could join with its first letter is before it."""
    out: list[str] = []
    length: int = 0

    @property
    def opening(self) -> str:
        """Return its first bracket. An image that is not of the site gets a blank before it, which makes it a link."""
        return "! [" if self.is_image else "["

    @property
    def words(self) -> str:
        return "".join(self.out)


class Outgoing:
    def __init__(self) -> None:
        self.last = "\n"
        """The last character that was sent, brackets that are held included."""
        self._out: list[str] = []
        self.labels: list[Label] = []
        """Those that are open, the innermost last."""

    def emit(self, text: str) -> None:
        if not text:
            return
        self.last = text[-1]
        if not self.labels:
            self._out.append(text)
            return
        label = self.labels[-1]
        label.out.append(text)
        label.length += len(text)
        while sum(one.length for one in self.labels) > MAX_LABEL:
            self._let_outermost_go()

    def open_label(self, *, is_image: bool) -> None:
        if len(self.labels) >= MAX_DEPTH:
            self._let_outermost_go()
        self.labels.append(Label(is_image, self.last.isspace() or self.last in '(*_"'))
        self.last = "["

    def close_label(self) -> Label:
        """The innermost one, which is open no more."""
        return self.labels.pop()

    def let_labels_go(self) -> None:
        """They are text: no link comes of them any more."""
        while self.labels:
            self._let_outermost_go()

    def _let_outermost_go(self) -> None:
        """It is text; within it, a link may still come: a citation behind a bracket that was never closed."""
        label = self.labels.pop(0)
        self._out += [label.opening, *label.out]

    def take(self) -> str:
        text = "".join(self._out)
        self._out.clear()
        return text
