"""A fenced block of code as its reader sees it: without the notes to the generator in its first line and its comments.

- What stands behind the language (``{1,3}``, ``:line-numbers``, ``showLineNumbers``) colours lines; a ``title="…"``, a
  ``filename="…"``, VitePress's ``[…]`` is shown above the code.
- Comments ``[!code ++]`` (VitePress, Shiki) and ``highlight-next-line`` (Docusaurus) colour lines, too.
- ``twoslash`` (twoslash.netlify.app, as VitePress and others show it) checks the types of the code: its options and
  queries are comments that no reader sees, nor what stands before ``// ---cut---``, behind ``// ---cut-after---`` and
  from ``// ---cut-start---`` to ``// ---cut-end---``.
- mdBook hides the lines of Rust that begin with ``# ``; ``##`` shows a ``#``
  (rust-lang.github.io/mdBook/format/mdbook.html#hiding-code-lines).
"""

import re

from service.markup.dialects.dialect import PYTHON_MARKDOWN, Dialect
from service.markup.dialects.python_markdown import code_language

_FIRST_LINE = re.compile(r"(?P<mark>`{3,}|~{3,})(?P<info>[^\n]{1,500}+)\n")
_LABEL = re.compile(r"(?<!\S)(?:title|filename)=(?:\"([^\"\n]*)\"|'([^'\n]*)'|\{\"([^\"\n]*)\"\})")
_BRACKETS = re.compile(r"(?<![\w!])\[([^\[\]\n]+)\]")
_COLOURS = re.compile(
    r"(?:(?<!\s)\s++)?\{[\d,\s-]*+\}|:(?:no-)?line-numbers(?:=\d*)?(?=[\s{\[]|$)|(?<!\S)(?:showLineNumbers|numberLines)(?:=\S*|\{\d+\})?"
)
_OPENING, _CLOSING = r"(?://|/\*|<!--|\{/\*|#|--|;|%)", r"(?:\*/\}|\*/|-->)"
"""The signs of comments in many languages."""
_NOTATION = re.compile(rf"(?:(?<![ \t])[ \t]*+)?{_OPENING}[ \t]*(?:\[!code [^\]\n]{{1,60}}\][ \t]*)+{_CLOSING}?")
_HIGHLIGHT = re.compile(
    rf"^[ \t]*+{_OPENING}[ \t]*highlight-(?:next-line|start|end)[ \t]*+(?:{_CLOSING}[ \t]*+)?(?:\n|\Z)", re.MULTILINE
)
_HIDDEN = re.compile(r"^[ \t]*#(?: [^\n]*)?\n", re.MULTILINE)
_TWOSLASH = re.compile(r"(?<!\S)twoslash(?=[\s{\[]|$)")
_CUT = re.compile(r"[ \t]*+//[ \t]*+---cut(?:-(before|after|start|end))?---[ \t]*+")
_TWOSLASH_NOTE = re.compile(
    r"[ \t]*+//[ \t]*+(?:\^[?|]|\^{2,}|@[A-Za-z]\w{0,40}(?::.*+)?[ \t]*+$|@log:|@error:|@warn:|@annotate:).*+"
)
_DOUBLED = re.compile(r"^([ \t]*)##", re.MULTILINE)


def shown_code(block: str, dialect: Dialect) -> str:
    """Return a fenced block, whose first line is the one that opens it, with a title above it where it has one."""
    first = _FIRST_LINE.match(block)
    body = block[first.end() :] if first is not None else block
    if "[!code" in body:
        body = "\n".join(line for line in map(_without_notation, body.split("\n")) if line is not None)
    if "[!!code" in body:
        body = body.replace("[!!code", "[!code")
    if "highlight-" in body:
        body = _HIGHLIGHT.sub("", body)
    if first is None:
        return body
    info = first["info"].strip()
    if (twoslash := _TWOSLASH.search(info)) is not None:
        info = f"{info[: twoslash.start()].rstrip()} {info[twoslash.end() :].lstrip()}".strip()
        body = _without_twoslash(body)
    label = _LABEL.search(info)
    title = next(filter(None, label.groups()), "") if label is not None else ""
    if label is not None:
        info = info[: label.start()] + info[label.end() :]
    elif dialect.vue and (brackets := _BRACKETS.search(info)) is not None:
        title, info = brackets[1], info[: brackets.start()]
    if dialect.slugs in PYTHON_MARKDOWN:
        info = code_language(info)
    info = _COLOURS.sub("", info).strip() if info[:1] != "{" or dialect.vue else info
    if dialect.book:
        info, hides = info.partition(",")[0].strip(), info.startswith("rust")
        body = _DOUBLED.sub(r"\1#", _HIDDEN.sub("", body)) if hides else body
    return f"**{title}**\n{first['mark']}{info}\n{body}" if title else f"{first['mark']}{info}\n{body}"


def _without_twoslash(body: str) -> str:
    """Return code without what ``twoslash`` hides; the last line is the one that closes the block."""
    kept: list[str] = []
    *lines, end = body.split("\n")
    is_hidden = False
    for line in lines:
        cut = _CUT.fullmatch(line)
        if cut is None:
            if not is_hidden and not _TWOSLASH_NOTE.fullmatch(line):
                kept.append(line)
        elif cut[1] in (None, "before"):
            kept.clear()
        elif cut[1] == "after":
            break
        else:
            is_hidden = cut[1] == "start"
    return "\n".join([*kept, end])


def _without_notation(line: str) -> str | None:
    """Return a line without its notes; None where it has nothing else."""
    if "[!code" not in line:
        return line
    kept = _NOTATION.sub("", line)
    return kept if kept.strip() else None
