"""What each read table shows after which events."""

from collections import namedtuple
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from eventstore import SQLiteEventStore, Views
from service.domain.access.keys import KeyChanged, KeyCreated, KeyRevoked, KeyUsed
from service.domain.access.usage import LONGEST_WINDOW_SECONDS, STREAM_ID, RequestAccepted
from service.domain.erasures import SubjectErased
from service.domain.hooks.deliveries import DeliveryAttempted
from service.domain.hooks.webhooks import (
    WebhookChanged,
    WebhookCreated,
    WebhookDeleted,
    WebhookDisabled,
    WebhookEnabled,
)
from service.domain.jobs.decider import (
    BranchChanged,
    ChecksReported,
    JobArchived,
    JobCompleted,
    JobFailed,
    JobInterrupted,
    JobReopened,
    JobRequested,
    JobStarted,
    JobUnarchived,
    ModelReplied,
    Problem,
    PullRequestOpened,
)
from service.domain.jobs.events import JobResumed, JobWaiting
from service.domain.model import Usage
from service.domain.organizations import OrganizationCreated
from service.domain.projects.decider import ProjectChanged, ProjectCreated
from service.domain.sites import (
    IndexFailed,
    IndexKept,
    IndexRequested,
    SiteAccessChanged,
    SiteIndexed,
    SiteRegistered,
    SiteWidgetChanged,
)
from service.domain.threads.recorded_reply import ReaderLeft, ReplyCompleted, ReplyFailed, ReplyStarted, ReplyStopped
from service.domain.threads.threads import ThreadStarted
from service.domain.widget import Widget
from service.queries.access.keys import list_keys
from service.queries.access.usage import accepted_after, questions_by_hour
from service.queries.jobs.jobs import JobSlots, active_jobs, jobs_of_pull_request, list_jobs
from service.queries.organizations import list_organizations
from service.queries.projects import list_projects
from service.queries.read_models import read_models
from service.queries.sites import list_sites
from service.queries.threads import active_replies
from service.queries.webhooks import due_deliveries, list_deliveries, list_webhooks
from service.streams import (
    DELIVERIES,
    ERASURES,
    JOBS,
    KEYS,
    ORGANIZATIONS,
    PROJECTS,
    SITES,
    THREADS,
    USAGE,
    WEBHOOKS,
)
from service.views.jobs.jobs import JobWaitView
from tests.projections.given import Log

NOW, LATER = (datetime(2026, 1, day, tzinfo=UTC) for day in (2, 3))
AT, AT_LATER = "2026-01-02T00:00:00.000Z", "2026-01-03T00:00:00.000Z"


@pytest.fixture
async def log(tmp_path):
    async with (
        await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store,
        await Views.open(tmp_path / "views.db", store, read_models()) as live,
    ):
        yield Log(tmp_path, store, live)


def of(decider, entity, *events):
    return [(decider, entity, event) for event in events]


async def jobs(views, *, archived=True):
    return (await list_jobs(views, "p", JobSlots(1, 1), limit=9, archived=archived)).jobs


async def problems(views):
    return [problem for job in await jobs(views) for problem in job.problems]


async def requests(views):
    return (await accepted_after(views, (0, 0), 1 << 60))[0]


def attempted(outcome, attempt=1, status=503):
    return DeliveryAttempted(
        "w", "j", "job.active", attempt, status, "", 0.1, outcome, NOW, LATER if outcome == "retry" else None
    )


async def hours(views):
    return [HourOf(*one) for one in (await questions_by_hour(views, "p", 0)).items()]


def read(at):
    return RequestAccepted("assistant", at, "o", "p", "k", "a", is_reader=True)


def accepted(at):
    return RequestAccepted("agent", at, "o", "p", "k", "a")


HOUR = int(NOW.timestamp()) // 3600
HourOf = namedtuple("HourOf", "hour questions")
KEY = KeyCreated("assistant", "o", "Site", "d" * 64, "abcd", ("guide",), NOW, None, ("192.0.2.0/24",))
PROJECT = ProjectCreated("o", "Guide", "/r", "main", "docs", "guide", "gitea", NOW, labels=("docs",))
SITE = SiteRegistered("p", "o", NOW)
INDEXED = SiteIndexed("c1", "f1", 3, 7, (), 1, 0.5, LATER)
FAILED = IndexFailed("unavailable", "Down.", LATER)
THREAD = ThreadStarted("o", "p", "guide", "", "k", NOW)
REPLY = ReplyStarted("r", "m", "one", NOW)
WEBHOOK = WebhookCreated("o", None, ("job.active", "job.failed"), "https://x.y/", "whsec_x", NOW)
ELSEWHERE = WebhookCreated("o", "q", ("job.active",), "https://x.y/", "whsec_x", NOW)
OTHERS = WebhookCreated("other", None, ("job.active",), "https://x.y/", "whsec_x", NOW)
REQUESTED = JobRequested("o", "p", "/r", "main", "", "builtin", (), "Title", "docs/x", False, False, 2, NOW)
STARTED = JobStarted(1, "one", NOW)
OPENED = PullRequestOpened(7, "https://h/7", NOW)
COMPLETED = JobCompleted("Done", NOW)
BROKEN = Problem("front-matter", "a.md", "Broken.", 3)
LONG = Problem("size", "", "Long.", severity="warning", code="too_large")
PAUSED = JobWaiting("git", "down", NOW, LATER, tries=1, attempt=0)
JOB_FAILED = JobFailed("internal", "Oh.", NOW)
REOPENED = JobReopened(2, False, LATER)
ERASED = (ERASURES, "job-j", SubjectErased(NOW))

KEY_ROW = "name allowed_addresses status used_at revoked_at"
SITE_ROW = "index_wanted wanted_at commit pages indexed_at failure.times"
JOB_ROW = "status title branch pr_link failure.code archived_at queue_position"
WAITING = ("active", "Title", "docs/x", None, None, None)
STATE_ROW = "webhook_id event state attempts status next_attempt_at"


async def sites(views):
    return [site.view for site in await list_sites(views)]


async def costs(views):
    return [job.usage for job in await jobs(views)]


TABLE = {
    "organization": (
        of(ORGANIZATIONS, "o", OrganizationCreated("Acme", NOW)),
        list_organizations, "id name created_at", [("o", "Acme", AT)],
    ),
    "project": (
        of(PROJECTS, "p", PROJECT),
        list_projects, "id name ref docs_folder labels", [("p", "Guide", "main", "docs", ("docs",))],
    ),
    "project changed": (
        of(PROJECTS, "p", PROJECT, ProjectChanged(LATER, ref="next", docs_folder="", labels=())),
        list_projects, "id name ref docs_folder labels", [("p", "Guide", "next", "", ())],
    ),
    "key": (of(KEYS, "k", KEY), list_keys, KEY_ROW, [("Site", ("192.0.2.0/24",), "in_force", None, None)]),
    "key changed and used": (
        of(KEYS, "k", KEY, KeyChanged(NOW, allowed_addresses=()), KeyUsed(LATER)),
        list_keys, KEY_ROW, [("Site", (), "in_force", AT_LATER, None)],
    ),
    "key revoked": (
        of(KEYS, "k", KEY, KeyChanged(NOW, name="Old"), KeyRevoked(LATER)),
        list_keys, KEY_ROW, [("Old", ("192.0.2.0/24",), "revoked", None, AT_LATER)],
    ),
    "site": (of(SITES, "guide", SITE), sites, SITE_ROW, [(True, AT, None, 0, None, None)]),
    "site indexed": (of(SITES, "guide", SITE, INDEXED), sites, SITE_ROW, [(False, None, "c1", 3, AT_LATER, None)]),
    "site wanted again keeps the first time": (
        of(SITES, "guide", SITE, INDEXED, IndexRequested("a push", NOW), IndexRequested("a push", LATER)),
        sites, SITE_ROW, [(True, AT, "c1", 3, AT_LATER, None)],
    ),
    "site failed": (
        of(SITES, "guide", SITE, FAILED, IndexRequested("again", LATER), FAILED),
        sites, SITE_ROW, [(False, AT, None, 0, None, 2)],
    ),
    "site kept after a failure": (
        of(SITES, "guide", SITE, INDEXED, FAILED, IndexKept("c1", LATER)),
        sites, SITE_ROW, [(False, None, "c1", 3, AT_LATER, None)],
    ),
    "site opened and indexed again": (
        of(SITES, "guide", SITE, SiteAccessChanged(True, ("https://a.example",), NOW), INDEXED),
        sites, "public origins pages", [(True, ("https://a.example",), 3)],
    ),
    "site opened and closed": (
        of(SITES, "guide", SITE, SiteAccessChanged(True, (), NOW), SiteAccessChanged(False, (), LATER)),
        sites, "public origins", [(False, ())],
    ),
    "site widget changed": (
        of(SITES, "guide", SITE, SiteWidgetChanged(Widget("Ask", suggestions=("How?",), form="modal"), NOW), INDEXED),
        sites, "widget.title widget.suggestions widget.form widget.accent pages",
        [("Ask", ("How?",), "modal", "", 3)],
    ),
    "questions of readers by hour": (
        of(USAGE, STREAM_ID, accepted(NOW), read(NOW), read(NOW), read(LATER)),
        hours, "hour questions", [(HOUR, 2), (HOUR + 24, 1)],
    ),
    "jobs wait in turn": (
        [*of(JOBS, "a", REQUESTED, STARTED), *of(JOBS, "b", REQUESTED), *of(JOBS, "c", REQUESTED)],
        jobs, JOB_ROW, [(*WAITING, 2), (*WAITING, 1), (*WAITING, None)],
    ),
    "interrupted job waits behind the others": (
        [*of(JOBS, "a", REQUESTED, STARTED), *of(JOBS, "b", REQUESTED), *of(JOBS, "a", JobInterrupted(1, NOW))],
        active_jobs, "", [("b", "o"), ("a", "o")],
    ),
    "paused job is in no queue": (
        [*of(JOBS, "a", REQUESTED, STARTED, PAUSED), *of(JOBS, "b", REQUESTED)],
        jobs, "queue_position waiting",
        [(None, None), (None, JobWaitView("git", AT, AT_LATER, "down"))],
    ),
    "resumed job queues": (
        [*of(JOBS, "a", REQUESTED, STARTED, PAUSED), *of(JOBS, "b", REQUESTED, STARTED),
         *of(JOBS, "a", JobResumed(LATER))],
        jobs, "queue_position waiting",
        [(None, None), (1, JobWaitView("turn", AT_LATER, None, "It is at place 1 in the queue."))],
    ),
    "cancelled job waits for nothing": (
        of(JOBS, "j", REQUESTED, STARTED, PAUSED, JOB_FAILED), jobs, "status waiting", [("failed", None)],
    ),
    "job with its pull request's title": (
        of(JOBS, "j", REQUESTED, STARTED, PullRequestOpened(7, "https://h/7", NOW, "Explain"), COMPLETED),
        jobs, "title", [("Explain",)],
    ),
    "job completed": (
        of(JOBS, "j", REQUESTED, STARTED, OPENED, COMPLETED),
        jobs, JOB_ROW, [("completed", "Title", "docs/x", "https://h/7", None, None, None)],
    ),
    "job completed before outcomes were recorded": (
        [*of(JOBS, "a", REQUESTED, OPENED, COMPLETED), *of(JOBS, "b", REQUESTED, COMPLETED)],
        jobs, "outcome message problems", [("nothing_changed", "Done", []), ("pull_request", "Done", [])],
    ),
    "job's outcome is that of its last round": (
        of(JOBS, "j", REQUESTED, OPENED, COMPLETED, REOPENED, JobCompleted("No.", LATER, "nothing_changed")),
        jobs, "pr_link outcome message", [("https://h/7", "nothing_changed", "No.")],
    ),
    "active job has no outcome": (
        of(JOBS, "j", REQUESTED, OPENED, COMPLETED, REOPENED), jobs, "outcome message", [(None, None)],
    ),
    "failed job's message is its failure": (
        of(JOBS, "j", REQUESTED, JOB_FAILED), jobs, "outcome message", [("failed", "Oh.")],
    ),
    "job's problems are those of the last checks, errors first": (
        of(JOBS, "j", REQUESTED, ChecksReported(1, (LONG, BROKEN, BROKEN), True, NOW),
           ChecksReported(2, (LONG, BROKEN), False, NOW)),
        problems, "severity file line code message",
        [("error", "a.md", 3, "front_matter", "Broken."), ("warning", None, None, "too_large", "Long.")],
    ),
    "job failed and archived": (
        of(JOBS, "j", REQUESTED, JOB_FAILED, JobArchived(LATER)),
        jobs, JOB_ROW, [("failed", "Title", "docs/x", None, "internal", AT_LATER, None)],
    ),
    "archived job is not listed": (
        of(JOBS, "j", REQUESTED, JobArchived(LATER)), partial(jobs, archived=False), "id", [],
    ),
    "job unarchived is listed": (
        of(JOBS, "j", REQUESTED, JobArchived(LATER), JobUnarchived(LATER)),
        partial(jobs, archived=False), "id", [("j",)],
    ),
    "job reopened on another branch": (
        of(JOBS, "j", REQUESTED, JOB_FAILED, JobArchived(NOW), REOPENED, BranchChanged("docs/y", LATER)),
        jobs, "status branch failure archived_at", [("active", "docs/y", None, None)],
    ),
    "job of a pull request": (
        [*of(JOBS, "a", REQUESTED, OPENED), *of(JOBS, "b", REQUESTED)],
        partial(jobs_of_pull_request, project_id="p", number=7), "", ["a"],
    ),
    "job erased": (
        [*of(JOBS, "j", REQUESTED, COMPLETED), ERASED],
        jobs, "status title branch", [("completed", "[erased]", "[erased]")],
    ),
    "job's usage is a sum, of known prices": (
        of(JOBS, "j", REQUESTED, *(ModelReplied("m", "", (), Usage(3, 2, cost), NOW) for cost in (0.5, None, 0.25))),
        costs, "input_tokens output_tokens cost_usd", [(9, 6, 0.75)],
    ),
    "reply under way": (
        of(THREADS, "t", THREAD, REPLY, ReaderLeft("r", NOW)),
        active_replies, "thread_id reply_id instance", [("t", "r", "one")],
    ),
    "reply completed": (
        of(THREADS, "t", THREAD, REPLY, ReplyCompleted("r", "So.", (), "answered", "m", Usage(), NOW)),
        active_replies, "reply_id", [],
    ),
    "reply stopped": (of(THREADS, "t", THREAD, REPLY, ReplyStopped("r", "stopped", NOW)), active_replies, "", []),
    "reply failed": (of(THREADS, "t", THREAD, REPLY, ReplyFailed("r", "x", "Oh.", NOW)), active_replies, "", []),
    "requests stay while there are few": (
        of(
            USAGE, STREAM_ID, accepted(NOW), accepted(NOW + timedelta(milliseconds=1)),
            accepted(NOW + timedelta(seconds=LONGEST_WINDOW_SECONDS)),
        ),
        requests, "accepted_at",
        [(NOW,), (NOW + timedelta(milliseconds=1),), (NOW + timedelta(seconds=LONGEST_WINDOW_SECONDS),)],
    ),
    "webhook with other events": (
        of(WEBHOOKS, "w", WEBHOOK, WebhookChanged(("job.completed",), NOW)),
        list_webhooks, "id events", [("w", ("job.completed",))],
    ),
    "webhook disabled": (
        [*of(WEBHOOKS, "w", WEBHOOK), *of(JOBS, "j", REQUESTED), *of(WEBHOOKS, "w", WebhookDisabled("gone", NOW))],
        list_webhooks, "id events disabled pending", [("w", ("job.active", "job.failed"), "gone", 0)],
    ),
    "webhook enabled again": (
        of(WEBHOOKS, "w", WEBHOOK, WebhookDisabled("gone", NOW), WebhookEnabled(NOW)),
        list_webhooks, "id disabled pending", [("w", None, 0)],
    ),
    "disabled webhook is due nothing": (
        [*of(WEBHOOKS, "w", WEBHOOK, WebhookDisabled("gone", NOW)), *of(JOBS, "j", REQUESTED)],
        list_deliveries, "", [],
    ),
    "webhook deleted with its deliveries": (
        [*of(WEBHOOKS, "w", WEBHOOK), *of(JOBS, "j", REQUESTED), *of(WEBHOOKS, "w", WebhookDeleted(NOW))],
        list_deliveries, "id", [],
    ),
    "deliveries for the webhooks there are, of the events they want": (
        [
            *of(JOBS, "j", REQUESTED), *of(WEBHOOKS, "w", WEBHOOK), *of(WEBHOOKS, "v", OTHERS),
            *of(WEBHOOKS, "u", ELSEWHERE),
            *of(JOBS, "j", COMPLETED, REOPENED, JOB_FAILED),
        ],
        list_deliveries, STATE_ROW,
        [("w", "job.failed", "pending", 0, None, None), ("w", "job.active", "pending", 0, None, None)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("events", "query", "columns", "rows"), TABLE.values(), ids=TABLE)
async def test_rows_after_events(log, events, query, columns, rows):
    await log.given(*events)
    assert await log.then(query, columns) == rows


@pytest.mark.parametrize(
    ("outcomes", "row"),
    [
        (["retry"], ("pending", 1, 503, AT_LATER)),
        (["retry", "delivered"], ("delivered", 2, 200, None)),
        (["retry", "exhausted"], ("failed", 2, 503, None)),
        (["gone"], ("failed", 1, 503, None)),
    ],
)
async def test_delivery_after_attempts(log, outcomes, row):
    await log.given(*of(WEBHOOKS, "w", WEBHOOK), *of(JOBS, "j", REQUESTED))
    [(delivery,)] = await log.then(list_deliveries, "id")
    tries = (attempted(end, at, 200 if end == "delivered" else 503) for at, end in enumerate(outcomes, 1))
    await log.given(*of(DELIVERIES, delivery, *tries))
    assert await log.then(list_deliveries, "state attempts status next_attempt_at") == [row]
    due = partial(due_deliveries, now=LATER, for_each_webhook=1, limit=1)
    assert await log.then(due, "id") == ([(delivery,)] if row[0] == "pending" else [])
