"""Two pages with one address: the second is not built, or stands in the place of the first.

An address comes from the file's name, or from ``slug``, ``url``, ``permalink`` or ``id`` in the front matter, as the
site's generator has it (``service.retrieval.site.layout``).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from posixpath import dirname

from service.agent.checks.changed import Changed
from service.agent.checks.links.links import Links
from service.agent.checks.links.site_view import SiteView
from service.agent.checks.rules import ADDRESS_TAKEN
from service.domain.jobs.decider import Problem
from service.markup.front_matter import FrontMatter, split_front_matter, text_field
from service.markup.pages import is_page

ADDRESS_FIELDS = ("slug", "url", "permalink", "id")


async def check(links: Links, changed: Sequence[Changed]) -> list[Problem]:
    given = {
        file.path: _front_matter(file.after)
        for file in changed
        if file.after is not None and is_page(file.path) and _gets_an_address(file)
    }
    if not given:
        return []
    before, now = await links.views()
    own = {file.path: _front_matter(file.after) for file in changed if file.after is not None and is_page(file.path)}

    def front_matter(path: str) -> FrontMatter:
        if path in own:
            return own[path]
        page = links.base_page(path)
        return page.front_matter if page is not None else {}

    return await asyncio.to_thread(_taken, given, before, now, front_matter)


def _gets_an_address(file: Changed) -> bool:
    """Return whether a page is new at its path, or its front matter gives it another address."""
    if file.before is None or file.is_moved:
        return True
    was, now = _front_matter(file.before), _front_matter(file.after or "")
    return any(text_field(was, name) != text_field(now, name) for name in ADDRESS_FIELDS)


def _front_matter(text: str) -> FrontMatter:
    return split_front_matter(text.removeprefix("\ufeff"))[0]


def _taken(
    given: Mapping[str, FrontMatter], before: SiteView, now: SiteView, front_matter: Callable[[str], FrontMatter]
) -> list[Problem]:
    wanted = {now.site.pages[path].url for path in given if path in now.site.pages}
    by_url: dict[str, list[str]] = {}
    by_folder: dict[str, list[str]] = {}
    folders = {dirname(path) for path in given}
    for path, shown in now.site.pages.items():
        if shown.url in wanted:
            by_url.setdefault(shown.url, []).append(path)
        if dirname(path) in folders:
            by_folder.setdefault(dirname(path), []).append(path)
    found: list[Problem] = []
    for path in given:
        page = now.site.pages.get(path)
        if page is None:
            continue
        others = [other for other in by_url[page.url] if other != path and _is_one_place(path, other, now)]
        others = [other for other in others if not _shared_before(path, other, before)]
        if now.layout.kind == "plain":  # how it makes addresses from names is not known
            others = [other for other in others if _gives(front_matter(path)) or _gives(front_matter(other))]
        if others:
            message = f"The address {page.url} is the one of {others[0]}, too{_source(given[path])}."
            found.append(ADDRESS_TAKEN.problem(path, message))
            continue
        own = _id(path, now, given[path])
        same = (other for other in by_folder[dirname(path)] if other != path)
        if own is not None and (other := next((o for o in same if _id(o, now, front_matter(o)) == own), None)):
            message = f"The id {own[1]!r} is the one of {other}, too. Two pages need two ids."
            found.append(ADDRESS_TAKEN.problem(path, message))
    return found


def _is_one_place(path: str, other: str, now: SiteView) -> bool:
    one, two = now.site.pages[path], now.site.pages[other]
    return (one.version, one.language) == (two.version, two.language)


def _shared_before(path: str, other: str, before: SiteView) -> bool:
    one, two = before.site.pages.get(path), before.site.pages.get(other)
    return one is not None and two is not None and one.url == two.url


def _gives(front_matter: FrontMatter) -> bool:
    return bool(text_field(front_matter, "slug", "url", "permalink"))


def _source(front_matter: FrontMatter) -> str:
    name = next((name for name in ADDRESS_FIELDS if text_field(front_matter, name)), "")
    return f": its front matter has {name}: {text_field(front_matter, name)}" if name else ""


def _id(path: str, now: SiteView, front_matter: FrontMatter) -> tuple[str, str] | None:
    """Return the set of documents that a page is one of, and its id there; None where pages have no ids."""
    documents = now.layout.document_set(path)
    if documents is None or documents.style != "docusaurus":
        return None
    return documents.folder, documents.id_of(path[len(documents.folder) :].lstrip("/"), front_matter)
