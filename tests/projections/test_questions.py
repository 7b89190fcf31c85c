"""What the operator reads of what was asked: as it happens, and made again from the log."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from eventstore import Metadata, SQLiteEventStore, Views
from service.commands.erasures import erase_subject
from service.domain.model import Usage
from service.domain.texts.times import timestamp
from service.domain.threads.checks import CheckCounts, ReplyChecks, SentenceCheck
from service.domain.threads.feedback import GiveFeedback
from service.domain.threads.question_normalization import wording
from service.domain.threads.recorded_reply import CompleteReply, FailReply, RecordText, StopReply
from service.projections.questions import FILTERED, QuestionsView
from service.queries.readers.analytics import Days, read_analytics
from service.queries.readers.questions import (
    Period,
    list_feedback,
    list_questions,
    list_unanswered,
    read_transcript,
    summarize_checks,
)
from tests.projections.asked import EVER, LAST, NOW, Site, post


@pytest.fixture
async def store(tmp_path):
    async with await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store:
        yield store


@pytest.fixture
async def views(store, tmp_path):
    async with await Views.open(tmp_path / "views.db", store, [QuestionsView()]) as views:
        yield views


@pytest.fixture
def site(store, views):
    return Site(store, views)


async def test_question_is_read_with_its_answer_and_cited_sources(site):
    asked = post(1, "How do I install Kite?")
    await site.start("t", asked)
    await site.answer("t", asked)
    await site.do("t", GiveFeedback("r1", "guide", "up", "Thanks", NOW))
    [row] = await site.questions()
    assert (row.id, row.thread_id, row.message_id, row.page) == ("m1", "t", "r1", "/open")
    assert (row.query, row.response, row.resolution_status) == ("How do I install Kite?", "So it is [2].", "answered")
    assert [(one.number, one.path, one.commit) for one in row.sources] == [(2, "p2.md", "c" * 40)]
    assert (row.feedback.rating, row.feedback.comment) == ("up", "Thanks")
    assert await list_questions(site.views, "other", EVER, before=LAST, limit=10) == []


async def test_the_period_has_its_start_and_not_its_end(site):
    for number in range(4):
        await site.start(f"t{number}", post(number, "How?"))
    period = Period.between(NOW + timedelta(hours=1), NOW + timedelta(hours=3))
    assert [row.id for row in await site.questions(period)] == ["m2", "m1"]


async def test_pages_of_rows_go_on_where_the_last_one_ended(site):
    for number in range(5):
        await site.start(f"t{number}", post(number, "How?"))
    seen, before = [], LAST
    while placed := await site.placed(before=before, limit=2):
        seen += [row.id for _, row in placed]
        before = placed[-1][0]
    assert seen == ["m4", "m3", "m2", "m1", "m0"]


async def test_only_a_whole_answer_shows_whether_there_is_a_gap(site):
    filtered = CompleteReply("r5", "x", (), "unanswered", "m", Usage(), NOW, "content_filter")
    endings = {
        1: CompleteReply("r1", "x", (), "unanswered", "m", Usage(), NOW),
        2: StopReply("r2", "stopped", NOW),
        3: FailReply("r3", "unavailable", "Down.", NOW),
        4: CompleteReply("r4", "x [1]", (1,), "answered", "m", Usage(), NOW),
        5: filtered,
        6: StopReply("r6", "interrupted", NOW),
        7: CompleteReply("r7", "x", (), "unanswered", "m", Usage(), NOW, uncited=True),
    }
    for number, ending in endings.items():
        await site.start(f"t{number}", post(number, "How?"))
        await site.do(f"t{number}", RecordText(f"r{number}", "So "), RecordText(f"r{number}", "far"), ending)
    gaps = await site.questions(resolution="unanswered")
    assert [(row.id, row.uncited) for row in gaps] == [("m7", True), ("m1", False)]
    assert [row.id for row in await site.questions(resolution="answered")] == ["m4"]
    [(_, group)] = await list_unanswered(site.views, "project", EVER, limit=10, offset=0, examples=9)
    assert (group.count, [example.id for example in group.examples]) == (2, ["m7", "m1"])
    rows = {row.id: row for row in await site.questions()}
    assert {row.id for row in rows.values() if row.is_gap} == {"m1", "m7"}
    assert {row.resolution_status for row in rows.values()} == {"answered", "unanswered"}
    assert [rows[f"m{number}"].state for number in (2, 3, 6)] == ["stopped", "failed", "interrupted"]
    failures = {key: (row.failure.code, row.failure.message) for key, row in rows.items() if row.failure is not None}
    assert failures == {"m3": ("unavailable", "Down."), "m5": FILTERED}
    assert rows["m3"].response == "So far"
    [_, reply] = (await read_transcript(site.views, "project", "t3")).messages
    assert (reply.failure.code, reply.uncited) == ("unavailable", False)


async def test_unsure_answer_is_unanswered_but_no_gap(site):
    endings = {
        1: CompleteReply("r1", "Nearest [1].", (1,), "unanswered", "m", Usage(), NOW, unsure=True),
        2: CompleteReply("r2", "x", (), "unanswered", "m", Usage(), NOW),
        3: CompleteReply("r3", "x [1]", (1,), "answered", "m", Usage(), NOW),
    }
    for number, ending in endings.items():
        await site.start(f"t{number}", post(number, "How?"))
        await site.do(f"t{number}", ending)
    rows = {row.id: row for row in await site.questions(resolution="unanswered")}
    assert {key: (row.outcome, row.is_gap) for key, row in rows.items()} == {
        "m2": ("unanswered", True),
        "m1": ("unsure", False),
    }
    [(_, group)] = await list_unanswered(site.views, "project", EVER, limit=10, offset=0, examples=9)
    assert [example.id for example in group.examples] == ["m2"]
    [_, reply] = (await read_transcript(site.views, "project", "t1")).messages
    assert (reply.resolution_status, reply.outcome) == ("unanswered", "unsure")
    day = NOW.date()
    totals = (await read_analytics(site.views, "org", Days(day, day))).totals
    assert (totals.questions, totals.answered, totals.unsure, totals.unanswered) == (3, 1, 1, 1)
    assert totals.unsure_share == pytest.approx(1 / 3)


async def test_unsupported_sentences_are_summed_up(site):
    wrong = SentenceCheck("Wait 9 s.", 3, "unsupported", 1, 5, 6, ("9 s",))
    checks = {1: ReplyChecks(CheckCounts(3, 1)), 2: ReplyChecks(CheckCounts(1, 0, 2), (wrong,)), 3: None}
    checks |= {4: ReplyChecks(CheckCounts(0, 1, 1), (wrong,)), 5: ReplyChecks()}
    for number, found in checks.items():
        await site.start(f"t{number}", post(number, "How?"))
        done = CompleteReply(f"r{number}", "x", (), "answered", "m", Usage(), NOW, checks=found)
        await site.do(f"t{number}", done)
    await site.questions()
    summary = await summarize_checks(site.views, "project", EVER, worst=1)
    assert (summary.answers, summary.answers_with_unsupported, summary.supported_share) == (3, 2, 0.4444)
    assert (summary.supported, summary.partly, summary.unsupported) == (4, 2, 3)
    [worst] = summary.worst
    assert (worst.id, worst.checks.unsupported, worst.checks.sentences[0].missing) == ("m2", 2, ("9 s",))
    rows = {row.id: row for row in await site.questions()}
    assert rows["m3"].checks is None
    assert (rows["m1"].checks.supported, rows["m1"].checks.sentences) == (3, ())
    [_, reply] = (await read_transcript(site.views, "project", "t4")).messages
    assert (reply.checks.sentences[0].start_line, reply.checks.sentences[0].text) == (5, "Wait 9 s.")
    period = Period.between(NOW + timedelta(hours=4), None)
    assert (await summarize_checks(site.views, "project", period, worst=9)).unsupported == 1


async def test_edited_question_and_new_reply_give_the_current_thread(site):
    first, second = post(1, "How do I install?"), post(2, "And then?")
    await site.start("t", first)
    await site.answer("t", first)
    await site.do("t", second)
    await site.answer("t", second)
    again = replace(second, reply_id="r9", regenerates=True, message_id="m9")
    await site.do("t", again)
    await site.answer("t", again, "Anew.", ())
    thread = await read_transcript(site.views, "project", "t")
    assert [(message.id, message.content) for message in thread.messages] == [
        ("m1", first.text), ("r1", "So it is [2]."), ("m2", second.text), ("r9", "Anew."),
    ]  # fmt: skip
    assert thread.created_at == timestamp(first.now)
    assert await read_transcript(site.views, "other", "t") is None
    assert await read_transcript(site.views, "project", "none") is None


async def test_unanswered_questions_are_grouped_by_their_wording(site):
    texts = ["How do I export a chart?", "export chart", "Where is the TOML file?", "How can I export the chart?!", "?"]
    for number, text in enumerate(texts):
        asked = post(number, text)
        await site.start(f"t{number}", asked)
        await site.answer(f"t{number}", asked, "No.", (), "answered" if number == 1 else "unanswered")
    groups = await list_unanswered(site.views, "project", EVER, limit=10, offset=0, examples=1)
    assert [(place, group.wording, group.count) for place, group in groups] == [
        (1, "export chart", 2),
        (2, "toml file", 1),
    ]
    assert [example.query for example in groups[0][1].examples] == ["How can I export the chart?!"]
    assert await list_unanswered(site.views, "project", EVER, limit=10, offset=2, examples=1) == []


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How do I install Kite?", "install kite"),
        ("  INSTALL   kite!! ", "install kite"),
        ("How are you?", "how are you"),
        ("What's `retry_delay`?", "retry delay"),
        ("Ｆｕｌｌ width", "full width"),  # noqa: RUF001
        ("???", ""),
        ("x" * 1000, "x" * 200),
    ],
)
def test_the_wording_of_a_question(question, words):
    assert wording(question) == words


async def test_feedback_is_listed_newest_first_with_what_it_is_about(site):
    for number in (1, 2, 3):
        asked = post(number, f"Question {number}")
        await site.start(f"t{number}", asked)
        await site.answer(f"t{number}", asked)
    for number, rating in ((2, "up"), (1, "down"), (3, "up"), (2, "down")):
        await site.do(f"t{number}", GiveFeedback(f"r{number}", "guide", rating, "", NOW))
    rows = await list_feedback(site.views, "project", EVER, before=LAST, limit=10)
    assert [(row.message_id, row.rating, row.query) for _, row in rows] == [
        ("r2", "down", "Question 2"), ("r3", "up", "Question 3"), ("r1", "down", "Question 1")
    ]  # fmt: skip
    down = await list_feedback(site.views, "project", EVER, before=rows[0][0], limit=10, rating="down")
    assert [row.message_id for _, row in down] == ["r1"]


async def rows_of(views):
    sums = ("question_days", "reply_days", "first_text_days", "cited_weeks")
    tables = ("asked_threads", "asked", "answers", "answer_sources", *sums)
    return {name: [tuple(row) for row in await views.query(f"SELECT * FROM {name} ORDER BY 1, 2")] for name in tables}


async def test_erased_thread_keeps_numbers_and_no_words_in_all_rows(site, store, tmp_path):
    asked, stopped = post(1, "Ask Ermentrude"), post(2, "Ermentrude again", current_path="")
    await site.start("t", asked)
    await site.answer("t", asked, "Ermentrude says no.", (), "unanswered")
    await site.do("t", GiveFeedback("r1", "guide", "down", "Poor Ermentrude", NOW), stopped)
    await site.do("t", RecordText("r2", "Erm"), RecordText("r2", "entrude"), StopReply("r2", "stopped", NOW))
    await site.start("other", post(3, "How?"))
    await site.do("other", GiveFeedback("r3", "guide", "up", "", NOW))
    await erase_subject(store, site.views, "thread-t", Metadata())
    live = await rows_of(site.views)
    assert "rmentrude" not in str(live).lower()
    [_, again, first] = await site.questions()
    assert (first.query, first.response, first.feedback.comment) == ("[erased]", "[erased]", "[erased]")
    assert (first.resolution_status, first.feedback.rating, again.state) == ("unanswered", "down", "stopped")
    assert await list_unanswered(site.views, "project", EVER, limit=10, offset=0, examples=3) == []
    async with await Views.open(tmp_path / "again.db", store, [QuestionsView()]) as fresh:
        await fresh.catch_up()
        assert await rows_of(fresh) == live
