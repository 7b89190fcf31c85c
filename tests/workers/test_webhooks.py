"""What webhooks are told of jobs, in which order, how often, and what happens when they do not answer."""

import asyncio
import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook as Oracle

from eventstore import Metadata, OutcomeUnknown, Views, execute, load
from service.commands.erasures import erase_subject
from service.domain.errors import Conflict
from service.domain.hooks.deliveries import RecordAttempt, RequestDelivery
from service.domain.hooks.webhooks import (
    CreateWebhook,
    DeleteWebhook,
    EnableWebhook,
    RequestTest,
    Webhook,
    make_secret,
)
from service.domain.jobs.decider import (
    AddMessage,
    CompleteJob,
    FailJob,
    Message,
    RecordPullRequest,
    RequestJob,
    StartJob,
)
from service.ports.webhook_sender import Answer
from service.projections.webhooks import WebhooksView
from service.queries.webhooks import get_webhook, list_deliveries, list_webhooks
from service.streams import DELIVERIES, JOBS, WEBHOOKS
from service.workers.webhooks import FOR_EACH_WEBHOOK, Webhooks
from tests.fakes.webhook_sender import FakeWebhookSender

NOW = datetime(2026, 1, 2, tzinfo=UTC)
URL = "https://one.example/hook"
OTHER = "https://two.example/hook"
SECRET = make_secret(bytes(32))
ALL = ("job.active", "job.completed", "job.failed")


class FakeTime:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC).replace(microsecond=0)
        self._sleepers: list[asyncio.Future[None]] = []
        self._changed = asyncio.Event()

    def __call__(self) -> datetime:
        return self.now

    async def sleep(self, _seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self._sleepers.append(future)
        self._changed.set()
        await future

    async def asleep(self) -> None:
        """Until somebody sleeps, having seen what time it is."""
        async with asyncio.timeout(60):
            while not (sleepers := [one for one in self._sleepers if not one.done()]):
                self._changed.clear()
                await self._changed.wait()
        self._sleepers = sleepers

    async def go_to(self, time: datetime) -> None:
        """Set the clock, and wake whoever sleeps."""
        self.now = time
        await self.asleep()
        for one in self._sleepers:
            one.set_result(None)


@pytest.fixture
def sender():
    return FakeWebhookSender()


@pytest.fixture
def time():
    return FakeTime()


@asynccontextmanager
async def running(store, views, sender, time, *, concurrent_deliveries=10, leads=lambda: True):
    worker = Webhooks(
        store, views, sender, concurrent_deliveries=concurrent_deliveries, clock=time,
        sleep=time.sleep, jitter=lambda: 0.0, leads=leads,
    )  # fmt: skip
    task = asyncio.create_task(worker.run())
    try:
        yield task
    finally:
        ended_early = task.done()
        task.cancel()
        await asyncio.wait([task])
        assert not ended_early, task.exception()


async def create(store, webhook_id="w", url=URL, *, events=ALL, project_id=None, organization_id="o"):
    command = CreateWebhook(organization_id, project_id, events, url, SECRET, False, NOW)
    await execute(store, WEBHOOKS, webhook_id, command)


async def request(store, job_id="j", *, project_id="p", title="Look around"):
    command = RequestJob(
        "o", project_id, "repo", "main", "", "fake/model", (Message("user", title),), title, f"docs/{job_id}",
        branch_named=True, as_draft=False, api_version=2, now=NOW,
    )  # fmt: skip
    await execute(store, JOBS, job_id, command)


async def complete(store, job_id="j"):
    await execute(store, JOBS, job_id, StartJob("here", NOW))
    await execute(store, JOBS, job_id, RecordPullRequest(7, "https://code.example/pulls/7", NOW))
    await execute(store, JOBS, job_id, CompleteJob("Done.", NOW))


def told(sent):
    return [json.loads(one.body)["type"] for one in sent]


async def outcomes(store, delivery):
    events = await store.read_stream(DELIVERIES.stream(delivery))
    return [DELIVERIES.codec.decode(event) for event in events]


async def attempts(store, number):
    """The deliveries' events, once they are so many."""
    found = []
    async with asyncio.timeout(60):
        async for event in store.subscribe(category=DELIVERIES.category):
            found.append(DELIVERIES.codec.decode(event))
            if len(found) == number:
                return found
    raise AssertionError


async def test_each_change_of_a_job_is_sent_signed_and_in_order(store, followed, sender, time):
    await create(store)
    async with running(store, followed, sender, time):
        await request(store)
        await complete(store)
        sent = await sender.until_sent(2)
        await attempts(store, 2)
    assert told(sent) == ["job.active", "job.completed"]
    for one in sent:
        body = Oracle(SECRET).verify(one.body, one.headers)
        assert one.headers["webhook-timestamp"] == str(int(time.now.timestamp()))
        assert set(body) == {"type", "timestamp", "data"}
        assert body["data"]["projectId"] == "p"
        assert body["data"]["id"] == "j"
    active, completed = (json.loads(one.body)["data"] for one in sent)
    assert (active["status"], active["prLink"], active["title"]) == ("active", None, "Look around")
    assert (completed["status"], completed["prLink"]) == ("completed", "https://code.example/pulls/7")
    assert sent[0].headers["webhook-id"] != sent[1].headers["webhook-id"]


async def test_continued_job_is_sent_as_active_again(store, followed, sender, time):
    await create(store)
    async with running(store, followed, sender, time):
        await request(store)
        await execute(store, JOBS, "j", FailJob("timed_out", "It took too long.", NOW))
        await sender.until_sent(2)
        await execute(store, JOBS, "j", AddMessage("Go on.", NOW))
        sent = await sender.until_sent(3)
        await attempts(store, 3)
    assert told(sent) == ["job.active", "job.failed", "job.active"]
    failed, again = (json.loads(one.body)["data"] for one in sent[1:])
    assert (failed["status"], failed["failure"]["code"]) == ("failed", "timed_out")
    assert (again["status"], again["failure"]) == ("active", None)
    assert len({one.headers["webhook-id"] for one in sent}) == 3


async def test_webhook_gets_the_events_it_asked_for(store, followed, sender, time):
    await request(store, "before")
    await create(store, "failures", URL, events=("job.failed",))
    await create(store, "project", OTHER, project_id="p2")
    await create(store, "stranger", "https://three.example/", organization_id="o2")
    async with running(store, followed, sender, time):
        await execute(store, JOBS, "before", FailJob("cancelled", "Not wanted.", NOW))
        await request(store, "first")
        await request(store, "second", project_id="p2")
        sent = await sender.until_sent(2)
        await attempts(store, 2)
        await followed.wait_for(await store.head())
    assert await list_deliveries(followed, state="pending") == []
    assert {(one.url, json.loads(one.body)["data"]["id"]) for one in sent} == {(URL, "before"), (OTHER, "second")}
    failed = next(json.loads(one.body)["data"] for one in sent if one.url == URL)
    assert failed["failure"] == {"code": "cancelled", "message": "Not wanted."}


async def test_worker_that_leads_no_more_sends_nothing(store, followed, sender, time):
    asked = asyncio.Event()

    def leads():
        asked.set()
        return False

    await create(store)
    async with running(store, followed, sender, time, leads=leads):
        await request(store)
        await asyncio.wait_for(asked.wait(), 60)
    assert sender.sent == []
    async with running(store, followed, sender, time):
        assert told(await sender.until_sent(1)) == ["job.active"]


async def test_worker_that_leads_again_sends_what_was_under_way(store, followed, sender, time):
    await create(store)
    sender.held[URL] = asyncio.Event()
    worker = Webhooks(store, followed, sender, concurrent_deliveries=1, clock=time, sleep=time.sleep)
    await request(store)
    for number in (1, 2):
        run = asyncio.create_task(worker.run())
        sent = await sender.until_sent(number)
        run.cancel()
        await asyncio.wait([run])
    assert sent[0].headers["webhook-id"] == sent[1].headers["webhook-id"]


async def test_failed_delivery_is_retried_on_schedule_unchanged(store, followed, sender, time):
    await create(store)
    sender.answers[URL] = [Answer(500), Answer(None, "timed_out"), Answer(302)]
    async with running(store, followed, sender, time):
        await request(store)
        for number, seconds in ((1, 5), (2, 300), (3, 1800)):
            event = (await attempts(store, number))[-1]
            assert event.next_attempt_at - event.attempted_at == timedelta(seconds=seconds)
            await followed.wait_for(await store.head())
            await time.go_to(event.next_attempt_at - timedelta(seconds=1))
            await time.asleep()
            assert len(sender.sent) == number
            await time.go_to(event.next_attempt_at)
        events = await attempts(store, 4)
    assert [(event.attempt, event.status, event.error, event.outcome) for event in events] == [
        (1, 500, "", "retry"), (2, None, "timed_out", "retry"), (3, 302, "", "retry"), (4, 200, "", "delivered"),
    ]  # fmt: skip
    assert len({one.headers["webhook-id"] for one in sender.sent}) == 1
    assert len({one.body for one in sender.sent}) == 1
    assert len({one.headers["webhook-timestamp"] for one in sender.sent}) == 4
    for one in sender.sent[3:]:
        assert int(one.headers["webhook-timestamp"]) == int(time.now.timestamp())


async def test_later_change_waits_for_the_earlier_one_within_a_bound(store, followed, sender, time):
    await create(store)
    sender.answers[URL] = [Answer(500)] * 3
    async with running(store, followed, sender, time):
        await request(store)
        await complete(store)
        for number in (1, 2):
            await time.go_to((await attempts(store, number))[-1].next_attempt_at)
        await attempts(store, 4)
    assert told(sender.sent) == ["job.active"] * 3 + ["job.completed"]


async def test_requested_pause_holds_for_all_deliveries_there(store, followed, sender, time):
    await create(store)
    sender.answers[URL] = [Answer(503, "", 120.0)]
    async with running(store, followed, sender, time):
        await request(store, "one")
        (event,) = await attempts(store, 1)
        await request(store, "two")
        await followed.wait_for(await store.head())
        await time.go_to(time.now + timedelta(seconds=119))
        await time.asleep()
        assert len(sender.sent) == 1
        assert event.hold_until == time.now + timedelta(seconds=1)
        await time.go_to(event.hold_until)
        await attempts(store, 3)


async def test_gone_disables_the_webhook_with_the_attempt(store, followed, sender, time):
    await create(store)
    sender.answers[URL] = [Answer(410)]
    sender.held[URL] = asyncio.Event()
    async with running(store, followed, sender, time):
        await request(store)
        await complete(store)
        await followed.wait_for(await store.head())
        sender.held[URL].set()
        (event,) = await attempts(store, 1)
        await followed.wait_for(await store.head())
        rows = await list_deliveries(followed, state="failed")
        await request(store, "later")
        await followed.wait_for(await store.head())
    assert event.outcome == "gone"
    assert (await load(store, WEBHOOKS, "w")).state.disabled == "gone"
    assert len(sender.sent) == 1
    assert [row.event for row in rows] == ["job.completed", "job.active"]
    assert len(await list_deliveries(followed)) == 2


async def exhaust(store, time, *, after=0):
    """Let every attempt of the only delivery that is left be made."""
    for number in range(after + 1, after + 8):
        await time.go_to((await attempts(store, number))[-1].next_attempt_at)
    assert (await attempts(store, after + 8))[-1].outcome == "exhausted"


async def test_webhook_that_keeps_failing_is_disabled_until_enabled(store, followed, sender, time):
    await create(store)
    sender.answers[URL] = [Answer(500)] * 8
    async with running(store, followed, sender, time):
        await request(store)
        await exhaust(store, time)
        await followed.wait_for(await store.head())
        row = await get_webhook(followed, "w")
        assert (row.disabled, row.pending) == ("failing", 0)
        await execute(store, WEBHOOKS, "w", EnableWebhook(NOW))
        await request(store, "next")
        await attempts(store, 9)
    assert json.loads(sender.sent[-1].body)["data"]["id"] == "next"


async def test_a_webhook_that_something_reaches_is_not_disabled(store, followed, sender, time):
    await create(store)
    sender.answers[URL] = [Answer(500), Answer(200), *[Answer(500)] * 7]
    async with running(store, followed, sender, time):
        await request(store)
        (first,) = await attempts(store, 1)
        await request(store, "other")
        await attempts(store, 2)
        await time.go_to(first.next_attempt_at)
        for number in range(3, 9):
            await time.go_to((await attempts(store, number))[-1].next_attempt_at)
        assert (await attempts(store, 9))[-1].outcome == "exhausted"
        await followed.wait_for(await store.head())
        assert (await get_webhook(followed, "w")).disabled is None
        assert len(await list_deliveries(followed, state="failed")) == 1


async def test_a_delivery_can_be_asked_for_again(store, followed, sender, time):
    await create(store)
    async with running(store, followed, sender, time):
        await request(store)
        await attempts(store, 1)
        delivery = sender.sent[0].headers["webhook-id"]
        await execute(store, DELIVERIES, delivery, RequestDelivery("w", NOW))
        await attempts(store, 3)
    assert sender.sent[0].headers["webhook-id"] == sender.sent[1].headers["webhook-id"]
    assert sender.sent[0].body == sender.sent[1].body


async def test_test_is_sent_once_signed_and_disables_nothing(store, followed, sender, time):
    await create(store, events=("job.failed",))
    sender.answers[URL] = [Answer(500), Answer(204)]
    async with running(store, followed, sender, time):
        await execute(store, WEBHOOKS, "w", RequestTest(NOW))
        with pytest.raises(Conflict, match="less than 10 seconds"):
            await execute(store, WEBHOOKS, "w", RequestTest(NOW + timedelta(seconds=9)))
        (failed,) = await attempts(store, 1)
        await execute(store, WEBHOOKS, "w", RequestTest(NOW + timedelta(seconds=10)))
        _, arrived = await attempts(store, 2)
        await followed.wait_for(await store.head())
        webhook, [second, first] = await get_webhook(followed, "w"), await list_deliveries(followed)
    assert (failed.outcome, arrived.outcome) == ("exhausted", "delivered")
    assert (webhook.disabled, webhook.pending) == (None, 0)
    assert [(one.event, one.job_id, one.state) for one in (first, second)] == [
        ("webhook.test", None, "failed"), ("webhook.test", None, "delivered"),
    ]  # fmt: skip
    body = Oracle(SECRET).verify(sender.sent[1].body, sender.sent[1].headers)
    assert (body["type"], body["data"]) == ("webhook.test", {"id": "w"})


async def test_slow_webhook_delays_no_other(store, followed, sender, time):
    await create(store, "slow", URL)
    await create(store, "quick", OTHER)
    sender.held[URL] = asyncio.Event()
    async with running(store, followed, sender, time, concurrent_deliveries=FOR_EACH_WEBHOOK + 1):
        for number in range(5):
            await request(store, f"j{number}")
        await attempts(store, 5)
        assert sender.in_flight == {URL: FOR_EACH_WEBHOOK, OTHER: 0}
        sender.held[URL].set()
        await attempts(store, 10)
    told_slowly = {json.loads(one.body)["data"]["id"] for one in sender.sent if one.url == URL}
    assert told_slowly == {f"j{number}" for number in range(5)}


async def test_delivery_that_waited_longest_is_next(store, followed, sender, time):
    for number in range(3):
        await create(store, f"slow{number}", f"https://slow{number}.example/")
    for number in range(3):
        await request(store, f"j{number}")
    await create(store, "late", OTHER)
    await request(store, "last")
    async with running(store, followed, sender, time, concurrent_deliveries=1):
        sent = await sender.until_sent(5)
        await attempts(store, 5)
    assert OTHER in [one.url for one in sent[:4]]


async def test_number_of_simultaneous_deliveries_is_bounded(store, followed, sender, time):
    for number in range(6):
        await create(store, f"w{number}", f"https://{number}.example/")
        sender.held[f"https://{number}.example/"] = asyncio.Event()
    async with running(store, followed, sender, time, concurrent_deliveries=4):
        await request(store)
        await sender.until_sent(4)
        await followed.wait_for(await store.head())
        assert len(sender.sent) == 4
        for held in sender.held.values():
            held.set()
        await attempts(store, 6)


async def test_unrecorded_attempt_is_repeated_with_the_same_id(tmp_path, store, followed, sender, time):
    await create(store)
    sender.held[URL] = asyncio.Event()
    async with running(store, followed, sender, time):
        await request(store)
        await sender.until_sent(1)
    assert await outcomes(store, sender.sent[0].headers["webhook-id"]) == []
    del sender.held[URL]
    async with running(store, followed, sender, time):
        await attempts(store, 1)
        await followed.wait_for(await store.head())
        assert await list_deliveries(followed, state="pending") == []
    assert sender.sent[0].headers["webhook-id"] == sender.sent[1].headers["webhook-id"]
    assert sender.sent[0].body == sender.sent[1].body
    assert len(sender.sent) == 2
    async with running(store, followed, sender, time):  # what was recorded is not
        await request(store, "next")
        await attempts(store, 2)
    assert len(sender.sent) == 3


async def test_attempt_of_unknown_outcome_is_recorded_once(store, followed, sender, time):
    repeated = asyncio.Event()

    class LosingAnswers:
        left = 1

        def __getattr__(self, name):
            return getattr(store, name)

        async def append_all(self, writes):
            appended = await store.append_all(writes)
            if self.left and writes[0].stream.startswith("delivery-"):
                self.left -= 1
                raise OutcomeUnknown("the answer was lost")
            return appended

        async def find(self, event_id, *, may_be_old=True):
            found = await store.find(event_id, may_be_old=may_be_old)
            repeated.set()
            return found

    await create(store)
    sender.answers[URL] = [Answer(500), Answer(204)]
    async with running(LosingAnswers(), followed, sender, time):
        await request(store)
        async with asyncio.timeout(60):
            await repeated.wait()
    assert [event.attempt for event in await outcomes(store, sender.sent[0].headers["webhook-id"])] == [1]


async def test_erased_text_of_a_job_is_not_sent(store, followed, sender, time):
    await create(store)
    sender.answers[URL] = [Answer(500)]
    async with running(store, followed, sender, time):
        await request(store, title="Tell Ermentrude")
        (event,) = await attempts(store, 1)
        assert b"Ermentrude" in sender.sent[0].body
        await erase_subject(store, followed, "job-j", Metadata())
        await time.go_to(event.next_attempt_at)
        await attempts(store, 3)
    assert not any(b"Ermentrude" in one.body for one in sender.sent[1:])


async def test_deliveries_to_a_deleted_webhook_are_dropped(store, followed, sender, time):
    await create(store)
    sender.answers[URL] = [Answer(500)]
    async with running(store, followed, sender, time):
        await request(store)
        (event,) = await attempts(store, 1)
        await execute(store, WEBHOOKS, "w", DeleteWebhook(NOW))
        await store.erase("webhook-w")
        await followed.wait_for(await store.head())
        await time.go_to(event.next_attempt_at)
        await time.asleep()
        assert await list_deliveries(followed) == []
        assert await list_webhooks(followed) == []
    assert len(sender.sent) == 1


async def test_secret_and_address_are_sealed_and_in_no_attempt_event(tmp_path, store, followed, sender, time):
    await create(store)
    async with running(store, followed, sender, time):
        await request(store)
        await attempts(store, 1)
        await followed.wait_for(await store.head())
    assert isinstance((await load(store, WEBHOOKS, "w")).state, Webhook)
    for name in ("events.db", "events.db-wal"):
        stored = (tmp_path / name).read_bytes()
        assert SECRET.encode() not in stored
        assert b"one.example" not in stored
    for name in ("views.db", "views.db-wal"):
        assert SECRET.encode() not in (tmp_path / name).read_bytes()


async def test_of_what_is_over_only_the_newest_is_listed(tmp_path, store):
    await create(store, events=("job.active",))
    for number in range(4):
        await request(store, f"j{number}")
    async with await Views.open(tmp_path / "few.db", store, [WebhooksView(max_ended=2)]) as views:
        await views.catch_up()
        *rest, oldest = await list_deliveries(views)
        for row in rest:
            command = RecordAttempt("w", row.job_id, row.event, 200, "", 0.1, None, 0.0, NOW)
            await execute(store, DELIVERIES, row.id, command)
        await views.catch_up()
        assert [(row.job_id, row.state) for row in await list_deliveries(views)] == [
            ("j3", "delivered"), ("j2", "delivered"), ("j0", "pending"),
        ]  # fmt: skip
        assert oldest.job_id == "j0"
