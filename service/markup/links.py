"""The links and images of a page, each with the place where it says where it leads."""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from service.markup.inline import Bracketed, InlineReader
from service.markup.syntax import ATTRIBUTE, is_component

_LINKING = frozenset(("href", "to", "src"))
_EXTERNAL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
MAX_SHOWN, MAX_SHOWN_OF_TAG = 1_000, 300
"""Characters of a label, or behind a tag, that are looked at; labels nest."""
MAX_LINKS = 100_000
"""Limit for the links of a page."""


class Link(Struct, frozen=True, gc=False):
    target: str
    """As written."""
    start: int
    """Where the target begins in the page."""
    label: str
    """The words that are shown, as written."""
    begin: int
    """Where the link begins, and so what its line is."""
    kind: Literal["inline", "reference", "definition", "tag"]
    """``definition``: where references lead; ``reference``: what uses it, with the definition's place."""
    is_image: bool = False
    attributes: tuple[tuple[str, str], ...] = ()
    """Attributes of a tag: names in lower case, and values."""
    tag: str = ""


def is_external(target: str) -> bool:
    """Return whether it leaves the site: another scheme or host."""
    return _EXTERNAL.match(target.strip()) is not None


def links_of(text: str, found: InlineReader) -> list[Link]:
    """Return what a reader has found in the text that leads somewhere, in order of place."""
    links = [_bracketed(text, each) for each in found.brackets]
    links += [Link(text[slice(*place)], place[0], label, place[0], "definition")
              for label, place in found.definitions.items()]  # fmt: skip
    for tag in found.tags:
        links += _of_tag(text, tag)
    return sorted(links, key=lambda link: (link.begin, link.start))[:MAX_LINKS]


def _bracketed(text: str, each: Bracketed) -> Link:
    kind: Literal["reference", "inline"] = "reference" if each.is_reference else "inline"
    label = text[each.label[0] : min(each.label[1], each.label[0] + MAX_SHOWN)]
    target = text[slice(*each.target)]
    return Link(target, each.target[0], label, each.start, kind, each.is_image)


def _of_tag(text: str, tag: re.Match[str]) -> Iterator[Link]:
    groups = tag.groupdict()
    group = "attributes" if groups["attributes"] is not None else "liquid"
    written = groups[group]
    if groups.get("close") or "=" not in written:
        return
    begin = tag.start(group)
    attributes = [(each["name"].lower(), each) for each in ATTRIBUTE.finditer(written)]
    if _LINKING.isdisjoint(name for name, _ in attributes):
        return
    values = tuple((name, each[each.lastgroup or ""]) for name, each in attributes)
    called = groups.get("tag") or ""
    end = text.find("<", tag.end(), tag.end() + MAX_SHOWN_OF_TAG) if called else -1
    shown = text[tag.end() : end] if end >= 0 else ""
    for name, each in attributes:
        if name in _LINKING and (name != "to" or called == "a" or is_component(called)):
            value = each.lastgroup or ""
            start = begin + each.start(value)
            yield Link(each[value], start, shown, tag.start(), "tag", name == "src", values, called)
