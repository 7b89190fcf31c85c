"""Links to other sites: asked for on request only, since what is wrong may pass, and servers learn the address."""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from service.agent.checks.links.links import Links
from service.agent.checks.markup import external_links
from service.agent.checks.rules import EXTERNAL_LINK_BROKEN
from service.agent.guards.refused import Refused
from service.agent.sources import Private
from service.agent.tools.arguments import CheckExternal
from service.agent.tools.checking import shown_problems
from service.agent.tools.results import Outcome, number_of
from service.agent.tree import is_within
from service.agent.workspace import Workspace
from service.domain.jobs.decider import Problem, ToolReturned
from service.domain.tool_values import ExternalLink, ExternalLinks
from service.markup.dialects.dialect import Dialect
from service.markup.pages import is_page
from service.ports.link_checker import LinkAnswer, LinkChecker, LinkError

MAX_ASKED = 60
"""Addresses for one call."""
MAX_PLACES = 20
"""Pages that are named for one broken link."""
MAX_URL = 500
"""Characters; longer addresses carry data rather than name a page."""
BROKEN = frozenset({400, 404, 410})
_SAMPLE_HOST = re.compile(r"(?:^|\.)(?:example\.(?:com|org|net)|example|test|invalid|onion)\Z", re.IGNORECASE)
_ERRORS: Mapping[LinkError, str] = {
    "not_resolved": "its host name is not found",
    "not_connected": "no server answers there",
    "tls": "its certificate is not valid",
}
"""Those that will not pass by themselves."""


class _Place(Struct, frozen=True):
    path: str
    line: int


async def check_external(
    workspace: Workspace,
    links: Links,
    checker: LinkChecker | None,
    asked: CheckExternal,
    private: Private | None = None,
) -> Outcome:
    """Ask for the addresses that stand in the base commit, the instruction or what was read, but for repositories that
    are not public: a model could write anything else of what it has read into one. ``private``: None asks for all.
    """
    if checker is None:
        raise Refused("External links are not checked by this installation.", "Go on without.")
    places = await _places(workspace, links, asked)
    made = await _made(workspace, places, private) if private is not None else set[str]()
    urls = [url for url in places if url not in made][:MAX_ASKED]
    if not urls and made:
        return Outcome(_not_asked(made))
    if not urls:
        which = "in these files" if asked.all else "that your changes add"
        return Outcome(f"There are no links to other sites {which}.")
    answers = await checker.ask(urls)
    broken = tuple(
        ExternalLink(place.path, place.line, url, reason)
        for url in urls
        if url in answers and (reason := _reason(answers[url]))
        for place in places[url]
    )
    unsure = [url for url in urls if url not in answers or _is_unsure(answers[url])]
    lines = [
        f"{number_of(len(urls), 'link')} to other sites: {len({each.url for each in broken})} broken, "
        f"{len(unsure)} without a clear answer, the others work."
    ]
    if made:
        lines.append(_not_asked(made))
    if len(places) > len(urls) + len(made):
        lines.append(f"{len(places) - len(urls) - len(made)} more were not looked at: ask by folder.")
    if broken:
        lines.append(shown_problems([_problem(each) for each in broken]))
    return Outcome("\n".join(lines), value=ExternalLinks(len(urls), broken))


async def _made(workspace: Workspace, urls: Iterable[str], private: Private) -> set[str]:
    """Return the addresses that only the job has written."""
    left = set(urls)

    def without(texts: Iterable[str]) -> None:
        for text in texts:
            left.difference_update([url for url in left if url in text])

    await asyncio.to_thread(without, private.public)
    base = [path for path in workspace.readable_base_paths() if workspace.is_documentation(path)]
    async for some in workspace.base_texts(base if left else ()):
        await asyncio.to_thread(without, list(some.values()))
        if not left:
            break
    return left


def _not_asked(made: Collection[str]) -> str:
    return (
        f"{number_of(len(made), 'link')} not asked: only addresses are that stand in the documentation as it was, in"
        " the instruction, or in a file that was read and is public."
    )


async def remaining(transcript: Iterable[object], workspace: Workspace) -> tuple[Problem, ...]:
    """Return the broken links to other sites that were found in this round, and are in their pages still."""
    found = {
        (link.path, link.url): link
        for step in transcript
        if isinstance(step, ToolReturned) and isinstance(step.value, ExternalLinks)
        for link in step.value.broken
    }
    return tuple([_problem(link) for link in found.values() if link.url in (await workspace.text(link.path) or "")])


def _problem(link: ExternalLink) -> Problem:
    return EXTERNAL_LINK_BROKEN.problem(link.path, f"{link.url} does not work: {link.reason}.", link.line)


def _reason(answer: LinkAnswer) -> str:
    return f"it answers {answer.status}" if answer.status in BROKEN else _ERRORS.get(answer.error, "")


def _is_unsure(answer: LinkAnswer) -> bool:
    return not _reason(answer) and (answer.status is None or answer.status >= 400)


async def _places(workspace: Workspace, links: Links, asked: CheckExternal) -> dict[str, list[_Place]]:
    dialect = (await links.layout()).dialect
    folder = workspace.folder(asked.folder)
    changes = await workspace.effective_changes()
    paths = workspace.pages() if asked.all else [path for path, text in changes.items() if text is not None]
    found: dict[str, list[_Place]] = {}
    wanted = [path for path in paths if is_page(path) and is_within(path, folder)]
    async for texts in workspace.texts(wanted):
        for path, text in texts.items():
            before = "" if asked.all else await workspace.base_text(path) or ""
            for url, line in (await asyncio.to_thread(_added, text, before, path, dialect)).items():
                places = found.setdefault(url, [])
                if len(places) < MAX_PLACES:
                    places.append(_Place(path, line))
    return found


def _added(text: str, before: str, path: str, dialect: Dialect) -> dict[str, int]:
    """Return the addresses of a page that it had not before, each with its first line."""
    had = {url for url, _ in external_links(before, path, dialect)}
    added: dict[str, int] = {}
    for url, line in external_links(text, path, dialect):
        if url not in had and _is_asked(url):
            added.setdefault(url, line)
    return added


def _is_asked(url: str) -> bool:
    """Return whether an address is one of the web, and no sample."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return bool(host) and len(url) <= MAX_URL and not _SAMPLE_HOST.search(host)
