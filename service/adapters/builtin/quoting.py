"""Quotes as Markdown: a heading with the citation, and the chosen pieces as a block quote in reading order."""

from service.adapters.builtin.choosing import Quote
from service.adapters.builtin.pieces import Piece
from service.adapters.builtin.quotable import plain
from service.markup.fences import fenced


def rendered(quote: Quote) -> str:
    passage, pieces = quote.apart.passage, quote.apart.pieces
    heading = passage.heading if passage.heading.startswith(passage.title) else f"{passage.title} › {passage.heading}"  # noqa: RUF001
    name = " ".join((heading if passage.heading else passage.title).split()).replace("*", "")
    lines: list[str] = []
    before = -1
    for at in sorted(quote.chosen):
        piece = pieces[at]
        same_block = before >= 0 and pieces[before].block == piece.block
        gap = before >= 0 and at > before + 1
        if piece.kind == "sentence" and same_block:
            lines[-1] += f"{' …' if gap else ''} {piece.text}"
        elif piece.kind in ("item", "row") and same_block:
            lines += piece.text.split("\n")
        else:
            lines += [""] if lines else []
            if piece.kind == "code":
                lines += _code_lines(piece)
            elif piece.kind == "row":
                lines += [*piece.lead.split("\n"), piece.text]
            else:
                lines += piece.text.split("\n")
        before = at
    quoted = "\n".join(f"> {line}".rstrip() for line in lines)
    return f"**{plain(name)}** [{passage.number}]\n\n{quoted}"


def _code_lines(piece: Piece) -> list[str]:
    code = fenced(piece.text.rstrip("\n"), piece.lead)
    return [f"{piece.indent}{line}".rstrip() for line in code.split("\n")]
