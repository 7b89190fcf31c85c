"""Markdown taken apart into what can be quoted elsewhere: sentences, list items, table rows, code blocks."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct

from service.markup.parsers import prepared

Kind = Literal["sentence", "item", "code", "row"]

_SENTENCE_END = re.compile(r"(?<=[.!?])(?P<closing>[\"')\]*_]*)\s+(?=[\"'(\[`*_]*[^\W_a-z])|(?<=[。！？])")  # noqa: RUF001
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|resp|incl)|\b[A-Z])\.$", re.IGNORECASE)
LONGEST_ABBREVIATION = 12
"""Characters, with what stands before it."""
_TARGET = r"\((?:[^()]|\([^()]{0,300}\)){0,1000}\)"
"""The target of a link or an image, with a title."""
_IMAGE = rf"!\[(?:[^\[\]]|\[[^\[\]]{{0,200}}\]){{0,500}}\](?:{_TARGET}|\[[^\]]{{0,300}}\])"
_INLINE = re.compile(
    rf"""
    (?P<code>(?<!`)(?P<ticks>`{{1,20}})(?!`).{{0,2000}}?(?<!`)(?P=ticks)(?!`))
    | \[\s*{_IMAGE}\s*\](?:{_TARGET}|\[[^\]]{{0,300}}\])
    | {_IMAGE}
    | \[\]{_TARGET}
    | \[(?P<link>(?:`[^`]{{0,500}}`|[^\[\]`]){{1,500}})\]\((?P<target>[^)\s]{{0,1000}}+)[^)]{{0,300}}\)
    | \[(?P<reference>(?:`[^`]{{0,500}}`|[^\[\]`]){{1,500}})\]\[[^\]]{{0,300}}\]
    | <(?!\w+:)/?[A-Za-z](?:[^<>"'{{}}]|"[^"<]{{0,500}}"|'[^'<]{{0,500}}'|\{{[^{{}}<>]{{0,500}}\}}){{0,500}}>
    | </?[A-Za-z][^<>]{{0,1000}}> | <!--.{{0,2000}}?-->
    | \{{\{{[<%](?P<shortcode>[^{{}}]{{0,500}}?)[%>]\}}\}}
    | \{{%[^%{{}}]{{0,500}}%\}}
    | [ ]?\{{:?\s*[#.][\w.#=:"' -]{{0,200}}\}}
    | ^\[![A-Za-z]{{1,20}}\][+-]?\s?
    | ^///(?:[ ]*[\w-]+[ ]*\|)?[ ]?
    | (?P<number>(?<!\\)\[(?=[\d\s,;–-]+\]))
    """,  # noqa: RUF001  (an en dash)
    re.DOTALL | re.VERBOSE,
)
_SHORTCODE_TEXT = re.compile(r"\btext\s*=\s*\"([^\"]{1,300})\"")
_ONLY_LINK = re.compile(
    r"(?:see|learn|read)?[\w\s,:]{0,40}(?:\[[^\]]{0,500}\]\([^)]{0,1000}\)|<?https?://\S++)[\s.,]*+", re.IGNORECASE
)
_AFTER_LANGUAGE = re.compile(r"[^\w+#-].*", re.DOTALL)
_MARKDOWN = prepared(MarkdownIt("commonmark").enable("table"))


class Block(Struct, frozen=True):
    kind: Kind | Literal["heading"]
    text: str
    number: int
    """The items of a list share it, and the rows of a table."""
    lead: str = ""
    """A row has the table's head here, a code block its language."""
    is_link: bool = False
    """It only leads elsewhere."""
    indent: str = ""
    """Blanks before each line of it, inside of a list."""


def blocks(markdown: str) -> Iterator[Block]:
    """Yield everything in the text that can be quoted, in reading order."""
    tokens = _MARKDOWN.parse(markdown)
    number = 0
    markers: list[str] = []
    """The markers of the list items around."""
    is_first = False
    for at, token in enumerate(tokens):
        indent = "".join(" " * len(marker) for marker in markers)
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                number += 0 if markers else 1
            case "list_item_open":
                markers.append(f"{token.info}. " if token.info else "- ")
                is_first = True
            case "list_item_close":
                markers.pop()
            case "heading_open":
                yield Block("heading", plain(tokens[at + 1].content), number)
            case "paragraph_open" if text := plain(tokens[at + 1].content):
                if markers:
                    is_link = _ONLY_LINK.fullmatch(tokens[at + 1].content) is not None
                    outer = indent[: -len(markers[-1])] + markers[-1] if is_first else indent
                    yield Block("item", outer + text, number, is_link=is_link)
                    is_first = False
                else:
                    number += 1
                    yield Block("sentence", text, number)
            case "fence" | "code_block":
                number += 0 if markers else 1
                language = _AFTER_LANGUAGE.sub("", token.info.strip())
                yield Block("code", token.content, number, lead=language, indent=indent)
            case "html_block" if text := plain(token.content):
                number += 1
                yield Block("sentence", text, number)
            case "table_open":
                number += 1
                yield from _rows(tokens, at, number)
            case _:
                pass


def _rows(tokens: Sequence[Token], start: int, number: int) -> Iterator[Block]:
    """Yield the rows of the table that starts there, each with its head."""
    head: list[str] = []
    cells: list[str] = []
    for at in range(start, len(tokens)):
        match tokens[at].type:
            case "tr_open":
                cells = []
            case "th_open" | "td_open":
                cells.append(plain(tokens[at + 1].content))
            case "thead_close":
                head = cells
            case "tr_close" if tokens[at - 1].type == "td_close":
                yield Block("row", _row(cells), number, lead=f"{_row(head)}\n{_row(['---'] * len(head))}")
            case "table_close":
                return


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def sentences(text: str) -> Iterator[str]:
    parts: list[str] = []
    for part, closing in _split(text):
        parts.append(part + closing)
        if not _ABBREVIATION.search(part[-LONGEST_ABBREVIATION:]):
            yield " ".join(parts)
            parts.clear()
    if any(parts):
        yield " ".join(parts)


def _split(text: str) -> Iterator[tuple[str, str]]:
    """Yield what may be a sentence, and the marks that close it: quotes, brackets, the end of bold text."""
    begin = 0
    for end in _SENTENCE_END.finditer(text):
        yield text[begin : end.start()], end["closing"] or ""
        begin = end.end()
    yield text[begin:], ""


def plain(text: str) -> str:
    """Inline Markdown that reads the same elsewhere: no images, tags or relative links, and no number that would pass
    for a citation of ours. Code spans stay as they are."""
    return " ".join(_INLINE.sub(_without_place, text).split())


def _without_place(match: re.Match[str]) -> str:
    if match["code"]:
        return match[0]
    if match["number"]:
        return "\\["
    if match["shortcode"]:
        shown = _SHORTCODE_TEXT.search(match["shortcode"])
        return shown[1] if shown else ""
    if match["link"]:
        return match[0] if match["target"].startswith(("http://", "https://")) else plain(match["link"])
    return plain(match["reference"] or "")
