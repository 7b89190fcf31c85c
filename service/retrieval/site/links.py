"""Where a link on a page leads: to a page or file (sound), provably nowhere (broken), or not known.

The index, the checks of a job, its tools, and through them the builtin editor, all have their answers from here. A link
is broken only where the generator's own rules prove it (``link_rules``); where they do not reach, because the generator
is not recognized, or a plugin, a blog, a mount, or a program makes addresses, the answer is that it is not known, with
the reason.
"""

import re
from collections.abc import Iterable, Iterator
from posixpath import dirname, normpath
from typing import Literal
from urllib.parse import unquote

from msgspec import Struct

from service.markup.links import is_external
from service.markup.page_names import Form
from service.markup.pages import INDEX_NAMES, MARKDOWN_SUFFIXES, PAGE_SUFFIXES, is_page, without_suffix
from service.retrieval.site.layout import Layout, within
from service.retrieval.site.link_rules import TERM, reason_below, redirected
from service.retrieval.site.navigation import Site, SitePage

_PROGRAM_SUFFIXES = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".vue", ".json")
"""Imports leave them out."""
_INDEX_TAIL = re.compile(r"(?:^|/)(?:index|_index|readme)$", re.IGNORECASE)


_OTHER_SITES = "another site may have it"
_LABELS_OF_ALL = frozenset(("genindex", "modindex", "py-modindex", "search"))


class LinkAnswer(Struct, frozen=True, gc=False):
    state: Literal["sound", "broken", "unknown"]
    page: str | None = None
    """Path of the page that it leads to; None for a file that is no page, and where it leads nowhere."""
    reason: str = ""
    """The proof that it is broken, or why it is not known: a sentence without its full stop."""
    meant: str | None = None
    """The page that a broken link names by rules that are not the site's."""
    readings: tuple[str | None, str | None] = (None, None)
    """Where a relative link is sound and its rule is not known: the pages that it means as a file and as an address."""


SOUND = LinkAnswer("sound")
MAY_ADD = "the build may add the file"


def link_answer(from_path: str, href: str, site: Site) -> LinkAnswer:
    """Return where a link on a page leads. Its query and anchor play no part; an anchor alone is the page itself.

    A link may name the page's file (``../a/b.md``), count from its address (``../b``) or begin at the site's root
    (``/a/b``), with or without ``.html`` or a slash at its end.
    """
    href = href.strip()
    if is_external(href):
        return SOUND
    if "{" in href or "<" in href:
        return LinkAnswer("unknown", reason="a program makes its target")
    target = unquote(href.partition("#")[0].partition("?")[0])
    if not target:
        return LinkAnswer("sound", from_path if from_path in site.pages else None)
    page = _page(from_path, target, site) or labelled(target, site)
    if page is not None:
        return LinkAnswer("sound", page, readings=_readings(from_path, target, site))
    if target == "/":
        return SOUND  # the front page may be made by the theme
    return _without_page(from_path, target, site)


def labelled(name: str, site: Site) -> str | None:
    """Return the page that has a place of this name, on sites whose links may say such names."""
    return site.rules.labels.get(" ".join(unquote(name).lower().split())) if site.rules.labels else None


def resolve_link(from_path: str, href: str, site: Site) -> str | None:
    """Return the path of the page that a link leads to; None when it leads to none, or off the site."""
    if is_external(href):
        return None
    return link_answer(from_path, href, site).page


def loosely_meant(from_path: str, target: str, site: Site) -> str | None:
    """Return the page that a target names by any of the rules that sites have."""
    return _first_page(_as_files(from_path, target, site), site) or _at_urls(_as_urls(from_path, target, site), site)


# Names that are no links


def name_answer(form: Form, from_path: str, target: str, site: Site, layout: Layout) -> LinkAnswer:
    """Return the page or file that a name on a page means, by the rules of its form. ``target`` has no anchor."""
    if form in ("liquid", "post"):
        target = target.rstrip("}%- ")
    match form:
        case "link":
            return link_answer(from_path, target, site)
        case "based":
            return link_answer(from_path, site.rules.base + target.partition("?")[0], site)
        case "hugo":
            return _named_in_hugo(from_path, target, site, layout)
        case "label":
            found = labelled(target, site)
            if found is None and site.rules.has_roles:
                return _without_label(target, site)
        case "any":
            found = _document(from_path, target, site) or labelled(target, site) or labelled(f"{TERM}{target}", site)
        case "term":
            found = labelled(f"{TERM}{target}", site)
            if found is None and site.rules.has_roles:
                return _without_term(target, site)
        case "download":
            if _download(from_path, target, site) in site.files or "://" in target:
                return SOUND
            return _without_file(from_path, target, site)
        case "include":
            target = target.partition("?")[0]
            found = next((path for path in _including(from_path, target, layout) if path in site.files), None)
            if found is None:
                return _without_file(from_path, target, site)
        case "xref":
            return _named_in_antora(from_path, target, site)
        case "liquid":
            found = next((path for folder in _sources(site) if (path := _below(folder, target)) in site.files), None)
        case "document":
            found = _document(from_path, target, site)
            if found is None and site.rules.has_roles:
                return _without_document(_in_source(from_path, target, site), target, site)
        case "post":
            wanted = target.strip("/")
            found = next(
                (path for path in site.files if f"/{without_suffix(path)}".endswith(f"/_posts/{wanted}")), None
            )
        case "wiki":
            found = _by_wiki_name(target, site)
    if found is not None:
        return LinkAnswer("sound", found)
    if form in ("liquid", "post") and site.rules.has_liquid:
        return LinkAnswer(
            "broken", reason=f"there is no {target}" if form == "liquid" else f"no post is named {target}"
        )
    return LinkAnswer("unknown", reason="what the site makes of such a name is not known")


def _in_source(from_path: str, target: str, site: Site) -> str:
    """Return the path that a name of Sphinx means: from its page's folder, or from the root, as far up as it goes."""
    folder = dirname(from_path)[len(site.root) :] if not target.startswith("/") else ""
    return f"{site.root}{normpath(f'/./{folder}/{target}')}".lstrip("/")


def _document(from_path: str, target: str, site: Site) -> str | None:
    stem = _in_source(from_path, target, site)
    return next((path for suffix in ("", *PAGE_SUFFIXES) if (path := stem + suffix) in site.pages), None)


def _download(from_path: str, target: str, site: Site) -> str:
    if target.startswith("/"):
        return _in_source(from_path, target, site)
    return normpath(f"{dirname(from_path)}/{target}".lstrip("/"))


def _without_term(target: str, site: Site) -> LinkAnswer:
    if ":" in target or site.rules.labels_elsewhere:
        return LinkAnswer("unknown", reason=site.rules.labels_elsewhere or _OTHER_SITES)
    if labelled(f"{TERM}*", site) is not None:
        return LinkAnswer("unknown", reason="a list of definitions may have the term")
    return LinkAnswer("broken", reason=f"no glossary has the term {target}")


def _without_document(stem: str, target: str, site: Site) -> LinkAnswer:
    if ":" in target:
        return LinkAnswer("unknown", reason=_OTHER_SITES)
    if not site.rules.has_all_files:
        return LinkAnswer("unknown", reason="an extension may make the document")
    there = next((path for suffix in PAGE_SUFFIXES if (path := stem + suffix) in site.files), None)
    if there is not None:
        return LinkAnswer("unknown", reason=f"{there} is not among the pages that readers find")
    return LinkAnswer("broken", reason=f"there is no document {target}")


def _without_label(target: str, site: Site) -> LinkAnswer:
    name = " ".join(target.lower().split())
    if name in _LABELS_OF_ALL:
        return SOUND
    if ":" in name and site.rules.labels_elsewhere != "":
        return LinkAnswer("unknown", reason=_OTHER_SITES)
    if site.rules.labels_elsewhere:
        return LinkAnswer("unknown", reason=site.rules.labels_elsewhere)
    return LinkAnswer("broken", reason=f"no page gives the label {target}")


def _without_file(from_path: str, target: str, site: Site) -> LinkAnswer:
    """Return the answer for an include or import of a file that is not there: broken where its place is certain."""
    if target.startswith("<"):
        return SOUND  # a part of docutils
    at = normpath(f"{dirname(from_path)}/{target}") if not target.startswith("@site/") else target
    is_placed = target.startswith(("./", "../", "@site/")) or (site.rules.has_roles and not target.startswith("/"))
    if not is_placed or at.startswith("..") or not _names_file(target) or not site.rules.has_all_files:
        return LinkAnswer("unknown", reason="the repository does not have the file")
    made = reason_below(at, site.rules.made_files)
    return LinkAnswer("unknown", reason=made) if made else LinkAnswer("broken", reason=f"there is no file {target}")


def _named_in_antora(from_path: str, target: str, site: Site) -> LinkAnswer:
    """Return the page that ``xref`` means: below the pages of its own module, or of another of the same component
    (docs.antora.org/antora/latest/page/resource-id-coordinates).
    """
    above, found, rest = from_path.rpartition("/modules/") if "/modules/" in from_path else ("", "", "")
    if not found and from_path.startswith("modules/"):
        rest = from_path.removeprefix("modules/")
    module = rest.partition("/")[0]
    if not module or "@" in target or target.count(":") > 1:
        return LinkAnswer("unknown", reason="another component may have the page")
    named, colon, page = target.rpartition(":")
    beside = dirname(rest.partition("/pages/")[2]) if page.startswith("./") else ""
    folder = f"{above}{found or 'modules/'}{named if colon else module}/pages"
    path = normpath(f"{folder}/{beside}/{page}").lstrip("/")
    if path in site.files:
        return LinkAnswer("sound", path)
    return LinkAnswer("broken", reason=f"there is no page {target}")


def _sources(site: Site) -> tuple[str, ...]:
    """Return the folders from which tags of Liquid may count."""
    return (site.root,) if site.rules.has_liquid else tuple(dict.fromkeys(("", site.root, site.docs_folder)))


def _below(folder: str, target: str) -> str:
    return normpath(f"{folder}/{target.lstrip('/')}").lstrip("/")


def _including(from_path: str, target: str, layout: Layout) -> Iterator[str]:
    for path in layout.included(from_path, target):
        yield path
        yield from (path + suffix for suffix in (*MARKDOWN_SUFFIXES, *_PROGRAM_SUFFIXES))


def _by_wiki_name(target: str, site: Site) -> str | None:
    wanted = _wiki_key(without_suffix(target))
    found = [path for path in site.pages if f"/{_wiki_key(without_suffix(path))}".endswith(f"/{wanted}")]
    return found[0] if len(found) == 1 else None


def _wiki_key(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip().strip("/").casefold())


def _named_in_hugo(from_path: str, target: str, site: Site, layout: Layout) -> LinkAnswer:
    """Return the page that Hugo's ``ref`` finds: below the page's section, from the root, or alone by its name
    (gohugo.io/shortcodes/ref, hugolib/pagecollections.go).
    """
    rules = layout.hugo
    own = rules.content_page(from_path) if rules is not None else None
    if own is None:
        return LinkAnswer("unknown", reason="the page is not among the site's content")
    if not target:
        return LinkAnswer("sound", from_path)
    by_path = layout.content_paths
    bare = re.sub(r"(?i)(?:(?:^|/)_?index)?(?:\.[a-z]{2})?\.(?:md|markdown|html)$|/$", "", target)
    folder = "/" + "/".join((*own.folders, own.name) if own.is_bundle else own.folders)
    absolute = normpath(f"/{bare.strip('/')}").lower()
    names = [absolute] if target.startswith("/") else [normpath(f"{folder}/{bare}").lower(), absolute]
    found = next((path for name in names if (path := by_path.get((own.language, name))) is not None), None)
    if found is None and "/" not in bare.rstrip("/"):
        alike = {path for (language, name), path in by_path.items()
                 if language == own.language and name.rpartition("/")[2] == bare.strip("/").lower()}  # fmt: skip
        if len(alike) > 1:
            return LinkAnswer("broken", reason=f"several pages are named {target}")
        found = next(iter(alike), None)
    if found is not None:
        return LinkAnswer("sound", found)
    if site.rules.has_all_files:
        return LinkAnswer("broken", reason=f"no page is named {target}")
    return LinkAnswer("unknown", reason="a module or a theme may have the page")


# Sound


def _page(from_path: str, target: str, site: Site) -> str | None:
    rules = site.rules
    if _names_file(target):
        return (
            _first_page(_as_files(from_path, target, site), site)
            or _first_page(_in_original(from_path, target, site), site)
            or _alike(from_path, target, _at_urls(_beside(from_path, target, site), site), site)
        )
    if target.startswith("/"):
        found = _at_urls(_from_root(target, site), site) or _by_fallback(target, site)
        if found is None and (goal := redirected(target.rstrip("/"), rules)) is not None:
            found = site.path_of(goal)
        if found is None and not rules.has_all_addresses and not rules.base:
            found = _first_page(_as_files(from_path, target, site), site)
        return found
    by_file, by_address = _readings(from_path, target, site)
    found = by_file or by_address
    if found is None and (rules.relative != "address" or from_path not in site.pages):
        found = _first_page(_as_files(from_path, target, site), site)
    if found is None and rules.relative != "file":
        found = _at_urls(_as_urls(from_path, target, site), site)
    if found is None:
        addresses = _as_urls(from_path, target, site)
        found = next((page for each in addresses if (page := _by_fallback(each, site)) is not None), None)
    return found


def _readings(from_path: str, target: str, site: Site) -> tuple[str | None, str | None]:
    """Return the pages that a relative link means as a file and as an address, where it may be either."""
    if site.rules.relative or target.startswith("/") or _names_file(target):
        return None, None
    by_file = _first_page(_as_files(from_path, target, site), site)
    return by_file, _at_urls(_as_urls(from_path, target, site), site)


def _names_file(target: str) -> bool:
    """Return whether a target ends in the suffix of a page's source."""
    return is_page(target) and not target.lower().endswith((".html", ".htm"))


def _first_page(candidates: Iterable[str], site: Site) -> str | None:
    return next((path for path in candidates if path in site.pages), None)


def _alike(from_path: str, target: str, page: str | None, site: Site) -> str | None:
    """Return the page that is at the address of a target with a suffix, where its file has that name in other letters,
    with another suffix, or as the page of a folder: not one that has the address by its front matter.
    """
    if page is None:
        return None
    own = _as_folder(page)
    return page if any(_as_folder(path) == own for path in _exact(from_path, target, site)) else None


def _as_folder(path: str) -> str:
    """Return the path of a page without its suffix, in lower case; that of its folder for the page of a folder."""
    return _INDEX_TAIL.sub("", without_suffix(path)).casefold()


def _at_urls(urls: Iterable[str], site: Site) -> str | None:
    return next((path for url in urls if (path := site.path_of(url)) is not None), None)


def _from_root(target: str, site: Site) -> Iterator[str]:
    base = site.rules.base
    if base and not (target == base or target.startswith(f"{base}/")):
        return
    if base:
        yield target[len(base) :] or "/"  # of generators whose addresses are without it
    yield target
    yield _INDEX_TAIL.sub("", without_suffix(target)) or "/"
    yield f"{target.rstrip('/')}/index.html"


def _by_fallback(target: str, site: Site) -> str | None:
    """Return the page that is shown at the address of a translation that is not there."""
    for each in site.rules.fallbacks:
        if target == each.prefix or target.startswith(f"{each.prefix}/"):
            found = site.path_of(each.original_prefix + target[len(each.prefix) :])
            if found is not None and not any(within(found, other.folder) for other in site.rules.fallbacks):
                return found
    return None


def _in_original(from_path: str, target: str, site: Site, *, exact: bool = False) -> Iterator[str]:
    """Yield the files that a translated page's link means where the translation does not have them."""
    for each in site.rules.fallbacks:
        if from_path.startswith(f"{each.folder}/") and not target.startswith("/"):
            inside = f"{each.original_folder}/{from_path[len(each.folder) + 1 :]}"
            yield from _exact(inside, target, site) if exact else _as_files(inside, target, site)


# Broken, or not known


def _without_page(from_path: str, target: str, site: Site) -> LinkAnswer:
    rules = site.rules
    candidates = [*_as_files(from_path, target, site), *_in_original(from_path, target, site)]
    exact = [*_exact(from_path, target, site), *_in_original(from_path, target, site, exact=True)]
    there = next((path for path in exact if path in site.files), None)
    if there is not None:
        return _to_file(there, site)
    if _leaves(from_path, target, site):
        return LinkAnswer("unknown", reason="it leads out of the site")
    at = _address(from_path, target, site)
    inside = at[len(rules.base) :] if rules.base and at.startswith(f"{rules.base}/") else at
    if inside.rstrip("/") in rules.programs or any(
        f"{folder}{inside}".lstrip("/") in site.files for folder in rules.served
    ):
        return SOUND
    made = reason_below(at, rules.made) or reason_below(inside, rules.made)
    made = made or next((why for each in candidates if (why := reason_below(each, rules.made_files))), "")
    if made:
        return LinkAnswer("unknown", reason=made)
    if target.startswith("/") and (goal := redirected(target.rstrip("/"), rules)) is not None:
        return LinkAnswer("unknown", reason=f"a redirect leads it to {goal}")
    meant = loosely_meant(from_path, target, site)
    if _names_file(target):
        if not rules.has_all_files:
            return LinkAnswer("unknown", reason=MAY_ADD, meant=meant)
        return LinkAnswer("broken", reason=f"no page is at {target}", meant=meant)
    name = target.rpartition("/")[2]
    if "." in name and not name.lower().endswith((".html", ".htm")) and not _is_version(name):
        return LinkAnswer("unknown", reason="the repository does not have the file")
    if target.startswith("/"):
        if rules.base and not at.startswith(f"{rules.base}/"):
            meant = _at_urls([rules.base + target], site)
            if meant is None:
                return LinkAnswer("unknown", reason=f"it is not below {rules.base}, where the site is")
            return LinkAnswer(
                "broken", reason=f"the site is below {rules.base}, and no page is at {target}", meant=meant
            )
        is_below = not rules.below or any(inside == each or inside.startswith(f"{each}/") for each in rules.below)
        if not rules.has_all_addresses or not rules.knows_root or not is_below:
            return LinkAnswer("unknown", reason="which addresses the site has is not known", meant=meant)
        return LinkAnswer("broken", reason=f"no page is at {target}", meant=meant)
    if rules.relative == "address" and rules.has_all_addresses and at:
        return LinkAnswer(
            "broken", reason=f"from the page's own address it leads to {at}, where no page is", meant=meant
        )
    if rules.relative == "file" and rules.has_all_files:
        return LinkAnswer("broken", reason=f"no page is at {target}", meant=meant)
    return LinkAnswer("unknown", reason="how the site reads links without a suffix is not known", meant=meant)


def _to_file(path: str, site: Site) -> LinkAnswer:
    if _names_file(path) and not reason_below(path, site.rules.made_files):
        return LinkAnswer("unknown", reason=f"{path} is not among the pages that readers find")
    return SOUND


def _is_version(name: str) -> bool:
    return re.fullmatch(r"v?\d+(?:\.\d+|\.x)*", name) is not None


def _leaves(from_path: str, target: str, site: Site) -> bool:
    """Return whether a relative link goes above the site's root."""
    if target.startswith("/"):
        return False
    page = site.pages.get(from_path)
    above = normpath(f"{dirname(from_path)}/{target}".lstrip("/"))
    is_outside = above.startswith("..") or not within(above, site.root)
    if page is None:
        return above.startswith("..")
    folders = [part for part in page.url.split("/") if part][: None if _ends_in_slash(page, site) else -1]
    return target.split("/").count("..") > len(folders) and is_outside


def _address(from_path: str, target: str, site: Site) -> str:
    """Return the address that a target means, by the likelier rule where two are possible; empty for none."""
    if target.startswith("/"):
        return normpath(f"/{target.lstrip('/')}")
    page = site.pages.get(from_path)
    return "" if page is None else normpath(f"{next(iter(_folders(page, site)))}/{target}")


# Where a target may be


def _exact(from_path: str, target: str, site: Site) -> Iterator[str]:
    """Yield the paths that a target names in full: from the page's folder, or from those that may be the root."""
    folders = ["", site.docs_folder, site.root] if target.startswith("/") else [dirname(from_path)]
    if target.startswith("/"):
        folders.append(dirname(site.docs_folder))
    for folder in dict.fromkeys(folders):
        joined = normpath(f"{folder}/{target.lstrip('/')}" if folder else target.lstrip("/"))
        if not joined.startswith("../") and joined != "..":
            yield "" if joined == "." else joined


def _as_files(from_path: str, target: str, site: Site) -> Iterator[str]:
    for joined in _exact(from_path, target, site):
        yield joined
        for suffix in MARKDOWN_SUFFIXES:
            yield joined + suffix
        for suffix in MARKDOWN_SUFFIXES:
            for name in ("index", "_index", "README", "readme"):
                yield f"{joined}/{name}{suffix}" if joined else f"{name}{suffix}"


def _as_urls(from_path: str, target: str, site: Site) -> Iterator[str]:
    bare = without_suffix(target)
    bare = _INDEX_TAIL.sub("", bare) or "/"
    if target.startswith("/"):
        yield target
        yield bare
        return
    page = site.pages.get(from_path)
    if page is None:
        return
    for base in _folders(page, site):
        names = (target, bare, f"{target}/index.html")
        yield from (normpath(f"{base}/{each}") for each in names if _stays_below(base, each))


def _stays_below(base: str, target: str) -> bool:
    """Return whether a relative target leads to no address above the site: browsers would stop at the host's root."""
    return not normpath(f"{base.strip('/')}/{target}".lstrip("/")).startswith("..")


def _beside(from_path: str, target: str, site: Site) -> Iterator[str]:
    """Yield the addresses of the file that a target names, from the one of the page's folder."""
    page = site.pages.get(from_path)
    if target.startswith("/") or page is None:
        yield from _as_urls(from_path, target, site)
    else:
        folder = page.url if _is_of_folder(page) else dirname(page.url)
        if _stays_below(folder, target):
            yield normpath(f"{folder}/{_INDEX_TAIL.sub('', without_suffix(target))}")


def _folders(page: SitePage, site: Site) -> tuple[str, ...]:
    """Return what relative links on a page count from: the folder of its address, or that address with a slash."""
    if site.rules.slash is None and not page.url.endswith(".html"):
        return dirname(page.url), page.url
    return (page.url,) if _ends_in_slash(page, site) else (dirname(page.url),)


def _ends_in_slash(page: SitePage, site: Site) -> bool:
    if page.url.endswith(".html"):
        return False
    return site.rules.slash is not False or (_is_of_folder(page) and site.rules.slash is None)


def _is_of_folder(page: SitePage) -> bool:
    """Return whether a page has the address of its folder."""
    stem = without_suffix(page.path).rpartition("/")[2].lower()
    return stem in INDEX_NAMES and page.url.rpartition("/")[2].lower() != stem
