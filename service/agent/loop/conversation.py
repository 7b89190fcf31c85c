"""The model's prompt: rebuilt from the record for every call, so that a resumed job sends what it would have sent.

Only our own text has system authority. Callers' messages, whatever role they claim, are the user's; files are data.
"""

import functools
from datetime import UTC

import msgspec

from service.agent.guards.paths import is_under
from service.agent.guidance.components import components
from service.agent.guidance.frameworks import framework_rules
from service.agent.guidance.house_rules import house_rules
from service.agent.guidance.navigation_shape import navigation_shape
from service.agent.guidance.page_tree import MAX_CHARACTERS, page_tree
from service.agent.included import included_files
from service.agent.loop import rounds, window
from service.agent.loop.job_context import JobContext
from service.agent.prompts import prompt
from service.agent.tools.arguments import descriptions
from service.agent.tools.results import as_data
from service.agent.workspace import MAX_NAMED, Workspace
from service.domain.jobs.decider import JobRequested, Running, Work
from service.markup.pages import is_page
from service.ports.model import AssistantMessage, ModelMessage, SystemMessage, UserMessage

MAX_TOP_ENTRIES = 40
MAX_WINDOWS = 4
"""Limit for the sizes of windows for which the beginning of the prompt is kept."""
SMALL_WINDOW = 32_000
"""Tokens of a context window in which less is shown of the site."""


@functools.cache
def system_prompt() -> str:
    return prompt("system")


async def facts(workspace: Workspace, window_tokens: int | None = None) -> str:
    """Return what is known of the repository, from its base commit, and so the same for the whole job: the beginning of
    each prompt, which providers cache. What changes least comes first.
    """
    known = workspace.files.facts
    if window_tokens not in known:
        if len(known) >= MAX_WINDOWS:
            known.clear()
        known[window_tokens] = await _facts(workspace, window_tokens)
    return known[window_tokens]


async def _facts(workspace: Workspace, window_tokens: int | None) -> str:
    folder = workspace.docs_folder
    paths = [path for path in workspace.readable_base_paths() if is_under(path, folder)]
    pages = sum(is_page(path) for path in paths)
    start = len(folder) + 1 if folder else 0
    top: dict[str, int] = {}
    for path in paths:
        name, slash, _ = path[start:].partition("/")
        top[name + slash] = top.get(name + slash, 0) + 1
    entries = [f"{name} ({count} files)" if name.endswith("/") else name for name, count in list(top.items())]
    shown = "\n".join(entries[:MAX_TOP_ENTRIES])
    if len(entries) > MAX_TOP_ENTRIES:
        shown += f"\n({len(entries) - MAX_TOP_ENTRIES} more: list shows them)"
    is_small = window_tokens is not None and window_tokens < SMALL_WINDOW
    shape = await navigation_shape(workspace, 1) if is_small else await navigation_shape(workspace)
    used = await components(workspace, 8) if is_small else await components(workspace)
    guidance = await house_rules(workspace, window_tokens)
    tree, is_ordered = await page_tree(workspace, MAX_CHARACTERS // 3 if is_small else MAX_CHARACTERS)
    included = sorted(await included_files(workspace))
    return prompt(
        "repository",
        rules=await framework_rules(workspace),
        guidance=f"\n{guidance}\n" if guidance else "",
        navigation=prompt("navigation-shape", shape=shape) + "\n\n" if shape else "",
        components=prompt("components", used=as_data(used)) + "\n" if used else "",
        folder=f"the folder {folder}/, which can be written (the rest is to be read)" if folder else "all of it",
        pages=f"{pages} pages",
        included=prompt("included", paths=as_data(", ".join(included[:MAX_NAMED]))) + "\n" if included else "",
        tree=prompt(
            "page-tree", order="in the order of the navigation" if is_ordered else "by path", tree=as_data(tree)
        )
        if tree
        else "",
        top=as_data(shown),
    )


def task(state: Running, context: JobContext) -> str:
    """Return what a model has to know besides the repository and the instruction; the same for the whole round."""
    date = rounds.began_at(state.request, state.work)
    return prompt(
        "task",
        project=context.project or context.domain,
        date=f"{date.astimezone(UTC):%Y-%m-%d}",
        steps=str(context.budgets.steps),
    )


def messages(
    request: JobRequested,
    work: Work,
    repository: str,
    prompt_bytes: int | None = None,
    pull_request: rounds.SoFar | None = None,
) -> tuple[ModelMessage, ...]:
    """All that the model is shown; of at most about ``prompt_bytes``, as far as that is in our hands (None: no limit).

    Of earlier rounds it is shown what was asked, what came of it, and the pull request, which is the one that the round
    goes on with. The instructions are never shortened: a prompt that is too long because of them is for the provider to
    refuse.
    """
    told: list[ModelMessage] = [SystemMessage(system_prompt()), UserMessage(repository, "facts")]
    for message in request.messages:
        if not message.content.strip():
            continue
        if message.role == "assistant":
            told.append(AssistantMessage(message.content))
        else:
            told.append(UserMessage(message.content))
    if request.context.strip():
        told.append(UserMessage(prompt("given", given=as_data(request.context)), "facts"))
    steps, begin = (*work.transcript, *work.waiting), rounds.begin(work.transcript)
    told += rounds.told_before(steps[:begin])
    if pull_request is not None:
        most = rounds.BYTES_BEFORE_THE_WORK - window.size(told) - _tools_bytes() - len(pull_request.summary)
        told.append(rounds.so_far_message(pull_request, most if prompt_bytes is None else min(most, prompt_bytes // 6)))
    room = None if prompt_bytes is None else max(window.LEAST_ROOM, prompt_bytes - window.size(told) - _tools_bytes())
    told += window.told(steps[begin:], room, pull_request.versions if pull_request is not None else None)
    if isinstance(told[-1], AssistantMessage):
        told.append(UserMessage(prompt("nudge"), "nudge"))
    return tuple(told)


@functools.cache
def _tools_bytes() -> int:
    return len(msgspec.json.encode(descriptions()))
