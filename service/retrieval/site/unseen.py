"""What no reader sees of a page of Markdown: comments, and the ``import`` and ``export`` of MDX."""

import re

_FENCE = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d+[.)])[ \t]*+)?(`{3,}+(?=[^`]*$)|~{3,})")
_COMMENTS = (("<!--", "-->"), ("{/*", "*/}"), ("{{< comment >}}", "{{< /comment >}}"))
_ESM = re.compile(
    r"(?:import\s+(?:[\w*{][^'\"\n]{0,500}\sfrom\s+)?['\"]|import\s*\{\s*$|export\s+(?:const|let|var|default|function|async|class|\{|\*))"
)
_HASH = re.compile(r"\s*#")


def blank_unseen(body: str, *, mdx: bool) -> str:
    """Comments and MDX's ``import``/``export`` made blank, outside code, with every line kept."""
    if not any(start in body for start, _ in _COMMENTS) and "import" not in body and "export" not in body:
        return body
    out: list[str] = []
    fence = ""
    until = ""  # what ends the comment we are in
    braces = 0
    in_esm = False
    for line in body.split("\n"):
        if until:
            end = line.find(until)
            if end < 0:
                out.append("")
                continue
            line, until = line[end + len(until) :], ""
        if in_esm:
            braces += _braces(line)
            in_esm = bool(line.strip()) or braces > 0
            out.append("")
            continue
        mark = _FENCE.match(line)
        if fence:
            if mark is not None and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
            out.append(line)
            continue
        if mark is not None:
            fence = mark[1]
            out.append(line)
            continue
        if line[:6] in ("import", "export") and _ESM.match(line) and (mdx or line.rstrip(";").endswith(("'", '"'))):
            braces = _braces(line)
            in_esm = braces > 0 or (mdx and line.startswith("import") and not line.rstrip("; ").endswith(("'", '"')))
            out.append("")
            continue
        for start, stop in _COMMENTS:
            line, until = _without(line, start, stop)
            if until:
                break
        out.append(line)
    if until or (in_esm and braces > 0):
        return body  # never closed, so it was none: a reader sees all of it
    return "\n".join(out)


def _without(line: str, start: str, stop: str) -> tuple[str, str]:
    """The line without such comments, and what ends one that is still open. Those in a code span stay, and so does the
    ``{/* #id */}`` that names a heading.
    """
    kept: list[str] = []
    at = 0
    ticks = 0
    is_heading = line.lstrip().startswith("#")
    end = 0
    while (begin := line.find(start, at)) >= 0:
        ticks += line.count("`", at, begin)
        inside = begin + len(start)
        if 0 <= end < inside:
            end = line.find(stop, inside)
        named = _HASH.match(line, inside, end if end >= 0 else len(line)) if is_heading else None
        if ticks % 2 or named is not None:
            kept.append(line[at : begin + 1])
            at = begin + 1
            continue
        kept.append(line[at:begin])
        if end < 0:
            return "".join(kept), stop
        at = end + len(stop)
    return "".join(kept) + line[at:], ""


def _braces(line: str) -> int:
    return sum(line.count(c) for c in "{[(") - sum(line.count(c) for c in "}])")
