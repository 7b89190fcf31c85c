"""Blocks of code in text that we write, or that is small: made, and taken out."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.markup.blocks import Block

_RUN = re.compile(r"`+")


def fenced(text: str, info: str = "") -> str:
    """Return a block that shows the text, without a line's end behind it: its fence is longer than any run in it."""
    fence = "`" * max(3, 1 + max((len(run) for run in _RUN.findall(text)), default=0))
    return f"{fence}{info}\n{text}\n{fence}"


def code_span(text: str) -> str:
    """Return code within a line that shows the text: its fence is longer than any run in it, and nothing is hidden."""
    shown = "".join(character if character.isprintable() else "\ufffd" for character in text)
    fence = "`" * (1 + max((len(run) for run in _RUN.findall(shown)), default=0))
    return f"{fence}{shown}{fence}" if len(fence) == 1 else f"{fence} {shown} {fence}"


def may_have_fences(text: str) -> bool:
    """Return whether a text has what a fence is made of: all others need not be read for blocks of code."""
    return "```" in text or "~~~" in text


def without_fences(text: str, *, fits: Callable[["Block"], bool] = lambda _: True, instead: str = "") -> str:
    """Return the text with something else in place of its fenced blocks, or of those that fit."""
    from service.markup.blocks import blocks_of  # late: it takes 20 ms, and those who make blocks need none of it

    lines = text.split("\n")
    for block in reversed(blocks_of(text)):
        if block.kind == "fence" and fits(block):
            lines[block.first : block.after] = [instead]
    return "\n".join(lines)
