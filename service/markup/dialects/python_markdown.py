"""Python-Markdown's own syntax as a reader sees it, with the extensions that MkDocs sites use; one pass, code spans
stepped over, every line kept.

- Blocks between ``/// note | Title`` and ``///`` (pymdownx.blocks), with options that are indented below them.
- ``::: package.module`` shows an object of a program that is not at hand (mkdocstrings): its name is kept.
- Attribute lists ``{ .class #id }``, abbreviations ``*[HTML]: …``, footnotes ``[^1]``, ``[TOC]``, keys ``++ctrl+c++``,
  marks ``==…==`` and ``^^…^^``, icons ``:material-check:``, definitions ``:   …``, Jinja's comments ``{# … #}``.

The expressions are atomic, or short, where they could backtrack.
"""

import re
from collections.abc import Iterator

_ATTRIBUTE = r"(?:[#.][\w:.-]{1,100}|[\w:-]{1,100}(?:=(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'|[^\s\"'{}]{1,300}))?)"
_LIST = rf"{_ATTRIBUTE}(?:[ \t]++{_ATTRIBUTE}){{0,20}}+[ \t]*+"
_OPTIONS = r"(?:\n(?:[ ]{4,}|\t)[^\s][^\n]*+){0,50}+"
_MARKS = re.compile(
    r"(?P<code>``[^\n]{1,1000}?``|`[^`\n]{1,2000}(?:\n[^`\n]{1,2000})?`)"
    rf"|^[ \t]*+/{{3,}}+[ \t]*+(?P<block>[A-Za-z][\w-]*+)[ \t]*+(?:\|(?P<title>[^\n]{{0,500}}))?$"
    rf"{_OPTIONS}"
    r"|^(?P<end>[ \t]*+/{3,}+[ \t]*+)$"
    rf"|^[ \t]*+:::[ \t]++(?P<object>[A-Za-z_][\w.:-]*+)[ \t]*+${_OPTIONS}"
    r"|^(?P<unseen>\*\[[^\]\n]{1,300}\]:[^\n]*|[ \t]*\[TOC\][ \t]*)$"
    r"|(?P<footnote>\[\^[^\]\s]{1,100}\](?::[ \t]*)?)"
    rf"|(?P<inline>(?<=[)\]*_`>])\{{:?[ \t]*+{_LIST}\}})"
    rf"|(?P<line>(?:^|(?<=\s))\{{(?::[ \t]*+|[ \t]*+(?=[#.]|[\w:-]{{1,100}}=)){_LIST}\}}[ \t]*$)"
    r"|(?P<comment>\{#(?![\w-])(?:[^#]|#(?!\})){0,500}+#\})"
    r"|\+\+(?P<keys>[A-Za-z0-9-]{1,30}(?:\+[A-Za-z0-9-]{1,30}){0,5})\+\+"
    r"|(?P<icon>:(?:material|octicons|fontawesome|simple)-[\w-]{1,100}:"
    rf"(?:\{{[ \t]*+{_LIST}\}})?[ \t]?)"
    r"|(?<![=\w^])(?P<mark>==|\^\^)(?=[^\s=^])(?P<marked>[^\n=^]{1,300}?)(?<=\S)(?P=mark)(?![=^])"
    r"|^(?P<definition>[ \t]*:[ \t]{1,8})(?=\S)",
    re.MULTILINE,
)
_SIGNS = re.compile(
    r"^[ \t]*(?:///|::: |\*\[|\[TOC|:[ \t])|\[\^|\{|\+\+|==|\^\^|:(?:material|octicons|fontawesome|simple)-",
    re.MULTILINE,
)
_UNTITLED = frozenset(("html", "caption", "figure-caption", "table-caption", "definition"))
"""Blocks whose argument is no title."""


_OWN_ID = re.compile(
    r"(?:^|\s)(?:#(?P<mark>[\w:.-]{1,100})|id=(?:\"(?P<double>[^\"]+)\"|'(?P<single>[^']+)'|(?P<bare>[^\s\"'{}]+)))"
)


def anchors_in(text: str) -> Iterator[str]:
    """Yield the ids that lists of attributes give to words, headings and paragraphs."""
    for match in _MARKS.finditer(text) if "{" in text and _SIGNS.search(text) else ():
        listed = match["inline"] or match["line"]
        own = _OWN_ID.search(listed.strip(" \t{}:")) if listed else None
        if own is not None:
            yield own[own.lastgroup or "mark"]


def shown(text: str) -> str:
    """Return the text of Python-Markdown as CommonMark, every line kept."""
    return _MARKS.sub(_replaced, text) if _SIGNS.search(text) else text


def _replaced(match: re.Match[str]) -> str:
    whole = match[0]
    if match["code"] is not None:
        return whole
    if match["block"] is not None:
        kind = match["block"].lower()
        title = (match["title"] or "").strip()
        words = "" if kind in _UNTITLED else title or kind.capitalize()
        return (f"**{words}**" if words else "") + "\n" * whole.count("\n")
    if match["object"] is not None:
        return f"`{match['object']}`" + "\n" * whole.count("\n")
    if match["keys"] is not None:
        return "+".join(key.replace("-", " ").title() for key in match["keys"].split("+"))
    return match["marked"] or "\n" * whole.count("\n")


_LANGUAGE = re.compile(r"(?:\{[ \t]*(?:#[\w-]+[ \t]+)?\.?)?[ \t]*(?P<language>[\w+#-]{0,50})(?!=)(?:[\s}]|$)")


def code_language(info: str) -> str:
    """Return the language that a fence says: ``python hl_lines="3"``, ``{ .python .annotate }``."""
    found = _LANGUAGE.match(info.strip())
    return found["language"] if found is not None else ""
