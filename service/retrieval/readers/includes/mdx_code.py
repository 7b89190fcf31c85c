"""Code and constants that pages of MDX show by expressions: ``<CodeBlock>{`text`}</CodeBlock>``, a file imported as
text (``'!!raw-loader!./file.js'``, ``'./file.js?raw'``), and ``{name}`` of ``export const name = 'text'``.
"""

import re

from service.markup.blocks import blocks_of
from service.markup.dialects.dialect import Dialect
from service.markup.fences import fenced
from service.markup.syntax import ATTRIBUTE, ATTRIBUTES
from service.retrieval.readers.includes.files import MAX_SNIPPETS, Files
from service.retrieval.readers.includes.mkdocs import Lines

MAX_LINES = 1_000
"""Lines of one block of code."""

_IMPORT = re.compile(
    r"^import[ \t]+(\w+)[ \t]+from[ \t]+['\"](?:(?:!!)?raw-loader!([^'\"\n]{1,500})|([^'\"\n]{1,500})\?raw)['\"]"
)
_CONSTANT = re.compile(
    r"^(?:export[ \t]+)?const[ \t]+(\w+)[ \t]*=[ \t]*"
    r"(?:'([^'\n]{0,500})'|\"([^\"\n]{0,500})\"|`([^`$\n]{0,500})`|(\d[\d.]{0,20}))[ \t]*+(?:;[ \t]*+)?$"
)
_OPENING = re.compile(rf"^[ \t]*<(CodeBlock|Code)\b({ATTRIBUTES})(/?)>")
_NAME = re.compile(r"\{[ \t]*(\w+)[ \t]*\}")
_TEMPLATE = re.compile(r"\{[ \t\n]*+(?:String\.raw|dedent)?`")
_TEMPLATE_END = re.compile(r"`[ \t\n]*+(?:\.trim\(\)[ \t\n]*+)?\}")
_ESCAPED = re.compile(r"\\([`$\\{}])")
_SPAN = re.compile(r"(`[^`\n]*`)")


def code_of_components(lines: Lines, files: Files, _dialect: Dialect) -> Lines:
    """Put blocks of code where components show some, and texts where pages name constants."""
    raw, constants = _declared(lines, files)
    found: Lines = []
    fenced_lines: set[int] = set()
    for each in blocks_of("\n".join(line for _, line in lines), mdx=True):
        if each.kind == "fence":
            fenced_lines.update(range(each.first, each.after))
    at = 0
    while at < len(lines):
        number, line = lines[at]
        at += 1
        if at - 1 in fenced_lines:
            pass
        elif line.lstrip().startswith("<Code"):
            block = _block(lines, at - 1, raw)
            if block is not None:
                found += block[0]
                at = block[1]
                continue
        elif constants and "{" in line and not line.startswith(("import", "export")):
            line = _with_constants(line, constants)
        found.append((number, line))
    return found


def _declared(lines: Lines, files: Files) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of files that are imported, and the constants, by their names in the page."""
    raw: dict[str, str] = {}
    constants: dict[str, str] = {}
    for _, line in lines:
        if line.startswith("import") and len(raw) < MAX_SNIPPETS:
            match = _IMPORT.match(line)
            text = files.lines(match[2] or match[3]) if match is not None else None
            if match is not None and text is not None:
                raw[match[1]] = "\n".join(text)
        elif line.startswith(("export", "const")):
            match = _CONSTANT.match(line)
            if match is not None:
                constants[match[1]] = next(filter(None, match.groups()[1:]), "")
    return raw, constants


def _with_constants(line: str, constants: dict[str, str]) -> str:
    parts = _SPAN.split(line)
    parts[::2] = (_NAME.sub(lambda found: constants.get(found[1], found[0]), part) for part in parts[::2])
    return "".join(parts)


def _block(lines: Lines, start: int, raw: dict[str, str]) -> tuple[Lines, int] | None:
    """Return what a component of code shows, and the place of the line after it; None for what is not understood."""
    end = start
    text = ""
    for end in range(start, min(start + MAX_LINES, len(lines))):
        if end > start and lines[end][1].lstrip().startswith("<Code"):
            return None  # it has no end, and a page of such lines is read in linear time
        text += f"{lines[end][1]}\n"
        if "</Code" in lines[end][1] or "/>" in lines[end][1]:
            break
    opening = _OPENING.match(text)
    if opening is None:
        return None
    options = {key.casefold(): a or b or c for key, a, b, c in ATTRIBUTE.findall(opening[2])}
    if opening[3]:  # <Code code={name} lang="js" />
        named = re.search(r"\bcode=(\{.*)", opening[2], re.DOTALL)
        inner = str(named[1]) if named is not None else ""
    else:
        inner, closed, rest = text[opening.end() :].partition(f"</{opening[1]}>")
        if not closed or rest.strip():
            return None
    name, template = _NAME.match(inner.strip()), _template(inner)
    if template is not None:
        code = _ESCAPED.sub(r"\1", template)
    elif name is not None:
        code = raw.get(name[1], "")
    else:
        code = options.get("code", inner)
    number = lines[start][0]
    title = options.get("title", "")
    shown = [f"**{title}**", ""] if title else []
    if code.strip():
        shown += fenced(code.strip("\n").rstrip(), options.get("language") or options.get("lang") or "").split("\n")
    last = lines[end][0]
    numbered = [(min(number + index, last), line) for index, line in enumerate(["", *shown, ""])]
    return numbered, end + 1


def _template(text: str) -> str | None:
    """Return what stands between the first beginning of a template literal in braces and the last end of one."""
    begins = _TEMPLATE.search(text)
    if begins is None:
        return None
    ends = [match.start() for match in _TEMPLATE_END.finditer(text, begins.end())]
    return text[begins.end() : ends[-1]] if ends else None
