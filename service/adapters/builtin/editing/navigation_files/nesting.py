"""Entries of navigation files: the one that is to go, with the groups that it leaves empty. All else stays as written.

JSON, and the literals of JavaScript, are read as strings in nested brackets with commas between them.
"""

import re
from collections.abc import Sequence

from msgspec import Struct, field

_TOKEN = re.compile(
    r"(?P<string>\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|`[^`]*`)|(?P<comment>//[^\n]*|/\*(?>.*?(?:\*/|\Z)))|(?P<open>[\[{(])"
    r"|(?P<close>[\])}])|(?P<comma>,)|(?P<other>[^\s\"'`\[\](){},/]++|/)",
    re.DOTALL,
)
_LABELS = frozenset({"openapi", "asyncapi", "root", "href", "link"})
"""Keys of a group that lead somewhere: such a group stays when its list is empty."""


class Element(Struct):
    """One of the values, or keys with their values, that commas part."""

    start: int
    end: int
    strings: list[tuple[int, str]] = field(default_factory=list)
    """Its own, in brackets of no further depth: where they begin, with their quotes."""
    inside: list["Bracket"] = field(default_factory=list)


class Bracket(Struct):
    start: int
    end: int = 0
    elements: list[Element] = field(default_factory=list)


def without_entry(text: str, line: int, found: str) -> str | None:
    """Return the text of a JSON or JavaScript file without the entry that is on a line, counted from 1.

    None where the entry is not one of a list, which is for people to mend.
    """
    at = text.find(found, _start_of(text, line))
    path = [] if at < 0 or text.count("\n", 0, at) + 1 != line else _path_to(_brackets(text), at)
    while path:
        bracket, element = path.pop()
        if text[bracket.start] == "[":
            if len(bracket.elements) > 1 or not path or not _may_go(path[-1][0], text):
                return _removed(text, bracket, element)
            path.pop()  # the object whose list this is, in its turn an element of a list
            if not path or text[path[-1][0].start] != "[":
                return _removed(text, bracket, element)
        elif not _is_document(element, text):
            return None
    return None


def _start_of(text: str, line: int) -> int:
    at = 0
    for _ in range(line - 1):
        at = text.find("\n", at) + 1
    return at


def _brackets(text: str) -> Bracket:
    top = Bracket(0, len(text))
    stack = [top]
    element: Element | None = None
    elements: list[Element | None] = [None]
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "comment":
            continue
        if kind == "comma":
            elements[-1] = None
            continue
        if kind == "close":
            if len(stack) > 1:
                stack.pop().end = token.end()
                elements.pop()
                if (element := elements[-1]) is not None:
                    element.end = token.end()
            continue
        element = elements[-1]
        if element is None:
            element = elements[-1] = Element(token.start(), token.end())
            stack[-1].elements.append(element)
        element.end = token.end()
        if kind == "string":
            element.strings.append((token.start(), token[0]))
        elif kind == "open":
            bracket = Bracket(token.start(), token.end())
            element.inside.append(bracket)
            stack.append(bracket)
            elements.append(None)
    return top


def _path_to(top: Bracket, at: int) -> list[tuple[Bracket, Element]]:
    """Return the brackets and elements around a place, from the outermost on; none where no string begins there."""
    path: list[tuple[Bracket, Element]] = []
    bracket: Bracket | None = top
    while bracket is not None:
        element = next((each for each in bracket.elements if each.start <= at < each.end), None)
        if element is None:
            return []
        path.append((bracket, element))
        bracket = next((each for each in element.inside if each.start <= at < each.end), None)
    return path if any(start == at for start, _ in path[-1][1].strings) else []


def _keys(bracket: Bracket, text: str) -> set[str]:
    return {re.split(r"[:\s]", text[each.start : each.end], maxsplit=1)[0].strip("\"'") for each in bracket.elements}


def _may_go(bracket: Bracket, text: str) -> bool:
    """Return whether an object is a group that is nothing without its list."""
    lists = sum(bool(each.inside) for each in bracket.elements)
    return text[bracket.start] == "{" and lists == 1 and _LABELS.isdisjoint(_keys(bracket, text))


def _is_document(element: Element, text: str) -> bool:
    """Return whether an element of an object says which page the object is: ``{type: "doc", id: "x"}``."""
    key = re.split(r"[:\s]", text[element.start : element.end], maxsplit=1)[0].strip("\"'")
    return key in ("id", "link") and not element.inside


def _removed(text: str, bracket: Bracket, element: Element) -> str:
    at = bracket.elements.index(element)
    if at + 1 < len(bracket.elements):
        return text[: element.start] + text[bracket.elements[at + 1].start :]
    if at:
        return text[: bracket.elements[at - 1].end] + text[element.end :]
    return text[: bracket.start + 1] + text[bracket.end - 1 :]


_YAML_DEPTH = re.compile(r"(\s*)-\s")


def without_item(lines: Sequence[str], line: int) -> list[str] | None:
    """Return the lines of a YAML file without the item on one of them, and without the groups that it leaves empty."""
    at = line - 1
    left = [*lines]
    while at >= 0:
        depth = _depth(left[at])
        if depth is None:
            return None
        parent = next(
            (above for above in range(at - 1, -1, -1) if left[above].strip() and _indent(left[above]) < depth), None
        )
        has_sibling = any(_depth(left[other]) == depth for other in _children(left, parent) if other != at)
        del left[at]
        if has_sibling or parent is None or not _is_group(left[parent]):
            return left
        at = parent
    return left


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _depth(line: str) -> int | None:
    match = _YAML_DEPTH.match(line)
    return len(match[1]) if match else None


def _is_group(line: str) -> bool:
    return _depth(line) is not None and line.rstrip().endswith(":")


def _children(lines: Sequence[str], parent: int | None) -> range:
    if parent is None:
        return range(len(lines))
    end = parent + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > _indent(lines[parent])):
        end += 1
    return range(parent + 1, end)
