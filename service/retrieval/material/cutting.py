"""The beginning of a text that is too long, cut where it does the least harm.

Code is whole or left out, for half of it would be copied and run. Other blocks are kept whole as long as any fits; of a
first block that is too long (a table, a list) the rows or items that fit are kept.
"""

from service.domain.texts.tokens import tokens_in
from service.markup.blocks import blocks_of

ELLIPSIS = "…"
MAX_CHARACTERS_PER_TOKEN = 6
"""More than a token has: what is behind this number for each token of the budget cannot fit, and is not read."""


def beginning(text: str, budget_tokens: int) -> str:
    """Return the text when it fits the budget; else the blocks that do, and an ellipsis."""
    most = MAX_CHARACTERS_PER_TOKEN * max(budget_tokens, 1) + MAX_CHARACTERS_PER_TOKEN
    if len(text) > most:
        text = text[:most]
    elif tokens_in(text) <= budget_tokens:
        return text
    lines = text.split("\n")
    blocks = blocks_of(text)
    kept = 0
    left = budget_tokens - 3
    for index, block in enumerate(blocks):
        after = blocks[index + 1].first if index + 1 < len(blocks) else len(lines)
        cost = tokens_in("\n".join(lines[kept:after]))
        if cost > left:
            if block.kind not in ("fence", "code_block") and kept == 0:
                kept = _lines_within(lines, block.first, after, left)
            break
        left -= cost
        kept = after
    return "\n".join([*lines[:kept], ELLIPSIS]).strip("\n")


def _lines_within(lines: list[str], first: int, after: int, budget_tokens: int) -> int:
    """Return the line up to which a block fits: the next row, or the next item of a list, begins there."""
    at, left = first, budget_tokens
    while at < after and (cost := tokens_in(f"{lines[at]}\n")) <= left:
        left -= cost
        at += 1
    while at > first + 1 and at < after and lines[at][:1] in (" ", "\t"):
        at -= 1  # it goes on with the item before
    return at
