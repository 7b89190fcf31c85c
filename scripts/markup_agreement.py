"""Whether agent, index and a renderer read pages alike: the same links within the site, headings and code.

The renderer is markdown-it as CommonMark has it. It knows neither MDX nor what a site's generator replaces (shortcodes,
templates, components), so pages that have any of it are compared between agent and index only. Prints counts for each
folder in DIR, and with --show the first differences.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import unescape
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token
from msgspec import Struct

from service.agent.checks.markup import links_of
from service.domain.sites import Skipped
from service.markup.dialects.dialect import PLAIN, Dialect
from service.markup.front_matter import split_front_matter
from service.markup.links import is_external
from service.markup.markdown import Markdown, without_comments
from service.markup.pages import is_markdown
from service.markup.prose import plain
from service.retrieval.readers.markdown import parse_page
from service.retrieval.site.detection import detect_layout

MAX_BYTES = 1 << 20
_RENDERER = MarkdownIt("commonmark")
_HREF = re.compile(r"<[A-Za-z][^<>]*?\shref\s*=\s*(?:\"([^\"]*)\"|'([^']*)')[^<>]*>")
_ID = re.compile(r"\{[^{}]*#[^{}]*\}\s*$|\{/\*\s*#.*\*/\}\s*$")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_SITE_OWN = re.compile(
    r"\{\{|\{%|\{/\*|</?[A-Z]|^(?:import|export) |^ {0,3}(?::::|!!!|\?\?\?|===)|\{[:#]|<!-->"
    r"|^[ \t]*<(?:script|style|svg)",
    re.MULTILINE,
)
"""Markup that a renderer of CommonMark shows, and a generator does something else with."""


class Reading(Struct, frozen=True):
    links: frozenset[str]
    """Where links within the site lead."""
    headings: tuple[str, ...]
    """Text of the page itself, not of its lists and quotes; in words."""
    code: tuple[str, ...]
    """Blocks, without white space at the ends of lines and around them."""
    spans: tuple[str, ...] = ()
    """Code spans; of the index none."""


def by_agent(text: str, path: str, dialect: Dialect = PLAIN) -> Reading:
    page = Markdown(text, path=path, dialect=dialect)
    links = (link.target for link in links_of(text, path, dialect) if not link.is_image and link.form == "link")
    headings = tuple(_words(without_comments(block.text)) for block in page.headings)
    code = tuple(_code(block.text) for block in page.blocks if block.kind in ("fence", "code"))
    blocks = {page.place_of(block) for block in page.blocks if block.kind in ("fence", "code")}
    spans = (page.text[slice(*place)].strip("`") for place in page.code if place not in blocks)
    return Reading(_own(links), headings, tuple(filter(None, code)), tuple(_span(span) for span in spans))


def by_index(text: str, path: str, dialect: Dialect = PLAIN) -> Reading | Skipped:
    page = parse_page(text.encode(errors="replace"), path, dialect)
    if isinstance(page, Skipped):
        return page
    tokens = _RENDERER.parse(page.content)
    fences = tuple(_code(token.content) for token in tokens if token.type == "fence")
    lines = page.content.split("\n")
    named = [line.lstrip("#") for line in lines if line.startswith("#")]
    named += [name for section in page.sections for name in section.heading_path]
    return Reading(_own(link.href for link in page.links), tuple(map(_bare, (page.title, *named))), fences)


def by_renderer(text: str) -> Reading:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return _rendered(text[split_front_matter(text)[1] :])


def _rendered(text: str) -> Reading:
    tokens = _RENDERER.parse(text)
    headings = [tokens[at + 1] for at, token in enumerate(tokens) if token.type == "heading_open" and not token.level]
    code = (_code(token.content) for token in tokens if token.type in ("fence", "code_block"))
    inline = [child for token in tokens for child in token.children or ()]
    spans = (_span(child.content) for child in inline if child.type == "code_inline")
    return Reading(
        _own(_targets(tokens, inline)),
        tuple(_bare(_ID.sub("", _shown(heading.children or ()))) for heading in headings),
        tuple(filter(None, code)),
        tuple(spans),
    )


def _targets(tokens: Sequence[Token], inline: Sequence[Token]) -> Iterator[str]:
    for child in inline:
        if child.type == "link_open" and child.markup != "autolink":
            yield str(child.attrs["href"])
    for token in (*tokens, *inline):
        if token.type in ("html_block", "html_inline"):
            for found in _HREF.finditer(_COMMENT.sub("", token.content)):
                yield found[1] or found[2] or ""


def _shown(children: Sequence[Token]) -> str:
    return "".join(
        child.content if child.type in ("text", "code_inline", "text_special", "image") else " "
        for child in children
        if child.type in ("text", "code_inline", "text_special", "image", "softbreak")
    )


def _own(targets: Iterator[str]) -> frozenset[str]:
    decoded = (unquote(unescapeAll(unescape(target.strip()))) for target in targets)
    return frozenset(target for target in decoded if target and not is_external(target) and "{" not in target)


def _words(heading: str) -> str:
    return _bare(plain(_ID.sub("", heading)))


def _bare(words: str) -> str:
    return " ".join(re.findall(r"\w+", words))


def _span(text: str) -> str:
    return " ".join(re.sub(r"\n[ \t>]*", " ", text).split())


def _code(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().split("\n")).strip()


def is_plain(text: str, path: str) -> bool:
    """Return whether a renderer of CommonMark shows the page as its site does."""
    return not path.endswith(".mdx") and _SITE_OWN.search(text) is None


def differences(text: str, path: str, dialect: Dialect = PLAIN) -> Mapping[str, tuple[object, object]]:
    """Return what is read differently: by name, what the one reads and what the other does."""
    agent, index = by_agent(text, path, dialect), by_index(text, path, dialect)
    if isinstance(index, Skipped):
        return {}
    found: dict[str, tuple[object, object]] = {
        "links, agent and index": (agent.links, index.links),
        # the index leaves out a heading that only says the page's title again
        "headings, agent and index": ([name for name in agent.headings[1:] if name not in index.headings], []),
        "code, agent and index": ([block for block in index.code if block and block not in agent.code], []),
    }
    if dialect == PLAIN and is_plain(text, path):
        renderer = by_renderer(text)
        for name in ("links", "headings", "code", "spans"):
            found[f"{name}, agent and renderer"] = (getattr(agent, name), getattr(renderer, name))
    return {name: pair for name, pair in found.items() if pair[0] != pair[1]}


def compare(folder: Path, show: Callable[[str], None]) -> Counter[str]:
    """Compare the pages of one site; count them, and what is read differently in them."""
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    layout = detect_layout(files, lambda name: _bytes(folder / name))
    counts: Counter[str] = Counter()
    for path in files:
        data = _bytes(folder / path) if is_markdown(path) and layout.is_page(path) else None
        if data is None or len(data) > MAX_BYTES:
            continue
        text = data.decode("utf-8", "replace")
        counts["pages"] += 1
        counts["by the renderer too"] += is_plain(text, path)
        for dialect in dict.fromkeys((layout.dialect, PLAIN)):
            for name, (one, other) in differences(text, path, dialect).items():
                counts[name] += 1
                show(f"{folder.name}/{path}: {name}\n  {_unlike(one, other)}\n  {_unlike(other, one)}")
    return counts


def _bytes(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _unlike(one: object, other: object) -> str:
    assert isinstance(one, Sequence | frozenset)
    assert isinstance(other, Sequence | frozenset)
    return repr([item for item in one if item not in other])[:500]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/markup-agreement", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpora", type=Path, required=True, metavar="DIR", help="holds a folder for each site")
    parser.add_argument("--only", action="append", metavar="NAME", help="one folder of it; may be repeated")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N differences of each site")
    options = parser.parse_args()
    for folder in sorted(options.corpora.iterdir()):
        if not folder.is_dir() or (options.only and folder.name not in options.only):
            continue
        shown: list[str] = []
        counts = compare(folder, shown.append)
        pages, plain_pages = counts.pop("pages", 0), counts.pop("by the renderer too", 0)
        told = ", ".join(f"{name}: {count:,}" for name, count in sorted(counts.items()))
        print(f"{folder.name}: {pages:,} pages, {plain_pages:,} by the renderer too; {told or 'no difference'}")
        for difference in shown[: options.show]:
            print(f"  {difference}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
