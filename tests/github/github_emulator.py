"""GitHub's API, emulated by the npm package ``emulate``, and GitHub's own description of it.

``require_emulator`` installs the packages of ``package-lock.json`` beside this file when they are missing or the lock
has changed, and skips the test where there is no node or npm. Of the description (13 MB, and 380 MB of other forms of
it) only the part that ``cut`` keeps stays on the disk: the paths that are called, closed, so that an unknown field of a
body is found, too.
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.node_packages import require_packages

HERE = Path(__file__).parent
DESCRIPTION = HERE / "node_modules" / ".github.json"

PATHS = (
    "/repos/{owner}/{repo}",
    "/repos/{owner}/{repo}/pulls",
    "/repos/{owner}/{repo}/pulls/{pull_number}",
    "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers",
    "/repos/{owner}/{repo}/issues/{issue_number}/labels",
    "/repos/{owner}/{repo}/issues/{issue_number}/comments",
    "/repos/{owner}/{repo}/pulls/{pull_number}/comments",
    "/repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies",
    "/repos/{owner}/{repo}/pulls/{pull_number}/reviews",
    "/repos/{owner}/{repo}/collaborators/{username}/permission",
    "/repos/{owner}/{repo}/installation",
    "/app/installations/{installation_id}/access_tokens",
)
"""All that our code calls; another one is not found in the description, and fails the test."""


def require_emulator() -> None:
    """Make sure that node and the packages are there; once per test session is enough."""
    require_packages(HERE, finish=_keep_description, version=repr(PATHS))


def _keep_description() -> None:
    generated = HERE / "node_modules" / "@octokit" / "openapi" / "generated"
    whole = json.loads((generated / "api.github.com.json").read_bytes())
    DESCRIPTION.write_text(json.dumps(cut(whole, PATHS)))
    shutil.rmtree(generated)


def cut(whole: dict[str, Any], paths: tuple[str, ...]) -> dict[str, Any]:
    """An OpenAPI document of some of its paths and what they refer to; bodies of requests have no unknown fields."""
    kept: dict[str, Any] = {
        "openapi": whole["openapi"],
        "info": whole["info"],
        "paths": {path: whole["paths"][path] for path in paths},
    }
    todo: list[Any] = [kept["paths"]]
    while todo:
        match todo.pop():
            case {"$ref": str(name)}:
                parts = name.removeprefix("#/").split("/")
                source, target = whole, kept
                for part in parts[:-1]:
                    source, target = source[part], target.setdefault(part, {})
                if parts[-1] not in target:
                    target[parts[-1]] = source[parts[-1]]
                    todo.append(source[parts[-1]])
            case dict(inner):
                todo += inner.values()
            case list(inner):
                todo += inner
    for path in kept["paths"].values():
        for operation in path.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                _close(content["schema"])
    return kept


def _close(schema: dict[str, Any]) -> None:
    for one in [schema, *schema.get("oneOf", ()), *schema.get("anyOf", ())]:
        if one.get("type") == "object":
            one.setdefault("additionalProperties", False)


class Emulator:
    """A running one. ``url`` is the API's address, ``keys`` the private keys of its Apps by their ids."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, keys: dict[str, str]) -> None:
        self._process, self.url, self.keys = process, url, keys


@asynccontextmanager
async def emulated(seed: dict[str, Any]) -> AsyncIterator[Emulator]:
    node = await asyncio.create_subprocess_exec(
        "node", str(HERE / "emulator.mjs"), json.dumps({"github": seed}),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(30):
            line = await node.stdout.readline()
            assert line, (await node.stderr.read()).decode()
        yield Emulator(node, **json.loads(line))
    finally:
        node.stdin.close()
        async with asyncio.timeout(30):
            await node.communicate()
