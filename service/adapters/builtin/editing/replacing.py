"""Replace a text in a page, in the pages of a folder, or in all.

The addresses of pages and files stay: those in front matter, of the web, of links, images and imports are put back,
unless the instruction names their field or gives a path; then a link whose new address leads nowhere gets its old one.
Words stay
whole: where the text is a part of another word, it is put back, too. Links to
headings that changed are mended.
"""

import re
from collections.abc import Generator, Iterable, Sequence
from itertools import accumulate

from service.adapters.builtin.editing.addresses import address_fields, front_matter_end, names_a_field
from service.adapters.builtin.editing.forms import Replace, short
from service.adapters.builtin.editing.mending import mend_broken_by_changes
from service.adapters.builtin.editing.pages import is_page
from service.adapters.builtin.editing.steps import MAX_EDITS, Call, Editing, Step, Steps, Turn, counted, named
from service.adapters.builtin.editing.tool_results import dead_links, found_in, lines_in, times_replaced
from service.markup.dialects.dialect import Dialect
from service.markup.links import is_external
from service.markup.markdown import Markdown
from service.markup.page_names import page_names
from service.markup.pages import is_markdown

HEAD_LINES = 40
"""Lines of a page that are read first, to find its front matter."""
MAX_READ_WHOLE = 200
"""Pages; of more, only the beginnings are read, and images are left to the checks."""
MAX_WORDS = 10
"""Words with the text in them that are named."""
_PART, _LINK = "a part of a word", "a link"
_LETTER = re.compile(r"[A-Za-z0-9_\u00b5-\u024f\u0370-\u052f]")
"""Letters of scripts that have blanks between words."""
_WEB = re.compile(r"\b(?:https?|ftp)://[^\s<>\"'`)\]}]{1,2000}")
_IS_PATH = re.compile(r"[/.]")
_MODULE = re.compile(r"\bfrom\s++[\"'][^\"'\n]*[\"']")
_TARGET = re.compile(r"(?:[(\"'=<]|\]:)[^(\"'=<]*\Z")
"""The address of a link, in the text of it that is there."""


def replace_text(editing: Editing, asked: Replace) -> Steps:
    scope = (yield from editing.scope(asked.path)) if asked.path else ""
    if asked.path and not scope:
        return
    if is_page(scope):
        yield from _replace_in(editing, asked, [scope], more=0)
        return
    found = yield from editing.one(
        "Searching the pages. ", "search", query=asked.old, exact=True, **({"folder": scope} if scope else {})
    )
    paths, count = found_in(found)
    pages = [path for path in paths if is_page(path)]
    left_alone = [path for path in paths if path not in pages]
    if left_alone:
        editing.say(f"Left alone, because they are not pages: {named(left_alone)}.")
    if not pages:
        where = f" in {scope}" if scope else ""
        editing.say(f"No page{where} contains {short(asked.old)}.")
        return
    yield from _replace_in(editing, asked, pages[:MAX_EDITS], more=count - len(paths))


def _replace_in(editing: Editing, asked: Replace, pages: Sequence[str], *, more: int) -> Steps:
    restored = yield from _addresses(editing, asked, pages)
    calls: list[Call] = []
    for page in pages:
        calls.append(("replace", {"path": page, "old": asked.old, "new": asked.new, "all": True}))
        calls += [call for call, _, _ in restored.get(page, ())]
    results = yield from editing.ask(Step(f"Replacing in {counted(len(pages), 'page')}. ", tuple(calls)))
    times = dict.fromkeys(pages, 0)
    kept: list[str] = []
    words: dict[str, None] = {}
    links = 0
    for (_, arguments), result in zip(calls, results, strict=True):
        if "line" not in arguments:
            times[str(arguments["path"])] += times_replaced(result)
    for page, fields in restored.items():
        if times[page]:
            times[page] -= sum(count for _, count, _ in fields)
            editing.edits -= len(fields) + (not times[page])
            links += sum(name == _LINK for _, _, name in fields)
            names = dict.fromkeys(name for _, _, name in fields if name != _LINK and not name.startswith(_PART))
            kept += [f"{name} of {page}" for name in names]
            words.update(dict.fromkeys(name.removeprefix(_PART) for _, _, name in fields if name.startswith(_PART)))
    changed = [page for page in pages if times[page]]
    if changed:
        what = f"Replaced {short(asked.old)} with {short(asked.new)}"
        editing.say(f"{what}: {counted(sum(times.values()), 'time')} in {counted(len(changed), 'page')}.")
    if kept:
        editing.say(
            f"Left alone, because they are addresses: {named(kept)}. To change one, name its field in the text to "
            'replace, as in "slug: …".'
        )
    if links:
        editing.say(f"Left {counted(links, 'link')} as they were: only the words around them changed.")
    if words:
        shown = ", ".join([*list(words)[:MAX_WORDS], *(["…"] if len(words) > MAX_WORDS else [])])
        editing.say(f"Left alone, because {short(asked.old)} is only a part of the word there: {shown}.")
    editing.report_errors(results)
    if more > 0:
        editing.say(f"{counted(more, 'more page')} contain it: ask again for the rest.")
    if changed:
        yield from _restore_links(editing, asked, changed)
        yield from mend_broken_by_changes(editing, "Fixed the links that this broke")


Restored = tuple[Call, int, str]
"""The call that puts a line back, the number of texts on it, and the field that it belongs to."""


def _addresses(
    editing: Editing, asked: Replace, pages: Sequence[str]
) -> Generator[Step, Turn, dict[str, list[Restored]]]:
    """Return, by page, what puts its addresses back after the text was replaced everywhere."""
    if asked.old != asked.old.strip() or names_a_field(asked.old):
        return {}
    most = {} if len(pages) <= MAX_READ_WHOLE else {"end_line": HEAD_LINES}
    reads = yield from editing.ask(Step("", tuple(("read", {"path": page, "start_line": 1, **most}) for page in pages)))
    restored: dict[str, list[Restored]] = {}
    for page, result in zip(pages, reads, strict=True):
        lines, _ = lines_in(result)
        if front_matter_end(lines) is None:
            lines = yield from editing.lines(page)
        if found := _restored(asked, page, lines):
            restored[page] = found
    return restored


def _restored(asked: Replace, page: str, lines: Sequence[str]) -> list[Restored]:
    text = "\n".join(lines)
    pieces: list[tuple[int, str, str]] = []
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    if len(asked.old.split()) == 1 and is_markdown(page):  # an address has no blanks
        for number, name in address_fields(lines).items():
            pieces.append((starts[number - 1], lines[number - 1].rstrip("\r"), name))
        if not _IS_PATH.search(asked.old):
            pieces += ((match.start(), match[0], "an address of the web") for match in _WEB.finditer(text))
    if not _IS_PATH.search(asked.old):
        pieces += _targets(page, text)
    pieces = _with_parts(asked.old, text, pieces)
    more_lines, times = asked.new.count("\n"), 0
    found: dict[tuple[int, str, str], int] = {}
    for at, piece, name in sorted(pieces):
        if asked.old not in piece:
            continue
        above = text.count(asked.old, 0, at) - times  # those that were restored are back by then
        line = text.count("\n", 0, at) + 1 + more_lines * above
        found[line, piece, name] = found.get((line, piece, name), 0) + piece.count(asked.old)
        times += piece.count(asked.old)
    return [
        (
            (
                "replace",
                {"path": page, "old": piece.replace(asked.old, asked.new), "new": piece, "line": line, "all": True},
            ),
            count,
            name,
        )
        for (line, piece, name), count in found.items()
    ]


def _with_parts(old: str, text: str, pieces: Sequence[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """Return the pieces, with the words of which the text is only a part; of those that meet, the first one."""
    words = [
        (at, word, f"{_PART}{word}")
        for at, word in _words_around(old, text)
        if word != old and (old[0].isalnum() or old[-1].isalnum())
    ]
    found: list[tuple[int, str, str]] = []
    end = -1
    for at, piece, name in sorted((*pieces, *words), key=lambda one: (one[0], -len(one[1]))):
        if at >= end:
            found.append((at, piece, name))
            end = at + len(piece)
    return found


def _words_around(old: str, text: str) -> Iterable[tuple[int, str]]:
    """Yield where the text is in words, from the first letter to the last: each word once, in linear time."""
    end = 0
    while (at := text.find(old, end)) >= 0:
        start = at
        while start > end and _LETTER.match(text[start - 1]):
            start -= 1
        end = at + len(old)
        while _LETTER.match(text[end : end + 1]):
            end += 1
        yield start, text[start:end]


def _targets(page: str, text: str) -> Iterable[tuple[int, str, str]]:
    """Yield where the page names other pages, headings, images and modules, each with a character around it."""
    markup = Markdown(text, path=page) if is_markdown(page) else None
    for link in markup.links if markup is not None else ():
        if not is_external(link.target):
            name = "an image" if link.is_image else _LINK
            yield link.start - 1, text[link.start - 1 : link.start + len(link.target) + 1], name
    for each in page_names(text, page, Dialect(shortcodes=True), markup):
        yield each.start - 1, text[each.start - 1 : each.start + len(each.target) + 1], _LINK
    for start, end in markup.unseen if markup is not None else ():
        for match in _MODULE.finditer(text, start, end):
            yield match.start(), match[0], "an import"


def _restore_links(editing: Editing, asked: Replace, pages: Iterable[str]) -> Steps:
    """Give links their old addresses back where nothing is at the new ones."""
    links, _ = dead_links((yield from editing.one("Checking links. ", "check_links", changed=True)))
    edits: dict[tuple[str, int, str], str] = {}
    for link in links:
        target = _TARGET.search(link.found)
        if link.path in pages and asked.new and target and asked.new in target[0]:
            old = target[0].replace(asked.new, asked.old)
            edits[link.path, link.line, link.found] = link.found[: target.start()] + old
    if not edits:
        return
    calls = tuple(
        ("replace", {"path": path, "old": found, "new": old, "line": line, "all": True})
        for (path, line, found), old in edits.items()
    )
    results = yield from editing.ask(Step("Keeping the addresses of links. ", calls))
    if times := sum(map(times_replaced, results)):
        editing.say(f"Left {counted(times, 'link')} as they were, because no page is at the new address.")
