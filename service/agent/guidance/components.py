"""The components, shortcodes and callouts that the site's pages really use: name, attributes and an example of each."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from service.agent.workspace import Workspace
from service.markup.markdown import Markdown
from service.markup.pages import is_markdown, is_page
from service.markup.syntax import ATTRIBUTE, SHORTCODE, TAG, is_component

MAX_PAGES = 80
"""Pages that are looked at: of more, every second, third … one."""
MAX_PAGE_CHARACTERS = 30_000
MAX_SHOWN = 20
MAX_ATTRIBUTES = 8
MAX_EXAMPLE = 160

_CALLOUT = re.compile(
    r"^[ \t]*(?:(?P<mark>:::+|///+|!!!|\?\?\?\+?|===)[ \t]*\{?(?P<name>[A-Za-z][\w-]{0,40})\}?"
    r"|>[ \t]*\[!(?P<alert>[A-Za-z]{1,20})\]|\.\.[ \t](?P<directive>[A-Za-z][\w:-]{0,40})::)[^\n]{0,200}",
    re.MULTILINE,
)
_MYST = re.compile(r"\{([A-Za-z][\w:-]{0,40})\}")
"""Behind the mark of a fence: the name of MyST's directive."""
_MACRO = re.compile(r"\{\{\s*+(?P<name>[A-Za-z_][\w.-]{0,60})\s*+\([^(){}\n]{0,200}\)\s*+\}\}")
"""MDN's, and those of MkDocs."""
_SHORTCODE_NAME = re.compile(r"(?!end)[A-Za-z][\w/.-]{0,60}")
_CONTROL = frozenset(
    "assign block case elif else elsif extends for from if import include macro raw set unless when with".split()  # noqa: SIM905
)
"""Tags of template languages that pages about templates show."""


Use = tuple[str, list[str], str]
"""One use of a component: its name, the names of its attributes, and how it is written."""


class Component(Struct):
    name: str
    pages: int = 0
    attributes: Counter[str] = field(default_factory=Counter)
    example: str = ""


async def components(workspace: Workspace, most: int = MAX_SHOWN) -> str:
    """Return the most used ones, a line each, from the base commit; empty when there are none."""
    pages = await asyncio.to_thread(_pages, workspace)
    found: dict[str, Component] = {}
    async for texts in workspace.base_texts(pages[:: 1 + len(pages) // MAX_PAGES]):
        await asyncio.to_thread(_count, texts, found)
    used = sorted(found.values(), key=lambda one: (-one.pages, one.name))
    return "\n".join(map(_line, used[:most]))


def _pages(workspace: Workspace) -> list[str]:
    return [path for path in workspace.readable_base_paths() if is_page(path) and workspace.is_documentation(path)]


def _count(texts: Mapping[str, str], found: dict[str, Component]) -> None:
    for path in sorted(texts):
        seen: set[str] = set()
        for name, attributes, example in _used(path, texts[path][:MAX_PAGE_CHARACTERS]):
            one = found.setdefault(name, Component(name))
            one.attributes.update(attributes)
            one.pages += name not in seen
            seen.add(name)
            if len(one.example) < len(example) <= MAX_EXAMPLE:
                one.example = example


def _used(path: str, text: str) -> Iterator[Use]:
    prose = text
    if is_markdown(path):
        page = Markdown(text, path=path)
        prose = page.prose
        yield from _directives(page)
        for match in _MACRO.finditer(prose):
            yield f"{{{{{match['name']}}}}}", [], match[0]
    yield from _callouts(prose)
    yield from _tags(prose)
    yield from _shortcodes(prose)


def _directives(page: Markdown) -> Iterator[Use]:
    for block in page.blocks:
        if block.kind == "fence" and (directive := _MYST.match(block.info)):
            yield f"{block.mark[:3]} {directive[1]}", [], f"{block.mark}{block.info}"


def _callouts(prose: str) -> Iterator[Use]:
    for match in _CALLOUT.finditer(prose):
        name = match["name"] or match["alert"] or match["directive"]
        mark = match["mark"] or (">" if match["alert"] else "..")
        yield f"{mark[:3]} {name}", [], " ".join(match[0].split())


def _tags(prose: str) -> Iterator[Use]:
    for match in TAG.finditer(prose):
        if not match["close"] and is_component(match["tag"] or ""):
            yield f"<{match['tag']}>", _attributes(match["attributes"]), " ".join(match[0].split())


def _shortcodes(prose: str) -> Iterator[Use]:
    for match in SHORTCODE.finditer(prose):
        words = (match["attributes"] or match["liquid"] or "").split()
        if words and _SHORTCODE_NAME.fullmatch(words[0]) and words[0] not in _CONTROL:
            mark = match[0][:3] if match["attributes"] is not None else "{%"
            yield f"{mark} {words[0]}", _attributes(" ".join(words[1:])), " ".join(match[0].split())


def _attributes(text: str) -> list[str]:
    return [match["name"] for match in ATTRIBUTE.finditer(text[:2_000])]


def _line(one: Component) -> str:
    named = ", ".join(name for name, _ in one.attributes.most_common(MAX_ATTRIBUTES))
    pages = f"{one.pages} page{'s' if one.pages != 1 else ''}"
    return f"{one.name} ({pages}{f'; {named}' if named else ''}): {one.example}".rstrip(": ")
