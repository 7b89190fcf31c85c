"""A job's events as its readers get them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from service.domain.jobs.comments import CommentSource
from service.domain.jobs.decider import (
    BaseMerged,
    BaseNotMerged,
    BranchChanged,
    CommentAnswered,
    CommentIgnored,
    JobArchived,
    JobEvent,
    JobReopened,
    JobResumed,
    JobStarted,
    JobUnarchived,
    JobWaiting,
    MergeConflict,
    MessageAdded,
    ModelReplied,
    PullRequestUpdated,
    RoundStarted,
    WorkRebased,
)
from service.domain.model import ToolCall
from service.wire.job_stream import (
    MAX_RESULT_CHARACTERS,
    JobStreamEncoder,
    live_event,
    named_model,
    public,
    queue_event,
)
from tests.wire.sample_jobs import AT, FAILED, LINK, REQUESTED, STEPS, WITH_PULL_REQUEST, WITHOUT_CHANGES

REPLIED = next(step for step in STEPS if isinstance(step, ModelReplied))
WHEN = "2026-03-14T09:26:53.589Z"


def lines_of(events: list[JobEvent]) -> list[tuple[str, Any]]:
    encoder = JobStreamEncoder("job-1")
    body = b"".join(piece for event in events for piece in encoder.encode(event)).decode()
    assert encoder.is_done is any(event in events for event in (WITH_PULL_REQUEST[-1], WITHOUT_CHANGES[-1], FAILED[-1]))
    return [(line[0], json.loads(line[2:])) for line in body.split("\n")[:-1]]


def test_first_line_says_that_the_builtin_editor_runs():
    encoder = JobStreamEncoder("job-1")
    (line,) = encoder.encode(replace(REQUESTED, model="builtin/editor"))
    assert line.startswith(b'0:"The builtin agent (builtin/editor) does this job')
    assert encoder.encode(REPLIED)[1].startswith(b'0:"\\n\\nI look')
    assert JobStreamEncoder("job-1").encode(REQUESTED) == []
    assert named_model("openai/gpt-5.2") == "openai/gpt-5.2"


def test_wait_is_one_line_however_often_it_is_tried():
    encoder = JobStreamEncoder("job-1")
    waits = [JobWaiting("model", "down", AT, AT, tries, attempt=0) for tries in (1, 2, 3)]
    again = (JobResumed(AT), JobStarted(1, "one", AT))
    (line,) = [line for wait in waits for event in (wait, *again) for line in encoder.encode(event)]
    assert encoder.is_waiting
    (told,) = json.loads(line[2:])
    when = {"since": WHEN, "nextTryAt": WHEN}
    assert told == {"type": "job-waiting", "for": "model", "reason": "down", "tries": 1, **when}
    assert encoder.encode(REPLIED)
    assert not encoder.is_waiting
    assert encoder.encode(waits[0]) == [line]


def test_words_and_calls_have_own_steps_before_the_closing_text():
    codes = "".join(code for code, _ in lines_of(WITH_PULL_REQUEST) if code != "2")
    assert codes == "f0e" + "f99aae" + "f9ae" + "f0e" + "d"


def test_closing_text_and_data_have_the_pull_request_link():
    lines = lines_of(WITH_PULL_REQUEST)
    assert [value for code, value in lines if code == "0"][-1] == f"\n\nI mended two links.\n\nPull request: {LINK}"
    data = [value for code, values in lines if code == "2" for value in values]
    assert {"type": "pull-request-opened", "number": 7, "url": LINK, "openedAt": "2026-03-14T09:26:53.589Z"} in data
    assert data[-1] == {"type": "finish", "sessionId": "job-1", "pullRequestLink": LINK, "outcome": "pull_request"}
    assert lines[-1] == (
        "d",
        {
            "type": "finish",
            "sessionId": "job-1",
            "pullRequestLink": LINK,
            "outcome": "pull_request",
            "finishReason": "stop",
            "usage": {"promptTokens": 30, "completionTokens": 11},
        },
    )


def test_a_job_that_changes_nothing_says_why():
    assert [value for code, value in lines_of(WITHOUT_CHANGES) if code == "0"] == [
        "All links work: nothing was changed."
    ]


def test_a_failed_job_is_an_error_of_the_stream():
    assert lines_of(FAILED)[-1] == ("3", "The model is unavailable.")


def test_arguments_are_objects_even_if_the_model_wrote_others():
    calls = [value for code, value in lines_of(STEPS) if code == "9"]
    assert [call["args"] for call in calls] == [{"path": "a.md"}, {"text": "not json"}, {"path": "a.md"}]


def test_long_results_are_cut():
    [first, *_] = [value["result"] for code, value in lines_of(STEPS) if code == "a"]
    assert len(first["text"]) == MAX_RESULT_CHARACTERS
    assert first["isError"] is False


def test_reader_in_the_middle_gets_no_result_without_its_call():
    for start in range(len(WITH_PULL_REQUEST)):
        encoder = JobStreamEncoder("job-1")
        pieces = [piece for event in WITH_PULL_REQUEST[start:] for piece in encoder.encode(event)]
        called = {json.loads(piece[2:])["toolCallId"] for piece in pieces if piece.startswith(b"9:")}
        returned = {json.loads(piece[2:])["toolCallId"] for piece in pieces if piece.startswith(b"a:")}
        assert returned <= called


def test_nothing_follows_the_end():
    encoder = JobStreamEncoder("job-1")
    for event in FAILED:
        encoder.encode(event)
    assert encoder.encode(FAILED[0]) == []
    assert encoder.encode(WITH_PULL_REQUEST[-1]) == []


def test_a_live_event_has_its_position_tag_and_public_data():
    assert live_event(42, WITH_PULL_REQUEST[-2]) == (
        b"id: 42\n"
        b"event: pull-request-opened\n"
        b'data: {"type":"pull-request-opened","number":7,"url":"https://code.example/pulls/7",'
        b'"openedAt":"2026-03-14T09:26:53.589Z"}\n\n'
    )


@pytest.mark.parametrize("event", [*WITH_PULL_REQUEST, FAILED[-1]], ids=lambda event: type(event).__name__)
def test_internals_stay_inside(event):
    text = live_event(1, event).decode()
    assert "secret" not in text
    assert "whole new contents" not in text
    assert "null" not in text
    assert str(AT) not in text
    assert public(event)["type"] in text


@given(st.integers(1), st.text(st.characters(codec="utf-8")))
def test_a_live_event_is_always_three_lines(position, words):
    event = live_event(position, type(FAILED[-1])("code", words, AT))
    assert len(event.decode().splitlines()) == 4
    assert event.endswith(b"\n\n")


def test_events_of_further_rounds_are_sent():
    told = [
        (MessageAdded("Go on", AT), {"text": "Go on", "addedAt": WHEN}),
        (
            MessageAdded("Go on", AT, CommentSource("1", "2", "ada", "t", LINK, "a.md", 3, 5, "secret"), "secret"),
            {
                "text": "Go on",
                "addedAt": WHEN,
                "comment": {"author": "ada", "url": LINK, "path": "a.md", "firstLine": 3, "lastLine": 5},
            },
        ),
        (
            CommentIgnored("too_many_comments", AT, CommentSource("1", "2", "ada", url=LINK), "secret", AT),
            {
                "reason": "too_many_comments",
                "ignoredAt": WHEN,
                "until": WHEN,
                "comment": {"author": "ada", "url": LINK},
            },
        ),
        (CommentAnswered(("secret",), AT, LINK), {"url": LINK, "failure": "", "answeredAt": WHEN}),
        (JobReopened(2, True, AT), {"round": 2, "keepsChanges": True, "reopenedAt": WHEN}),
        (RoundStarted(3, AT), {"round": 3, "startedAt": WHEN}),
        (BranchChanged("docs/x-2", AT), {"branch": "docs/x-2", "changedAt": WHEN}),
        (
            WorkRebased("b" * 40, "a" * 40, AT),
            {"onto": "b" * 40, "insteadOf": "a" * 40, "rebasedAt": WHEN, "conflicts": []},
        ),
        (
            BaseMerged("a", "b", "c", AT, (MergeConflict("x.md", "changed", 3, "secret"),)),
            {
                "head": "a",
                "commit": "b",
                "mergeBase": "c",
                "mergedAt": WHEN,
                "conflicts": [{"path": "x.md", "kind": "changed", "line": 3}],
            },
        ),
        (BaseNotMerged((), AT), {"problems": [], "recordedAt": WHEN}),
        (PullRequestUpdated(7, LINK, AT), {"number": 7, "url": LINK, "updatedAt": WHEN}),
        (JobArchived(AT), {"archivedAt": WHEN}),
        (JobUnarchived(AT), {"unarchivedAt": WHEN}),
    ]
    for event, fields in told:
        assert public(event) == {"type": event.__struct_config__.tag, **fields}


def test_closing_text_of_a_further_round_links_the_pull_request():
    lines = lines_of([*STEPS, PullRequestUpdated(7, LINK, AT), WITH_PULL_REQUEST[-1]])
    assert lines[-1][1]["pullRequestLink"] == LINK


def test_queue_place_has_no_id_so_a_reader_resumes_where_it_was():
    assert queue_event(3) == b'event: queue-position\ndata: {"type":"queue-position","position":3}\n\n'


@pytest.mark.parametrize(
    ("arguments", "is_object"),
    [
        ('{"path":' + '{"a":' * 3_000 + "1" + "}" * 3_000 + "}", False),
        ("[" * 100_000, False),
        ('{"path":"\\ud800"}', False),
        ('{"text":"' + "[{" * 1_000 + '"}', True),
        ('{"todos":[' + ",".join(['{"content":"\\"["}'] * 500) + "]}", True),
        ('{"a":' * 100 + "1" + "}" * 100, True),
    ],
    ids=["objects", "brackets", "surrogate", "text", "many", "hundred"],
)
def test_deep_tool_arguments_are_shown_as_text(arguments, is_object):
    replied = replace(STEPS[4], tool_calls=(ToolCall("c1", "read", arguments),))
    (shown,) = [value for code, value in lines_of([replied]) if code == "9"]
    told = public(replied)["toolCalls"][0]["arguments"]
    assert shown["args"] == told
    assert told == (json.loads(arguments) if is_object else {"text": arguments})
