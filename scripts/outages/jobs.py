"""Kills of the service while it works on jobs of both models: the builtin editor, and a language model by a script."""

import asyncio
import contextlib
import http.client
import json
import random
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from scripts.outages.site import Count, Site, site
from tests.fakes.provider import Asked, Call, Failure, Reply, ScriptedProvider

START_SECONDS = 30


def scripted(asked: Asked) -> Reply | Failure:
    """Return the next of three replies, told apart by how many came before, as nothing is kept between calls."""
    messages = asked.body["messages"]
    found = re.search(r"Write page (\d+) please", json.dumps(messages))
    if found is None:
        return Failure(400, "invalid_request_error", "a page is wanted")
    page = {"path": f"scripted-{found[1]}.md", "text": f"# Page {found[1]}\n\nSee [the installer](/install).\n"}
    finish = {"title": f"Add page {found[1]}", "summary": "Done."}
    steps = [
        (Call("write", (json.dumps(page),), id="c1"),),
        (Call("check_links", ('{"changed": true}',), id="c2"),),
        (Call("finish", (json.dumps(finish),), id="c3"),),
    ]
    before = sum(message["role"] == "assistant" for message in messages)
    return Reply(("One ", "moment ", "please."), steps[min(before, 2)], delay_seconds=0.02)


@contextlib.contextmanager
def provider(answer: Callable[[Asked], Reply | Failure] = scripted) -> Iterator[str]:
    """Yield the address of a provider that outlives every kill, in a thread of its own."""
    found: list[str] = []
    began, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        async with ScriptedProvider(answer) as there:
            found.append(there.openai_base)
            began.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    began.wait(START_SECONDS)
    try:
        yield found[0]
    finally:
        stop.set()
        thread.join(START_SECONDS)


def scripted_job(there: Site, number: int) -> str | None:
    """Ask for a job of the scripted model; its id, or None where it was not acknowledged."""
    body = {"messages": [{"role": "user", "content": f"Write page {number} please"}], "model": "scripted"}
    request = urllib.request.Request(
        f"{there.service.url}/v1/agent/{there.service.project_id}/job",
        data=json.dumps(body).encode(),
        headers={**there.service.admin, "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # its stream is not read: the job goes on
            job_id: str = answer.headers["X-Session-Id"]
    except (OSError, http.client.HTTPException):  # the service was killed, or refuses the request
        return None
    there.jobs.append(job_id)
    return job_id


def kill_jobs(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """kill -9 at random moments of jobs of both models; each ends with one branch and one pull request"""
    with provider() as address:
        settings = {
            "DOCSMITH_AGENT__MODEL": "builtin",
            "DOCSMITH_MODELS__SCRIPTED__MODEL": "openai/gpt-5.2",
            "DOCSMITH_MODELS__SCRIPTED__API_BASE": address,
            "DOCSMITH_MODELS__SCRIPTED__API_KEY_ENV": "SCRIPTED_KEY",
            "SCRIPTED_KEY": "sk-scripted",
        }
        with site(root, settings) as there:
            for number in range(rounds):
                count.rounds += 1
                for which in range(2):
                    count.note(there.job())
                    count.note(scripted_job(there, 2 * number + which))
                time.sleep(chance.uniform(0.0, 2.5))
                there.restart()
            there.check()
