"""Gaps and sums of an organization's questions."""

from datetime import date, timedelta

import pytest
from msgspec.structs import replace

from eventstore import Metadata, SQLiteEventStore, Views, execute
from service.commands.erasures import erase_subject
from service.commands.gaps import dismiss_gap, record_answered, restore_gap
from service.domain.access.idempotency import ClaimRequest, claim_id
from service.domain.errors import NotFound
from service.domain.model import Usage
from service.domain.threads.feedback import GiveFeedback
from service.domain.threads.question_groups import AskedWording, group_wordings
from service.domain.threads.recorded_reply import CallEnd, CompleteReply, FailReply, RecordSources, RecordText
from service.projections import all_projections
from service.queries.readers.analytics import Days, read_analytics
from service.queries.readers.gaps import GapQuery, GapReader, count_in_gaps, job_key
from service.queries.readers.questions import QuestionFilter, project_of_thread, questions_page
from service.runtime.system import now
from service.streams import REQUESTS
from tests.projections.asked import EVER, LAST, NOW, Site, post, source

DAYS = Days(date(2026, 1, 2), date(2026, 1, 3))


@pytest.fixture
async def site(tmp_path):
    async with (
        await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store,
        await Views.open(tmp_path / "views.db", store, all_projections()) as views,
    ):
        yield Site(store, views)


async def ask(site, number, text, resolution="unanswered", **fields):
    asked = replace(post(number, text), **fields)
    await site.start(f"t{number}", asked)
    await site.answer(f"t{number}", asked, "So [2].", (2,) if resolution == "answered" else (), resolution)


def test_wordings_with_the_same_rare_words_are_one_group():
    texts = [
        "export chart pdf",
        "exporting charts pdf",
        "rotate saml certificate",
        "saml certificate rotate sso",
        "x y",
    ]
    asked = [AskedWording("p", text, 2 if number == 2 else 1, number) for number, text in enumerate(texts)]
    asked.append(AskedWording("other", "export chart pdf", 1, 9))
    groups = [[one.newest for one in group.wordings] for group in group_wordings(asked)]
    assert groups == [[2, 3], [1, 0], [9], [4]]


async def gaps(site, reader=None, organization="org", **only):
    found = await (reader or GapReader(site.store, site.views)).list(GapQuery(organization, EVER, **only), limit=10)
    return [gap for _, gap in found]


async def test_gaps_have_examples_pages_and_a_prompt(site):
    texts = [
        "How do I export a chart?",
        "Can I export charts\nto PDF?",
        "How do I export a chart?",
        "Where is the log?",
    ]
    await ask(site, 9, "How do I export a chart?", "answered")
    for number, text in enumerate(texts):
        await ask(site, number, text)
    [export, log] = await gaps(site)
    assert (export.question, export.count, export.wordings) == ("How do I export a chart?", 3, 2)
    assert [example.id for example in export.examples] == ["m2", "m1", "m0"]
    assert export.pages == ("p1.md", "p2.md")
    assert '- "Can I export charts to PDF?"' in export.prompt
    assert export.prompt.startswith('Answer the question "How do I export a chart?"\n')
    assert export.prompt.count("How do I export a chart?") == 2
    reader = GapReader(site.store, site.views)
    assert await reader.list(GapQuery("org", EVER), limit=1, offset=1) == [(2, log)]
    assert await gaps(site, project_id="another") == await gaps(site, organization="other") == []
    assert await count_in_gaps(site.views, "org", EVER) == 4


async def test_gap_names_its_job_until_it_is_asked_again(site):
    reader = GapReader(site.store, site.views)
    await ask(site, 1, "Where is the log?")
    [gap] = await gaps(site, reader)
    claim = ClaimRequest("project", "job1", "fingerprint", NOW)
    await execute(site.store, REQUESTS, claim_id("project", job_key(gap)), claim)
    assert (await reader.find(GapQuery("org", EVER), gap.id)).view.job_id == "job1"
    await ask(site, 2, "Where is the log?")
    [again] = await gaps(site, reader)
    assert (again.id, again.job_id) == (gap.id, None)
    assert await reader.find(GapQuery("other", EVER), gap.id) is None


async def test_erased_questions_are_in_no_gap(site):
    await ask(site, 1, "Where is Ermentrude?")
    reader = GapReader(site.store, site.views)
    assert len(await gaps(site, reader)) == 1
    await erase_subject(site.store, site.views, "thread-t1", Metadata())
    assert await gaps(site, reader) == []


async def test_gap_is_gone_once_its_question_is_answered_later(site):
    reader = GapReader(site.store, site.views)
    await ask(site, 1, "Where is the log?")
    await ask(site, 2, "How do I export a chart?")
    await ask(site, 3, "where is the LOG", "answered")
    await ask(Site(site.store, site.views, "second"), 4, "How do I export a chart?", "answered")
    assert [gap.question for gap in await gaps(site, reader)] == ["How do I export a chart?"]
    assert await count_in_gaps(site.views, "org", EVER) == 1
    await ask(site, 5, "Where is the log?")
    [log, _] = await gaps(site, reader)
    assert (log.question, log.count, [one.id for one in log.examples]) == ("Where is the log?", 1, ["m5"])


async def test_gap_is_gone_once_the_site_answers_it_until_it_is_asked_again(site):
    reader = GapReader(site.store, site.views)
    await ask(site, 1, "How do I export a chart?")
    await ask(site, 2, "Exporting charts, how?")
    [gap] = await reader.largest(GapQuery("org", EVER), limit=1)
    assert set(gap.questions) == {"m1", "m2"}
    await record_answered(site.store, "org", gap, ("m1",), "c" * 40)
    await site.views.catch_up()
    [left] = await gaps(site, reader)
    assert [one.id for one in left.examples] == ["m2"]
    await record_answered(site.store, "org", gap, ("m2",), "c" * 40)
    await site.views.catch_up()
    assert await gaps(site, reader) == []
    await ask(site, 3, "How do I export a chart?")
    [again] = await gaps(site, reader)
    assert (again.id, again.count) == (gap.view.id, 1)


async def test_dismissed_gap_is_listed_apart_with_who_and_when(site, tmp_path):
    reader, query = GapReader(site.store, site.views), GapQuery("org", EVER)
    await ask(site, 1, "How do I export a chart?")
    await ask(site, 2, "Exporting charts, how?")
    await ask(site, 3, "Where is the log?")
    [export, log] = await gaps(site, reader)
    by = Metadata(actor="person:ann")
    for _ in range(2):
        await dismiss_gap(site.store, site.views, reader, query, export.id, by)
        await site.views.catch_up()
    assert len(await site.store.read_stream(f"gap-{export.id}")) == 1
    await ask(site, 4, "How do I export a chart?")
    await ask(site, 5, "How do I print a chart?")
    assert {gap.question for gap in await gaps(site, reader)} == {"How do I print a chart?", "Where is the log?"}
    [(_, dismissed)] = await reader.list_dismissed(query, limit=5)
    assert (dismissed.id, dismissed.question, dismissed.count) == (export.id, "How do I export a chart?", 3)
    assert (dismissed.dismissed_by, dismissed.dismissed_at[:10]) == ("person:ann", f"{now():%Y-%m-%d}")
    assert await reader.list_dismissed(GapQuery("other", EVER), limit=5) == []
    with pytest.raises(NotFound):
        await restore_gap(site.store, site.views, "other", export.id, by)
    with pytest.raises(NotFound):
        await dismiss_gap(site.store, site.views, reader, GapQuery("other", EVER), log.id, by)

    async def shown(views):
        reader = GapReader(site.store, views)
        return await reader.list(query, limit=10), await reader.list_dismissed(query, limit=10)

    async def rebuilt():
        (tmp_path / "again.db").unlink(missing_ok=True)
        async with await Views.open(tmp_path / "again.db", site.store, all_projections()) as views:
            await views.catch_up()
            return await shown(views)

    assert await shown(site.views) == await rebuilt()
    await erase_subject(site.store, site.views, "thread-t4", Metadata())
    await erase_subject(site.store, site.views, "thread-t2", Metadata())
    assert await shown(site.views) == await rebuilt()
    [(_, dismissed)] = await reader.list_dismissed(query, limit=5)
    assert dismissed.count == 1
    await restore_gap(site.store, site.views, "org", export.id, by)
    await site.views.catch_up()
    assert await reader.list_dismissed(query, limit=5) == []
    assert "How do I export a chart?" in {gap.question for gap in await gaps(site, reader)}
    assert await shown(site.views) == await rebuilt()


async def test_dismissal_of_erased_questions_keeps_who_and_when(site):
    reader, query = GapReader(site.store, site.views), GapQuery("org", EVER)
    await ask(site, 1, "Where is Ermentrude?")
    [gap] = await gaps(site, reader)
    await dismiss_gap(site.store, site.views, reader, query, gap.id, Metadata(actor="person:ann"))
    await erase_subject(site.store, site.views, "thread-t1", Metadata())
    [(_, dismissed)] = await reader.list_dismissed(query, limit=5)
    assert (dismissed.question, dismissed.count, dismissed.dismissed_by) == ("[erased]", 0, "person:ann")
    assert b"Ermentrude" not in b"".join([one.data for one in await site.store.read_stream(f"gap-{gap.id}")])


async def test_questions_are_found_by_their_words(site):
    await ask(site, 1, "How do I rotate a SAML certificate?", "answered", caller="web")
    await ask(site, 2, "SAML: certificates, please")
    await ask(site, 3, "Ein Zertifikat für \uff33\uff21ML erneuern")
    await ask(site, 4, "如何轮换证书")
    await ask(Site(site.store, site.views, "second"), 5, "certificate saml")

    async def found(text, before=LAST, limit=10, organization="org", **fields):
        only = QuestionFilter(text=text, **fields)
        page = await questions_page(site.views, organization, EVER, only, before=before, limit=limit)
        return [row.id for row in page.questions], page.next

    assert (await found("saml Certificates"))[0] == ["m5", "m2", "m1"]
    assert (await found("saml certificate", outcome="answered"))[0] == ["m1"]
    assert (await found("saml certificate", project_id="second"))[0] == ["m5"]
    assert (await found("ZERTIFIKAT saml"))[0] == ["m3"]
    assert (await found("证书"))[0] == ["m4"]
    for nothing in ("certificate unheard", "?!", "the " + " ".join(map(str, range(20)))):
        assert await found(nothing) == ([], None)
    assert await found("saml", organization="other") == ([], None)
    page, after = await found("saml", limit=3)
    assert page == ["m5", "m3", "m2"]
    assert await found("saml", before=after) == (["m1"], None)


async def test_search_of_questions_looks_at_a_part_at_a_time(site):
    for number, text in enumerate(["one two", "two", "one", "two", "one", "one two"]):
        await ask(site, number, text)
    pages, before, only = [], LAST, QuestionFilter(text="one two", looks_at=2)
    while before is not None:
        page = await questions_page(site.views, "org", EVER, only, before=before, limit=5)
        pages.append([row.id for row in page.questions])
        before = page.next
    assert pages == [["m5"], ["m0"]]


async def test_erased_questions_are_not_found(site):
    await ask(site, 1, "Where is Ermentrude?")
    await ask(site, 2, "Ermentrude again")
    await erase_subject(site.store, site.views, "thread-t1", Metadata())
    page = await questions_page(site.views, "org", EVER, QuestionFilter(text="ermentrude"), before=LAST, limit=5)
    assert [row.id for row in page.questions] == ["m2"]
    assert len(await site.views.query("SELECT * FROM asked_words")) == 2


async def test_questions_are_filtered_by_outcome_rating_caller_and_site(site):
    await ask(site, 1, "One?", "answered", caller="web")
    await ask(site, 2, "Two?", caller="api")
    await ask(Site(site.store, site.views, "second"), 3, "Three?", "answered", caller="web")
    await site.start("t4", post(4, "Four?"))
    await site.do("t4", FailReply("r4", "unavailable", "Down.", NOW))
    await site.start("t5", post(5, "Five?"))
    await site.do("t1", GiveFeedback("r1", "guide", "down", "", NOW))

    async def chosen(**fields):
        page = await questions_page(site.views, "org", EVER, QuestionFilter(**fields), before=LAST, limit=10)
        return [row.id for row in page.questions]

    assert await chosen() == ["m5", "m4", "m3", "m2", "m1"]
    assert await chosen(outcome="failed") == ["m4"]
    assert await chosen(outcome="answered") == ["m3", "m1"]
    assert await chosen(outcome="answered", project_id="second") == ["m3"]
    assert await chosen(rating="down", caller="web") == ["m1"]
    others = await questions_page(site.views, "x", EVER, QuestionFilter(), before=LAST, limit=9)
    assert (list(others.questions), others.next) == ([], None)
    assert [await project_of_thread(site.views, *which) for which in (("org", "m3"), ("org", "t1"), ("x", "t1"))] == [
        "second", "project", None
    ]  # fmt: skip


async def test_analytics_sum_what_happened_by_day(site):
    await ask(site, 1, "One?", "answered", caller="web")
    await ask(site, 2, "Two?", caller="web")
    await ask(site, 30, "Three?", "answered", caller="api")
    first, second = post(26, "Four?"), post(27, "Five?")
    for number, asked in ((4, first), (5, second)):
        await site.start(f"t{number}", asked)
    usage = Usage(100, 10, 0.5)
    await site.do(
        "t4", RecordSources("r26", "Four?", (source(1),)), RecordText("r26", "So", call=CallEnd("stop", "m", usage))
    )
    await site.do("t4", FailReply("r26", "unavailable", "Down.", NOW))
    done = CompleteReply("r27", "x", (), "answered", "m", usage, NOW, first_text_at=second.now + timedelta(seconds=0.4))
    await site.do("t5", done)
    for rating in ("up", "down"):
        await site.do("t1", GiveFeedback("r1", "guide", rating, "", NOW))
    found = await read_analytics(site.views, "org", DAYS)
    counted = found.totals
    assert (counted.questions, counted.answered, counted.unanswered, counted.failed) == (5, 3, 1, 1)
    assert (counted.up, counted.down, counted.unanswered_share, counted.helpful_share) == (0, 1, 0.25, 0)
    assert [(day.day, day.counts.questions) for day in found.days] == [("2026-01-02", 2), ("2026-01-03", 3)]
    assert [(one.caller, one.questions) for one in found.callers] == [("web", 2), ("", 2), ("api", 1)]
    assert (found.first_text.replies, found.first_text.median_ms, found.first_text.p95_ms) == (1, 500, 500)
    assert [(page.path, page.url, page.answers) for page in found.cited_pages] == [("p2.md", "/p2", 2)]
    assert [(row.key_id, row.model, row.replies, row.input_tokens, row.cost_usd) for row in found.spending] == [
        ("key", "m", 2, 200, 1.0), ("key", "fake/model", 3, 0, None)
    ]  # fmt: skip
    assert (await read_analytics(site.views, "org", DAYS, project_id="x")).totals.questions == 0
    assert (await read_analytics(site.views, "other", DAYS)).totals.questions == 0


async def test_another_reply_to_a_question_is_counted_once(site):
    await ask(site, 1, "One?")
    await site.do("t1", GiveFeedback("r1", "guide", "up", "", NOW))
    again = replace(post(1, "One?"), reply_id="r9", message_id="m9", regenerates=True)
    await site.do("t1", again)
    await site.answer("t1", again, "So [1].", (1,))
    counted = (await read_analytics(site.views, "org", DAYS)).totals
    assert (counted.questions, counted.answered, counted.unanswered, counted.up) == (1, 1, 0, 0)
