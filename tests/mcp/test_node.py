"""The official TypeScript client and the protocol's conformance suites, by a Node.js of npm: they need version 22."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.node_packages import require_packages

HERE = Path(__file__).parent / "node"
NODE = HERE / "node_modules" / "node" / "bin" / "node"
RUN_SECONDS = 300

pytestmark = [pytest.mark.slow, pytest.mark.node]


@pytest.fixture(scope="module")
def packages():
    require_packages(HERE)


def node(*arguments):
    return subprocess.run(
        [NODE, *arguments], cwd=HERE, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )


def test_typescript_client_uses_the_whole_server(packages, service):
    done = node("client.mjs", f"{service.url}/mcp/open")
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["server"] == "docsmith"
    assert seen["tools"] == ["search", "fetch", "ask", "submit_feedback"]
    assert "retryDelaySecs" in seen["text"]
    assert seen["words"] == seen["answer"] != ""
    assert (bool(seen["resource"]), seen["unknown"]) == (True, -32602)


@pytest.mark.parametrize(
    ("suite", "version", "options"),
    [
        ("conformance-2025", "2025-11-25", ()),
        ("conformance-2026", "2025-11-25", ("--requirements", "2025-11-25")),
        ("conformance-2026", "2026-07-28", ("--requirements", "2026-07-28")),
    ],
)
async def test_conformance_suite_finds_nothing_new(packages, http, service, tmp_path, suite, version, options):
    """The suite exits with an error for a failure that is not expected, and for an expected one that is gone."""
    url = f"{service.url}/mcp/open"
    await asyncio.to_thread(service.cli, "site", "update", "open", "--public", "--origin", service.url)
    async with asyncio.timeout(60):  # the service has to see the change
        while (await http.post(url, headers={"Origin": service.url})).status == 403:  # noqa: ASYNC110  (nothing tells when)
            await asyncio.sleep(0.02)
    program = HERE / "node_modules" / suite / "dist" / "index.js"
    expected = HERE / f"expected-{version}.yml"
    arguments = (program, "server", "--url", url, "--expected-failures", expected, "-o", tmp_path, *options)
    done = await asyncio.to_thread(node, *arguments)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
