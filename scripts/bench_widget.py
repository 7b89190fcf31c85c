"""The chat widget in Chromium while it shows an answer of 50 tokens a second: frames, long tasks, and script a token.

    scripts/bench widget [--seconds N] [--slowdown N] [--sizes] [--json]

Frames are beside those of an empty page, which the same browser shows for as long in the same run. Tasks and script are
in processor time, so that they say the same on a machine that is busy with other work; frames do not. ``--slowdown 4``
makes the browser's processor four times slower. ``--sizes`` compares the bytes on the wire (gzip -9) with those of
others instead, from their packages on npm.
"""

import argparse
import asyncio
import gzip
import itertools
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts.bench_table import report
from service.web.widget import scripts as widget_scripts
from service.web.widget.bundle import widget

PER_SECOND = 50
LONG_TASK_MS = 50
SCRIPT_MS = 2
FRAMES = 0.95
MAX_LOADER, MAX_PANEL, MAX_ALL = 3_000, 20_000, 35_000
SECTION = """## Retries of step {number}

A failed job is tried again after **retryDelaySecs** seconds, see [1](/retry#delay). The delay `doubles` each time,
*up to* ten minutes, unless the job names another one:

```python
@kite.job(retries={number})
def fetch(url: str) -> bytes:
    return get(url, timeout=30)  # seconds
```

| Option | Meaning | Default |
|---|---|---|
| `retries` | tries after the first one | {number} |
| `delay` | seconds before the next try | 30 |

1. Set the option.
2. Restart the worker, then read its log:
   - `job failed` names the error
   - `job retried` names the try

"""
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title></head>
<body><h1>{name}</h1>{tag}</body></html>"""
TAG = '<script src="/widget.js" data-site="guide" async></script>'
COUNT = """
window.frames_shown = 0;
const count = () => { window.frames_shown += 1; requestAnimationFrame(count); };
requestAnimationFrame(count);
"""
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
OTHERS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "Inkeep": {"@inkeep/cxkit-js@0.5.64": ("dist/embed.js",)},
    "DocSearch": {"@docsearch/js@5.2.0": ("dist/umd/index.js",), "@docsearch/css@5.2.0": ("dist/style.css",)},
    "DocsGPT": {"docsgpt@0.5.1": ("dist/legacy/browser.js",)},
    "Deep Chat": {"deep-chat@2.4.2": ("dist/deepChat.bundle.js",)},
    "Markprompt": {"@markprompt/web@0.14.3": ("dist/init.js",)},
    "Biel": {
        "biel-search@0.1.72": (
            "dist/biel-search/biel-search.esm.js",
            "dist/biel-search/p-eece42ac.js",
            "dist/biel-search/p-25d60baa.entry.js",
        )
    },
}  # fmt: skip
"""Files that a page with the tag of another widget loads for an answer without code."""


def tokens(count: int) -> Iterator[str]:
    """Yield Markdown as a model writes it: about four characters a token."""
    text = "".join(SECTION.format(number=number) for number in range(1, 2 + count // 100))
    return itertools.islice((text[at : at + 4] for at in range(0, len(text), 4)), count)


class Answers:
    """The service as the widget sees it, with an answer that is written at a constant rate."""

    def __init__(self, seconds: float) -> None:
        self._count = int(seconds * PER_SECOND)
        self.sent = ""

    def app(self) -> web.Application:
        app = web.Application()
        app.add_routes(widget_scripts.routes)
        app.router.add_get("/", self._page)
        app.router.add_get("/empty", self._empty)
        app.router.add_get("/discovery/v1/widget/guide", self._settings)
        app.router.add_post("/discovery/v2/assistant/guide/message", self._answer)
        return app

    async def _page(self, _: web.Request) -> web.Response:
        return web.Response(text=PAGE.format(name="Widget", tag=TAG), content_type="text/html")

    async def _empty(self, _: web.Request) -> web.Response:
        return web.Response(text=PAGE.format(name="Empty", tag=""), content_type="text/html")

    async def _settings(self, _: web.Request) -> web.Response:
        return web.json_response({})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)

        async def send(**chunk: object) -> None:
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())

        await send(type="start", messageId="r1")
        await send(type="text-start", id="t1")
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number, token in enumerate(tokens(self._count), 1):
            await send(type="text-delta", id="t1", delta=token)
            self.sent += token
            await asyncio.sleep(began + number / PER_SECOND - loop.time())
        await send(type="finish")
        await response.write(b"data: [DONE]\n\n")
        return response


@asynccontextmanager
async def served(answers: Answers) -> AsyncIterator[str]:
    runner = web.AppRunner(answers.app(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class Figures:
    """Figures of a page, from ``begin`` to ``read``."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._before = 0.0

    async def begin(self, slowdown: float) -> None:
        self._session = await self._page.context.new_cdp_session(self._page)
        await self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        if slowdown > 1:
            await self._session.send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
        await self._page.evaluate(COUNT)
        await self._page.context.browser.start_tracing(page=self._page, categories=["toplevel"])
        self._before = await self._script_seconds()

    async def read(self) -> dict[str, Any]:
        script_ms = (await self._script_seconds() - self._before) * 1000
        frames = await self._page.evaluate("window.frames_shown")
        trace = await self._page.context.browser.stop_tracing()
        return {"frames": frames, "tasks": main_thread_tasks(trace), "script_ms": script_ms}

    async def _script_seconds(self) -> float:
        metrics = (await self._session.send("Performance.getMetrics"))["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "ScriptDuration"))


def main_thread_tasks(trace: bytes) -> list[float]:
    """Return the processor milliseconds of each task on the threads that run pages' scripts."""
    events = json.loads(trace)["traceEvents"]
    threads = {
        (one["pid"], one["tid"])
        for one in events
        if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"
    }
    return [
        one["tdur"] / 1000
        for one in events
        if one["name"].endswith("RunTask") and "tdur" in one and (one["pid"], one["tid"]) in threads
    ]


async def measure(browser: Any, seconds: float, slowdown: float = 1) -> dict[str, Any]:
    """Return the figures of an empty page and of one with an answer, each shown for these seconds."""
    answers = Answers(seconds)
    async with served(answers) as url:
        page = await browser.new_page()
        await page.goto(f"{url}/empty")
        figures = Figures(page)
        await figures.begin(slowdown)
        await asyncio.sleep(seconds)
        empty = await figures.read()
        await page.close()
        page = await browser.new_page()
        await page.goto(url)
        await page.locator("ask-docs button").first.click()
        question = page.get_by_role("textbox", name="Your question")
        await question.fill("How are jobs retried?")
        figures = Figures(page)
        await figures.begin(slowdown)
        await question.press("Enter")
        await asyncio.sleep(seconds)
        shown = await figures.read()
        await page.get_by_role("button", name="Answer again").wait_for(timeout=120_000)
        text = await page.locator("ask-docs .prose").inner_text()
        await page.close()
    return {"empty": empty, "answer": shown, "tokens": len(answers.sent) / 4, "sent": answers.sent, "text": text}


async def in_chromium(seconds: float, slowdown: float) -> dict[str, Any]:
    from playwright.async_api import async_playwright

    async with async_playwright() as driver:
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        browser = await driver.chromium.launch(executable_path=program, args=FLAGS)
        found = await measure(browser, seconds, slowdown)
        await browser.close()
    return found


def frames_report(options: argparse.Namespace) -> None:
    found = asyncio.run(in_chromium(options.seconds, options.slowdown))
    empty, answer = found["empty"], found["answer"]
    share = answer["frames"] / max(empty["frames"], 1)
    script = (answer["script_ms"] - empty["script_ms"]) / max(found["tokens"], 1)
    longest = max(answer["tasks"], default=0)
    rows = [
        {
            "page": name,
            "frames/s": round(one["frames"] / options.seconds, 1),
            "tasks": len(one["tasks"]),
            "longest, ms": round(max(one["tasks"], default=0), 1),
            "script, ms/s": round(one["script_ms"] / options.seconds, 2),
        }
        for name, one in (("empty", empty), ("answer", answer))
    ]
    goals = [
        {
            "name": "frames",
            "goal": "at least 95 % of an empty page's",
            "measured": f"{share:.1%}",
            "met": share >= FRAMES,
        },
        {
            "name": "longest task",
            "goal": "none over 50 ms",
            "measured": f"{longest:.0f} ms",
            "met": longest <= LONG_TASK_MS,
        },
        {"name": "script", "goal": "2 ms a token", "measured": f"{script:.2f} ms", "met": script <= SCRIPT_MS},
    ]
    report("widget", rows, goals, as_json=options.json)


def sizes_report(options: argparse.Namespace) -> None:
    files = widget()
    texts = max((one.packed for one in files.by_name.values() if one.body.startswith(b"export default {")), key=len)
    parts = [one for one in files.by_name.values() if not one.body.startswith(b"export default {")]
    everything = sum(len(one.packed) for one in parts) + len(texts)
    rows = [
        {"widget": "Docsmith, before the first use", "bytes": len(files.loader.packed)},
        {"widget": "Docsmith, all of it, in its largest language", "bytes": everything},
    ]
    with tempfile.TemporaryDirectory() as folder:
        rows += [{"widget": name, "bytes": _published(Path(folder), packages)} for name, packages in OTHERS.items()]
    loader, panel = len(files.loader.packed), len(files.panel.packed)
    goals = [
        {"name": "loader", "goal": "3 kB", "measured": f"{loader:,}", "met": loader <= MAX_LOADER},
        {"name": "panel", "goal": "20 kB", "measured": f"{panel:,}", "met": panel <= MAX_PANEL},
        {
            "name": "all, in the largest language",
            "goal": "35 kB",
            "measured": f"{everything:,}",
            "met": everything <= MAX_ALL,
        },
    ]
    report("widget sizes", rows, goals, as_json=options.json)


def _published(folder: Path, packages: Mapping[str, Sequence[str]]) -> int:
    """Return the bytes of these files of npm packages, compressed."""
    total = 0
    for package, names in packages.items():
        packed = subprocess.run(
            ["npm", "pack", "--silent", package], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.strip()
        with tarfile.open(folder / packed) as archive:
            for name in names:
                file = archive.extractfile(f"package/{name}")
                assert file is not None, name
                total += len(gzip.compress(file.read(), 9))
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--slowdown", type=float, default=1)
    parser.add_argument("--sizes", action="store_true")
    options = parser.parse_args()
    (sizes_report if options.sizes else frames_report)(options)


if __name__ == "__main__":
    main()
