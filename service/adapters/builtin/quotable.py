"""Markdown taken apart into what can be quoted elsewhere: sentences, list items, table rows, code blocks."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct

Kind = Literal["sentence", "item", "code", "row"]

_SENTENCE_END = re.compile(r"(?<=[.!?])(?P<closing>[\"')\]*_]*)\s+(?=[\"'(\[`*_]*[^\W_a-z])|(?<=[。！？])")  # noqa: RUF001
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|resp|incl)|\b[A-Z])\.$", re.IGNORECASE)
LONGEST_ABBREVIATION = 12
"""Characters, with what stands before it."""
_INLINE = re.compile(
    r"""
    (?P<code>(?<!`)(?P<ticks>`{1,20})(?!`).{0,2000}?(?<!`)(?P=ticks)(?!`))
    | !\[[^\]]{0,500}\]\([^)]{0,1000}\)
    | \[(?P<link>(?:`[^`]{0,500}`|[^\[\]`]){1,500})\]\((?P<target>[^)\s]{0,1000}+)[^)]{0,300}\)
    | \[(?P<reference>(?:`[^`]{0,500}`|[^\[\]`]){1,500})\]\[[^\]]{0,300}\]
    | <(?!\w+:)/?[A-Za-z][^<>]*> | <!--.{0,2000}?-->
    | (?P<number>(?<!\\)\[(?=[\d\s,;–-]+\]))
    """,  # noqa: RUF001  (an en dash)
    re.DOTALL | re.VERBOSE,
)
_ONLY_LINK = re.compile(
    r"(?:see|learn|read)?[\w\s,:]{0,40}(?:\[[^\]]{0,500}\]\([^)]{0,1000}\)|<?https?://\S++)[\s.,]*+", re.IGNORECASE
)
_AFTER_LANGUAGE = re.compile(r"[^\w+#-].*", re.DOTALL)
_MARKDOWN = MarkdownIt("commonmark").enable("table")


class Block(Struct, frozen=True):
    kind: Kind | Literal["heading"]
    text: str
    number: int
    """The items of a list share it, and the rows of a table."""
    lead: str = ""
    is_link: bool = False


def blocks(markdown: str) -> Iterator[Block]:
    """Everything in the text, in reading order."""
    tokens = _MARKDOWN.parse(markdown)
    number = 0
    depth = 0
    marker = ""
    for at, token in enumerate(tokens):
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                number += 0 if depth else 1
                depth += 1
            case "bullet_list_close" | "ordered_list_close":
                depth -= 1
            case "list_item_open":
                marker = "  " * (depth - 1) + (f"{token.info}. " if token.info else "- ")
            case "heading_open":
                yield Block("heading", plain(tokens[at + 1].content), number)
            case "paragraph_open" if text := plain(tokens[at + 1].content):
                if depth:
                    is_link = _ONLY_LINK.fullmatch(tokens[at + 1].content) is not None
                    yield Block("item", (marker or "  " * depth) + text, number, is_link=is_link)
                    marker = ""
                else:
                    number += 1
                    yield Block("sentence", text, number)
            case "fence" | "code_block":
                number += 0 if depth else 1
                yield Block("code", token.content, number, lead=_AFTER_LANGUAGE.sub("", token.info.strip()))
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
    if match["link"]:
        return match[0] if match["target"].startswith(("http://", "https://")) else plain(match["link"])
    return plain(match["reference"] or "")
