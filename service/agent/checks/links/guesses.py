"""The most likely target of a broken link: the page that has moved, or the one whose name is nearest."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from posixpath import dirname, relpath
from urllib.parse import unquote

from msgspec import Struct

from service.agent.checks.links.site_view import (
    NO_ANCHORS,
    Anchors,
    PageNames,
    SiteView,
    loosely,
    without_query,
)
from service.agent.checks.markup import PageLink
from service.markup.pages import INDEX_NAMES, is_page, without_suffix
from service.markup.slugs import slug

MAX_SUGGESTIONS = 3
MAX_GUESSED = 300
"""Links whose meaning is guessed at a time; others are reported without a suggestion."""
MAX_COMPARED, MAX_NAME = 500, 100
"""Names that one is compared with, and the characters of one: comparing takes the product of both lengths."""
MOVED = "the page it leads to has moved"
_COMMON = frozenset(
    {
        "index", "overview", "introduction", "intro", "about", "faq", "faqs", "setup", "install", "installation",
        "home", "quickstart", "start", "getting-started", "guide", "guides", "reference", "api", "configuration",
        "config", "usage", "help", "examples", "example", "changelog", "concepts", "tutorial", "tutorials",
    }
)  # fmt: skip
"""Names that many folders have a page of: alone they say nothing."""


class BrokenLink(Struct, frozen=True):
    path: str
    line: int
    found: str
    """The text that is there now, with enough around it to identify it: ``(/a/b)``."""
    suggestions: tuple[str, ...]
    """Texts that could replace it, best first."""
    clear: bool
    """The first suggestion is what was meant, as far as can be known."""
    reason: str
    meant: str = ""
    """The target in the first suggestion."""
    lacks_anchor: bool = False
    """Its page exists; the heading does not."""


class SuspectLink(Struct, frozen=True):
    """A link whose anchor is still to be looked at, or that is known to be broken already."""

    path: str
    link: PageLink
    page: str | None
    """Where it leads now; None: nowhere."""
    meant: str | None = None
    """Where the page it led to before has gone."""


def verdicts(
    suspects: Iterable[SuspectLink],
    anchors: Mapping[str, Anchors],
    now: SiteView,
    renamed: Mapping[str, Mapping[str, str]],
) -> list[BrokenLink]:
    """Return those that are broken. ``renamed``: by page, anchors that went and those in their place."""
    broken = []
    left = MAX_GUESSED
    for suspect in suspects:
        anchor = suspect.link.target.partition("#")[2]
        if suspect.page is None:
            left -= suspect.meant is None
            broken.append(_without_page(suspect, now, guess=left >= 0))
        elif not (known := anchors.get(suspect.page, NO_ANCHORS)).has(anchor):
            left -= 1
            new = renamed.get(suspect.page, {}).get(unquote(anchor))
            if new is not None:
                broken.append(_renamed(suspect, anchor, new))
            else:
                broken.append(_without_anchor(suspect, anchor, known.names if left >= 0 else NO_ANCHORS.names))
    return broken


def _without_page(suspect: SuspectLink, now: SiteView, *, guess: bool) -> BrokenLink:
    target, hash_mark, anchor = suspect.link.target.partition("#")
    tail = hash_mark + anchor
    reason = f"no page is at {target}"
    if suspect.meant is not None:
        pages, clear = ([suspect.meant], True) if suspect.meant in now.files else ([], False)
        reason = MOVED if pages else "the page it leads to is gone"
    else:
        pages, clear = _guesses(suspect.path, target, now) if guess else ([], False)
    written = [each for page in pages if (each := _address(suspect.path, target, page, now)) is not None]
    suggestions = tuple(suspect.link.with_target(each + tail) for each in written[:MAX_SUGGESTIONS])
    clear = clear and bool(written) and len(pages) == len(written)
    meant = written[0] + tail if written else ""
    return BrokenLink(suspect.path, suspect.link.line, suspect.link.found, suggestions, clear, reason, meant)


def _renamed(suspect: SuspectLink, anchor: str, new: str) -> BrokenLink:
    meant = f"{suspect.link.target.partition('#')[0]}#{new}"
    suggestions = (suspect.link.with_target(meant),)
    reason = f"the heading #{anchor} of {suspect.page} has other words now"
    place = suspect.path, suspect.link.line, suspect.link.found
    return BrokenLink(*place, suggestions, clear=True, reason=reason, meant=meant, lacks_anchor=True)


def _without_anchor(suspect: SuspectLink, anchor: str, anchors: frozenset[str]) -> BrokenLink:
    wanted = loosely(unquote(anchor))[:MAX_NAME]
    near = sorted(
        (
            (difflib.SequenceMatcher(None, wanted, loosely(each)[:MAX_NAME]).ratio(), each)
            for each in sorted(anchors)[:MAX_COMPARED]
        ),
        key=lambda pair: (-pair[0], pair[1]),
    )
    best = [each for ratio, each in near[:MAX_SUGGESTIONS] if ratio >= 0.6]
    sure = [each for each in best if _is_slip(unquote(anchor), each)]
    target = suspect.link.target.partition("#")[0]
    options = [f"{target}#{each}" for each in dict.fromkeys([*sure, *best])]
    suggestions = tuple(map(suspect.link.with_target, options))
    reason = f"{suspect.page} has no heading #{anchor}"
    meant = options[0] if options else ""
    place = suspect.path, suspect.link.line, suspect.link.found
    return BrokenLink(*place, suggestions, clear=len(sure) == 1, reason=reason, meant=meant, lacks_anchor=True)


def _is_slip(written: str, meant: str) -> bool:
    """A name mistyped or inflected: one or two letters apart, its numbers the same."""
    one, two = loosely(written), loosely(meant)
    if re.sub(r"\D", "", one) != re.sub(r"\D", "", two) or not 4 <= len(one) <= 3 * MAX_NAME or len(two) < 4:
        return False
    if abs(len(one) - len(two)) > 2:
        return False
    changed = sum(
        max(end - start, other_end - other_start)
        for kind, start, end, other_start, other_end in difflib.SequenceMatcher(None, one, two, False).get_opcodes()
        if kind != "equal"
    )
    return changed <= (2 if len(one) >= 8 else 1)


def _guesses(path: str, target: str, now: SiteView) -> tuple[list[str], bool]:
    """Pages that a link to nowhere may have meant, best first, and whether the first is the one."""
    parts = [_word(part) for part in without_suffix(without_query(target)).split("/") if part not in ("", ".", "..")]
    while parts and parts[-1] in INDEX_NAMES:
        parts.pop()
    if not parts:
        return [], False
    name, folders = parts[-1], parts[:-1]
    known = _names(now)
    names = known.by_name
    found = list(names.get(name, ())[:MAX_COMPARED])
    exact = bool(found)
    if not exact and len(name) <= MAX_NAME:
        near = [each for each in names if abs(len(each) - len(name)) <= 3 and _alike_at_an_end(each, name)]
        close = difflib.get_close_matches(name, near[:MAX_COMPARED], n=3, cutoff=0.85)
        found = [page for each in close for page in names[each][:MAX_COMPARED]]
    here = now.site.pages.get(path)
    if here is not None:
        spoken = (here.version, here.language)
        kin = [page for page in found if (now.site.pages[page].version, now.site.pages[page].language) == spoken]
        found = kin or found
    ranked = sorted(set(found), key=lambda page: (-_shared(folders, page, now), len(page), page))
    if not ranked or ranked[0] == path:
        return ranked[1:], False
    telling_folders = [folder for folder in folders if folder not in known.everywhere]
    shared = _shared(telling_folders, ranked[0], now)
    alone = len(ranked) == 1 or _shared(telling_folders, ranked[1], now) < shared
    all_fits = bool(folders) and _shared(folders, ranked[0], now) == len(set(folders))
    if exact and name in _own_names(ranked[0], now) and not known.often_alike:
        telling = len(name) > 3 and name not in _COMMON
        return ranked, alone and (shared > 0 or (telling and len(ranked) == 1))
    # Its title, or nearly so, or a name that many pages have: then the rest of the link must fit.
    nearly = exact or any(_is_slip(name, own) for own in _own_names(ranked[0], now))
    return ranked, alone and nearly and all_fits


def _alike_at_an_end(name: str, other: str) -> bool:
    return name[:2] == other[:2] or name[-3:] == other[-3:]


def _names(now: SiteView) -> PageNames:
    if now.names is None:
        names: dict[str, list[str]] = {}
        own: Counter[str] = Counter()
        within: Counter[str] = Counter()
        for path, page in now.site.pages.items():
            called = _own_names(path, now)
            own.update(called)
            for name in called | {_word(slug(now.titles.get(path, "")))} - {""}:
                names.setdefault(name, []).append(path)
            within.update({_word(part) for part in f"{dirname(path)}/{dirname(page.url)}".split("/")})
        alike = sum(count for name, count in own.items() if count > 1 and name not in _COMMON)
        total = max(len(now.site.pages), 1)
        now.names = PageNames(
            names, frozenset(f for f, count in within.items() if count > total / 2), often_alike=alike > total / 5
        )
    return now.names


def _own_names(page: str, now: SiteView) -> set[str]:
    """The last part of its path and of its address."""
    parts = [part for part in without_suffix(page).split("/") if part.lower() not in INDEX_NAMES]
    return {_word(parts[-1]) if parts else "", _word(now.site.pages[page].url.rpartition("/")[2])} - {""}


def _shared(folders: Sequence[str], page: str, now: SiteView) -> int:
    """Return how many folders of a link the page's path or address has too."""
    own = {_word(part) for part in f"{page}/{now.site.pages[page].url}".split("/")}
    return sum(folder in own for folder in set(folders))


def _address(path: str, target: str, page: str, now: SiteView) -> str | None:
    """Return how a link on ``path`` would name the page, written as the old target was; None when no way of writing
    works.
    """
    if page not in now.site.pages:
        return relpath(page, dirname(path) or ".") if not target.startswith("/") else f"/{page}"
    url = now.site.pages[page].url
    bare, _, query = target.partition("?")
    has_suffix = is_page(bare)
    near = relpath(page, dirname(path) or ".")
    stem = without_suffix(near)
    stem = re.sub(r"(?:^|/)(?:index|_index|README|readme)$", "", stem) or "."
    lead = "./" if bare.startswith("./") and not near.startswith("../") else ""
    slashed = "/" if bare.endswith("/") else ""
    own = now.site.pages.get(path)
    options: list[str] = []
    if bare.startswith("/"):
        options += [f"/{page}", url] if has_suffix else [url.rstrip("/") + slashed or "/", url]
    else:
        options += [lead + near] if has_suffix else []
        options += [lead + stem + slashed]
        if own is not None:
            options += [relpath(url, base) + slashed for base in (dirname(own.url), own.url) if base]
        options += [near, url]
    tail = f"?{query}" if query else ""
    for option in options:
        if now.leads_to(path, option)[0] == page:
            return option + tail
    return None


def _word(name: str) -> str:
    return re.sub(r"[\W_]+", "-", unquote(name).casefold()).strip("-")
