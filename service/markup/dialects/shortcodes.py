"""The calls of Hugo's shortcodes in a page's text (gohugo.io/content-management/shortcodes): on one line or several,
with positional or named arguments, alone, closed by themselves, or around an inner text. ``{{</* */>}}`` shows a call.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

MAX_CALLS, MAX_DEPTH = 5_000, 20
"""Limits for the calls of one text, and for calls in each other; those beyond are left as they are, or have no inner
text.
"""
_INSIDE = r"\{(?!\{[<%])"
"""A brace in a call: where another call begins, this one has no end."""
_CALL = re.compile(
    r"\{\{[<%](?P<body>(?>(?:[^\"`>%{]++|" + _INSIDE + r"|\"(?>(?:[^\"\\{]|\\.|" + _INSIDE + r"){0,2000})\""
    r"|`(?>(?:[^`{]|" + _INSIDE + r"){0,2000})`|[>%](?!\}\})|[\"`]){0,500}))[>%]\}\}",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\{\{([<%])/\*((?>(?:[^*{]|\*(?!/)|" + _INSIDE + r"){0,2000}))\*/([>%])\}\}", re.DOTALL)
_ARGUMENT = re.compile(
    r"(?:(?P<name>[\w.-]{1,100})\s*=\s*)?(?:\"(?P<quoted>(?>(?:[^\"\\]|\\.)*))\"|`(?P<raw>[^`]*)`|(?P<bare>[^\s\"`=]+))",
    re.DOTALL,
)
_NAME = re.compile(r"[\w./-]{1,200}")


class Call(Struct, frozen=True):
    """One call, and where it and its inner text are."""

    name: str
    named: Mapping[str, str]
    positional: Sequence[str]
    start: int
    end: int
    """Where the call, without its inner text, ends."""
    inner_end: int = -1
    """Where its closing call begins; -1 where it has none."""
    after: int = -1
    """Where the closing call ends."""
    is_markdown: bool = True
    """Whether it is ``{{% %}}``, whose text is read as Markdown."""

    @property
    def has_inner(self) -> bool:
        return self.inner_end >= 0

    def argument(self, number: int, *names: str) -> str:
        """Return the first of the named arguments that is there, else the positional one; empty for none."""
        for name in names:
            if self.named.get(name):
                return self.named[name]
        return self.positional[number] if number < len(self.positional) else ""


class _Open(Struct):
    call: Call
    number: int


def calls_in(text: str) -> list[Call]:
    """Return the calls of a text, in order, those within the inner text of others too."""
    if "{{<" not in text and "{{%" not in text:
        return []
    found: list[Call] = []
    stack: list[_Open] = []
    for match in _CALL.finditer(text):
        body = match["body"].strip()
        if body.startswith("/*") or len(found) >= MAX_CALLS:
            continue
        if body.startswith("/"):
            _close(found, stack, body[1:].strip(), match)
            continue
        closes_itself = body.endswith("/")
        name = _NAME.match(body)
        if name is None:
            continue
        call = _call(name[0].rstrip("/"), body[name.end() :].removesuffix("/"), match)
        if not closes_itself and len(stack) < MAX_DEPTH * 50:
            stack.append(_Open(call, len(found)))
        found.append(call)
    return _shallow(found)


def _call(name: str, arguments: str, match: re.Match[str]) -> Call:
    named: dict[str, str] = {}
    positional: list[str] = []
    for one in _ARGUMENT.finditer(arguments):
        quoted = one["quoted"]
        value = (
            re.sub(r"\\(.)", r"\1", quoted)
            if quoted is not None
            else one["raw"]
            if one["raw"] is not None
            else one["bare"]
        )
        if one["name"]:
            named[one["name"]] = value
        else:
            positional.append(value)
    return Call(name, named, positional, match.start(), match.end(), is_markdown=match[0][2] == "%")


def _close(found: list[Call], stack: list[_Open], name: str, match: re.Match[str]) -> None:
    """Give the nearest open call of this name its inner text; those opened since have none."""
    at = next((n for n in range(len(stack) - 1, -1, -1) if stack[n].call.name == name), None)
    if at is None:
        found.append(Call("", {}, (), match.start(), match.end()))  # of no call: nothing is shown
        return
    one = stack[at]
    found[one.number] = Call(
        one.call.name, one.call.named, one.call.positional, one.call.start, one.call.end, match.start(), match.end(),
        one.call.is_markdown,
    )  # fmt: skip
    del stack[at:]


def _shallow(found: Sequence[Call]) -> list[Call]:
    """Return the calls without those that are nested too deeply."""
    ends: list[int] = []
    kept = []
    for call in found:
        while ends and ends[-1] <= call.start:
            ends.pop()
        if len(ends) < MAX_DEPTH:
            kept.append(call)
            if call.has_inner:
                ends.append(call.after)
    return kept


def unescaped(text: str) -> str:
    """Return a text in which calls that are to be shown are as a reader sees them."""
    return _ESCAPED.sub(lambda found: f"{{{{{found[1]}{found[2]}{found[3]}}}}}", text) if "/*" in text else text
