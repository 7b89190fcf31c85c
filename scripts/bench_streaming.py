"""The assistant's streams: how many chunks a core carries, how late each comes, and how soon a reply begins.

Docsmith with its record on, beside a bare aiohttp proxy, the proxy of LiteLLM, and litellm's library behind FastAPI and
sse-starlette, all before the same provider, a process that streams to a plan. Other work on the machine makes each of
them wait, so rates are by processor time, ratios are those of one run, and times are medians beside the bare proxy's.

The rivals' packages live in an environment of their own:
``python3 -m venv .venv-bench && .venv-bench/bin/pip install 'litellm[proxy]' fastapi sse-starlette uvicorn``.

Then a site of 1,000 generated pages (or ``--docs FOLDER``), the builtin model and one reader after the other. There the
service runs in this process, once more with asyncio's debug mode, whose slow-callback log is what is counted; debug
mode makes everything slower, so the times come from a run without it. Threads change as often as in the service's own
process: debug mode gives up the interpreter's lock for each file of each stack that it notes, and with Python's own
5 ms the loop would wait for a thread that computes several times in one callback.
"""

import argparse
import asyncio
import json
import logging
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp

from scripts.bench_table import report
from scripts.streaming_rates import ENVIRONMENT, at, measure
from service.main.process.serving import SWITCH_SECONDS
from service.main.running import serving
from service.runtime.settings.settings_file import load_settings

REPLIES = 200
SLOW_SECONDS = 0.010
_WORDS = (
    "queue worker retry delay schedule backup cluster token region volume network policy secret deploy rollback metric "
    "alert dashboard index shard replica migration webhook template plugin runtime cache timeout limit quota"
)
WORDS = _WORDS.split()


def generated(folder: Path, pages: int) -> Path:
    """Pages of words at random, each about two of them; the same every time."""
    random_words = random.Random(7)
    for number in range(pages):
        one, two = random_words.sample(WORDS, 2)
        sections = [
            f"## {one.title()} {random_words.choice(WORDS)} {part}\n\n"
            + " ".join(random_words.choices([*WORDS, one, two, "the", "a", "to", "of", "is"], k=120))
            + ".\n\n```sh\nkite "
            + f"{one} --{two}\n```\n"
            for part in range(5)
        ]
        text = f"---\ntitle: {one.title()} and {two} {number}\n---\n\n" + "\n".join(sections)
        file = folder / f"{one}" / f"{two}-{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def command(data: Path, *arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "service", *arguments, "--data", str(data), "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


async def read_replies(url: str, key: str, replies: int) -> None:
    """In a process of its own: ask, and print what was seen as JSON."""
    seen: dict[str, list[float]] = {"first byte": [], "search step": [], "whole reply": []}
    asked = random.Random(11)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:
        for _ in range(replies):
            text = f"How do I set the {asked.choice(WORDS)} of a {asked.choice(WORDS)}?"
            message = {"role": "user", "parts": [{"type": "text", "text": text}]}
            began, first, search = time.perf_counter(), 0.0, 0.0
            async with session.post(url, json={"fp": "anonymous", "messages": [message]}) as response:
                response.raise_for_status()
                async for piece in response.content.iter_any():
                    elapsed = (time.perf_counter() - began) * 1000
                    first = first or elapsed
                    if not search and b"tool-output-available" in piece:
                        search = elapsed
            seen["first byte"].append(first)
            seen["search step"].append(search)
            seen["whole reply"].append((time.perf_counter() - began) * 1000)
    print(json.dumps(seen))


async def replies(data: Path, domain: str, key: str, *, debug: bool) -> tuple[dict[str, list[float]], list[str]]:
    """Return what a reader saw, and the slow callbacks from when requests are accepted to the end of the last reply."""
    sys.setswitchinterval(SWITCH_SECONDS)
    loop = asyncio.get_running_loop()
    loop.set_debug(debug)
    loop.slow_callback_duration = SLOW_SECONDS
    slow: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.msg.startswith("Executing"):
                slow.append(record.getMessage())

    logging.getLogger("asyncio").addHandler(Collect())
    async with serving(data, load_settings(None, {"DOCSMITH_SERVER__PORT": "0"})) as base:
        slow.clear()  # the start has no reader yet
        reader = await asyncio.create_subprocess_exec(
            sys.executable, __file__, "--read", f"{base}/discovery/v2/assistant/{domain}/message", "--key", key,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, _ = await reader.communicate()
        during = list(slow)
    return json.loads(out), during


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--rivals", type=Path, default=ENVIRONMENT, help="the environment of the rivals' packages")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    parser.add_argument("--key", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        asyncio.run(read_replies(options.read, options.key, REPLIES))
        return
    logging.getLogger("asyncio").propagate = False
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        docs = options.docs or generated(Path(folder) / "docs", options.pages)
        command(data, "organization", "create", "--name", "Bench")
        command(data, "project", "create", "--name", "Bench", "--repository", str(docs), "--domain", "bench")
        index = command(data, "index", "bench")
        key = command(data, "key", "create", "--kind", "assistant", "--domain", "bench")["token"]
        rates = measure(data, "bench", key, environment=options.rivals, folder=Path(folder))
        seen, _ = asyncio.run(replies(data, "bench", key, debug=False))
        _, slow = asyncio.run(replies(data, "bench", key, debug=True))
    rows = [
        {
            "what": name, "p50 ms": round(at(values, 0.5), 1), "p95 ms": round(at(values, 0.95), 1),
            "max ms": round(max(values), 1), "times": len(values),
        }
        for name, values in seen.items()
    ]  # fmt: skip
    first = at(seen["first byte"], 0.95)
    search = at(seen["search step"], 0.95)
    goals = [
        *rates.goals,
        {"name": f"search step of a reply, p95, {index['pages']} pages", "goal": "under 100 ms",
         "measured": f"{search:.1f} ms", "met": search < 100},
        {"name": f"first byte of a reply, p95, {index['pages']} pages", "goal": "under 100 ms",
         "measured": f"{first:.1f} ms", "met": first < 100},
        {"name": f"callbacks of the event loop over 10 ms, in {REPLIES} replies, debug mode on", "goal": "0",
         "measured": str(len(slow)), "met": not slow},
    ]  # fmt: skip
    report("streaming", [*rates.rows, *rows], goals, as_json=options.json)
    if slow and not options.json:
        for line in slow[:10]:
            print("  slow:", line[:150], "…", line[-22:])


if __name__ == "__main__":
    main()
