"""Replies of providers in combinations that no documentation has, through the whole service, for jobs and for readers.

Each variation is one value of each kind: the framing of two calls, the types around them, the end reason, the place of
a failure, and what stands in the text beside the words. A job and a question get the same one. It holds when

- no reply that arrived whole is lost, or asked for and paid twice: the job carries out both calls, the reader gets the
  answer, the provider is asked as often as the failure makes it necessary, and the job's tokens are those that the
  provider counts;
- no job waits for what cannot pass, and none waits for the rest of it longer than the provider says;
- nothing that is no text reaches a reader: the answer and the job's words are the words alone.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
from msgspec import Struct

from scripts.bench_table import report
from tests.end_to_end.provider_kinds import (
    ASK,
    Answer,
    Answered,
    Done,
    calling,
    delta,
    events,
    forms,
    kinds_service,
    piece,
    raw,
    run_job,
    stream,
    two,
)
from tests.fakes.provider import Failure, ScriptedProvider
from tests.service_process import Service, free_port

WORDS, ANSWER = "It is right.", "Run the installer [1]."
SHOWN = re.compile(r"Run the installer \[[^\[\]]+\]\(/install[^()\s]*\)\.(?:\n\n[^<>|{}\[\]]+)?")
USAGE = {"prompt_tokens": 12, "completion_tokens": 34}
UNLIMITED = {"LIMITS__PROJECT_HOUR": "0"}
Documents = list[dict[str, Any]]

WRITTEN = tuple(f"as text: {name}" for name in forms("read", path=""))
FRAMINGS = (*two("read", {}, {}), "documented", *WRITTEN)
ENDS: tuple[object, ...] = (
    "tool_calls", "stop", "STOP", "eos_token", "end-turn", "FUNCTION_CALL", "length", "MAX_TOKENS", "never_heard_of",
    None, "", 1, {"type": "stop"}, "error", "content_filter",
)  # fmt: skip
"""End reasons of a reply with two whole calls; none makes them less whole."""
NO_ENDS: tuple[object, ...] = (None, "", {"type": "stop"})
"""Those that say nothing; ``[DONE]`` comes then. A reply without any sign of its end may have been cut, and is asked
for again, as one that was.
"""
NO_TEXT_ENDS = ("error", "content_filter")
"""Those that a text is lost by, with the calls in it: the provider says that it broke, or was filtered."""
ENDS_OF_TEXT = ("stop", "STOP", "eos_token", "end-turn", "COMPLETE", None, "", 1, "never_heard_of")


def _usage(value: object) -> Callable[[Documents], Documents]:
    return lambda documents: [*documents[:-1], {**documents[-1], "usage": value}]


def _each(**fields: object) -> Callable[[Documents], Documents]:
    return lambda documents: [{**one, **fields} for one in documents]


def _in_choice(change: Callable[[dict[str, Any]], Any]) -> Callable[[Documents], Documents]:
    return lambda documents: [{**one, "choices": change(one["choices"][0])} for one in documents]


TYPES: dict[str, Callable[[Documents], Documents]] = {
    "documented": _usage(USAGE),
    "counts are texts": _usage({"prompt_tokens": "12", "completion_tokens": "34"}),
    "counts are fractions": _usage({"prompt_tokens": 12.0, "completion_tokens": 34.0}),
    "counts by other names": _usage({"input_tokens": 12, "output_tokens": 34}),
    "usage is a list of one": _usage([USAGE]),
    "usage is a text": _usage("much"),
    "no usage": list,
    "ids are objects, times texts": lambda documents: _usage(USAGE)(_each(id={}, created="x", object=7)(documents)),
    "ids are null": lambda documents: _usage(USAGE)(_each(id=None, model=None, system_fingerprint=[])(documents)),
    "the choice without its list": lambda documents: _usage(USAGE)(_in_choice(lambda choice: choice)(documents)),
    "the delta in a list": lambda documents: _usage(USAGE)(
        _in_choice(lambda choice: [{**choice, "delta": [choice["delta"]]}])(documents)
    ),
    "the index is a text": lambda documents: _usage(USAGE)(
        _in_choice(lambda choice: [{**choice, "index": "0"}])(documents)
    ),
    "unknown fields in all": lambda documents: _usage(USAGE)(
        _in_choice(lambda choice: [{**choice, "logprobs": "none", "matched_stop": 2, "x": [None]}])(documents)
    ),
}
UNTOLD = ("usage is a text", "no usage")
"""Types without a count of tokens."""
BYTES: dict[str, Callable[[Documents], bytes]] = {
    "documented": lambda documents: events(*documents),
    "no end": lambda documents: events(*documents, done=False),
    "CR": lambda documents: events(*documents).replace(b"\n", b"\r"),
    "CRLF, no blank": lambda documents: events(*documents).replace(b"data: ", b"data:").replace(b"\n", b"\r\n"),
    "comments and names": lambda documents: (
        b"\xef\xbb\xbf: hello\n\n" + events(*documents).replace(b"data: {", b"event: chunk\nid: 1\ndata: {")
    ),
    "over several lines": lambda documents: events(*documents).replace(b'"choices"', b'\ndata: "choices"'),
    "lines of JSON": lambda documents: b"".join(json.dumps(one).encode() + b"\n" for one in documents),
    "no blank at the end": lambda documents: events(*documents, done=False).rstrip(),
    "empty chunks between": lambda documents: events(*(each for one in documents for each in ({"choices": []}, one))),
}
TEXTS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "thought": lambda words: f"<think>Hm [2].</think>{words}",
    "thought (Magistral)": lambda words: f"[THINK]Hm [2].[/THINK]{words}",
    "thought (Kimi)": lambda words: f"◁think▷Hm.◁/think▷{words}",
    "thought (Cohere)": lambda words: f"<|START_THINKING|>Hm.<|END_THINKING|>{words}",
    "a thought without its beginning": lambda words: f"</think>{words}",
    "channels": lambda words: (
        f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{words}<|return|>"
    ),
    "channels without tokens": lambda words: f"analysisWe see.assistantfinal{words}",
    "next turn (Qwen)": lambda words: f"{words}<|im_end|>\n<|im_start|>user\nWho are you?<|im_end|>",
    "next turn (Llama)": lambda words: f"{words}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nWho are you?",
    "next turn (Gemma)": lambda words: f"{words}<end_of_turn>\n<start_of_turn>user\nWho are you?",
    "turn around (Llama)": lambda words: f"<|start_header_id|>assistant<|end_header_id|>\n\n{words}<|eot_id|>",
    "end token": lambda words: f"<s>{words}</s>",
    "reserved token": lambda words: f"<|reserved_special_token_5|>{words}",
}
TOO_LONG = {"message": "This model's maximum context length is 131072 tokens, you requested 537812.", "code": 400}
BUSY = {"message": "Rate limit reached. Please try again in 20ms.", "type": "requests", "code": 429}


BROKEN = raw(b'data: {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "re')
"""The beginning of a reply that breaks off."""


class Place(Struct, frozen=True):
    """Where a failure stands."""

    before: Answer | None = None
    """An answer in place of the first reply."""
    broken: Answer | None = None
    """A reply that ends in its middle, and comes whole then."""
    behind: bytes = b""
    """Bytes behind the end of a reply."""
    code: str = ""
    """The code that a job ends with, where the failure cannot pass."""

    @property
    def asked(self) -> int:
        """How often a provider is asked because of it."""
        return 1 if self.broken is not None or self.before is not None else 0


def _refused(status: int, error: object) -> Failure:
    return Failure(status, body=json.dumps({"error": error}).encode(), headers={"content-type": "application/json"})


PLACES = {
    "none": Place(),
    "behind the end: an error": Place(behind=events({"error": {"message": "late", "code": 500}}, done=False)),
    "behind the end: rubbish": Place(behind=b"data: {no\n\n"),
    "behind the end: another usage": Place(behind=events({"choices": [], "usage": "none"}, done=False)),
    "in the middle": Place(broken=BROKEN),
    "before: busy": Place(_refused(429, BUSY)),
    "before: busy, in a stream": Place(stream({"error": {"code": 503, "message": "overloaded"}}, done=False)),
    "before: too long": Place(_refused(400, TOO_LONG)),
    "before: too long, in a stream": Place(stream({"error": TOO_LONG}, done=False)),
    "before: nothing": Place(raw(b"data: [DONE]\n\n")),
    "before: no credit": Place(_refused(402, {"message": "Insufficient Balance"}), code="quota_used_up"),
    "before: no credit, in a stream": Place(
        stream({"error": {"type": "insufficient_quota", "message": "x"}}, done=False), code="quota_used_up"
    ),
    "before: key": Place(_refused(401, {"message": "Unauthorized"}), code="model_key_refused"),
    "before: not found": Place(_refused(404, {"message": "no such model"}), code="model_refused_request"),
}


class Dialect(Struct, frozen=True):
    """A protocol: what of it is varied, and how a reply is written in it."""

    model: str
    path: str
    """Their part of the address, behind the host."""
    framings: tuple[str, ...]
    types: tuple[str, ...]
    untold: tuple[str, ...]
    """Types without a count of tokens."""
    bytes: tuple[str, ...]
    ends: tuple[object, ...]
    ends_of_text: tuple[object, ...]
    places: Mapping[str, Place]
    calls: Callable[["Variation", str, str, str, str], Answer]
    """The reply with two calls of a tool, each with one argument of this name."""
    says: Callable[["Variation", Sequence[str]], Answer]
    """The reply with these pieces of a text."""
    finishes: Callable[[str], Answer]
    """The reply that ends a job, with these arguments, in the documented form, with 12 and 34 tokens."""


class Variation(Struct, frozen=True):
    framing: str
    types: str
    bytes: str
    end: object
    end_of_text: object
    text: str
    place: str

    def __str__(self) -> str:
        return (
            f"framing {self.framing!r}, types {self.types!r}, bytes {self.bytes!r}, end {self.end!r}, "
            f"of text {self.end_of_text!r}, text {self.text!r}, failure {self.place!r}"
        )


def variations(count: int, seed: int, dialect: Dialect) -> list[Variation]:
    """Return combinations in which each value of a kind comes as often as any other."""
    chance = random.Random(seed)

    def values(kind: Sequence[Any]) -> Iterator[Any]:
        found: list[Any] = []
        while len(found) < count:
            found += chance.sample(list(kind), len(kind))
        return iter(found)

    one = dialect
    kinds = (one.framings, one.types, one.bytes, one.ends, one.ends_of_text, tuple(TEXTS), tuple(one.places))
    return [Variation(*each) for each in zip(*map(values, kinds), strict=False)][:count]


def _answer_of(one: Variation, documents: Documents, end: object) -> Failure:
    framed = BYTES[one.bytes]
    if end in NO_ENDS and b"[DONE]" not in framed([]):
        framed = BYTES["documented"]
    behind = PLACES[one.place].behind
    return raw(framed(TYPES[one.types]([*documents, delta(end)])) + (b"\n\n" + behind if behind else b""))


def _calls(one: Variation, tool: str, key: str, first: str, second: str) -> Answer:
    """The reply with both calls."""
    if one.framing.startswith("as text: "):
        name = one.framing.removeprefix("as text: ")
        written = [forms(tool, **{key: value})[name] for value in (first, second)]
        end = "stop" if one.end in NO_TEXT_ENDS else one.end
        return _answer_of(one, [delta(content="\n".join(written))], end)
    if one.framing == "documented":
        pieces = [piece(at, tool, json.dumps({key: value}), f"c{at}") for at, value in enumerate((first, second))]
    else:
        pieces = two(tool, {key: first}, {key: second})[one.framing]
    return _answer_of(one, [delta(tool_calls=[each]) for each in pieces], one.end)


def _says(one: Variation, pieces: Sequence[str]) -> Answer:
    return _answer_of(one, [delta(content=each) for each in pieces], one.end_of_text)


def _finishes(arguments: str) -> Answer:
    usage = json.dumps(USAGE).encode()
    last = calling(piece(0, "finish", arguments, "f0"))
    return raw(last.body.replace(b"data: [DONE]", b'data: {"choices": [], "usage": %b}\n\ndata: [DONE]' % usage))


OPENAI = Dialect(
    "openai/own", "/v1", FRAMINGS, tuple(TYPES), UNTOLD, tuple(BYTES), ENDS, ENDS_OF_TEXT, PLACES, _calls, _says,
    _finishes,
)  # fmt: skip


def _script(place: Place, whole: Answer, last: Answer) -> list[Answer]:
    if place.code:
        assert place.before is not None
        return [place.before]
    first = place.broken or place.before
    return [*([first] if first is not None else []), whole, last]


async def job_troubles(
    http: aiohttp.ClientSession, service: Service, port: int, one: Variation, dialect: Dialect
) -> list[str]:
    """Return what a job makes wrong of a variation."""
    place = dialect.places[one.place]
    whole = dialect.calls(one, "read", "path", "install.md", "index.md")
    finish = {"title": TEXTS[one.text]("Look"), "summary": TEXTS[one.text](WORDS)}
    last = dialect.finishes(json.dumps(finish))
    async with ScriptedProvider(port=port) as provider:
        provider.will(*_script(place, whole, last))
        done = await run_job(http, service)
        asked = len(provider.asked)
    troubles = ["it waits"] if done.has_waited else []
    if place.code:
        is_so = (done.failure.get("code"), asked) == (place.code, 1)
        return [*troubles, *([] if is_so else [f"asked {asked} times, ends with {done.failure}"])]
    if asked != 2 + place.asked:
        troubles.append(f"asked {asked} times")
    if done.tools != ["read", "read", "finish"]:
        troubles.append(f"carried out {done.tools}")
    return [*troubles, *_wrong_words(done), *_wrong_counts(one, done, dialect)]


def _wrong_words(done: Done) -> list[str]:
    words = [event.get("text", "") for event in done.events if event["type"] == "model-replied"]
    troubles = [f"recorded {text!r}" for text in words if text.strip()]
    return troubles if done.view["message"] == WORDS else [*troubles, f"says {done.view['message']!r}"]


def _wrong_counts(one: Variation, done: Done, dialect: Dialect) -> list[str]:
    """Return what is wrong with the tokens of a job; a reply that is lost is estimated."""
    counted = done.view["usage"]["inputTokens"]
    if one.types in dialect.untold or dialect.places[one.place].asked:
        return [] if counted >= 24 else [f"counts {counted} tokens"]
    return [] if counted == 24 else [f"counts {counted} tokens"]


async def answer_troubles(
    http: aiohttp.ClientSession, service: Service, port: int, one: Variation, dialect: Dialect, version: int
) -> list[str]:
    """Return what a reader gets wrong of a variation."""
    place = dialect.places[one.place]
    whole = dialect.calls(one, "search", "query", "installer", "sizes")
    text = TEXTS[one.text](ANSWER)
    cut = len(text) // 2
    last = dialect.says(one, (text[:cut], text[cut:]))
    async with ScriptedProvider(port=port) as provider:
        provider.will(*_script(place, whole, last))
        answered: Answered = await ASK[version](http, service)
        asked = len(provider.asked)
    troubles = [f"error {answered.error!r}"] if answered.error else []
    if place.code:
        is_quoted = "](/install" in answered.text and asked == 1
        return [*troubles, *([] if is_quoted else [f"asked {asked} times, shows {answered.text[:200]!r}"])]
    if asked != 2 + place.asked:
        troubles.append(f"asked {asked} times")
    if not SHOWN.fullmatch(answered.text.strip()):
        troubles.append(f"shows {answered.text[:300]!r}")
    return troubles


async def tried(service: Service, port: int, given: Sequence[Variation], dialect: Dialect) -> list[str]:
    """Return the troubles of variations, each with its variation."""
    found = []
    async with aiohttp.ClientSession() as http:
        for number, one in enumerate(given):
            version = 1 + number % 2
            found += [f"job: {each}: {one}" for each in await job_troubles(http, service, port, one, dialect)]
            troubles = await answer_troubles(http, service, port, one, dialect, version)
            found += [f"reader: {each}: {one}" for each in troubles]
    return found


class Decided(Struct, frozen=True):
    """An odd reply that is lost, by decision: what comes of it is tried, too."""

    says: str
    reply: Answer
    job_ends: str
    """The code that a job ends with; empty where it asks again, and goes on."""
    shows: str
    """The text that a reader sees."""


DECIDED = (
    Decided(
        "a text with neither an end reason nor [DONE] may have been cut: a job asks again, a reader gets the passages"
        " behind it",
        stream(delta(content="Run the"), done=False),
        "",
        "](/install",
    ),
    Decided(
        "calls written as text that end as 'error' are broken, says the provider: a job asks again, a reader gets the"
        " passages",
        stream(delta(content=forms("search", query="installer")["Llama"]), delta("error")),
        "",
        "](/install",
    ),
    Decided(
        "calls written as text that end as 'content_filter' were filtered: a job ends, a reader is told so",
        stream(delta(content=forms("search", query="installer")["Llama"]), delta("content_filter")),
        "model_refused",
        "content filter",
    ),
)


async def decided(service: Service, port: int) -> list[str]:
    """Return the troubles of the replies that are lost by decision."""
    found = []
    async with aiohttp.ClientSession() as http:
        for one in DECIDED:
            async with ScriptedProvider(port=port) as provider:
                provider.will(one.reply, _finishes(json.dumps({"title": "Look", "summary": WORDS})))
                done = await run_job(http, service)
                asked = len(provider.asked)
            if (done.failure.get("code", ""), asked) != (one.job_ends, 1 if one.job_ends else 2):
                found.append(f"job: {one.says}: asked {asked} times, ends with {done.failure}")
            for version, ask in ASK.items():
                async with ScriptedProvider(port=port) as provider:
                    provider.will(one.reply)
                    answered = await ask(http, service)
                if one.shows not in answered.text or RAW.search(answered.text):
                    found.append(f"reader, version {version}: {one.says}: shows {answered.text[:200]!r}")
    return found


RAW = re.compile(r"<function|</function|installer\"}")
"""For a written call."""


def run(folder: Path, count: int, seed: int, dialect: Dialect) -> tuple[list[str], list[str]]:
    """Return the troubles of this number of variations, with a service of their own, and of the replies that are lost
    by decision.
    """
    port = free_port()
    place = {"MODELS__OWN__MODEL": dialect.model, "MODELS__OWN__API_BASE": f"http://127.0.0.1:{port}{dialect.path}"}
    with kinds_service(folder, port, **UNLIMITED, **place) as service:
        troubles = asyncio.run(tried(service, port, variations(count, seed, dialect), dialect))
        return troubles, asyncio.run(decided(service, port)) if dialect is OPENAI else []


def main() -> int:
    from scripts.provider_variations_anthropic import ANTHROPIC  # which imports this

    dialects = {"openai": OPENAI, "anthropic": ANTHROPIC}
    parser = argparse.ArgumentParser(description="Replies of providers in combinations that no documentation has.")
    parser.add_argument("--count", type=int, default=200, help="of each protocol")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--protocol", choices=dialects, help="both if it is left out")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows, goals, wrong = [], [], []
    for name, dialect in dialects.items():
        if options.protocol not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            troubles, otherwise = run(Path(folder), options.count, options.seed, dialect)
        failed = len({one.partition("framing ")[2] for one in troubles})
        held = options.count - failed
        counts = {"variations": options.count, "seed": options.seed, "held": held, "troubles": len(troubles)}
        rows.append({"protocol": name, **counts})
        share = f"{held / options.count:.1%}"
        goals.append({"name": f"{name}: variations that hold", "goal": "100 %", "measured": share, "met": not troubles})
        for one in DECIDED if dialect is OPENAI else ():
            is_so = not any(one.says in each for each in otherwise)
            goals.append(
                {"name": f"{name}, by decision: {one.says}", "goal": "so", "measured": str(is_so), "met": is_so}
            )
        wrong += troubles + otherwise
    for each in wrong:
        print(each, file=sys.stderr)
    report("provider-variations", rows, goals, as_json=options.json)
    return 0 if not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
