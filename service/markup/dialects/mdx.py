"""Braces of MDX that are no expressions: those in strings, templates and comments of expressions, and escaped ones.

MDX finds the end of an expression as JavaScript does (mdxjs.com/docs/what-is-mdx; acorn, in micromark's
``mdx-expression``). The readers here count braces, so those that do not count are other characters for them, and become
braces again where the text is shown. Every place in the text stays what it was.
"""

import re

OPEN, CLOSE = "\ue0f0", "\ue0f1"
MAX_EXPRESSION = 20_000
"""Characters of an expression, or of what a page exports; one that is longer is read as it is."""
MAX_UNCLOSED = 20
"""Braces of one page without an end. Behind them the page is read as it is: each costs a look at a whole expression."""
_CODE_CHARACTERS = 2_000
"""Between the marks of code within a line."""
_SIGNS = re.compile(r"[\\'\"`/]")
_OUTSIDE = re.compile(
    r"^[ \t>]*+(?P<fence>`{3,}+|~{3,}+)|(?P<code>`++)|\\[\s\S]|(?P<open>\{)|^(?P<esm>export|import)\s", re.MULTILINE
)
_FENCE_END = re.compile(r"^[ \t>]*+(`{3,}+|~{3,}+)[ \t]*+$", re.MULTILINE)
_CODE_END = re.compile(r"`++")
# A quote without an end is a character of a text: what is escaped behind it is passed over, so that it begins nothing.
_INSIDE = re.compile(
    r"'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\"|`(?:[^`\\]|\\[\s\S])*+`|\\[\s\S]"
    r"|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|(?<![:\w/])//[^\n]*+|(?P<open>[{(\[])|(?P<close>[})\]])|(?P<end>\n[ \t]*+\n)"
)
_HIDE = str.maketrans("{}", OPEN + CLOSE)


def hidden_braces(text: str) -> str:
    """Return a text of the same length in which the braces that do not count are other characters."""
    if "{" not in text or _SIGNS.search(text) is None:
        return text
    parts: list[str] = []
    done = at = unclosed = 0
    while (found := _OUTSIDE.search(text, at)) is not None and unclosed < MAX_UNCLOSED:
        at = found.end()
        if found["fence"] is not None:
            at = _after_fence(text, at, found["fence"])
        elif found["code"] is not None:
            at = _after_code(text, at, len(found["code"]))
        elif found["open"] is not None or found["esm"] is not None:
            spans, end = _of_expression(text, at, is_esm=found["esm"] is not None)
            unclosed += end == at
            for start, after in spans:
                parts += [text[done:start], text[start:after].translate(_HIDE)]
                done = after
            at = end
        elif found[0][1] in "{}":
            parts += [text[done : found.start() + 1], found[0][1].translate(_HIDE)]
            done = at
    return "".join([*parts, text[done:]]) if parts else text


def shown_braces(text: str) -> str:
    """Return a text with its braces, and without the marks that escaped them."""
    if OPEN not in text and CLOSE not in text:
        return text
    return text.replace(f"\\{OPEN}", "{").replace(f"\\{CLOSE}", "}").replace(OPEN, "{").replace(CLOSE, "}")


def _after_fence(text: str, start: int, mark: str) -> int:
    closing = (end for end in _FENCE_END.finditer(text, start) if end[1].startswith(mark))
    end = next(closing, None)
    return len(text) if end is None else end.end()


def _after_code(text: str, start: int, length: int) -> int:
    """Return the end of code within a line, or its start where nothing ends it."""
    runs = _CODE_END.finditer(text, start, start + _CODE_CHARACTERS)
    return next((run.end() for run in runs if run.end() - run.start() == length), start)


def _of_expression(text: str, start: int, *, is_esm: bool) -> tuple[list[tuple[int, int]], int]:
    """Return the strings and comments of an expression that have braces, and where it ends. ``start``: behind its
    brace, or in what a page exports, which ends at a blank line. Without an end nothing is hidden.
    """
    spans: list[tuple[int, int]] = []
    depth, limit = 0 if is_esm else 1, start + MAX_EXPRESSION
    for found in _INSIDE.finditer(text, start, limit):
        if found["open"] is not None:
            depth += 1
        elif found["close"] is not None:
            depth -= 1
            if depth <= 0 and not is_esm:
                return spans, found.end()
        elif found["end"] is not None:
            if is_esm and depth <= 0:
                return spans, found.start()
        elif "{" in found[0] or "}" in found[0]:
            spans.append(found.span())
    return (spans, len(text)) if is_esm and depth <= 0 and limit > len(text) else ([], start)
