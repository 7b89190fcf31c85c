"""Markup that was not read: what a reader of the site sees as something else, left as it was written in a section.

Each kind has its patterns in one table, and a module that reads another kind of markup adds its own there. Code is
stepped over, since pages show markup in it; only includes are looked for there, which generators carry out in code too.
A pattern must not fit prose about markup: a component without an attribute, an end or a line of its own is a
placeholder such as ``<Name>``.
"""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from service.markup.blocks import blocks_of

LeftoverKind = Literal["component", "shortcode", "include", "directive", "container", "expression", "attributes"]
MAX_SHOWN = 80
"""Characters of one that are shown."""


class Leftover(Struct, frozen=True):
    """A piece of markup that was not read."""

    kind: LeftoverKind
    text: str


_TAG_NAME = r"[A-Z][a-z]\w*(?:\.[A-Z]\w*)*+"
_PATTERNS: tuple[tuple[LeftoverKind, str], ...] = (
    ("component", rf"(?<![\w\\])<{_TAG_NAME}(?=\s)[^<>\n]{{0,300}}=[^<>\n]{{1,300}}>"),
    ("component", rf"(?<![\w\\])<{_TAG_NAME}\s*/>"),
    ("component", rf"(?<![\w\\])</{_TAG_NAME}\s*>"),
    ("component", rf"^[ \t]*</?{_TAG_NAME}\s*>[ \t]*$"),
    (
        "expression",
        r"^(?:import\s[^\n;]{1,200}\sfrom\s+['\"][^\n'\"]{1,200}['\"];?|export\s+(?:const|default)\s[^\n]*)$",
    ),
    ("shortcode", r"\{\{[<%][^\n{}]{0,300}?(?:[>%]\}\}|$)"),
    ("shortcode", r"\{%-?\s*[\w:]+[^\n{}%]{0,300}%\}"),
    ("expression", r"(?<![$\\{])\{\{-?\s*[\w.$\"'][^\n{}]{0,200}\}\}"),
    ("include", r"\{[*!]\s*[\w./-]+\s*[^\n{}]{0,100}[*!]\}"),
    ("include", r"^<<<[ \t]+[@./][^\n]{1,200}"),
    ("include", r"^include::[^\s\[]{1,200}\["),
    ("directive", r"^[ \t]*\.\.[ \t]+[\w:-]{1,40}::(?:[ \t]|$)"),
    ("directive", r"(?<![\w:`]):[a-z][a-z-]{0,20}(?::[a-z-]{1,20})?:(?=``)"),
    ("directive", r"(?<![\w{$])\{[a-z][a-z:-]{1,30}\}(?=``)"),
    ("directive", r"^[ \t]*(?:@include|!include)\b[^\n]{0,200}"),
    ("container", r"^[ \t]*:{3,}(?:[ \t]*\{?[A-Za-z][^\n]{0,100})?[ \t]*$"),
    ("container", r"^[ \t]*(?:!!!|\?\?\?\+?)[ \t]+[\w-]+"),
    ("container", r"^[ \t]*===\+?[ \t]+\""),
    ("container", r"^[ \t]*///(?:[ \t]+[\w|-][^\n]{0,100})?[ \t]*$"),
    ("container", r"^[ \t]*+(?:>[ \t]*+)?\[!(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION|INFO|DANGER)\]"),
    ("attributes", r"\{:?[ \t]*[#.][A-Za-z][\w-]*(?:[ \t]+[^\n{}]{0,100})?\}[ \t]*$"),
    ("attributes", r"\{:[ \t]*[\w-]+=[^\n{}]{1,100}\}"),
)
_IN_CODE: tuple[tuple[LeftoverKind, str], ...] = (
    ("include", r"^[ \t]*;?-{1,}8<-{1,}[ \t]+[\"'][^\n]{1,200}"),
    ("include", r"^[ \t]*\{\{#(?:include|rustdoc_include|playground)\s[^\n{}]{1,200}\}\}"),
)
_FIND = [(kind, re.compile(pattern, re.MULTILINE)) for kind, pattern in (*_PATTERNS, *_IN_CODE)]
_FIND_IN_CODE = [(kind, re.compile(pattern, re.MULTILINE)) for kind, pattern in _IN_CODE]
_SIGNS = re.compile(
    r"[{<]|::|:`|!!!|\?\?\?|^[ \t]*+(?:===|///|@|\.\.|(?:>[ \t]*+)?\[!)|8<|^(?:im|ex)port\s", re.MULTILINE
)
_DIRECTIVE = re.compile(r"\{[A-Za-z][\w:-]*\}")
_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(?:(?!\n[ \t]*\n)[\s\S]){1,2000}?(?<!`)\1(?!`)")


def leftovers(text: str) -> Iterator[Leftover]:
    """Yield the pieces of markup that are left in a section's text, each once."""
    if _SIGNS.search(text) is None:
        return
    lines = text.split("\n")
    code: list[str] = []
    found: dict[Leftover, None] = {}
    for block in reversed(blocks_of(text)):
        if block.kind in ("fence", "code"):
            if _DIRECTIVE.match(block.info):  # of MyST
                found[Leftover("directive", block.info[:MAX_SHOWN])] = None
            code.append("\n".join(lines[block.first : block.after]))
            lines[block.first : block.after] = [""]
    prose = _SPAN.sub("``", "\n".join(lines))
    for kind, pattern in _FIND:
        for match in pattern.finditer(prose):
            found[Leftover(kind, match[0].strip()[:MAX_SHOWN])] = None
    for kind, pattern in _FIND_IN_CODE:
        for match in pattern.finditer("\n".join(code)):
            found[Leftover(kind, match[0].strip()[:MAX_SHOWN])] = None
    yield from found
