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
        if sum(one.length for one in self.labels) > MAX_LABEL:
            self.let_labels_go()

    def open_label(self, *, is_image: bool) -> None:
        if len(self.labels) >= MAX_DEPTH:
            self.let_labels_go()
        self.labels.append(Label(is_image, self.last.isspace() or self.last in '(*_"'))
        self.last = "["

    def close_label(self) -> Label:
        """The innermost one, which is open no more."""
        return self.labels.pop()

    def let_labels_go(self) -> None:
        """They are text: no link comes of them any more."""
        for label in self.labels:
            self._out += [label.opening, *label.out]
        self.labels.clear()

    def take(self) -> str:
        text = "".join(self._out)
        self._out.clear()
        return text
