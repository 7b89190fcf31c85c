"""The real chat clients, run by node against a server's address.

``run_chats`` starts one node process for any number of conversations, which go on at the same time; ``run_chat`` is the
same for one. The packages are those of ``package-lock.json`` beside this file; ``require_clients`` installs them when
they are missing or the lock has changed, and skips the test where there is no node or npm.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.node_packages import require_packages

HERE = Path(__file__).parent
RUN_SECONDS = 60

AI4 = ("ai4old", "ai4")
AI5_AND_LATER = ("ai5old", "ai5strict", "ai5", "ai6strict", "ai6", "ai7strict", "ai7")
"""``strict`` ones refuse every key that they do not know."""

Outcome = dict[str, Any]


def require_clients() -> None:
    """Make sure that node and the packages are there; once per test session is enough."""
    require_packages(HERE)


async def run_chat(version: str, url: str, key: str = "", *, turns: list[str], **more: Any) -> Outcome:
    """One conversation; ``more`` as ``conversation`` takes it."""
    return (await run_chats([conversation(version, url, key, turns=turns, **more)]))[0]


def conversation(
    version: str,
    url: str,
    key: str = "",
    *,
    turns: list[str],
    body: dict[str, Any] | None = None,
    user_agent: str = "",
    stop_after_deltas: int = 0,
    resume_chat: str = "",
) -> dict[str, Any]:
    """One for ``run_chats``; ``chat.mjs`` says what becomes of each field."""
    return {
        "version": version,
        "url": url,
        "key": key,
        "turns": turns,
        "body": body or {},
        "userAgent": user_agent,
        "stopAfterDeltas": stop_after_deltas,
        "resumeChat": resume_chat,
    }


async def run_chats(conversations: list[dict[str, Any]]) -> list[Outcome]:
    """What became of each, in the same order. A client that crashed fails the test with its stack."""
    return await _run("chat.mjs", conversations)


async def run_hooks(scripts: list[dict[str, Any]]) -> list[Outcome]:
    """As ``run_chats``, with the React hooks in a page; ``hooks.mjs`` says what a script is."""
    return await _run("hooks.mjs", scripts)


async def _run(program: str, given: list[dict[str, Any]]) -> list[Outcome]:
    node = await asyncio.create_subprocess_exec(
        "node", str(HERE / program),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(RUN_SECONDS):
            out, err = await node.communicate(json.dumps(given).encode())
    finally:
        if node.returncode is None:
            node.kill()
            await node.wait()
    assert node.returncode == 0, f"exit {node.returncode}: {err.decode()}"
    outcomes: list[Outcome] = json.loads(out)
    crashes = [f"{outcome['version']}: {outcome['crash']}" for outcome in outcomes if outcome["crash"]]
    assert not crashes, "\n".join(crashes)
    return outcomes
