"""Comments on pull requests: read, handed to their jobs, and answered, each once."""

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from eventstore import Metadata, execute
from service.commands.projects import create_project
from service.domain.access.usage import Limits
from service.domain.errors import Forbidden, RateLimited, Unavailable
from service.domain.hooks.incoming import CommentReported, RecordCommentReport, SetIncomingSecret
from service.domain.hooks.webhooks import make_secret
from service.domain.jobs.decider import (
    ClosePullRequest,
    CommentAnswered,
    CommentIgnored,
    CompleteJob,
    FailJob,
    JobReopened,
    Message,
    MessageAdded,
    OpenWorkspace,
    PullRequestClosed,
    RecordFinish,
    RecordModelReply,
    RecordPullRequest,
    RequestJob,
    StartJob,
)
from service.domain.model import Usage
from service.domain.organizations import CreateOrganization
from service.domain.projects.settings import ProjectSettings
from service.ports.code_host import NewPullRequest
from service.ports.review_host import OURS
from service.queries.jobs.reviews import OpenPullRequest, open_pull_request, open_pull_request_of_job
from service.queries.projects import get_project, source_of
from service.runtime.system import now
from service.streams import INCOMING, JOBS, ORGANIZATIONS
from service.web.http.connections.admission import Admission, AdmissionSettings
from service.workers.fair_slots import FairSlots
from service.workers.reviews.answers import CommentAnswers
from service.workers.reviews.comments import CommentReader, CommentSettings
from service.workers.reviews.context import ReviewContext
from tests.fakes.docs_source import FakeDocsSource
from tests.fakes.review_host import FakeReviewHost

START = now()


class Site:
    """A project with a job whose pull request is open; what the workers do is asked for step by step."""

    def __init__(self, store, views):
        self.store, self.views, self.host = store, views, FakeReviewHost()
        self.time = START
        self.slots = FairSlots(4, share=2)
        self.project_id = ""

    async def make(self):
        await execute(self.store, ORGANIZATIONS, "o", CreateOrganization("Acme", START))
        await self.views.catch_up()
        new = ProjectSettings("o", "Guide", "https://x.y/r.git", "main", "", "guide", "github", git_token_env="TOKEN")
        docs = FakeDocsSource({"a.md": "A"})
        created = await create_project(self.store, self.views, docs, {"github": self.host}, new, Metadata())
        self.project_id = created.id
        opened = NewPullRequest("Title", "Text", "docs/x", "main", draft=False)
        await self.views.catch_up()
        source = source_of(await get_project(self.views, self.project_id))
        self.number = (await self.host.open_pull_request(source, opened)).number
        await self.add_job("job")

    async def add_job(self, job_id):
        request = RequestJob(
            "o", self.project_id, "https://x.y/r.git", "main", "", "fake/model", (Message("user", "Look"),), "Look",
            "docs/x", branch_named=True, as_draft=False, api_version=2, now=START,
        )  # fmt: skip
        presented = RecordPullRequest(self.number, "https://code.example/1", START)
        for command in (request, StartJob("here", START), presented, CompleteJob("Done.", START)):
            await execute(self.store, JOBS, job_id, command)
        await self.views.catch_up()

    @property
    def pull_request(self):
        return OpenPullRequest("o", self.project_id, self.number)

    @property
    def context(self):
        return ReviewContext(self.store, self.views, {"github": self.host}, self.slots, lambda: self.time)

    def reader(self, metered=None, **changes):
        settings = replace(CommentSettings("docsmith", 10, 2.0), **changes)
        return CommentReader(self.context, settings, metered or (lambda *_: self.store))

    async def look(self, reader=None):
        seconds = await (reader or self.reader()).look(self.pull_request)
        await self.views.catch_up()
        return seconds

    async def answer(self, job_id="job"):
        seconds = await CommentAnswers(self.context, mention="docsmith").answer(job_id)
        await self.views.catch_up()
        return seconds

    async def work(self, *ending):
        for command in (
            StartJob("here", self.time),
            OpenWorkspace("a" * 40, self.time),
            RecordModelReply("m", "Yes.", (), Usage(), self.time, messages_seen=100),
            *(ending or [CompleteJob("It is *shorter* now, @eve.", self.time)]),
        ):
            await execute(self.store, JOBS, "job", command)

    async def events(self, kind, job_id="job"):
        events = [JOBS.codec.decode(event) for event in await self.store.read_stream(JOBS.stream(job_id))]
        return [event for event in events if isinstance(event, kind)]

    def answers(self):
        return [one for one in self.host.people.comments if OURS in one.text]


class Killed(BaseException):
    """The process dies."""


class Unwritable:
    """A store whose process dies at the first write."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append(self, *_args, **_named):
        raise Killed


@pytest.fixture
async def site(store, views, tmp_path):
    site = Site(store, views)
    site.data = tmp_path
    await site.make()
    return site


async def test_comment_becomes_a_message_with_file_and_lines(site):
    await site.host.people.say_on_line(1, "@docsmith shorten it", path="guide/a.md", line=3)
    await site.look()
    (message,) = await site.events(MessageAdded)
    assert (message.text, message.comment.author) == ("@docsmith shorten it", "ada")
    assert (message.comment.path, message.comment.first_line, message.comment.number) == ("guide/a.md", 3, 1)
    assert len(await site.events(JobReopened)) == 1


async def test_comment_counts_once_after_a_restart(site):
    await site.host.people.say(1, "@docsmith shorten it")
    reader = site.reader()
    for _ in range(2):
        await site.look(reader)
        await site.look()
    assert len(await site.events(MessageAdded)) == 1
    assert site.host.rights_asked == ["ada"]


async def test_two_readers_at_once_record_a_comment_once(site):
    await site.host.people.say(1, "@docsmith shorten it")
    await asyncio.gather(*(site.reader().look(site.pull_request) for _ in range(5)))
    assert len(await site.events(MessageAdded)) == 1


@pytest.mark.parametrize("author", ["robot", "docsmith"])
async def test_comments_of_bots_and_our_own_are_ignored(site, author):
    text = f"@docsmith shorten it\n\n{OURS}1 -->" if author == "docsmith" else "@docsmith shorten it"
    await site.host.people.say(1, text, author=author)
    before = await site.store.head()
    await site.look()
    assert await site.store.head() == before
    assert site.host.rights_asked == []


async def test_comment_of_a_stranger_is_recorded_as_ignored(site):
    await site.host.people.say(1, "@docsmith shorten it", author="eve")
    for _ in range(2):
        await site.look()
    (ignored,) = await site.events(CommentIgnored)
    assert ignored.reason == "no_write_access"
    assert await site.events(MessageAdded) == []
    assert await site.answer() is None
    assert site.answers() == []


async def test_edit_counts_if_it_mentions_the_agent_newly(site):
    reader = site.reader()
    await site.host.people.say(1, "Shorten it")
    await site.look(reader)
    assert await site.events(MessageAdded) == []
    await site.host.people.edit(1, "Shorten it", "@docsmith shorten it")
    await site.look(reader)
    await site.host.people.edit(1, "@docsmith shorten it", "@docsmith shorten it much")
    await site.look(reader)
    (message,) = await site.events(MessageAdded)
    assert message.text == "@docsmith shorten it"


async def test_comments_go_to_the_newest_job_and_count_once(site):
    await site.host.people.say(1, "@docsmith first")
    await site.look()
    await site.add_job("job-2")
    await site.host.people.say(1, "@docsmith second")
    await site.look()
    assert [message.text for message in await site.events(MessageAdded)] == ["@docsmith first"]
    assert [message.text for message in await site.events(MessageAdded, "job-2")] == ["@docsmith second"]


async def test_answer_is_the_closing_message_in_the_thread(site):
    await site.host.people.say_on_line(1, "@docsmith shorten it", path="guide/a.md", line=3)
    await site.look()
    await site.answer()
    assert site.answers() == []  # the job is at work
    await site.work()
    await site.answer()
    (answer,) = site.answers()
    assert answer.text.startswith("It is *shorter* now, `@eve`.")
    assert (answer.path, answer.thread) == ("guide/a.md", site.host.people.comments[0].id)
    (recorded,) = await site.events(CommentAnswered)
    assert recorded.url.endswith(f"#{answer.id}")


async def test_answer_in_the_conversation_names_its_comments(site):
    for author in ("ada", "grace"):
        await site.host.people.say(1, "@docsmith shorten it", author=author)
    await site.look()
    await site.work()
    await site.answer()
    (answer,) = site.answers()
    assert answer.text.startswith("In answer to [ada](https://")
    assert "[grace](https://" in answer.text
    assert len((await site.events(CommentAnswered))[0].answer_ids) == 2


async def test_answer_is_posted_once_if_its_record_was_lost(site):
    await site.host.people.say(1, "@docsmith shorten it")
    await site.look()
    await site.work()

    dying = CommentAnswers(replace(site.context, store=Unwritable(site.store)), mention="docsmith")
    with pytest.raises(Killed):
        await dying.answer("job")
    assert len(site.answers()) == 1
    assert await site.events(CommentAnswered) == []
    await site.answer()
    assert len(site.answers()) == 1
    assert len(await site.events(CommentAnswered)) == 1


async def test_one_that_leads_no_more_posts_no_answer(site):
    asked = asyncio.Event()

    def leads():
        asked.set()
        return False

    await site.host.people.say(1, "@docsmith shorten it")
    await site.look()
    await site.work()
    paused = CommentAnswers(replace(site.context, leads=leads), mention="docsmith")
    answering = asyncio.create_task(paused.answer("job"))
    await asyncio.wait_for(asked.wait(), 60)
    assert site.answers() == []
    answering.cancel()
    await site.answer()
    assert len(site.answers()) == 1


async def test_comment_after_a_lost_record_has_an_answer_of_its_own(site):
    await site.host.people.say(1, "@docsmith first")
    await site.look()
    await site.work()
    unrecorded = CommentAnswers(replace(site.context, store=Unwritable(site.store)), mention="docsmith")
    with pytest.raises(Killed):
        await unrecorded.answer("job")
    await site.host.people.say(1, "@docsmith second")
    await site.look()
    await site.work(CompleteJob("The second, too.", START))
    await site.answer()
    first, second = site.answers()
    assert "It is *shorter* now" in first.text
    assert "The second, too." in second.text
    assert len(await site.events(CommentAnswered)) == 2


async def test_failure_of_the_job_is_answered(site):
    await site.host.people.say(1, "@docsmith shorten it")
    await site.look()
    await site.work(FailJob("model_refused", "The model refuses.", START))
    await site.answer()
    (answer,) = site.answers()
    assert "This did not work: The model refuses." in answer.text


async def test_eleventh_comment_in_an_hour_is_answered_with_when(site):
    for number in range(12):
        await site.host.people.say(1, f"@docsmith {number}")
    await site.look()
    assert len(await site.events(MessageAdded)) == 10
    await site.answer()
    (answer,) = site.answers()
    assert f"after {START + timedelta(hours=1):%H:%M} UTC" in answer.text
    site.time += timedelta(hours=1)
    await site.host.people.say(1, "@docsmith 13")
    await site.look()
    assert len(await site.events(MessageAdded)) == 11


async def test_closed_pull_request_is_recorded_and_left(site):
    site.host.end(1, "merged")
    await site.host.people.say(1, "@docsmith shorten it")
    assert await site.look() is None
    (closed,) = await site.events(PullRequestClosed)
    assert closed.outcome == "merged"
    assert await site.events(MessageAdded) == []


async def test_quiet_pull_request_is_looked_at_less_often(site):
    reader = site.reader()
    await site.host.people.say(1, "Well done.")
    pauses = [await site.look(reader) for _ in range(20)]
    assert pauses[:2] == [120.0, 150.0]
    assert pauses[-1] == 8 * 120.0
    await site.host.people.say(1, "Thanks.")
    assert await site.look(reader) == 120.0


async def test_failed_look_is_repeated_after_growing_pauses(site):
    reader = site.reader(poll_minutes=0)
    site.host.errors = [Unavailable("down"), Unavailable("down"), RateLimited("later", retry_after_seconds=900)]
    await site.host.people.say(1, "@docsmith shorten it")
    assert [await site.look(reader) for _ in range(4)] == [30.0, 60.0, 900.0, 3600.0]
    assert await site.look(reader) is None
    assert len(await site.events(MessageAdded)) == 1


async def test_failed_answer_is_tried_again_and_given_up_after_a_day(site):
    await site.host.people.say(1, "@docsmith shorten it")
    await site.look()
    await site.work()
    site.host.errors = [Forbidden("locked", code="rights_missing")]
    assert await site.answer() == 30.0
    assert await site.events(CommentAnswered) == []
    site.time += timedelta(days=2)
    site.host.errors = [Forbidden("locked", code="rights_missing")]
    assert await site.answer() is None
    (given_up,) = await site.events(CommentAnswered)
    assert (given_up.url, given_up.failure) == ("", "rights_missing")


async def test_reported_comment_is_read_and_answered(store, followed):
    site = Site(store, followed)
    await site.make()
    await execute(store, INCOMING, site.project_id, SetIncomingSecret(make_secret(bytes(32)), START))
    reader = site.reader(poll_minutes=0)
    answers = CommentAnswers(site.context, mention="docsmith")
    running = [asyncio.create_task(reader.run()), asyncio.create_task(answers.run())]
    await asyncio.wait_for(site.host.looked.wait(), 60)  # the first look at all
    await site.host.people.say(1, "@docsmith shorten it")
    await execute(store, INCOMING, site.project_id, RecordCommentReport("d1", "github", 1, START))
    assert INCOMING.codec.decode((await store.read_stream(INCOMING.stream(site.project_id)))[-1]) == CommentReported(
        "d1", "github", 1, START
    )
    async with asyncio.timeout(60):
        async for recorded in store.subscribe(after=0, category=JOBS.category):
            match JOBS.codec.decode(recorded):
                case MessageAdded():
                    await site.work()
                case CommentAnswered():
                    break
                case _:
                    pass
    assert len(site.answers()) == 1
    for task in running:
        task.cancel()
    await asyncio.wait(running)


async def test_open_pull_requests_are_found_by_job_or_number(site):
    await site.add_job("other")
    await execute(site.store, JOBS, "other", ClosePullRequest("merged", START))
    await site.views.catch_up()
    assert await open_pull_request_of_job(site.views, "job") == [site.pull_request]
    assert await open_pull_request_of_job(site.views, "other") == []
    assert await open_pull_request(site.views, site.project_id, site.number) == [site.pull_request]
    assert await open_pull_request(site.views, "another", site.number) == []
    assert await open_pull_request(site.views, site.project_id, site.number + 1) == []


async def test_question_of_the_agent_says_how_to_answer(site):
    await site.host.people.say(1, "@docsmith shorten it")
    await site.look()
    await site.work(RecordFinish("Shorten", "Which one?", START, "asked"), CompleteJob("Which one?", START))
    await site.answer()
    (answer,) = site.answers()
    assert "Which one?\n\nTo answer, mention `@docsmith` in a comment." in answer.text


async def test_comment_over_the_limit_of_its_project_waits(site):
    admission = Admission(site.store, site.views, b"secret", AdmissionSettings(Limits(project=1)))
    await admission.load()
    counting = next(run for name, run, _ in admission.workers() if name == "admissions")
    task = asyncio.create_task(counting())
    reader = site.reader(admission.metered, poll_minutes=0)
    for number in range(2):
        await site.host.people.say(1, f"@docsmith {number}")
    assert await site.look(reader) > 3000
    assert len(await site.events(MessageAdded)) == 1
    task.cancel()
    await asyncio.wait([task])


async def test_comment_that_shows_late_counts(site):
    reader = site.reader()
    await site.host.people.say(1, "Well done.")
    await site.look(reader)
    await site.host.people.submit(1, "@docsmith shorten it", path="guide/a.md", line=3)
    await site.look(reader)
    assert [message.text for message in await site.events(MessageAdded)] == ["@docsmith shorten it"]
