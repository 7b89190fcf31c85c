"""The rest of an answer that was cut off, from the same answer made once more.

The builtin model always gives the same answer to the same passages: then the rest begins where the text was cut. When
the documentation has changed since, what is written stays, and the rest begins behind the last line that both have.
"""

from service.markup.blocks import blocks_of, unclosed_fence

UNANSWERED = "[0]"
"""Beginning of an answer that the documentation does not give: no other answer can follow it, nor it another."""


def rest_of(answer: str, begun: str) -> str:
    """Return what follows ``begun``; empty when nothing does."""
    if answer.startswith(begun):
        return answer[len(begun) :]
    opened = unclosed_fence(begun, blocks_of(begun))
    closing = "" if opened is None else f"\n{opened.mark}"
    if answer.startswith(UNANSWERED) != begun.startswith(UNANSWERED):
        return closing
    written, lines = begun.split("\n"), answer.split("\n")
    for at in reversed(range(len(written))):
        if written[at].strip() and lines.count(written[at]) == 1:
            return _behind(written[at + 1 :], lines[lines.index(written[at]) + 1 :])
    return f"{closing}\n\n{answer}"


def _behind(written: list[str], lines: list[str]) -> str:
    """Return the rest of the lines; ``written``: the text behind the line that both have, begun differently perhaps."""
    if not written:  # the text ends with that line
        return "".join(f"\n{line}" for line in lines)
    begun, rest = "\n".join(written), "\n".join(lines)
    if rest.startswith(begun):
        return rest[len(begun) :]
    return f"\n{rest}" if written[-1] else rest
