"""What the real chat clients make of the encoders' bytes, from the oldest and strictest version to the newest."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace

from service.domain.jobs.decider import JobEvent
from service.domain.threads.replies import ReplyEvent
from service.wire import data_stream, ui_messages
from service.wire.data_stream import DataStreamEncoder
from service.wire.job_stream import JobStreamEncoder
from service.wire.ui_messages import THREAD_ID_HEADER, THREAD_KEY_HEADER, UiMessageEncoder, is_plain_reader
from tests.clients.chat_clients import AI4, AI5_AND_LATER, Outcome, conversation, run_chat, run_chats
from tests.wire import sample_jobs, sample_replies

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("chat_clients")]

REPLIES: dict[str, list[ReplyEvent]] = {
    "answered": sample_replies.ANSWERED,
    "held": sample_replies.ANSWERED[:-1],
    "searched-again": sample_replies.SEARCHED_AGAIN,
    "waited": sample_replies.WAITED,
    "checked": sample_replies.CHECKED,
    "broken": sample_replies.BROKEN,
    "broken-in-search": sample_replies.BROKEN_IN_SEARCH,
    "joined-late": sample_replies.JOINED_LATE,
}
JOBS: dict[str, list[JobEvent]] = {
    "with-pull-request": sample_jobs.WITH_PULL_REQUEST,
    "without-changes": sample_jobs.WITHOUT_CHANGES,
    "failed": sample_jobs.FAILED,
}
KEY_HEADER = {THREAD_ID_HEADER: "T", THREAD_KEY_HEADER: "K"}


async def reply_v2(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    has_trigger = isinstance(body.get("trigger"), str)
    plain = is_plain_reader(request.headers.get("User-Agent", ""), body_has_trigger=has_trigger)
    encoder = UiMessageEncoder(plain=plain, has_checks=True)
    pieces: list[bytes] = []
    for event in canned(request, body):
        pieces += [ui_messages.KEEP_ALIVE, *encoder.encode(event)]
    return await write(request, ui_messages.HEADERS, pieces, body)


async def reply_plainly(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    encoder = UiMessageEncoder(plain=True)
    pieces = [piece for event in sample_replies.ANSWERED for piece in encoder.encode(event)]
    return await write(request, ui_messages.HEADERS, pieces, body)


async def reply_v1(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    encoder = DataStreamEncoder(has_checks=True)
    pieces: list[bytes] = []
    for event in canned(request, body):
        pieces += [data_stream.KEEP_ALIVE, *encoder.encode(event)]
    return await write(request, data_stream.HEADERS, pieces, body)


def canned(request: web.Request, body: dict[str, Any]) -> list[ReplyEvent]:
    """A reply id of its own for each turn: the newest clients replace an earlier message that has the same."""
    opened = replace(sample_replies.OPENED, reply_id=f"msg_{len(body['messages'])}")
    return [opened, *REPLIES[request.match_info["reply"]][1:]]


async def job_v1(request: web.Request) -> web.StreamResponse:
    encoder = JobStreamEncoder("job-1")
    pieces = [piece for event in JOBS[request.match_info["job"]] for piece in encoder.encode(event)]
    return await write(request, data_stream.HEADERS, pieces, await request.json())


async def refuse(request: web.Request) -> web.StreamResponse:
    return web.json_response({"error": "Too many requests."}, status=429, content_type="application/problem+json")


async def write(request: web.Request, headers: Any, pieces: list[bytes], body: dict[str, Any]) -> web.StreamResponse:
    """In network chunks of ``size`` bytes when the body names it: characters and lines are cut anywhere."""
    request.app[BODIES].append(body)
    response = web.StreamResponse(headers={**headers, **KEY_HEADER})
    await response.prepare(request)
    size = body.get("size")
    whole = b"".join(pieces)
    for piece in [whole[at : at + size] for at in range(0, len(whole), size)] if size else pieces:
        await response.write(piece)
    if request.match_info.get("reply") == "held":
        await asyncio.Event().wait()  # until the client leaves, which ends the handler
    return response


BODIES: web.AppKey[list[dict[str, Any]]] = web.AppKey("BODIES")


@pytest.fixture
async def server() -> Any:
    app = web.Application()
    app[BODIES] = []
    app.router.add_post("/v2/refused", refuse)
    app.router.add_post("/v1/refused", refuse)
    app.router.add_post("/v2/plain", reply_plainly)
    app.router.add_post("/v2/{reply}", reply_v2)
    app.router.add_post("/v1/{reply}", reply_v1)
    app.router.add_post("/jobs/{job}", job_v1)
    async with TestServer(app) as server:
        yield server


def every(path: str, server: TestServer, **more: Any) -> list[dict[str, Any]]:
    """A conversation of two turns for each version that speaks the protocol of ``path``."""
    versions = AI5_AND_LATER if path.startswith("/v2") else AI4
    return [
        conversation(version, str(server.make_url(path)), "key", turns=["How?", "And on Windows?"], **more)
        for version in versions
    ]


def turns_of(outcomes: list[Outcome]) -> Iterator[tuple[Outcome, dict[str, Any]]]:
    for outcome in outcomes:
        for turn in outcome["turns"]:
            yield outcome, turn


async def test_every_version_reads_a_reply_and_its_follow_up(server):
    outcomes = await run_chats([*every("/v2/answered", server), *every("/v2/answered", server, body={"size": 7})])
    assert [len(outcome["turns"]) for outcome in outcomes] == [2] * len(outcomes)
    for outcome, turn in turns_of(outcomes):
        named = outcome["version"]
        assert turn["errors"] == [], named
        assert (turn["status"], turn["finished"]) == ("ready", 1), named
        assert turn["text"] == sample_replies.TEXT, named
        assert turn["deltas"] == len(sample_replies.DELTAS), named
        assert turn["parts"] == ["step-start", "tool-search", "source-url", "source-url", "step-start", "text"], named
        assert turn["sources"] == [{"url": "/deploy", "title": "Deploy"}, {"url": "/theme", "title": None}], named
        [call] = turn["toolCalls"]
        assert (call["state"], call["args"]) == ("output-available", {"query": "deploy"}), named
        assert [result["url"] for result in call["result"]["results"]] == ["/deploy#vercel"], named
        assert (turn["threadId"]["header"], turn["threadKey"]) == ("T", "K"), named
        assert (turn["threadId"]["metadata"], turn["threadId"]["onFinish"]) == ("T", "T"), named
    for outcome in outcomes:
        assert outcome["requests"] == 2, "a search of ours is no reason to ask again"
        assert outcome["toolCallsInPage"] == 0
    followed = [body for body in server.app[BODIES] if len(body["messages"]) > 1]
    assert len(followed) == len(outcomes)
    assert {body["threadId"] for body in followed} == {"T"}


async def test_every_old_version_reads_a_reply_and_its_follow_up(server):
    outcomes = await run_chats(every("/v1/answered", server))
    for outcome, turn in turns_of(outcomes):
        named = outcome["version"]
        assert turn["errors"] == [], named
        assert (turn["status"], turn["finished"]) == ("ready", 1), named
        assert turn["text"] == sample_replies.TEXT, named
        assert turn["deltas"] >= 1, named
        assert turn["messageId"] in ("msg_1", "msg_3"), named
        [call] = turn["toolCalls"]
        assert (call["state"], call["args"]) == ("result", {"query": "deploy"}), named
        assert [result["url"] for result in call["result"]["results"]] == ["/deploy#vercel"], named
        for channel in ("header", "data", "annotations", "onFinish"):
            assert turn["threadId"][channel] == "T", (named, channel)
        assert (turn["finishReason"], turn["usage"]["completionTokens"]) == ("stop", 34), named
        assert not turn.get("asksAgain"), named
    assert [outcome["requests"] for outcome in outcomes] == [2, 2]


async def test_a_second_search_between_two_texts_is_read(server):
    outcomes = await run_chats([*every("/v2/searched-again", server), *every("/v1/searched-again", server)])
    for outcome, turn in turns_of(outcomes):
        assert turn["errors"] == [], outcome["version"]
        assert turn["text"] == "Let me look.\n\nFound it [5](/faq).", outcome["version"]
        assert len(turn["toolCalls"]) == 2, outcome["version"]
        assert not turn.get("asksAgain"), outcome["version"]
    assert {outcome["requests"] for outcome in outcomes} == {2}


async def test_a_late_reader_gets_everything(server):
    outcomes = await run_chats([*every("/v2/joined-late", server), *every("/v1/joined-late", server)])
    for outcome, turn in turns_of(outcomes):
        assert (turn["errors"], turn["text"]) == ([], sample_replies.TEXT), outcome["version"]


async def test_wait_for_the_provider_is_shown_and_no_part_of_a_message(server):
    outcomes = await run_chats([*every("/v2/waited", server), *every("/v1/waited", server)])
    for outcome, turn in turns_of(outcomes):
        named = outcome["version"]
        assert (turn["errors"], turn["status"], turn["text"]) == ([], "ready", "No more."), named
        assert [part for part in turn["parts"] if part.startswith("data-")] == [], named
        assert turn["waits"] == [7.2, 1.0], named
        assert turn.get("finishReason", "content-filter") == "content-filter", named


async def test_verdicts_are_one_part_that_grows(server):
    outcomes = await run_chats([*every("/v2/checked", server), *every("/v1/checked", server)])
    for outcome, turn in turns_of(outcomes):
        named = outcome["version"]
        assert (turn["errors"], turn["status"], turn["text"]) == ([], "ready", "Wait 5 s. Wait 9 s."), named
        [checks] = turn["checks"]
        assert (checks["supported"], checks["unsupported"]) == (1, 1), named
        assert [one["status"] for one in checks["sentences"]] == ["supported", "unsupported"], named
        assert checks["sentences"][1]["missing"] == ["9 s"], named


@pytest.mark.parametrize(
    ("reply", "message", "text"),
    [
        ("broken", "The model is unavailable.", "To deploy, "),
        ("broken-in-search", "This site has no index yet.", ""),
    ],
)
async def test_late_error_is_reported_and_the_text_so_far_stays(server, reply, message, text):
    outcomes = await run_chats([*every(f"/v2/{reply}", server), *every(f"/v1/{reply}", server)])
    for outcome in outcomes:
        [turn] = outcome["turns"]
        assert (turn["status"], turn["errors"]) == ("error", [message]), outcome["version"]
        assert turn["text"] == text, outcome["version"]
        assert turn["threadId"]["header"] == "T"
        if outcome["version"] in AI5_AND_LATER:
            assert turn["threadId"]["metadata"] == "T"


async def test_a_refusal_is_the_error_that_people_read(server):
    outcomes = await run_chats([*every("/v2/refused", server), *every("/v1/refused", server)])
    for outcome in outcomes:
        [turn] = outcome["turns"]
        assert turn["status"] == "error", outcome["version"]
        assert "Too many requests." in turn["errors"][0], outcome["version"]


async def test_raw_readers_find_the_thread_on_the_finish_event(server):
    url = str(server.make_url("/v2/answered"))
    in_page, scripted, by_the_book = await run_chats(
        [
            conversation("raw-lines", url, turns=["How?"]),
            conversation("raw-lines", url, turns=["How?"], user_agent="curl/8.5.0"),
            conversation("raw-spec", url, turns=["How?"], user_agent="python-httpx/0.28.1"),
        ]
    )
    for outcome in (in_page, scripted, by_the_book):
        [turn] = outcome["turns"]
        assert (turn["text"], turn["finished"]) == (sample_replies.TEXT, 1)
        assert turn["threadId"]["finishEvent"] == "T"
    assert in_page["turns"][0]["events"][-1] == {"type": "finish", "threadId": "T"}
    assert by_the_book["turns"][0]["events"][-1]["messageMetadata"] == {"threadId": "T"}


async def test_the_strict_versions_are_strict(server):
    """Why the plain form is not for all; and that this harness would notice."""
    outcomes = await run_chats([chat | {"turns": ["How?"]} for chat in every("/v2/plain", server)])
    failed = [outcome["version"] for outcome in outcomes if outcome["turns"][0]["status"] == "error"]
    assert failed == ["ai5old", "ai5strict", "ai6strict", "ai7strict"]


async def test_a_parser_in_a_page_finds_the_thread_in_the_metadata(server):
    outcome = await run_chat("raw-spec", str(server.make_url("/v2/answered")), turns=["How?"])
    [turn] = outcome["turns"]
    assert (turn["finished"], turn["threadId"]["metadata"], turn["threadId"]["header"]) == (1, "T", "T")


async def test_a_stopped_reply_keeps_its_text_and_its_thread(server):
    outcomes = await run_chats(every("/v2/held", server, stop_after_deltas=1))
    for outcome in outcomes:
        turn = outcome["turns"][0]
        assert (turn["status"], turn["errors"]) == ("ready", []), outcome["version"]
        assert turn["text"].startswith(sample_replies.DELTAS[0]), outcome["version"]
        assert turn["threadId"]["metadata"] == "T", outcome["version"]


async def test_the_chat_hook_of_version_4_reads_a_job(server):
    url = str(server.make_url("/jobs/"))
    jobs = ("with-pull-request", "without-changes", "failed")
    outcomes = await run_chats([conversation(old, url + job, turns=["Mend"]) for old in AI4 for job in jobs])
    for changed, unchanged, failed in (outcomes[:3], outcomes[3:]):
        [turn] = changed["turns"]
        assert (turn["status"], turn["errors"]) == ("ready", [])
        assert turn["text"].endswith(f"I mended two links.\n\nPull request: {sample_jobs.LINK}")
        assert turn["text"].startswith("I look at the page first.")
        assert [call["name"] for call in turn["toolCalls"]] == ["read", "read", "replace"]
        assert {call["state"] for call in turn["toolCalls"]} == {"result"}
        assert turn["data"][-1]["pullRequestLink"] == sample_jobs.LINK
        assert turn["usage"]["promptTokens"] == 30
        assert not turn.get("asksAgain")
        [turn] = unchanged["turns"]
        assert (turn["status"], turn["text"]) == ("ready", "All links work: nothing was changed.")
        [turn] = failed["turns"]
        assert (turn["status"], turn["errors"]) == ("error", ["The model is unavailable."])
        assert "I look at the page first." in json.dumps(turn)
