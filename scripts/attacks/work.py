"""Attacks by questions, jobs, streams and pull requests, and by A's own machines elsewhere."""

import asyncio
import itertools
import re

import aiohttp

from scripts.attacks.attack import (
    Answers,
    Attack,
    again_and_again,
    at_once,
    attack,
    connection,
    head_of,
    main_commit,
    push,
    read_status,
    send,
    session,
)
from scripts.attacks.git import files_push
from scripts.attacks.ground import Target

NOTHING = {"prompt": 'Replace "no such words" with "others"'}


def _question(text: str, **more: object) -> dict[str, object]:
    return {"fp": "mallory", "messages": [{"role": "user", "content": text}], **more}


# Questions


@attack("questions without end, a new thread each", "200")
async def thread_floods(target: Target, answers: Answers) -> None:
    async with session() as http:
        body = _question("How does Kite fly? " * 20)
        await again_and_again(
            target.many(100),
            lambda _: send(http, answers, "POST", target.assistant(), json=body, headers=target.a.assistant),
        )


@attack("questions and searches of 32,768 characters", "200")
async def long_questions(target: Target, answers: Answers) -> None:
    texts = [
        " ".join(f"w{n:x}" for n in range(6_000))[:32_768], "kite " * 6_500, "x" * 32_768, '"' * 32_768, "(" * 32_768,
        "a* " * 10_000, "\u0301" * 32_768, "kite AND (" * 3_000, "Kite.fly().wait[0]->x::y " * 1_300,
    ]  # fmt: skip
    context = [{"type": "code", "value": "x.y(z) " * 7_000}] * 5
    async with session() as http:

        async def one(place: int) -> None:
            text, headers = texts[place % len(texts)], target.a.assistant
            if place % 2:
                body = {"query": text, "pageSize": 50}
                await send(http, answers, "POST", target.assistant("v1/search/{}"), json=body, headers=headers)
            else:
                body = _question(text, context=context, retrievalPageSize=50)
                await send(http, answers, "POST", target.assistant(), json=body, headers=headers)

        await again_and_again(target.many(20), one)


@attack("questions, searches and jobs of characters that become eighteen each", "400")
async def growing_texts(target: Target, answers: Answers) -> None:
    text = "\ufdfa" * 32_768
    async with session() as http:

        async def one(place: int) -> None:
            if place % 3 == 0:
                body, url, headers = _question(text), target.assistant(), target.a.assistant
            elif place % 3 == 1:
                body, url, headers = {"query": text}, target.assistant("v1/search/{}"), target.a.assistant
            else:
                body, url, headers = {"prompt": text}, target.job(), target.a.admin
            await send(http, answers, "POST", url, json=body, headers=headers)

        await again_and_again(target.many(20), one)


@attack("projects and keys without end", "201", "400", "403", "409", "502")
async def creations(target: Target, answers: Answers) -> None:
    numbers = itertools.count(1)
    async with session() as http:

        async def one(place: int) -> None:
            number = next(numbers)
            if place % 2:
                body: dict[str, object] = {
                    "name": f"p{number}",
                    "repository": "http://127.0.0.1:9/x",
                    "codeHost": "local",
                }
                await send(http, answers, "POST", f"{target.url}/v2/projects", json=body, headers=target.a.admin)
            else:
                body = {"kind": "admin", "name": f"k{number}", "scope": "jobs"}
                await send(http, answers, "POST", f"{target.url}/v2/keys", json=body, headers=target.a.admin)

        await again_and_again(target.many(20), one)


@attack("searches without end", "200")
async def search_floods(target: Target, answers: Answers) -> None:
    async with session() as http:
        url, body = target.assistant("v1/search/{}"), {"query": "kite", "pageSize": 50}
        await again_and_again(
            target.many(100), lambda _: send(http, answers, "POST", url, json=body, headers=target.a.assistant)
        )


@attack("one thread that is asked, answered again and edited without end", "200", "404", "409")
async def one_long_thread(target: Target, answers: Answers) -> None:
    async with session() as http:
        async with http.post(target.assistant(), json=_question("How?"), headers=target.a.assistant) as first:
            thread = first.headers.get("X-Thread-Id", "")
            await first.read()

        async def one(place: int) -> None:
            more = {
                "threadId": thread,
                "id": "chat",
                "trigger": "regenerate-message" if place % 2 else "submit-message",
            }
            await send(
                http, answers, "POST", target.assistant(), json=_question("Why? " * 5_000, **more),
                headers=target.a.assistant,
            )  # fmt: skip

        await again_and_again(target.many(30), one)


@attack("streams that are opened and left", "200")
async def left_streams(target: Target, answers: Answers) -> None:
    async with session() as http:
        body = _question("How does Kite fly?", id="chat")
        await again_and_again(
            target.many(100),
            lambda _: send(
                http, answers, "POST", target.assistant(), json=body, headers=target.a.assistant, reads=False
            ),
        )


@attack("ratings of 5,000 characters without end", "204", "404", "409", "400")
async def feedback_floods(target: Target, answers: Answers) -> None:
    async with session() as http:
        async with http.post(target.assistant(), json=_question("How?"), headers=target.a.assistant) as first:
            thread, text = first.headers.get("X-Thread-Id", ""), await first.text()
        named = re.search(r'"messageId":"([^"]+)"', text)
        body = {"threadId": thread, "messageId": named[1] if named else "x", "rating": "up", "comment": "x" * 2_000}
        turns = itertools.cycle(("up", "down"))

        async def one(_: int) -> None:
            url, given = target.assistant("v1/feedback/{}"), {**body, "rating": next(turns)}
            await send(http, answers, "POST", url, json=given, headers=target.a.assistant)

        await again_and_again(target.many(50), one)


# Jobs and their streams


async def _job(http: aiohttp.ClientSession, target: Target, answers: Answers, word: str) -> None:
    """A job of version 1 with the model that says what the word has it say, followed to its end."""
    body = {"messages": [{"role": "user", "content": word}], "model": "scripted"}
    await send(http, answers, "POST", target.job(1), json=body, headers=target.a.admin)


def _model(what: str, word: str, number: int = 8) -> Attack:
    async def run(target: Target, answers: Answers) -> None:
        async with session() as http:
            await again_and_again(target.many(number), lambda _: _job(http, target, answers, word))

    run.__name__ = word.replace("siege-", "model_").replace("-", "_")
    return attack(what, "200")(run)


@attack("jobs without end", "201")
async def job_floods(target: Target, answers: Answers) -> None:
    async with session() as http:
        await again_and_again(
            target.many(30), lambda _: send(http, answers, "POST", target.job(), json=NOTHING, headers=target.a.admin)
        )


@attack("a job with endless messages, cancellations and archivings", "200", "409")
async def message_floods(target: Target, answers: Answers) -> None:
    async with session() as http:
        async with http.post(target.job(), json=NOTHING, headers=target.a.admin) as first:
            job = (await first.json())["id"]

        async def one(place: int) -> None:
            what = ("message", "message", "message", "cancel", "archive")[place % 5]
            body = {"prompt": "And more. " * 3_000} if what == "message" else None
            url = f"{target.job()}/{job}/{what}"
            await send(http, answers, "POST", url, json=body, headers=target.a.admin)

        await again_and_again(target.many(20), one)


@attack("Idempotency-Keys: long ones, many of them, the same at once", "201", "400", "422", "431")
async def idempotency_keys(target: Target, answers: Answers) -> None:
    numbers = itertools.count()
    async with session() as http:

        async def one(place: int) -> None:
            keys = (f"{next(numbers):0255d}", "same", "x" * 8_000, "x" * 300, '"' * 255, "same")
            headers = {**target.a.admin, "Idempotency-Key": keys[place % len(keys)]}
            await send(http, answers, "POST", target.job(), json=NOTHING, headers=headers)

        await again_and_again(target.many(24), one)


@attack("hundreds of streams of a job's events that are never read", "200")
async def events_not_read(target: Target, answers: Answers) -> None:
    async with session() as http:
        body = {"messages": [{"role": "user", "content": "siege-many-calls"}], "model": "scripted"}
        async with http.post(target.job(1), json=body, headers=target.a.admin) as first:
            path = f"/v2/agent/{target.a.project_id}/job/{first.headers['X-Session-Id']}/events"

            async def one(_: int) -> None:
                async with connection(target) as (reader, writer):
                    writer.write(head_of(target, "GET", path, target.a.admin))
                    await read_status(reader, answers)
                    reader._transport.pause_reading()
                    await asyncio.Event().wait()

            await at_once(target.many(300), one)


@attack("hundreds that wait for a job to end", "200")
async def long_waits(target: Target, answers: Answers) -> None:
    async with session() as http:
        body = {"messages": [{"role": "user", "content": "siege-stall"}], "model": "scripted"}
        async with http.post(target.job(1), json=body, headers=target.a.admin) as first:
            url = f"{target.job()}/{first.headers['X-Session-Id']}?wait=60"
            await again_and_again(target.many(500), lambda _: send(http, answers, "GET", url, headers=target.a.admin))


@attack("exports and lists of everything, many at once, some never read", "200")
async def exports(target: Target, answers: Answers) -> None:
    base = f"/v1/analytics/{target.a.project_id}"
    paths = (
        f"{base}/assistant?format=csv", f"{base}/assistant?format=jsonl", f"{base}/assistant?limit=1000",
        f"{base}/assistant/unanswered?limit=1000", f"/v2/agent/{target.a.project_id}/jobs?limit=100",
        f"/v1/agent/{target.a.project_id}/jobs?skip=1000000&take=100",
    )  # fmt: skip
    async with session() as http:
        await at_once(
            target.many(200),
            lambda _: send(
                http, answers, "POST", target.assistant(), json=_question("Why? " * 200), headers=target.a.assistant
            ),
        )
        await again_and_again(
            target.many(40),
            lambda place: send(
                http, answers, "GET", target.url + paths[place % 6], headers=target.a.admin, reads=place % 3 > 0
            ),
        )


# Pull requests


async def _pull_request(target: Target, answers: Answers, files: dict[str, bytes], prompt: str) -> None:
    """Have a job change the files, then open the page of its pull request again and again."""
    async with session() as http:
        _, body = await asyncio.to_thread(files_push, files, await main_commit(http, target))
        await push(http, target, answers, body)
        async with http.post(target.job(), json={"prompt": prompt}, headers=target.a.admin) as made:
            job = await made.json()
        while job.get("status") == "active":
            async with http.get(f"{target.job()}/{job['id']}?wait=60", headers=target.a.admin) as response:
                job = await response.json()
        link = job.get("prLink")
        if link is None:
            answers[f"no pull request: {(job.get('failure') or {}).get('code')}"] += 1
            return
        await again_and_again(target.many(6), lambda _: send(http, answers, "GET", link))


@attack("a pull request of lines that differ in every second character", "200")
async def diff_words(target: Target, answers: Answers) -> None:
    page = b"# D\n\n" + (b".!" * 200 + b"\n") * target.many(150)
    await _pull_request(target, answers, {"index.md": page}, 'Replace "!" with "?" in index.md')


@attack("a pull request of hundreds of files", "200", "no pull request: too_large")
async def diff_files(target: Target, answers: Answers) -> None:
    files = {f"p{n}.md": b"# P\n\n" + b"Kite flies.\n" * 200 for n in range(target.many(300))}
    await _pull_request(target, answers, {"index.md": b"# A\n", **files}, 'Replace "Kite" with "Bird" in every page')


@attack("a pull request of one line of 64 KB", "200")
async def diff_line(target: Target, answers: Answers) -> None:
    page = b"# D\n\n" + b"a,b;c.d!" * target.many(8_000) + b"\n"
    await _pull_request(target, answers, {"index.md": page}, 'Replace "!" with "?" in index.md')


# A's machines elsewhere


def _elsewhere(what: str, mood: str) -> Attack:
    """Nothing is sent: the service looks there by itself, every few seconds, and after each job."""

    async def run(target: Target, answers: Answers) -> None:
        async with session() as http:
            url = f"{target.url}/v2/agent/{target.a.remote_id}/job"
            if mood.startswith("remote-"):
                for _ in range(target.many(20)):
                    await send(http, answers, "POST", url, json=NOTHING, headers=target.a.admin)
            if mood.startswith("webhook-"):
                await again_and_again(
                    target.many(10),
                    lambda _: send(http, answers, "POST", target.job(), json=NOTHING, headers=target.a.admin),
                )
            await asyncio.Event().wait()

    run.__name__ = mood.replace("-", "_")
    return attack(what, "201", mood=mood)(run)


ATTACKS: tuple[Attack, ...] = (
    thread_floods, long_questions, growing_texts, creations, search_floods, one_long_thread, left_streams,
    feedback_floods, job_floods, message_floods, idempotency_keys, events_not_read, long_waits, exports, diff_words,
    diff_files, diff_line,
    _model("tool arguments nested 3,000 deep", "siege-nested"),
    _model("two thousand tool calls in each reply of the model", "siege-many-calls"),
    _model("regular expressions that take for ever, from the model", "siege-regexes"),
    _model("a model that writes pages of 4 MB", "siege-large-write"),
    _model("a model that stops in the middle", "siege-stall", 40),
    _model("a model that says a letter now and then", "siege-dribble", 40),
    _model("a model that never stops", "siege-endless"),
    _model("a model that fails with long errors", "siege-errors", 20),
    _elsewhere("a git server that never answers", "remote-stall"),
    _elsewhere("a git server that sends a byte a second", "remote-dribble"),
    _elsewhere("a git server that stops in the middle of a pack", "remote-half"),
    _elsewhere("a git server that never stops", "remote-endless"),
    _elsewhere("a website that takes 20 s for a page", "site-slow"),
    _elsewhere("a website whose pages never end", "site-endless-page"),
    _elsewhere("a website whose list of pages never ends", "site-endless-list"),
    _elsewhere("a website that redirects for ever", "site-redirects"),
    _elsewhere("a website whose pages unpack to 200 MB", "site-gzip-bomb"),
    _elsewhere("a website of pages that are dear to read", "site-hostile-pages"),
    _elsewhere("webhooks to an address that never answers", "webhook-black-hole"),
    _elsewhere("webhooks to an address that answers a field now and then", "webhook-dribble"),
)  # fmt: skip
