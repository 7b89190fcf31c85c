"""Runs the calls of a job's model on its workspace."""

import asyncio
from collections.abc import Sequence
from typing import assert_never

import msgspec
from msgspec.structs import replace

from service.agent.checks import gates
from service.agent.checks.links.links import Links
from service.agent.checks.pages import title_of
from service.agent.contexts import NO_CONTEXTS, Contexts
from service.agent.guards.refused import Refused
from service.agent.sources import Private
from service.agent.tools.arguments import (
    KINDS,
    Ask,
    Check,
    CheckExternal,
    Checking,
    CheckLinks,
    Delete,
    Diff,
    EditFiles,
    Finish,
    History,
    Insert,
    ListFiles,
    Looking,
    Move,
    Plan,
    Read,
    Replace,
    Revert,
    Search,
    ToolArguments,
    Write,
    shown_fields,
    written_paths,
)
from service.agent.tools.checking import check_links, checked
from service.agent.tools.diffs import commit_diff, history, own_diff, range_diff
from service.agent.tools.external import check_external
from service.agent.tools.reading import listing, read
from service.agent.tools.reporting import report
from service.agent.tools.results import Outcome, bounded
from service.agent.tools.searching import search
from service.agent.tools.writing import change
from service.agent.tree import Tree
from service.agent.workspace import Workspace
from service.domain.model import ToolCall, decoded_arguments
from service.domain.tool_values import Declined, Lines
from service.ports.link_checker import LinkChecker
from service.ports.search_index import SearchIndex


class Toolbox:
    """Runs tools on a workspace. Nothing that a model writes makes it raise."""

    def __init__(
        self,
        workspace: Workspace,
        links: Links,
        index: SearchIndex | None,
        domain: str,
        contexts: Contexts = NO_CONTEXTS,
        link_checker: LinkChecker | None = None,
    ) -> None:
        self._workspace = workspace
        self._links = links
        self._index = index
        self._domain = domain
        self._contexts = contexts
        self._link_checker = link_checker

    async def run(
        self,
        call: ToolCall,
        texts: Sequence[str] | None = None,
        asked: Sequence[str] = (),
        private: Private | None = None,
    ) -> Outcome:
        """Run a call. ``texts``: what was said and read in the job so far, for the checks; ``asked``: what people said
        alone; ``private``: what of it must not be repeated, None where that is not known.
        """
        kind = KINDS.get(call.name)
        if kind is None:
            return Outcome(f"Tool not found: {call.name[:100]!r}. The tools are: {', '.join(KINDS)}.", is_error=True)
        try:
            arguments = decoded_arguments(call.arguments.strip() or "{}", kind)
        except msgspec.ValidationError as error:
            said = f"The arguments of {call.name} do not fit: {error}. Its fields are: {shown_fields(call.name)}."
            return Outcome(said, is_error=True)
        except msgspec.DecodeError as error:
            return Outcome(f"The arguments of {call.name} are not JSON ({error}). Send one JSON object.", is_error=True)
        try:
            return await self._run(arguments, texts, asked, private)
        except Refused as refused:
            said = bounded(str(refused))
            value = Declined((0, min(len(refused.reason), len(said))), refused.docs_folder)
            return Outcome(said, is_error=True, value=value)

    def _root(self, path: str) -> tuple[Tree, str]:
        """Return the files that a path is among, and its path there: ``@NAME/…`` is in a context repository.

        Raise Refused for a context that cannot be read, or does not exist.
        """
        first, _, rest = path.strip().removeprefix("./").lstrip("/").partition("/")
        name = first.removeprefix("@")
        is_own = self._workspace.exists(first) or self._workspace.has_folder(first)
        if name == first or is_own or self._contexts == NO_CONTEXTS:
            return self._workspace, path
        if name in self._contexts.trees:
            return self._contexts.trees[name], rest or "."
        if name in self._contexts.problems:
            raise Refused(f"@{name} cannot be read now: {self._contexts.problems[name]}", "Go on without it.")
        known = ", ".join(f"@{one}" for one in self._contexts.trees) or "none"
        raise Refused(f"Context repository not found: {first}.", f"There are: {known}.")

    def _require_own(self, *paths: str) -> None:
        for path in paths:
            if self._root(path)[0] is not self._workspace:
                where = f"{self._workspace.docs_folder}/" if self._workspace.docs_folder else "the documentation"
                raise Refused(f"{path} is in a context repository, which is only read.", f"Write in {where}.")

    async def _run(
        self, arguments: ToolArguments, texts: Sequence[str] | None, asked: Sequence[str], private: Private | None
    ) -> Outcome:
        match arguments:
            case ListFiles() | Search() | Read() | Diff() | History():
                return await self._look(arguments)
            case Replace() | EditFiles() | Insert() | Write() | Move() | Delete() | Revert():
                self._require_own(*written_paths(arguments))
                return await change(self._workspace, arguments)
            case CheckLinks() | CheckExternal() | Check():
                return await self._check(arguments, texts, asked, private)
            case Plan() | Ask() | Finish():
                return report(arguments)
            case _:
                assert_never(arguments)

    async def _look(self, arguments: Looking) -> Outcome:
        match arguments:
            case ListFiles(folder=folder, name=name):
                tree, folder = self._root(folder)
                return await asyncio.to_thread(listing, tree, await tree.checked_folder(folder), name)
            case Search(folder=folder):
                tree, folder = self._root(folder)
                index = self._index if tree is self._workspace else None
                return await search(tree, index, self._domain, replace(arguments, folder=folder))
            case Read(path=path):
                tree, path = self._root(path)
                outcome = await read(tree, replace(arguments, path=path))
                if tree is self._workspace and arguments.start_line == 1:
                    outcome = await self._with_title(outcome, tree.checked(path))
                return outcome
            case Diff():
                return await self._diff(arguments)
            case History(path=path):
                tree, path = self._root(path)
                return await history(tree, replace(arguments, path=path))
            case _:
                assert_never(arguments)

    async def _diff(self, asked: Diff) -> Outcome:
        if (asked.since or asked.to) and asked.commit:
            raise Refused("A diff is of one commit, or from one to another.", "Give commit, or from and to.")
        if asked.to and not asked.since:
            raise Refused("The diff has no beginning.", "Give from, too.")
        roots = [self._root(path) for path in (*([asked.path] if asked.path or not asked.paths else []), *asked.paths)]
        tree, scopes = roots[0][0], [path for _, path in roots]
        if any(other is not tree for other, _ in roots):
            raise Refused("The paths are in different repositories.", "Ask for each repository alone.")
        if asked.since:
            return await range_diff(tree, asked.since, asked.to, scopes, asked.start_line)
        if asked.commit or tree is not self._workspace:
            return await commit_diff(tree, asked.commit or tree.commit, scopes, asked.start_line)
        return await own_diff(self._workspace, await self._links.moved(), scopes, asked.start_line)

    async def _with_title(self, outcome: Outcome, path: str) -> Outcome:
        """Add the title of a page that the job has changed, as the reader of the index sees it."""
        text = self._workspace.changes.get(path)
        if text is None or not isinstance(outcome.value, Lines):
            return outcome
        dialect = (await self._links.layout()).dialect
        title = await asyncio.to_thread(title_of, text, path, dialect)
        return replace(outcome, value=replace(outcome.value, title=title))

    async def _check(
        self, arguments: Checking, texts: Sequence[str] | None, asked: Sequence[str], private: Private | None
    ) -> Outcome:
        match arguments:
            case CheckLinks(folder=folder):
                return await check_links(self._links, arguments, await self._workspace.checked_folder(folder))
            case CheckExternal():
                return await check_external(self._workspace, self._links, self._link_checker, arguments, private)
            case Check():
                private = private or gates.NOTHING_PRIVATE
                return checked(await gates.check(self._workspace, self._links, texts, asked, private=private))
            case _:
                assert_never(arguments)
