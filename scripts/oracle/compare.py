"""A site as its real generator makes it, written down beside the sample, and where Docsmith reads it otherwise.

``scripts/generators/NAME/SITE`` holds the files of a sample, ``SITE.json`` there what the generator made of them.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from msgspec import Struct, json

from service.domain.sites import Skipped
from service.markup.prose import words_of
from service.retrieval.readers.markdown import ParsedPage
from service.retrieval.site.navigation import Layout, Site, detect_layout, make_site
from service.retrieval.site.pages import PageReader

SAMPLES = Path(__file__).parents[1] / "generators"
_WORD = re.compile(r"[^\W_]+")
_LIST_NUMBER = re.compile(r"^[ \t]*\d{1,9}[.)](?=[ \t])", re.MULTILINE)
"""Numbers that a browser makes."""
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[^\n]*$", re.MULTILINE)


class BuiltPage(Struct):
    url: str
    title: str = ""
    """Empty where the generator gives none of its own."""
    text: str = ""
    """Words that a reader sees in the page's own part; empty to leave them out of the comparison."""
    anchors: list[str] = []
    """Identifiers that links into the page name."""


class BuiltSite(Struct):
    pages: dict[str, BuiltPage]
    """By path of the file that the page is made of."""
    navigation: list[list[str]] = []
    """Paths in the order of each list of pages that the site shows."""
    docs_folder: str = ""
    """The folder of the documentation, as an operator would set it."""


class Reading(Struct, frozen=True):
    """A sample as Docsmith reads it."""

    layout: Layout
    site: Site
    pages: Mapping[str, ParsedPage]


def samples(name: str) -> list[str]:
    """Return the names of a generator's samples, without the paths of their folders."""
    return sorted(folder.name for folder in (SAMPLES / name).iterdir() if folder.is_dir())


def files_of(sample: Path) -> dict[str, bytes]:
    return {str(path.relative_to(sample)): path.read_bytes() for path in sorted(sample.rglob("*")) if path.is_file()}


def expectation(name: str, sample: str) -> Path:
    return SAMPLES / name / f"{sample}.json"


def written(name: str, sample: str) -> BuiltSite:
    """Return what the generator made of a sample when it was last asked."""
    return json.decode(expectation(name, sample).read_bytes(), type=BuiltSite)


def write(name: str, sample: str, site: BuiltSite) -> None:
    text = json.format(json.encode(site, order="sorted"), indent=1)
    expectation(name, sample).write_bytes(text + b"\n")


def read_sample(name: str, sample: str, docs_folder: str = "") -> Reading:
    files = files_of(SAMPLES / name / sample)
    layout = detect_layout(files, files.get, docs_folder=docs_folder)
    reader = PageReader(layout, lambda path, limit: files[path][:limit] if path in files else None)
    found = {path: reader.page(path) for path in files if layout.is_page(path)}
    pages = {path: page for path, page in found.items() if not isinstance(page, Skipped)}
    return Reading(layout, make_site(layout, pages.values(), files), pages)


def differences(expected: BuiltSite, reading: Reading) -> Iterator[str]:
    """Yield a sentence for each address, title, place and text that is not as the generator has it."""
    own = reading.site.pages
    for path in sorted(own.keys() - expected.pages.keys()):
        yield f"{path} is no page; Docsmith has it at {own[path].url}"
    for path, built in expected.pages.items():
        page = own.get(path)
        if page is None:
            yield f"{path} is not there; it is at {built.url}"
            continue
        if _bare(page.url) != _bare(built.url):
            yield f"{path} has the address {page.url}; it is {built.url}"
        if built.title and page.title != built.title:
            yield f"{path} has the title {page.title!r}; it is {built.title!r}"
        if missing := sorted(set(built.anchors) - page.anchors):
            yield f"{path} lacks the anchors {missing}"
        if built.text:
            yield from _differences_in_words(path, built.text, page.title, reading.pages[path])
    yield from _differences_in_order(expected, reading.site)


def _bare(url: str) -> str:
    return url.rstrip("/") or "/"


def _differences_in_words(path: str, text: str, title: str, page: ParsedPage) -> Iterator[str]:
    own = "\n".join((title, page.title, *(f"{section.heading}\n{section.text}" for section in page.sections)))
    own = words_of(_FENCE.sub("", own))
    shown, read = _words(text), _words(own)
    more = _words(_LIST_NUMBER.sub("", own)) - shown - _words(page.title) - _words(title) - _words(page.description)
    if more:
        yield f"{path} has words that readers do not see: {sorted(more)}"
    if shown - read:
        yield f"{path} lacks words that readers see: {sorted(shown - read)}"


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))


def _differences_in_order(expected: BuiltSite, site: Site) -> Iterator[str]:
    named = {path for listed in expected.navigation for path in listed}
    if not named:
        return
    for path, page in site.pages.items():
        if path in named and page.order < 0:
            yield f"{path} has no place in the navigation"
        elif path not in named and page.order >= 0 and path in expected.pages:
            yield f"{path} has place {page.order} in the navigation, which does not name it"
    for listed in expected.navigation:
        places = [(site.pages[path].order, path) for path in listed if path in site.pages]
        for (before, one), (after, other) in pairwise(places):
            if before >= after >= 0:
                yield f"{other} is after {one}; Docsmith has them at {after} and {before}"
