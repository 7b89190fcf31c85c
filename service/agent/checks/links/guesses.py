"""The most likely target of a broken link: the page that has moved, or the one whose name is nearest."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from posixpath import dirname, relpath
from typing import assert_never
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
from service.retrieval.site.links import SOUND, LinkAnswer, labelled

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
    target: str = ""
    """As written; empty for what is no link on a page."""
    is_for_people: bool = False
    """It is in a file that a job may not change, or in a form that is not written."""


class SuspectLink(Struct, frozen=True):
    """A link whose anchor is still to be looked at, or that is known to be broken already."""

    path: str
    link: PageLink
    page: str | None
    """Where it leads now; None: nowhere."""
    meant: str | None = None
    """Where the page it led to before has gone."""
    answer: LinkAnswer = SOUND
    """Where it leads now; not of a link whose page has gone."""
    was: LinkAnswer = SOUND
    """Where it led before."""
    has_lost_anchor: bool = False
    """The page had a heading of this anchor before the job."""


class UnknownLink(Struct, frozen=True):
    """A link of which the site's rules do not say where it leads."""

    path: str
    line: int
    target: str
    reason: str


class LinkReport(Struct, frozen=True):
    broken: list[BrokenLink]
    unknown: list[UnknownLink]


def verdicts(
    suspects: Iterable[SuspectLink],
    anchors: Mapping[str, Anchors],
    now: SiteView,
    renamed: Mapping[str, Mapping[str, str]],
) -> LinkReport:
    """Return those that are broken, and those whose anchor may come from elsewhere. ``renamed``: by page, anchors that
    went and those in their place.
    """
    broken, unknown = list[BrokenLink](), list[UnknownLink]()
    left = MAX_GUESSED
    for suspect in suspects:
        anchor = suspect.link.target.partition("#")[2]
        if suspect.page is None:
            left -= suspect.meant is None
            broken.append(_without_page(suspect, now, guess=left >= 0))
        elif not (known := anchors.get(suspect.page, NO_ANCHORS)).has(anchor) and not labelled(anchor, now.site):
            new = renamed.get(suspect.page, {}).get(unquote(anchor))
            if new is not None:
                broken.append(_renamed(suspect, anchor, new))
            elif known.more and not suspect.has_lost_anchor:
                unknown.append(UnknownLink(suspect.path, suspect.link.line, suspect.link.target, known.more))
            else:
                left -= 1
                broken.append(_without_anchor(suspect, anchor, known.names if left >= 0 else NO_ANCHORS.names))
    return LinkReport(broken, unknown)


def _without_page(suspect: SuspectLink, now: SiteView, *, guess: bool) -> BrokenLink:
    link = suspect.link
    target, hash_mark, anchor = link.target.partition("#")
    tail = hash_mark + anchor
    reason = suspect.answer.reason or f"no page is at {target}"
    rules = now.site.rules
    prefers_file: bool | None = None
    if suspect.meant is not None:
        pages, clear = ([suspect.meant], True) if suspect.meant in now.files else ([], False)
        reason = MOVED if pages else "the page it leads to is gone"
    elif suspect.answer.meant is not None:
        pages, clear, prefers_file = [suspect.answer.meant], True, rules.reads_files or None
    elif link.form == "link":
        pages, clear = _guesses(suspect.path, target, now) if guess else ([], False)
        prefers_file = False if rules.relative == "address" and not rules.reads_files else None
    else:
        pages, clear = [], False
    spelled = [_spelled(suspect, page, now, prefers_file=prefers_file) for page in pages]
    written = [each for each in spelled if each is not None]
    suggestions = tuple(link.with_target(each + tail) for each in written[:MAX_SUGGESTIONS])
    clear = clear and bool(written) and len(pages) == len(written)
    meant = written[0] + tail if written else ""
    given = "" if suspect.meant is not None else link.target
    return BrokenLink(suspect.path, link.line, link.found, suggestions, clear, reason, meant, target=given)


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


def _spelled(suspect: SuspectLink, page: str, now: SiteView, *, prefers_file: bool | None = None) -> str | None:
    """Return how a page names another one, written as the old target was; None when no way of writing works.
    ``prefers_file``: whether links should name files; None for what the old target did.
    """
    path, link = suspect.path, suspect.link
    target = link.target.partition("#")[0]
    match link.form:
        case "link":
            return _address(suspect, page, now, prefers_file=prefers_file)
        case "hugo":
            options = _hugo_names(path, target, page, now)
        case "based":
            url = now.site.pages[page].url if page in now.site.pages else ""
            slashed = "/" if target.endswith("/") and not url.endswith(".html") else ""
            options = [url.removeprefix(now.site.rules.base) + slashed]
        case "post":
            options = [without_suffix(page).rpartition("_posts/")[2] + _tag_end(target)]
        case "wiki":
            options = _wiki_names(target, page)
        case "label" | "term" | "download":
            options = []  # the first two move with their page
        case "liquid":
            options = [
                _inside(page, each) + _tag_end(target) for each in (now.layout.root, "") if _is_inside(page, each)
            ]
        case "document" | "any":
            inside = without_suffix(page)
            near = relpath(inside, dirname(path) or ".")
            options = [f"/{_inside(inside, now.layout.root)}"] if target.startswith("/") else [near]
        case "include":
            near = relpath(page, dirname(path) or ".")
            lead = "./" if target.startswith("./") and not near.startswith("../") else ""
            alias = "@site/" if target.startswith("@site/") else "@/" if target.startswith("@/") else "/"
            folders = (
                *now.layout.include_folders,
                now.layout.root,
                dirname(now.layout.root),
                now.layout.docs_folder,
                "",
            )
            inside_of = [_inside(page, folder) for folder in dict.fromkeys(folders) if _is_inside(page, folder)]
            if target.startswith(("/", "@")):
                options = [alias + each for each in inside_of]
            else:
                options = [lead + near, *inside_of] if now.leads_to(path, lead + near, "include").page else inside_of
            if not is_page(target):
                options = [without_suffix(each) for each in options]
        case "xref":
            module, _, inside = page.rpartition("modules/")[2].partition("/pages/")
            options = [inside, f"{module}:{inside}"]
        case _:
            assert_never(link.form)
    return next((each for each in options if now.leads_to(path, each, link.form).page == page), None)


def _tag_end(target: str) -> str:
    """Return what stands between the name in a tag and its anchor."""
    return target[len(target.rstrip("}%- ")) :]


def _is_inside(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _inside(path: str, folder: str) -> str:
    return path[len(folder) :].lstrip("/") if folder else path


def _hugo_names(path: str, target: str, page: str, now: SiteView) -> list[str]:
    rules = now.layout.hugo
    at, own = (rules.content_page(each) if rules is not None else None for each in (page, path))
    if at is None or own is None:
        return []
    suffix = re.search(r"(?:/_?index)?(?:\.md)?$", target)
    file = page.rpartition("/")[2]
    bare = "/".join((*at.folders, at.name) if at.name else at.folders)
    tail = f".{file.rpartition('.')[2]}" if target.endswith(".md") else ""
    if tail and file.rpartition(".")[0].partition(".")[0] in ("index", "_index"):
        tail = f"/{file}"
    full = f"{bare}{tail}".lstrip("/")
    beside = relpath(full, "/".join(own.folders) or ".")
    slashed = "/" if suffix is not None and target.endswith("/") else ""
    if target.startswith("/"):
        return [f"/{full}{slashed}"]
    if target.startswith((".", "..")):
        lead = "./" if target.startswith("./") and not beside.startswith("../") else ""
        return [f"{lead}{beside}{slashed}", f"/{full}{slashed}"]
    if "/" in target.strip("/"):
        return [f"{full}{slashed}", f"/{full}{slashed}"]
    return [full.rpartition("/")[2] if not tail.startswith("/") else at.name, beside, f"/{full}"]


def _wiki_names(target: str, page: str) -> list[str]:
    """Return the name in words where the old one was, else as the file has it."""
    stem = without_suffix(page)
    name = stem if "/" in target else stem.rpartition("/")[2]
    if " " not in target and (target == target.lower() or "-" in target):
        return [name + target[len(without_suffix(target)) :], name]
    words = re.sub(r"[-_]+", " ", name)
    shown = (
        words.title() if target == target.title() else words[:1].upper() + words[1:] if target[:1].isupper() else words
    )
    return [shown, name]


def _address(suspect: SuspectLink, page: str, now: SiteView, *, prefers_file: bool | None) -> str | None:
    """Return the target of a link to a page, in the style of the old one."""
    path, link = suspect.path, suspect.link
    target = link.target.partition("#")[0]
    bare, _, query = target.partition("?")
    has_suffix = prefers_file is not False and is_page(bare) and not bare.lower().endswith((".html", ".htm"))
    is_html = bare.lower().endswith(".html")
    near = relpath(page, dirname(path) or ".")
    if path == now.site.rules.list_file:
        blank = " " if link.before.endswith("<") else "%20"
        return None if re.search(r"[#?%]", near) else near.replace(" ", blank)
    stem = without_suffix(near)
    stem = re.sub(r"(?:^|/)(?:index|_index|README|readme)$", "", stem) or "."
    lead = "./" if bare.startswith("./") else ""
    near, stem = (each if each.startswith("..") else lead + each for each in (near, stem))
    slashed = "/" if bare.endswith("/") else ""
    tail = f"?{query}" if query else ""
    if page not in now.site.pages:  # the site has it no longer, or not yet
        return link.spelled(f"/{page}" if bare.startswith("/") else near if has_suffix else stem + slashed) + tail
    url = now.site.pages[page].url
    own = now.site.pages.get(path)
    rules = now.site.rules
    options: list[str] = [near] if prefers_file else []
    if bare.startswith("/"):
        prefixes = [each.prefix for each in rules.fallbacks if unquote(bare).startswith(f"{each.prefix}/")]
        rest = [url.removeprefix(each.original_prefix) for each in rules.fallbacks if each.prefix in prefixes]
        options += [f"{prefix}{inside}{slashed}" for prefix, inside in zip(prefixes, rest, strict=True)]
        unprefixed = url.removeprefix(now.layout.link_prefix) if now.layout.link_prefix else url
        addresses = [each for each in (unprefixed, url) if _same_lead(each, unquote(bare), now)] or [unprefixed, url]
        bare_addresses = [re.sub(r"(?:/index)?\.html$", "", each) for each in addresses]
        addresses = [f"{each}.html" for each in bare_addresses] if is_html else bare_addresses + addresses
        files = [f"/{_inside(page, folder)}" for folder in (now.layout.root, "") if _is_inside(page, folder)]
        if has_suffix:
            options += [*(files if not _was_in_repository(bare, now) else files[::-1]), url]
        else:
            if not slashed or not url.endswith(".html"):
                options += [each.rstrip("/") + slashed or "/" for each in addresses]
            options.append(url)
    else:
        by_address: list[str] = []
        if own is not None:
            bases = (own.url, dirname(own.url)) if rules.slash else (dirname(own.url), own.url)
            goal = url if is_html else re.sub(r"(?:/index)?\.html$", "", url) or "/"
            by_address = sorted((relpath(goal, base) + slashed for base in bases if base), key=len)
            by_address = [each if each.startswith("../") else lead + each for each in by_address]
        by_file = [f"{without_suffix(near)}.html" if is_html else stem + slashed]
        options += [near] if has_suffix else []
        options += by_address + by_file if rules.relative == "address" else by_file + by_address
        options += [near, url]
    written = [link.spelled(option) for option in options]
    sound = [each for each in written if now.leads_to(path, each).page == page]
    alike = (each for each in sound if is_read_alike(suspect.was, now.leads_to(path, each), page))
    found = next(alike, sound[0] if sound else None)
    return None if found is None else found + tail


def is_read_alike(was: LinkAnswer, answer: LinkAnswer, page: str) -> bool:
    """Return whether a link, whichever way it was read before, leads to a page when it is read that way."""
    pairs = zip(was.readings, answer.readings, strict=True)
    return answer.readings == (None, None) or all(now == page for then, now in pairs if then == was.page and then)


def _same_lead(address: str, old: str, now: SiteView) -> bool:
    """Return whether an address has the site's prefix where the old one has it."""
    prefix = now.layout.link_prefix
    return not prefix or address.startswith(f"{prefix}/") == old.startswith(f"{prefix}/")


def _was_in_repository(target: str, now: SiteView) -> bool:
    """Return whether a target from the root is a path of the repository."""
    root = now.layout.root
    return bool(root) and unquote(target).startswith(f"/{root}/")


def _word(name: str) -> str:
    return re.sub(r"[\W_]+", "-", unquote(name).casefold()).strip("-")
