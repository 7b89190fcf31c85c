"""The v2 stream, to the byte; what the npm packages make of it is in tests/clients."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.model import Usage
from service.domain.search import Source
from service.domain.threads.replies import (
    ReplyBroken,
    ReplyDone,
    ReplyEvent,
    ReplyOpened,
    SearchFinished,
    SearchHit,
    SearchStarted,
    TextDelta,
    merged,
)
from service.wire.ui_messages import HEADERS, KEEP_ALIVE, UiMessageEncoder, is_plain_reader
from tests.wire import sample_replies

GOLDEN = b"""\
data: {"type":"start","messageId":"msg_1","messageMetadata":{"threadId":"T"}}

data: {"type":"start-step"}

data: {"type":"tool-input-start","toolCallId":"c1","toolName":"search","providerExecuted":true}

data: {"type":"tool-input-available","toolCallId":"c1","toolName":"search","input":{"query":"q"},"providerExecuted":true}

data: {"type":"tool-output-available","toolCallId":"c1","output":{"type":"search","results":[]},"providerExecuted":true}

data: {"type":"source-url","sourceId":"s1","url":"/deploy","title":"Deploy"}

data: {"type":"finish-step"}

data: {"type":"start-step"}

data: {"type":"text-start","id":"t1"}

data: {"type":"text-delta","id":"t1","delta":"To deploy, "}

data: {"type":"text-end","id":"t1"}

data: {"type":"finish-step"}

: \rdata:{"type":"finish","messageMetadata":
data: {"type":"finish","threadId":"T"}
: \rdata:}

data: [DONE]

"""  # noqa: E501  (the bytes as they are)

GOLDEN_EVENTS: list[ReplyEvent] = [
    ReplyOpened("T", "msg_1"),
    SearchStarted("c1", "q"),
    SearchFinished("c1", "q", (), (sample_replies.source(1, "/deploy", "Deploy"),)),
    TextDelta("To deploy, "),
    ReplyDone("To deploy, ", (), "answered", "builtin/extractive", Usage()),
]

# Chunk types and keys of 5.0.0, the oldest client: {type: (required, optional)}.
VOCABULARY: dict[str, tuple[set[str], set[str]]] = {
    "start": (set(), {"messageId", "messageMetadata"}),
    "start-step": (set(), set()),
    "finish-step": (set(), set()),
    "text-start": ({"id"}, set()),
    "text-delta": ({"id", "delta"}, set()),
    "text-end": ({"id"}, set()),
    "tool-input-start": ({"toolCallId", "toolName"}, {"providerExecuted"}),
    "tool-input-available": ({"toolCallId", "toolName", "input"}, {"providerExecuted"}),
    "tool-output-available": ({"toolCallId", "output"}, {"providerExecuted"}),
    "tool-output-error": ({"toolCallId", "errorText"}, {"providerExecuted"}),
    "source-url": ({"sourceId", "url"}, {"title"}),
    "error": ({"errorText"}, set()),
    "finish": (set(), {"messageMetadata"}),
}


def encoded(events: list[ReplyEvent], *, plain: bool = False) -> bytes:
    encoder = UiMessageEncoder(plain=plain)
    return b"".join(piece for event in events for piece in encoder.encode(event))


def chunks_of(events: list[ReplyEvent]) -> list[dict[str, Any]]:
    """As a parser by the specification reads the bytes: CR, LF and CRLF end a line."""
    chunks: list[dict[str, Any]] = []
    data: list[str] = []
    text = encoded(events).decode()
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            joined = "\n".join(data)
            chunks += [json.loads(joined)] if joined != "[DONE]" else []
            data = []
    return chunks


def test_a_reply_is_sent_to_the_byte():
    assert encoded(GOLDEN_EVENTS) == GOLDEN


def test_plain_reader_gets_one_finish_with_the_thread_on_top():
    body = encoded(GOLDEN_EVENTS, plain=True)
    assert body.endswith(
        b'data: {"type":"finish","threadId":"T","messageMetadata":{"threadId":"T"}}\n\ndata: [DONE]\n\n'
    )
    assert body.count(b'finish"') == 1


def test_cut_answer_has_its_reason_in_the_metadata():
    done = ReplyDone("To", (), "answered", "m", Usage(), "length")
    finish = chunks_of([ReplyOpened("T", "m"), done])[-1]
    assert finish.keys() == {"type", "messageMetadata"}
    assert finish["messageMetadata"]["finishReason"] == "length"
    assert b'"messageMetadata":{"threadId":"T","finishReason":"length"}' in encoded([done], plain=True).replace(
        b'"threadId":""', b'"threadId":"T"'
    )


def test_a_line_reader_finds_the_documented_finish_event():
    lines = [line for line in encoded(GOLDEN_EVENTS).decode().split("\n") if line.startswith("data: ")]
    assert lines[-1] == "data: [DONE]"
    assert json.loads(lines[-2].removeprefix("data: ")) == {"type": "finish", "threadId": "T"}
    assert [json.loads(line.removeprefix("data: "))["type"] for line in lines[:-1]].count("finish") == 1


def test_a_parser_finds_a_finish_event_with_metadata_only():
    assert chunks_of(GOLDEN_EVENTS)[-1] == {
        "type": "finish",
        "messageMetadata": {"type": "finish", "threadId": "T"},
    }


def test_an_event_is_its_data_and_its_bytes():
    encoder = UiMessageEncoder()
    events = [one for event in sample_replies.ANSWERED for one in encoder.events(event)]
    assert b"".join(one.raw for one in events) == encoded(sample_replies.ANSWERED)
    encoder = UiMessageEncoder()
    assert [one.data for one in events] == [data for event in sample_replies.ANSWERED for data in encoder.data(event)]


@given(st.lists(st.text(max_size=20), max_size=20), st.booleans())
def test_text_in_one_go_is_the_same_bytes(texts: list[str], searches: bool):
    events: list[ReplyEvent] = [ReplyOpened("T", "r"), *(TextDelta(text) for text in texts)]
    events += [SearchStarted("c", "q"), SearchFinished("c", "q", (), ()), *events[1:]] if searches else []
    encoder = UiMessageEncoder()
    assert encoded(events) == b"".join(one.raw for event in events for one in encoder.events(event))


def test_each_page_is_sent_once_whatever_its_sections():
    told = [
        (chunk["sourceId"], chunk["url"], chunk.get("title"))
        for chunk in chunks_of(sample_replies.SEARCHED_AGAIN)
        if chunk["type"] == "source-url"
    ]
    assert told == [("s1", "/deploy", "Deploy"), ("s2", "/theme", None), ("s3", "/faq", "FAQ")]


def test_second_search_and_the_text_after_it_have_own_steps():
    kinds = [chunk["type"] for chunk in chunks_of(sample_replies.SEARCHED_AGAIN)]
    kinds = [kind for kind in kinds if kind != "source-url"]
    search = ["start-step", "tool-input-start", "tool-input-available", "tool-output-available", "finish-step"]
    text = ["start-step", "text-start", "text-delta", "text-end", "finish-step"]
    assert kinds == ["start", *search, *text, *search, *text, "finish"]


def test_results_can_be_read_by_either_kind_of_client():
    [output] = [c["output"] for c in chunks_of(sample_replies.ANSWERED) if c["type"] == "tool-output-available"]
    assert output == {
        "type": "search",
        "results": [
            {
                "number": 1,
                "content": "Connect the repository.",
                "path": "deploy",
                "url": "/deploy#vercel",
                "title": "Deploy",
                "heading": "Vercel",
                "metadata": {"title": "Deploy", "url": "/deploy#vercel", "score": 1.0, "file": "deploy.md"},
            }
        ],
    }


def test_verdicts_go_to_those_who_asked_for_them():
    encoder = UiMessageEncoder(has_checks=True)
    pieces = b"".join(piece for event in sample_replies.CHECKED for piece in encoder.encode(event)).decode()
    sent = [json.loads(line[6:]) for line in pieces.split("\n") if line.startswith('data: {"type":"data-')]
    assert [(one["type"], one["id"]) for one in sent] == [("data-docsmith-check", "checks")] * 2
    right = {"text": "Wait 5 s.", "start": 0, "status": "supported", "passage": 1, "startLine": 2, "endLine": 3}
    wrong = {"text": "Wait 9 s.", "start": 10, "status": "unsupported", "missing": ["9 s"]}
    assert sent[-1]["data"] == {
        "type": "checks", "supported": 1, "partly": 0, "unsupported": 1, "sentences": [right, wrong]
    }  # fmt: skip
    assert b"docsmith-check" not in encoded(sample_replies.CHECKED)


def test_wait_is_transient_and_the_finish_says_what_lacks():
    *_, waited, _, _, _, _, _, finish = chunks_of(sample_replies.WAITED)
    message = "The assistant is busy. It tries again in 1 second."
    data = {"type": "waiting", "seconds": 1.0, "message": message}
    assert waited == {"type": "data-docsmith-waiting", "data": data, "transient": True}
    assert finish["messageMetadata"]["finishReason"] == "content-filter"
    assert finish["messageMetadata"]["uncited"] is True


def test_a_late_reader_gets_no_wait_that_is_over():
    seen = list(merged(sample_replies.WAITED[:5]))
    assert seen == [*sample_replies.WAITED[:3], sample_replies.WAITED[4]]


def test_an_error_ends_what_is_open_and_the_stream():
    kinds = [chunk["type"] for chunk in chunks_of(sample_replies.BROKEN)]
    assert kinds[-3:] == ["text-end", "finish-step", "error"]
    assert encoded(sample_replies.BROKEN).endswith(
        b'data: {"type":"error","errorText":"The model is unavailable."}\n\ndata: [DONE]\n\n'
    )


def test_an_error_in_a_search_is_the_result_of_the_search_too():
    kinds = [chunk["type"] for chunk in chunks_of(sample_replies.BROKEN_IN_SEARCH)]
    assert kinds[-3:] == ["tool-output-error", "finish-step", "error"]


def test_late_reader_gets_the_call_before_its_result():
    kinds = [chunk["type"] for chunk in chunks_of(sample_replies.JOINED_LATE)]
    assert kinds.index("tool-input-available") < kinds.index("tool-output-available")


def test_thread_key_is_in_no_chunk_and_headers_fit_the_protocol():
    assert HEADERS["x-vercel-ai-ui-message-stream"] == "v1"
    assert HEADERS["Content-Type"] == "text/event-stream; charset=utf-8"
    assert KEEP_ALIVE == b": ping\n\n"
    assert b"threadKey" not in encoded(sample_replies.ANSWERED)


@pytest.mark.parametrize(
    ("user_agent", "body_has_trigger", "plain"),
    [
        ("curl/8.5.0", False, True),
        ("python-requests/2.32", False, True),
        ("python-httpx/0.28.1", False, True),
        ("Python/3.11 aiohttp/3.14.5", False, True),
        ("Go-http-client/2.0", False, True),
        ("Wget/1.21", False, True),
        ("HTTPie/3.2", False, True),
        ("PostmanRuntime/7.43", False, True),
        ("curl/8.5.0", True, False),
        ("node", False, False),
        ("", False, False),
        ("Mozilla/5.0 (X11; Linux x86_64) curl/8", False, False),
        ("ai-sdk/5.0.60 runtime/browser", True, False),
    ],
)
def test_only_callers_that_cannot_be_the_sdk_get_the_plain_form(user_agent, body_has_trigger, plain):
    assert is_plain_reader(user_agent, body_has_trigger=body_has_trigger) is plain


texts = st.text(st.characters(codec="utf-8"), max_size=12)
sources = st.builds(
    Source,
    number=st.integers(1, 9),
    path=texts,
    url=st.sampled_from(["/a", "/a#b", "/b#c", "/c", "#top"]),
    title=texts,
    heading=texts,
    start_line=st.just(1),
    end_line=st.just(2),
    commit=texts,
)
hits = st.builds(
    SearchHit,
    number=st.integers(1, 9),
    path=texts,
    url=texts,
    title=texts,
    heading=texts,
    content=texts,
    score=st.floats(0, 1),
)


@st.composite
def replies(draw: st.DrawFn) -> list[ReplyEvent]:
    events: list[ReplyEvent] = [ReplyOpened(draw(texts), draw(texts))]
    said = ""
    for number in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            text = draw(texts)
            said += text
            events.append(TextDelta(text))
        else:
            call = f"c{number}"
            events.append(SearchStarted(call, draw(texts)))
            found = SearchFinished(call, "q", tuple(draw(st.lists(hits, max_size=2))), tuple(draw(st.lists(sources))))
            events.append(found)
    done = ReplyDone(said, (), "answered", "m", Usage())
    events.append(draw(st.sampled_from([done, ReplyBroken("unavailable", draw(texts))])))
    return events


@given(replies())
def test_joined_deltas_are_the_text(events):
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert "".join(chunk["delta"] for chunk in chunks_of(events) if chunk["type"] == "text-delta") == said


@given(replies())
def test_nothing_is_sent_that_the_oldest_client_does_not_know(events):
    for chunk in chunks_of(events):
        required, optional = VOCABULARY[chunk["type"]]
        keys = chunk.keys() - {"type"}
        assert required <= keys <= required | optional
        assert None not in chunk.values()
        assert chunk.get("delta") != ""


@given(replies())
def test_steps_and_texts_are_opened_and_closed_in_order(events):
    step: set[str] = set()
    is_open, text = False, ""
    for chunk in chunks_of(events):
        match chunk["type"]:
            case "start-step":
                assert not is_open
                is_open, step = True, set()
            case "finish-step":
                assert is_open
                assert not text
                assert len(step) == 1, "a tool call and text share no step"
                is_open = False
            case "text-start":
                assert is_open
                text = chunk["id"]
                step.add("text")
            case "text-delta":
                assert chunk["id"] == text
            case "text-end":
                assert chunk["id"] == text
                text = ""
            case "tool-input-start" | "tool-output-available" | "source-url":
                assert is_open
                step.add("search")
            case "error" | "finish":
                assert not is_open


@given(replies())
def test_every_line_outside_the_finish_event_is_a_data_line(events):
    for one in encoded(events).split(b"\n\n")[:-1]:
        assert one.startswith(b": \rdata:") or (one.startswith(b"data: ") and b"\n" not in one and b"\r" not in one)
    assert len(encoded(events).decode().splitlines()) == encoded(events).count(b"\n") + encoded(events).count(b"\r")


@given(replies())
def test_nothing_follows_the_end(events):
    assert encoded(events).endswith(b"\n\ndata: [DONE]\n\n")
    assert encoded(events).count(b"[DONE]\n\n") == 1
