"""Set the title of a page, where the page has it, and its label in the navigation where that repeats the title."""

import json
import re
from collections.abc import Sequence

from service.adapters.builtin.editing.adding import navigation_of
from service.adapters.builtin.editing.addresses import front_matter_end
from service.adapters.builtin.editing.forms import SetTitle, short
from service.adapters.builtin.editing.mending import mend_broken_by_changes
from service.adapters.builtin.editing.navigation_files.entries import relabelled, yaml_text
from service.adapters.builtin.editing.reading_back import reads_as_meant
from service.adapters.builtin.editing.steps import Editing, Step, Steps, rewrites
from service.markup.front_matter import split_front_matter, text_field
from service.markup.markdown import Markdown
from service.markup.pages import is_markdown
from service.markup.writing import markdown_words, rest_heading, rest_width

_FIELD = re.compile(
    r"(?P<key>title|sidebar_label|sidebarTitle|sidebar_title|linkTitle)(?P<sign>\s*[:=]\s*)(?P<value>.*)"
)
_HEADING = re.compile(r"(?P<mark> {0,3}#[ \t]++)(?P<text>.*)")
_MARK_OF_ORDER = "\ufeff"
_BLOCK = ("|", ">")
"""The marks of YAML for a value of several lines."""
_UNDERLINE = re.compile(r"([=\-`:.'\"~^_*+#])\1{2,}\s*")


def set_title(editing: Editing, asked: SetTitle) -> Steps:
    page = yield from editing.page(asked.path)
    if not page:
        return
    title = " ".join(asked.title.split())
    lines = yield from editing.lines(page)
    after, old = retitled(page, lines, title)
    calls = rewrites(page, lines, after)
    if not calls:
        editing.say(f"The title of {page} is {short(title)} already.")
        return
    results = yield from editing.ask(Step(f"Setting the title of {page}. ", tuple(calls)))
    if any(result.is_error for result in results):
        editing.report_errors(results)
        return
    if not (yield from reads_as_meant(editing, page, title, lines)):
        return
    editing.say(f"Set the title of {page} to {short(title)}.")
    file, names, _ = yield from navigation_of(editing, page)
    if file and old and (labelled := relabelled(file, names, page, old, title)):
        yield from editing.ask(Step("", tuple(rewrites(file, names, labelled))))
        editing.say(f"Set its label in {file}, too.")
    yield from mend_broken_by_changes(editing, "Fixed the links that this broke")


def retitled(path: str, lines: Sequence[str], title: str) -> tuple[list[str], str]:
    """Return the lines of a page with another title, and the title that it had; empty if it had none."""
    if lines and lines[0].startswith(_MARK_OF_ORDER):
        after, old = retitled(path, [lines[0][1:], *lines[1:]], title)
        return [_MARK_OF_ORDER + after[0], *after[1:]], old
    if lines and lines[0].lstrip().startswith("{") and (found := _retitled_json(lines, title)) is not None:
        return found
    after, old = [*lines], ""
    end = front_matter_end(lines) or 0
    fields = {at: match for at in range(1, end - 1) if (match := _FIELD.fullmatch(lines[at].rstrip("\r")))}
    named = next((at for at, match in fields.items() if match["key"] == "title"), None)
    if named is not None:
        old = _value(fields[named]["value"])
    heading = _heading_line(path, lines, end)
    if heading is not None and (named is None or _words(_text_of(lines[heading])) == _words(old)):
        old = old or _words_as_shown(_text_of(lines[heading]))
        _set_heading(path, after, heading, title)
    for at, match in fields.items():
        if at == named or _words(_value(match["value"])) == _words(old):
            cr = "\r" * lines[at].endswith("\r")
            after[at] = f"{match['key']}{_sign(match)}{_written(match, title)}{cr}"
    if named is not None:
        _drop_rest(after, named, end, fields[named]["value"].strip())
    if named is None and heading is None:
        _add_title(path, after, end, title)
    return after, old


def _retitled_json(lines: Sequence[str], title: str) -> tuple[list[str], str] | None:
    """Return the lines of a page whose front matter is JSON; None for another one."""
    text = "\n".join(lines)
    front_matter, start = split_front_matter(text.replace("\r\n", " \n"))
    if not start or not text.lstrip().startswith("{"):
        return None
    written = json.dumps(title, ensure_ascii=False)
    field = re.search(r"\"title\"\s*:\s*(\"(?:[^\"\\]|\\.)*\")", text[:start])
    if field is None:
        at = text.index("{") + 1
        return f'{text[:at]}\n  "title": {written},{text[at:]}'.split("\n"), ""
    return f"{text[: field.start(1)]}{written}{text[field.end(1) :]}".split("\n"), text_field(front_matter, "title")


def _sign(match: re.Match[str]) -> str:
    """Return the sign between a field and its value; YAML wants a blank after the colon."""
    return f"{match['sign']} " if match["sign"].endswith(":") else str(match["sign"])


def _drop_rest(lines: list[str], field: int, end: int, value: str) -> None:
    """Remove the lines of a field's old value that stand below it: indented ones, and those of a long text of TOML."""
    quotes = value[:3] if value[:3] in ('"""', "'''") else ""
    if quotes and quotes not in value[3:]:
        while field + 1 < end - 1:
            is_last = quotes in lines[field + 1]
            del lines[field + 1]
            end -= 1
            if is_last:
                return
    while field + 1 < end - 1 and lines[field + 1][:1] in (" ", "\t"):
        del lines[field + 1]
        end -= 1


def _add_title(path: str, lines: list[str], end: int, title: str) -> None:
    """Give a title to a page without one: in its front matter, which ends at ``end``, else as a heading."""
    cr = "\r" * bool(lines and lines[0].endswith("\r"))
    if end and lines[0].startswith("+"):
        lines.insert(1, f"title = {json.dumps(title, ensure_ascii=False)}{cr}")
    elif end:
        lines.insert(1, f"title: {yaml_text(title)}{cr}")
    elif path.endswith(".adoc"):
        lines[:0] = [f"= {title}{cr}", cr]
    elif path.endswith(".rst"):
        lines[:0] = [*(f"{line}{cr}" for line in rest_heading(title)), cr]
    else:
        lines[:0] = [f"# {markdown_words(title, mdx=path.endswith('.mdx'))}{cr}", cr]


def _value(written: str) -> str:
    """Return the value of a field without its quotes; empty for one of several lines."""
    value = written.strip()
    if value[:1] in _BLOCK:
        return ""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value.partition(" #")[0].rstrip()


def _written(match: re.Match[str], title: str) -> str:
    """Return the new value in the quotes of the old one, where they can hold it."""
    quote = match["value"].strip()[:1]
    if quote == "'" and "'" not in title:
        return f"'{title}'"
    return json.dumps(title, ensure_ascii=False) if quote == '"' or "=" in match["sign"] else yaml_text(title)


def _heading_line(path: str, lines: Sequence[str], end: int) -> int | None:
    """Return the index of the line with the top heading."""
    if is_markdown(path):
        page = Markdown("\n".join(lines), path=path)
        top = next((block for block in page.headings if block.level == 1), None)
        return None if top is None else page.first_line + top.first
    if path.endswith(".adoc"):
        return next((at for at, line in enumerate(lines) if line.startswith("= ")), None)
    for at in range(end, len(lines) - 1):
        text, line = lines[at].rstrip(), lines[at + 1].rstrip()
        if text and not _UNDERLINE.fullmatch(text) and _UNDERLINE.fullmatch(line) and len(line) >= len(text):
            return at
    return None


def _text_of(line: str) -> str:
    match = _HEADING.fullmatch(line.rstrip())
    return _parts(match["text"])[0] if match else line.removeprefix("= ").strip()


def _parts(text: str) -> tuple[str, str]:
    """Return the words of a heading, and what stands behind them: its own id, or the closing marks."""
    at = text.rfind("{") if text.endswith("}") else -1
    if at >= 0 and text[at + 1 : at + 2] in (":", "#"):
        words = text[:at].rstrip()
    else:
        words = text.rstrip("#")
        words = words.rstrip() if words[-1:] in (" ", "\t", "") else text
    return words, text[len(words) :]


def _words_as_shown(text: str) -> str:
    return re.sub(r"[*_`]", "", text).strip()


def _words(text: str) -> str:
    return " ".join(_words_as_shown(text).casefold().split())


def _set_heading(path: str, lines: list[str], at: int, title: str) -> None:
    cr = "\r" * lines[at].endswith("\r")
    match = _HEADING.fullmatch(lines[at].rstrip())
    if match is not None:
        lines[at] = f"{match['mark']}{markdown_words(title, mdx=path.endswith('.mdx'))}{_parts(match['text'])[1]}{cr}"
        return
    if lines[at].startswith("= "):
        lines[at] = f"= {title}{cr}"
        return
    was = lines[at].rstrip()
    is_markup = is_markdown(path)
    words = markdown_words(title, mdx=path.endswith(".mdx")) if is_markup else rest_heading(title)[0]
    lines[at] = f"{words}{cr}"
    for beside in (at - 1, at + 1):
        if (
            0 <= beside < len(lines)
            and _UNDERLINE.fullmatch(lines[beside].rstrip())
            and len(lines[beside].rstrip()) >= len(was)
        ):
            lines[beside] = lines[beside][0] * max(len(words) if is_markup else rest_width(words), 3) + cr
