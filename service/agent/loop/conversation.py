"""The model's prompt: rebuilt from the record for every call, so that a resumed job sends what it would have sent.

Only our own text has system authority. Callers' messages, whatever role they claim, are the user's; files are data.
"""

import functools

import msgspec

from service.agent.guards.paths import AGENT_FILES, NAVIGATION_FILES, is_under
from service.agent.loop import window
from service.agent.prompts import prompt
from service.agent.tools.arguments import descriptions
from service.agent.tools.results import as_data, bounded
from service.agent.workspace import Workspace
from service.domain.jobs.decider import JobRequested, Work
from service.markup.pages import is_page
from service.ports.model import AssistantMessage, ModelMessage, SystemMessage, UserMessage

MAX_GUIDANCE_CHARACTERS = 8_000
"""Limit for one file; in a small context window, at most an eighth of it."""
MAX_TOP_ENTRIES = 40


@functools.cache
def system_prompt() -> str:
    return prompt("system")


async def facts(workspace: Workspace, window_tokens: int | None = None) -> str:
    """About the repository, from its base commit, and so the same for the whole job."""
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
        shown += f"\n({len(entries) - MAX_TOP_ENTRIES} more)"
    named = [
        path
        for path in workspace.readable_base_paths()
        if path.rpartition("/")[2] in NAVIGATION_FILES and workspace.is_documentation(path)
    ]
    shown += "".join(f"\nNavigation: {path}" for path in named[:3])
    return prompt(
        "repository",
        folder=f"the folder {folder}/, which alone can be written (the rest can be read)" if folder else "all of it",
        pages=f"{pages} pages",
        top=as_data(shown),
        guidance=await _guidance(workspace, window_tokens),
    )


async def _guidance(workspace: Workspace, window_tokens: int | None) -> str:
    """AGENTS.md (or its like) at the root and in the docs folder, the nearest last."""
    most = MAX_GUIDANCE_CHARACTERS if window_tokens is None else min(MAX_GUIDANCE_CHARACTERS, window_tokens // 8)
    quoted = []
    for folder in dict.fromkeys(("", workspace.docs_folder)):
        for name in sorted(AGENT_FILES):
            path = f"{folder}/{name}" if folder else name
            text = await workspace.base_text(path)
            if text is not None and text.strip():
                quoted.append(prompt("guidance", path=path, quoted=as_data(bounded(text.strip(), most))))
                break
    return "\n" + "\n\n".join(quoted) if quoted else ""


def messages(
    request: JobRequested, work: Work, repository: str, prompt_bytes: int | None = None
) -> tuple[ModelMessage, ...]:
    """All that the model is shown; of at most about ``prompt_bytes``, as far as that is in our hands (None: no limit).

    The instructions are never shortened: a prompt that is too long because of them is for the provider to refuse.
    """
    told: list[ModelMessage] = [SystemMessage(system_prompt()), UserMessage(repository, "facts")]
    for message in request.messages:
        if not message.content.strip():
            continue
        if message.role == "assistant":
            told.append(AssistantMessage(message.content))
        else:
            told.append(UserMessage(message.content))
    room = None if prompt_bytes is None else max(window.LEAST_ROOM, prompt_bytes - window.size(told) - _tools_bytes())
    told += window.told((*work.transcript, *work.waiting), room)
    if isinstance(told[-1], AssistantMessage):
        told.append(UserMessage(prompt("nudge"), "nudge"))
    return tuple(told)


@functools.cache
def _tools_bytes() -> int:
    return len(msgspec.json.encode(descriptions()))
