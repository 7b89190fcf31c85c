"""The context repositories of a job: fetched as a round begins, and read at the same commits for all of it.

One that cannot be read is no failure of the job: the model is given the reason instead.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from service.agent.loop.job_context import JobContext
from service.agent.prompts import prompt
from service.agent.tools.results import as_data
from service.agent.tree import Tree
from service.domain.errors import DiskFull, ServiceError
from service.domain.jobs.decider import OpenContexts, OpenedContext, Running
from service.ports.docs_source import Source

FETCH_SECONDS = 300.0
"""For all contexts of a job together."""
FETCHED_AT_ONCE = 2
MAX_TOP_ENTRIES = 40
NOT_IN_TIME = f"It was not fetched within {FETCH_SECONDS:.0f} s."
REMOVED = "It is no context repository of the project any more."


class Contexts(Struct, frozen=True):
    """The context repositories of a round that can be read, and those that cannot."""

    trees: Mapping[str, Tree]
    """By name."""
    problems: Mapping[str, str]
    """Why others cannot be read, by name."""


NO_CONTEXTS = Contexts({}, {})


async def open_contexts(state: Running, context: JobContext) -> tuple[Running, Contexts]:
    """Return the contexts of the round that is under way; fetch them, and record their commits, when it begins.

    Raises:
        DiskFull: there is no room for one; the job waits for it.
        Conflict: as ``JobContext.record``.
    """
    if state.work.contexts is None and context.contexts:
        await context.docs.keep_contexts(context.source, context.contexts)
        fetched = await _fetched(context.contexts, context)
        state = await context.record(OpenContexts(fetched, context.now()))
    sources = {source.context: source for source in context.contexts}
    trees: dict[str, Tree] = {}
    problems: dict[str, str] = {}
    for opened in state.work.contexts or ():
        source = sources.get(opened.name)
        if opened.problem or source is None or source.repository != opened.repository:
            problems[opened.name] = opened.problem or REMOVED
            continue
        try:
            trees[opened.name] = await _tree(source, opened.commit, context)
        except DiskFull:
            raise
        except ServiceError as error:
            problems[opened.name] = str(error)
    return state, Contexts(trees, problems)


def shown(opened: Sequence[OpenedContext], contexts: Contexts) -> str:
    """Return the part of the prompt that describes them; empty when there are none."""
    lines = []
    for one in opened:
        tree = contexts.trees.get(one.name)
        if tree is None:
            reason = contexts.problems.get(one.name, NOT_IN_TIME)
            lines.append(prompt("context-not-read", name=one.name, reason=reason))
            continue
        quoting = "" if one.public else f" {prompt('context-not-public')}"
        top = as_data("\n".join(_top(tree.readable_paths())))
        commit = one.commit[:12]
        lines.append(prompt("context", name=one.name, commit=commit, branch=one.ref, quoting=quoting, top=top))
    return "\n\n" + prompt("contexts", contexts="\n".join(lines)) if lines else ""


def _top(paths: Sequence[str]) -> list[str]:
    counts = Counter(name + slash for name, slash, _ in (path.partition("/") for path in paths))
    entries = [f"{name} ({count} files)" if name.endswith("/") else name for name, count in counts.items()]
    more = [f"({len(entries) - MAX_TOP_ENTRIES} more)"] if len(entries) > MAX_TOP_ENTRIES else []
    return entries[:MAX_TOP_ENTRIES] + more


async def _fetched(sources: Sequence[Source], context: JobContext) -> tuple[OpenedContext, ...]:
    slots = asyncio.Semaphore(FETCHED_AT_ONCE)

    async def fetch(source: Source) -> OpenedContext:
        opened = OpenedContext(source.context, source.repository, source.ref, public=source.public)
        try:
            async with slots, asyncio.timeout_at(deadline):
                fetched = await context.docs.fetch(source)
        except TimeoutError:
            return _failed(opened, NOT_IN_TIME)
        except DiskFull:
            raise
        except ServiceError as error:
            return _failed(opened, str(error))
        return OpenedContext(source.context, source.repository, fetched.ref, fetched.base_commit, source.public)

    deadline = asyncio.get_running_loop().time() + FETCH_SECONDS
    try:
        async with asyncio.TaskGroup() as group:  # where one has no room, the others need not go on
            fetching = [group.create_task(fetch(source)) for source in sources]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return tuple(task.result() for task in fetching)


def _failed(opened: OpenedContext, problem: str) -> OpenedContext:
    if "://" not in opened.repository:  # a path on the operator's machine is for no one else to know
        problem = problem.replace(opened.repository, f"@{opened.name}")
    return OpenedContext(opened.name, opened.repository, opened.ref, public=opened.public, problem=problem)


async def _tree(source: Source, commit: str, context: JobContext) -> Tree:
    files = await context.known.files(context.docs, source, commit)
    return Tree(context.docs, source, commit, files)
