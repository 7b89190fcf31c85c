"""The v1 stream, to the byte; what the npm packages make of it is in tests/clients."""

import json
from typing import Any

from hypothesis import given

from service.domain.model import Usage
from service.domain.threads.replies import ReplyDone, ReplyEvent, ReplyOpened, SearchFinished, SearchStarted, TextDelta
from service.wire.data_stream import HEADERS, KEEP_ALIVE, DataStreamEncoder
from tests.wire import sample_replies
from tests.wire.test_ui_messages import replies

GOLDEN = b"""\
f:{"messageId":"msg_1"}
9:{"toolCallId":"c1","toolName":"search","args":{"query":"q"}}
a:{"toolCallId":"c1","result":{"type":"search","results":[]}}
e:{"finishReason":"tool-calls","usage":{"promptTokens":0,"completionTokens":0},"isContinued":false}
f:{"messageId":"msg_1"}
0:"To deploy, "
2:[{"type":"finish","threadId":"T"}]
8:[{"type":"finish","threadId":"T"}]
e:{"finishReason":"stop","usage":{"promptTokens":1,"completionTokens":2},"isContinued":false}
d:{"type":"finish","threadId":"T","finishReason":"stop","usage":{"promptTokens":1,"completionTokens":2}}
"""


def encoded(events: list[ReplyEvent]) -> bytes:
    encoder = DataStreamEncoder()
    return b"".join(piece for event in events for piece in encoder.encode(event))


def lines_of(events: list[ReplyEvent]) -> list[tuple[str, Any]]:
    lines = encoded(events).decode().split("\n")[:-1]
    return [(line[0], json.loads(line[2:])) for line in lines]


def test_a_reply_is_sent_to_the_byte():
    events: list[ReplyEvent] = [
        ReplyOpened("T", "msg_1"),
        SearchStarted("c1", "q"),
        SearchFinished("c1", "q", (), ()),
        TextDelta("To deploy, "),
        ReplyDone("To deploy, ", (), "answered", "m", Usage(1, 2)),
    ]
    assert encoded(events) == GOLDEN


def test_cut_answer_names_its_length_as_the_reason():
    done = ReplyDone("To", (), "answered", "m", Usage(), "length")
    ends = [value["finishReason"] for code, value in lines_of([ReplyOpened("T", "m"), done]) if code in "ed"]
    assert ends == ["length", "length"]


def test_an_error_is_one_string():
    assert lines_of(sample_replies.BROKEN)[-1] == ("3", "The model is unavailable.")


def test_a_second_search_has_a_step_of_its_own():
    codes = "".join(code for code, _ in lines_of(sample_replies.SEARCHED_AGAIN))
    assert codes == "f9ae" + "f0e" + "f9ae" + "f028e" + "d"


def test_late_reader_gets_the_call_before_its_result():
    codes = [code for code, _ in lines_of(sample_replies.JOINED_LATE)]
    assert codes.index("9") < codes.index("a")


def test_the_headers_are_those_of_the_protocol():
    assert HEADERS["x-vercel-ai-data-stream"] == "v1"
    assert HEADERS["Content-Type"] == "text/plain; charset=utf-8"
    assert KEEP_ALIVE == b"\n"


@given(replies())
def test_joined_deltas_are_the_text(events):
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert "".join(value for code, value in lines_of(events) if code == "0") == said


@given(replies())
def test_every_line_has_a_code_old_clients_know_and_its_value(events):
    for code, value in lines_of(events):
        match code:
            case "0" | "3":
                assert isinstance(value, str)
            case "2" | "8":
                assert isinstance(value, list)
            case "9":
                assert isinstance(value["args"], dict)
                assert value.keys() == {"toolCallId", "toolName", "args"}
            case "a":
                assert value.keys() == {"toolCallId", "result"}
            case "f":
                assert isinstance(value["messageId"], str)
            case "e" | "d":
                assert isinstance(value["finishReason"], str)
            case _:
                raise AssertionError(code)


@given(replies())
def test_result_follows_its_call_and_text_is_in_no_calls_step(events):
    called: set[str] = set()
    step: set[str] = set()
    for code, value in lines_of(events):
        match code:
            case "f":
                step = set()
            case "9":
                called.add(value["toolCallId"])
                step.add("call")
            case "a":
                assert value["toolCallId"] in called
            case "0":
                step.add("text")
        assert len(step) <= 1
