"""The address that Hugo gives a page (gohugo.io/content-management/urls): content folders and mounts, languages by
folder or suffix, ``url``, ``slug``, permalinks, ugly URLs, lower case, and what sections cascade to their pages.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from msgspec import Struct

from service.markup.front_matter import FrontMatter, text_field

MAX_GLOB, MAX_ALTERNATIVES = 300, 50
"""Limits for a page matcher of a cascade: characters, and the alternatives that its braces stand for."""
MAX_MATCHING = 200
"""Limit for the page matchers of a site that each page is compared with: their alternatives, and the stars in these.
Hugo's own documentation has some ten.
"""


class Source(Struct, frozen=True, array_like=True):
    """A folder of content, where it is mounted, and the language of all that is in it."""

    folder: str
    below: str = ""
    language: str = ""


class Cascade(Struct, frozen=True):
    """Front matter that a section, or the configuration, gives the pages below it."""

    section: str
    """As ``/docs``; empty for the whole site."""
    values: Mapping[str, object]
    path: str = ""
    kind: str = ""
    language: str = ""
    """Patterns; empty ones fit all."""
    of: str = ""
    """The language of the section that has it; empty for all."""


class ContentPage(Struct, frozen=True):
    """Where a file is among the content."""

    language: str
    folders: tuple[str, ...]
    """Those of its sections."""
    name: str
    """Without suffix and language; empty for the page of a section."""
    is_bundle: bool = False
    """``index``: its folder is the page, with resources in it."""

    @property
    def kind(self) -> str:
        return "page" if self.name else "section" if self.folders else "home"

    @property
    def path(self) -> str:
        """The logical path, as ``/docs/page``."""
        return "/" + "/".join((*self.folders, self.name)).strip("/").lower()


class HugoRules(Struct, frozen=True, dict=True):
    """The parts of a configuration that addresses depend on."""

    sources: tuple[Source, ...]
    prefixes: Mapping[str, str] = {}
    """The beginning of the addresses of each language; by the empty one, that of the site."""
    default_language: str = ""
    permalinks: Mapping[str, Mapping[str, str]] = {}
    """By kind of page, then by section."""
    ugly: frozenset[str] = frozenset()
    """Sections whose pages end in ``.html``; ``*`` for all."""
    keeps_case: bool = False
    cascades: tuple[Cascade, ...] = ()
    sections: frozenset[str] = frozenset()
    """Folders with a page of their own: others are part of the section above them, but for those at the top."""
    params: Mapping[str, str] = {}
    """Parameters of the site, nested ones with points, in lower case."""
    templates: Mapping[str, str] = {}
    """Files of the site's own shortcodes, by name."""
    glossaries: tuple[str, ...] = ()
    """Files of terms."""
    any_suffix: bool = False
    """Whether each code of a language may follow a name: the configuration is not there."""

    @cached_property
    def _cascades_of(self) -> Mapping[str, Sequence[Cascade]]:
        """The cascades by section, without those whose patterns take more than ``MAX_MATCHING`` comparisons in all."""
        found: dict[str, list[Cascade]] = {}
        left = MAX_MATCHING
        for one in self.cascades:
            left -= sum(1 + each.count("*") for each in _alternatives(one.path.lower()[:MAX_GLOB])) if one.path else 0
            if left >= 0 or not one.path:
                found.setdefault(one.section, []).append(one)
        return found

    @cached_property
    def _by_folder(self) -> Mapping[str, Source]:
        return {source.folder: source for source in reversed(self.sources)}

    def content_page(self, path: str) -> ContentPage | None:
        """Return where a file is among the content; None outside it."""
        at = len(path)
        while at > 0:
            at = path.rfind("/", 0, at)
            source = self._by_folder.get(path[: max(at, 0)])
            if source is not None:
                return self._placed(source, path[at + 1 :])
        return None

    def _placed(self, source: Source, inside: str) -> ContentPage:
        folder, _, file = inside.rpartition("/")
        folders = tuple(part for part in f"{source.below}/{folder}".split("/") if part)
        name = file.rpartition(".")[0]
        stem, _, suffix = name.rpartition(".")
        language = source.language or self.default_language
        if stem and (suffix.lower() in self.prefixes or (self.any_suffix and re.fullmatch("[a-z]{2}", suffix))):
            name, language = stem, suffix.lower()
        if name == "_index":
            return ContentPage(language, folders, "")
        if name == "index" and folders:
            return ContentPage(language, folders[:-1], folders[-1], is_bundle=True)
        return ContentPage(language, folders, "" if name == "index" else name)

    def with_cascades(self, page: ContentPage, front_matter: FrontMatter) -> FrontMatter:
        """Return a page's front matter with what is cascaded to it: its own wins, then that of the nearest section."""
        fitting = [
            one for section in _above(page.path) for one in self._cascades_of.get(section, ()) if self._fits(one, page)
        ]
        if not fitting:
            return front_matter
        merged = dict(front_matter)
        if "_build" in merged:  # its older name
            merged.setdefault("build", merged["_build"])
        for one in fitting:
            for key, value in one.values.items():
                merged.setdefault(key, value)
        return merged

    def _fits(self, cascade: Cascade, page: ContentPage) -> bool:
        return (
            (not cascade.of or cascade.of == page.language)
            and (not cascade.kind or fits(cascade.kind.lower(), page.kind))
            and (not cascade.language or fits(cascade.language.lower(), page.language))
            and (not cascade.path or fits(cascade.path.lower(), page.path))
        )

    def resolve(self, path: str, own: FrontMatter) -> tuple[str, str] | None:
        """Return the address and the language of a page; None outside the content."""
        page = self.content_page(path)
        if page is None:
            return None
        front_matter = self.with_cascades(page, own)
        prefix = self.prefixes.get(page.language)
        if prefix is None:
            prefix = self.prefixes.get("", "") + (f"/{page.language}" if page.language != self.default_language else "")
        url = text_field(front_matter, "url")
        if url:
            url = self._expanded(url, page, front_matter)
            return (self.prefixes.get("", "") if url.startswith("/") else f"{prefix}/") + url, page.language
        section = page.folders[0].lower() if page.folders else ""
        pattern = self.permalinks.get(page.kind, {}).get(section)
        if pattern:
            url = self._expanded(pattern, page, front_matter).strip("/")
        else:
            slug = text_field(front_matter, "slug") if page.kind == "page" else ""
            url = "/".join(self._part(part) for part in (*page.folders, slug or page.name) if part)
        if url and self.ugly & {"*", section} and not url.endswith(".html"):
            url += ".html"
        return f"{prefix}/{url}", page.language

    def _part(self, text: str) -> str:
        part = _NOT_IN_PATH.sub("", re.sub(r"\s+", "-", text.strip()))
        return part if self.keeps_case else part.lower()

    def _expanded(self, pattern: str, page: ContentPage, front_matter: FrontMatter) -> str:
        date = _DATE.match(text_field(front_matter, "date", "publishDate", "publishdate"))
        slug, title = (text_field(front_matter, name) for name in ("slug", "title"))
        known = [0, *(n for n in range(1, len(page.folders)) if "/".join(page.folders[: n + 1]) in self.sections)]
        sections = [self._part(page.folders[number]) for number in known if page.folders]
        name = self._part(page.name or (page.folders[-1] if page.folders else ""))
        words = {
            "title": self._part(title) or name,
            "slug": self._part(slug or title) or name,
            "filename": name, "contentbasename": name,
            "slugorfilename": self._part(slug) or name, "slugorcontentbasename": self._part(slug) or name,
            "section": sections[0] if sections else "", "sectionslug": sections[0] if sections else "",
            "year": date[1] if date else "", "month": date[2] if date else "", "day": date[3] if date else "",
        }  # fmt: skip

        def shown(match: re.Match[str]) -> str:
            if match["all"]:
                return "/".join(_chosen(sections, match["range"] or ""))
            return words.get(match["word"], match[0])

        return re.sub(r"/{2,}", "/", _TOKEN.sub(shown, pattern.replace("\\:", "\0"))).replace("\0", ":")


_NOT_IN_PATH = re.compile(r"[^\w./\\+~@%#-]")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_TOKEN = re.compile(r":(?:(?P<all>sections|sectionslugs)(?:\[(?P<range>[\w:]{0,10})\])?(?!\w)|(?P<word>[a-z]+))")


def _chosen(sections: Sequence[str], wanted: str) -> Sequence[str]:
    """Return the sections of ``[1:]``, ``[:2]``, ``[0]``, ``[last]``."""
    first, colon, after = wanted.replace("last", "-1").partition(":")
    try:
        if not wanted:
            return sections
        if not colon:
            return sections[int(first) :][:1]
        return sections[int(first or 0) : int(after) if after else None]
    except ValueError:
        return sections


def _above(path: str) -> Iterator[str]:
    """Yield a logical path and those of the sections above it, the site's own, the empty one, at last."""
    while path.strip("/"):
        yield path
        path = path.rpartition("/")[0]
    yield ""


def fits(pattern: str, text: str) -> bool:
    """Return whether a glob of Hugo's fits: ``*`` within a part of a path, ``**`` over parts, ``{a,b}``, ``?``."""
    return any(_accepts(one, text) for one in _alternatives(pattern[:MAX_GLOB]))


@lru_cache(maxsize=256)
def _alternatives(pattern: str) -> tuple[str, ...]:
    todo, found = [pattern], list[str]()
    while todo and len(found) + len(todo) <= MAX_ALTERNATIVES:
        one = todo.pop()
        braces = re.search(r"\{([^{}]*)\}", one)
        if braces is None:
            found.append(one)
        else:
            todo += [one[: braces.start()] + each + one[braces.end() :] for each in braces[1].split(",")]
    return tuple(found)


def _accepts(pattern: str, text: str) -> bool:
    """Read the text once, with all places in the pattern that it may have come to."""
    places = set(_reached(pattern, 0))
    for letter in text:
        following: set[int] = set()
        for at in places:
            if at >= len(pattern):
                continue
            sign = pattern[at]
            if sign == "*" and (letter != "/" or pattern[at : at + 2] == "**"):
                following.update(_reached(pattern, at))
            elif sign == letter or (sign == "?" and letter != "/"):
                following.update(_reached(pattern, at + 1))
        places = following
        if not places:
            return False
    return len(pattern) in places


def _reached(pattern: str, at: int) -> Iterator[int]:
    """Yield a place and those behind the stars at it, which may stand for nothing."""
    yield at
    while at < len(pattern) and pattern[at] == "*":
        at += 2 if pattern[at : at + 2] == "**" else 1
        yield at
