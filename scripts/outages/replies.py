"""Kills of the service while it writes replies, of the builtin model and of two language models by a script.

The one is given its own text to continue, as a prefilled message, the other is asked for the rest and repeats a few
words. Six readers are there at each kill, of both protocols, and come back: each must get the whole answer, and the log
and the API must have each character once. Every third kill is followed by a second one.
"""

import http.client
import json
import random
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from scripts.outages.jobs import provider
from scripts.outages.site import Count, Lost, Site, site
from tests.end_to_end.talk import chunks, text_of
from tests.fakes.provider import Asked, Failure, Reply

QUESTION = "How do I install Kite?"
ANSWER = """\
To install Kite, run the installer [1]. It <b>needs</b> 20 MB of disk [1], and no more than that; `[1]` is no citation.

```sh
curl -sSf kite.example/install | sh  # [1] <script> and no link
```

| Step | What it does [1] |
| --- | --- |
| 1 | fetches the archive, ~~slowly~~ and checks it |
| 2 | unpacks it & writes the settings |

A failed job is tried again [2][9]. See [elsewhere](https://evil.example/?q=1) for nothing at all.
"""
PIECE, PIECE_SECONDS = 5, 0.015
REPEATED = 20
"""Characters that the model says again which is asked for the rest."""
RETURN_SECONDS = 60


def goes_on(asked: Asked) -> Reply | Failure:
    """Return the answer, or what follows the text that the request ends with."""
    last, begun = asked.body["messages"][-1], ""
    if last["role"] == "assistant":
        begun = last["content"]
    elif asked.body["messages"][-2]["role"] == "assistant":
        begun = asked.body["messages"][-2]["content"]
    if not ANSWER.startswith(begun):
        return Failure(400, "invalid_request_error", f"this is no beginning of the answer: {begun[-80:]!r}")
    at = len(begun) if last["role"] == "assistant" else max(0, len(begun) - REPEATED)
    rest = ANSWER[at:]
    pieces = tuple(rest[at : at + PIECE] for at in range(0, len(rest), PIECE))
    return Reply(pieces, delay_seconds=PIECE_SECONDS)


class Reader:
    """One reader of one reply, in a chat of its own: reads in a thread, until the reply or the connection ends."""

    def __init__(self, there: Site, chat: str, version: int) -> None:
        self._there, self.chat, self.version = there, chat, version
        self._path = f"/discovery/v{version}/assistant/{there.service.domain}/message"
        self.raw = b""
        self.status = 0
        self.thread_id = ""
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        body = {"fp": "anonymous", "messages": [self.message()], "id": self.chat}
        self._read(self._path, json.dumps(body).encode())

    @staticmethod
    def message() -> dict[str, Any]:
        return {"id": "q", "role": "user", "content": QUESTION, "parts": [{"type": "text", "text": QUESTION}]}

    def come_back(self) -> None:
        self._read(f"{self._path}/{self.chat}/stream", None)

    def wait(self, seconds: float) -> bool:
        """Return whether the reply or the connection has ended by then."""
        assert self._thread is not None
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _read(self, path: str, body: bytes | None) -> None:
        self.raw, self.status = b"", 0
        headers = {**self._there.service.assistant, "Content-Type": "application/json"}
        request = urllib.request.Request(self._there.service.url + path, body, headers)

        def read() -> None:
            try:
                with urllib.request.urlopen(request, timeout=RETURN_SECONDS) as answer:
                    self.thread_id = answer.headers.get("X-Thread-Id") or self.thread_id
                    self.status = answer.status
                    while piece := answer.read1(65_536):
                        self.raw += piece
            except urllib.error.HTTPError as error:
                with error:
                    self.status = error.code
            except (OSError, http.client.HTTPException):  # the service was killed
                pass

        self._thread = threading.Thread(target=read, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Return whether the end of the reply was read, and no error."""
        if self.version == 1:
            return b"\nd:" in self.raw and b"\n3:" not in self.raw
        return self.raw.endswith(b"data: [DONE]\n\n") and b'"type":"error"' not in self.raw

    @property
    def text(self) -> str:
        whole = self.raw[: self.raw.rfind(b"\n") + 1].decode()
        if self.version == 1:
            return "".join(json.loads(line[2:]) for line in whole.split("\n") if line.startswith("0:"))
        return text_of(chunks(whole))


def kill_replies(root: Path, rounds: int, chance: random.Random, count: Count) -> None:
    """kill -9 at random moments of replies; every reader who comes back gets the whole answer"""
    with provider(goes_on) as address:
        models = {
            "builtin": {"DOCSMITH_ASSISTANT__MODEL": "builtin"},
            "asked": _scripted("openai/gpt-5.2", address),
            "prefilled": _scripted("deepseek/deepseek-chat", address),
        }
        for at, (name, settings) in enumerate(models.items()):
            if share := rounds // 3 + (at < rounds % 3):
                with site(root / name, settings) as there:
                    _kill(there, share, chance, count)


def _scripted(model: str, address: str) -> dict[str, str]:
    return {
        "DOCSMITH_ASSISTANT__MODEL": "scripted",
        "DOCSMITH_MODELS__SCRIPTED__MODEL": model,
        "DOCSMITH_MODELS__SCRIPTED__API_BASE": address,
        "DOCSMITH_MODELS__SCRIPTED__API_KEY_ENV": "SCRIPTED_KEY",
        "SCRIPTED_KEY": "sk-scripted",
    }


def _kill(there: Site, rounds: int, chance: random.Random, count: Count) -> None:
    whole = Reader(there, "whole", 2)
    whole.ask()
    whole.wait(RETURN_SECONDS)
    began = time.monotonic()
    whole.ask()  # once more, for the first one has imported the provider's library
    whole.wait(RETURN_SECONDS)
    longest = time.monotonic() - began
    if not whole.is_over:
        raise Lost(f"without a kill there is no answer: {whole.raw[-300:]!r}")
    readers: list[Reader] = []
    for number in range(rounds):
        count.rounds += 1
        asking = [Reader(there, f"chat-{number}-{kind}", version) for kind, version in enumerate((1, 2) * 3)]
        for reader in asking:
            time.sleep(chance.uniform(0.0, longest / len(asking)))
            reader.ask()
        _end(there, asking, chance.uniform(0.0, longest / 2))
        known = [reader for reader in asking if reader.thread_id]
        for reader in asking:
            count.note(reader.thread_id)
        lost = [reader for reader in known if not reader.is_over]
        if number % 3 == 0:
            for reader in lost:
                reader.come_back()
            _end(there, lost, chance.uniform(0.0, longest))
        _return([reader for reader in lost if not reader.is_over], whole.text)
        readers += known
    _check_log(there, readers, whole.text)
    there.check()


def _end(there: Site, readers: list[Reader], seconds: float) -> None:
    time.sleep(seconds)
    there.restart()
    for reader in readers:
        reader.wait(RETURN_SECONDS)


def _return(readers: list[Reader], text: str) -> None:
    for reader in readers:
        reader.come_back()
    for reader in readers:
        reader.wait(RETURN_SECONDS)
        if reader.status != 200 or not reader.is_over:
            end = reader.raw[-300:].decode(errors="replace")
            raise Lost(f"{reader.chat}: the reader who came back got {reader.status} and {end!r}")
        if reader.text != text:
            raise Lost(f"{reader.chat}: the reader who came back got {reader.text!r} instead of {text!r}")


def _check_log(there: Site, readers: list[Reader], text: str) -> None:
    """Raise Lost unless the log and the API have each character once."""
    found = there.service.cli("audit", "show", "--category", "thread")["events"]
    written: dict[str, str] = {}
    for event in found:
        if event["type"] == "reply-written":
            written[event["stream"]] = written.get(event["stream"], "") + event["data"]["text"]
    for reader in readers:
        if not text.startswith(recorded := written.get(f"thread-{reader.thread_id}", "")):
            raise Lost(f"{reader.chat}: the segments on record are {recorded!r}, not {text!r}")
        path = f"/v1/analytics/{there.service.project_id}/assistant/threads/{reader.thread_id}"
        _, body, _ = there.get(path, there.service.admin)
        last = json.loads(body)["messages"][-1]
        if (last["state"], last["content"]) != ("completed", text):
            raise Lost(f"{reader.chat}: the thread has the reply as {last['state']}: {last['content']!r}")
