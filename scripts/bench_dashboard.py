"""The dashboard on a log of 10,000 jobs, 100,000 questions and 1,000,000 events, and in Chromium.

    scripts/bench dashboard [--jobs N] [--questions N] [--events N] [--times N] [--json]

Server time is measured from outside: from a request to the last byte of its answer, over one connection that stays open
and has no other beside it. On a machine with other work its p95 is that work's; processor time is the server's own.
Every page that the dashboard's modules have is asked for, and some with a choice in their list. Memory is the server's
resident memory with 200 live pages open, less that before. A step's time is from the request that gives a job a message
until its page has the step, so it has the request in it. Frames are beside those of an empty page in the same browser.
The key is made from ``docsmith login`` on, by keyboard alone, at a program's pace.

The log is filled with copies of one job and one reply, which takes some minutes and 2 GB of disk at the full size; with
``--jobs 200 --questions 2000 --events 20000`` everything takes less than five minutes.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts.bench_growth import Service, patterns, until_ended
from scripts.bench_streaming import command, generated
from scripts.bench_table import report
from scripts.bench_widget import FLAGS
from scripts.dashboard import browser as browsing
from scripts.dashboard.filled_log import Sizes, add_long_job, fill
from scripts.dashboard.pages import live_pages, page_costs, page_text, paths, shares, sign_in
from tests.service_process import AWAY

MOST_PAGE_MS, MOST_LIVE_MB, MOST_STEP_MS, MOST_OPENING_SECONDS, MOST_KEY_SECONDS = 50, 100, 250, 1, 60
FRAMES = 0.95
SHORT = 8
"""Characters of an id that is shown as it is."""
LIVE_PAGES, SESSIONS = 200, 8
PULL_REQUEST_FILES, JOB_STEPS = 97, 500
MESSAGES = 20
EMAIL = "owner@example.com"
QUESTION = "How do I set the delay between two tries?"
ANSWER = """# Tries

A failed job is tried again.

## Delay

Set `retryDelaySecs` to the number of seconds between two tries. The default is 30.
"""
"""A page that answers the question, so that there is a source to show."""


class Ground:
    """A data folder with a project, keys, and a log of its size."""

    def __init__(self, folder: Path) -> None:
        self.data, self.docs = folder / "data", generated(folder / "docs", 200)
        for number in range(PULL_REQUEST_FILES - 1):
            (self.docs / f"linking-{number}.md").write_text(f"# Linking {number}\n\nSee [how](target.md) first.\n")
        (self.docs / "tries.md").write_text(ANSWER)
        (self.docs / "target.md").write_text("# Target\n\nAll of them lead here.\n")
        self.organization = command(self.data, "organization", "create", "--name", "Bench")["id"]
        project = ("--name", "B", "--repository", str(self.docs), "--domain", "bench")
        self.project = command(self.data, "project", "create", *project)["id"]
        command(self.data, "index", "bench")
        command(self.data, "person", "add", EMAIL, "--role", "owner", "--operator")
        self.keys = {
            "admin": command(self.data, "key", "create", "--kind", "admin")["token"],
            "assistant": command(self.data, "key", "create", "--kind", "assistant", "--domain", "bench")["token"],
        }
        self.jobs = f"/v2/agent/{self.project}/job"

    def login(self) -> str:
        return str(command(self.data, "login", "--person", EMAIL)["link"])

    def give(self, service: Service, prompt: str, **fields: object) -> str:
        return str(json.loads(service.ask(self.jobs, {"prompt": prompt, **fields})[1])["id"])

    def fill(self, sizes: Sizes) -> tuple[int, str, str]:
        """Fill the log after the pattern of one real job and reply; return its head, a long job and a thread."""
        with Service(self.data, self.keys) as service:
            until_ended(service, self.jobs, self.give(service, "Say nothing"))
            message = {"role": "user", "parts": [{"type": "text", "text": QUESTION}]}
            asked = {"fp": "anonymous", "messages": [message]}
            headers, _ = service.ask("/discovery/v2/assistant/bench/message", asked, key="assistant")
        pattern = asyncio.run(patterns(self.data))
        head = asyncio.run(fill(self.data, pattern, sizes))
        return head, asyncio.run(add_long_job(self.data, pattern, JOB_STEPS)), headers["x-thread-id"]

    def pull_request(self, service: Service) -> str:
        """Return the path of a pull request that changes every file that links to a page."""
        job = self.give(service, "Rename page target.md to goal.md")
        until_ended(service, self.jobs, job)
        return urlsplit(json.loads(service.ask(f"{self.jobs}/{job}")[1])["prLink"]).path

    def page_values(self, service: Service, session: str, job: str, thread: str) -> dict[str, str]:
        """Return the parts of the pages' paths, by their names."""
        hook = json.loads(service.ask("/v2/webhooks", {"url": "https://hooks.example/docsmith"})[1])["id"]
        key = command(self.data, "key", "list")["keys"][0]["id"]
        place = f"/dashboard/{self.organization}/questions/{thread}"
        cited = re.search(r"sources/(\w+)/(\d+)", page_text(service.url, session, place))
        assert cited is not None, "the answer cites nothing"
        return {
            "organizationId": self.organization, "domain": "bench", "jobId": job, "threadId": thread, "webhookId": hook,
            "keyId": key, "position": "1", "messageId": cited[1], "number": cited[2],
        }  # fmt: skip


def goal(name: str, wanted: str, measured: str, *, met: bool) -> dict[str, Any]:
    return {"name": name, "goal": wanted, "measured": measured, "met": met}


def row(what: str, values: Sequence[float]) -> dict[str, Any]:
    p50, p95 = shares(values)
    return {"what": what, "p50 ms": round(p50, 1), "p95 ms": round(p95, 1), "max ms": round(max(values), 1)}


Found = tuple[list[dict[str, Any]], list[dict[str, Any]]]
"""Rows and goals."""


def pages_report(service: Service, session: str, values: Mapping[str, str], times: int) -> Found:
    asked = list(paths(values))
    costs = page_costs(service.url, session, asked, times, service.processor_ms)
    rows, goals = [], []
    for path, cost in costs.items():
        name, (_, p95) = _named(path, values), shares(cost.latencies_ms)
        rows.append({**row(name, cost.latencies_ms), "processor ms": round(cost.processor_ms, 1)})
        goals.append(goal(f"GET {name}", f"p95 < {MOST_PAGE_MS} ms", f"{p95:.1f} ms", met=p95 < MOST_PAGE_MS))
    return rows, goals


def _named(path: str, values: Mapping[str, str]) -> str:
    """Return a path with the names of its long ids in their place."""
    for name, value in values.items():
        path = path.replace(value, f"{{{name}}}") if len(value) > SHORT else path
    return path


def live_report(service: Service, sessions: Sequence[str], ground: Ground, job: str) -> Found:
    place = f"/dashboard/{ground.organization}"
    kinds = (
        f"{place}/jobs/live",
        f"{place}/jobs/{job}/live?after=0",
        f"{place}/sites/bench/live",
        "/operator/health/live",
    )
    addresses = [kinds[number // len(sessions) % len(kinds)] for number in range(LIVE_PAGES)]
    opened, mb = asyncio.run(live_pages(service.url, sessions, addresses, service.memory_mb))
    name = f"{opened} live pages of {len(sessions)} sessions"
    found = goal(f"memory of {name}", f"< {MOST_LIVE_MB} MB", f"{mb:.1f} MB", met=mb < MOST_LIVE_MB)
    return [{"what": name, "MB": round(mb, 1)}], [found]


def chromium_report(
    service: Service, ground: Ground, sessions: Sequence[str], opened: Mapping[str, str], job: str
) -> Found:
    from playwright.sync_api import sync_playwright

    rows: list[dict[str, Any]] = []
    goals: list[dict[str, Any]] = []
    url = f"http://localhost:{urlsplit(service.url).port}"
    with sync_playwright() as driver:
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        page = browsing.signed_in(browser, url, sessions[0])
        for name, path in opened.items():
            seconds = browsing.opening_seconds(page, path)
            share = browsing.scrolled_share(page)
            rows.append({"what": name, "opened s": round(seconds, 2), "frames": f"{share:.0%}"})
            limit = MOST_OPENING_SECONDS
            goals.append(goal(f"{name}: opened", f"< {limit} s", f"{seconds:.2f} s", met=seconds < limit))
            wanted = f"at least {FRAMES:.0%} of an empty page's"
            goals.append(goal(f"{name}: frames while scrolling", wanted, f"{share:.1%}", met=share >= FRAMES))
        path = f"/dashboard/{ground.organization}/jobs/{job}"
        steps = browsing.step_ms(
            page, path, lambda text: service.ask(f"{ground.jobs}/{job}/message", {"prompt": text}), MESSAGES
        )
        rows.append(row("message to its step in the page", steps))
        _, p95 = shares(steps)
        goals.append(goal("a job's step shows", f"p95 < {MOST_STEP_MS} ms", f"{p95:.0f} ms", met=p95 < MOST_STEP_MS))
        seconds, limit = browsing.key_seconds(browser, url, ground.login), MOST_KEY_SECONDS
        rows.append({"what": "docsmith login to a key that works, by keyboard", "opened s": round(seconds, 1)})
        goals.append(goal("login to a key that works", f"< {limit} s", f"{seconds:.1f} s", met=seconds < limit))
        browser.close()
    return rows, goals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=40, help="requests of each page")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        ground = Ground(Path(folder))
        began = time.perf_counter()
        head, long_job, thread = ground.fill(Sizes(options.jobs, options.questions, options.events))
        print(f"{head} events, filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        with Service(ground.data, ground.keys, AWAY) as service:
            print(f"ready after {service.ready_seconds:.0f} s", file=sys.stderr)
            sessions = [sign_in(service.url, ground.login()) for _ in range(SESSIONS)]
            opened = {
                f"pull request of {PULL_REQUEST_FILES} files": ground.pull_request(service),
                f"job of {JOB_STEPS} steps": f"/dashboard/{ground.organization}/jobs/{long_job}",
            }
            waiting = ground.give(service, "Document the kites", model="away")
            values = ground.page_values(service, sessions[0], long_job, thread)
            parts = (
                pages_report(service, sessions[0], values, options.times),
                live_report(service, sessions, ground, waiting),
                chromium_report(service, ground, sessions, opened, waiting),
            )
    rows, goals = ([one for part in parts for one in part[place]] for place in (0, 1))
    report("dashboard", rows, goals, as_json=options.json)


if __name__ == "__main__":
    main()
