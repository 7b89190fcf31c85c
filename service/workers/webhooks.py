"""Reports jobs to webhooks, and tests webhooks: sends what the log says is due, and records how each attempt went.

What is to be sent follows from the log (see ``service.queries.webhooks``), so nothing is lost when this process
dies. An attempt that was not recorded any more is made again with the same ``webhook-id``, by which the receiver knows
it; that is the one thing that can happen twice.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

import msgspec
import structlog

from eventstore import (
    Append,
    CommandId,
    EventStore,
    Metadata,
    OutcomeUnknown,
    StoreUnavailable,
    Views,
    WrongExpectedVersion,
    load,
    plan,
)
from service.domain.errors import NotFound
from service.domain.events import GONE
from service.domain.hooks.deliveries import DeliveryAttempted, RecordAttempt, Waiting
from service.domain.hooks.webhooks import TEST, DisableWebhook, DisablingReason, Webhook, signature
from service.ports.webhook_sender import Answer, WebhookSender
from service.queries.jobs.jobs import job_after
from service.queries.read_models import REBUILD_SECONDS, wait_for_rebuild
from service.queries.webhooks import (
    CHANGED_JOB,
    DueDelivery,
    delivered_since,
    due_deliveries,
    follow_webhooks,
    next_due,
)
from service.runtime.system import now
from service.streams import DELIVERIES, JOBS, WEBHOOKS
from service.views.webhooks import JobChanged, WebhookRef, WebhookTested
from service.workers.retry import retry_while_unavailable

log = structlog.get_logger()

FOR_EACH_WEBHOOK = 2
"""Deliveries to one webhook at the same time: a slow one gets no larger share."""
FOLLOW_SECONDS = 60.0
"""Until a read model that has failed is waited for again."""
LONGEST_WAIT_SECONDS = 3600.0
"""The clock may be set, or stand still with the machine: what is due is looked at again after this time."""


class Webhooks:
    def __init__(
        self,
        store: EventStore,
        views: Views,
        sender: WebhookSender,
        *,
        concurrent_deliveries: int,
        clock: Callable[[], datetime] = now,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        """``leads``: whether no other instance sends. ``clock``, ``sleep`` and ``jitter`` are for tests."""
        self._store, self._views, self._sender = store, views, sender
        self._concurrent_deliveries = concurrent_deliveries
        self._clock, self._sleep, self._jitter, self._leads = clock, sleep, jitter, leads
        self._in_flight: dict[str, str] = {}
        """Delivery to webhook: on their way, or their record is on its way into the read models."""
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled. An attempt that is under way then is made again at the next start, and may be by another
        instance.
        """
        self._in_flight.clear()
        after = await self._store.head()
        await wait_for_rebuild(self._views, after)
        async with asyncio.TaskGroup() as group:
            for category in (JOBS.category, DELIVERIES.category, WEBHOOKS.category):
                group.create_task(self._listen(category, after), name=f"webhooks: {category}")
            while True:
                self._woken.clear()
                await self._wait(await retry_while_unavailable(partial(self._start_due, group)))

    async def _listen(self, category: str, after: int) -> None:
        async for recorded in self._store.subscribe(after=after, category=category):
            if category != JOBS.category or recorded.type in CHANGED_JOB:
                await self._follow(recorded.position)
                self._woken.set()

    async def _follow(self, position: int) -> bool:
        """Wait for the read model; False when it has failed, or takes too long."""
        try:
            await follow_webhooks(self._views, position, REBUILD_SECONDS)
        except (StoreUnavailable, TimeoutError) as error:
            log.warning("webhooks: the read model does not follow", kind=type(error).__name__)
            return False
        return True

    async def _wait(self, seconds: float) -> None:
        """Wait until something has happened, at most the given seconds."""
        waiting = [asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(self._woken.wait())]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.wait(waiting)

    async def _start_due(self, group: asyncio.TaskGroup) -> float:
        """Begin what may begin; the seconds until more may, if nothing else happens."""
        at = self._clock()
        due = await due_deliveries(
            self._views, at, for_each_webhook=FOR_EACH_WEBHOOK, limit=self._concurrent_deliveries
        )
        of_webhook = Counter(self._in_flight.values())
        for one in due:
            is_free = of_webhook[one.webhook_id] < FOR_EACH_WEBHOOK
            if is_free and one.id not in self._in_flight and len(self._in_flight) < self._concurrent_deliveries:
                self._in_flight[one.id] = one.webhook_id
                of_webhook[one.webhook_id] += 1
                group.create_task(self._deliver(one), name=f"delivery {one.id}")
        upcoming = await next_due(self._views, at)
        seconds = (upcoming - at).total_seconds() if upcoming is not None else LONGEST_WAIT_SECONDS
        return min(seconds, LONGEST_WAIT_SECONDS)

    async def _deliver(self, due: DueDelivery) -> None:
        try:
            position = await self._attempt(due)
        except Exception:  # a delivery's edge; it stays in flight, so it is not sent again before the next start
            log.exception("delivery crashed", delivery_id=due.id)
            return
        while not await self._follow(position):  # its row still says that it is due
            await self._sleep(FOLLOW_SECONDS)
        del self._in_flight[due.id]
        self._woken.set()

    async def _attempt(self, due: DueDelivery) -> int:
        """Send and record, if the log agrees that it is due; the position to be followed to."""
        delivery = (await retry_while_unavailable(partial(load, self._store, DELIVERIES, due.id))).state
        webhook = (await retry_while_unavailable(partial(load, self._store, WEBHOOKS, due.webhook_id))).state
        is_wanted = isinstance(webhook, Webhook) and webhook.disabled is None
        if not is_wanted or not isinstance(delivery, Waiting) or not delivery.is_due(self._clock()):
            return await retry_while_unavailable(self._store.head)  # the rows were behind
        assert isinstance(webhook, Webhook)
        body = await retry_while_unavailable(partial(self._body, due))
        if not self._leads():  # this process was paused: another one may have sent it
            await asyncio.Event().wait()  # until it is cancelled
        began = time.monotonic()
        answer = await self._answer(due, webhook, body)
        command = RecordAttempt(
            webhook_id=due.webhook_id,
            job_id=due.job_id,
            event=due.event,
            status=answer.status,
            error=answer.error,
            seconds=time.monotonic() - began,
            retry_after_seconds=answer.retry_after_seconds,
            jitter=self._jitter(),
            now=self._clock(),
        )
        return await retry_while_unavailable(partial(self._record, due, command, CommandId()))

    async def _body(self, due: DueDelivery) -> bytes:
        """Built for each attempt, and always the same: the job as it was at the change that is reported."""
        if due.event == TEST:
            return msgspec.json.encode(WebhookTested(due.event, due.occurred_at, WebhookRef(due.webhook_id)))
        events = await self._store.read_stream(JOBS.stream(due.job_id), limit=due.job_version)
        job = await asyncio.to_thread(job_after, events)
        return msgspec.json.encode(JobChanged(due.event, due.occurred_at, job))

    async def _answer(self, due: DueDelivery, webhook: Webhook, body: bytes) -> Answer:
        timestamp = int(self._clock().timestamp())
        if webhook.url in GONE or webhook.secret in GONE:  # what stands for them is no address, and no secret
            return Answer(None, "text_damaged")
        try:
            headers = {
                "webhook-id": due.id,
                "webhook-timestamp": str(timestamp),
                "webhook-signature": signature(webhook.secret, due.id, timestamp, body),
            }
            return await self._sender.send(webhook.url, body, headers)
        except Exception:  # recorded as any other failure, so that it is tried again later and not at once
            log.exception("sending crashed", delivery_id=due.id)
            return Answer(None, "internal")

    async def _record(self, due: DueDelivery, command: RecordAttempt, command_id: CommandId) -> int:
        """The attempt, and what follows from it for the webhook, together."""
        metadata = Metadata(causation=due.position)
        while True:
            if command_id.is_in_doubt and await self._store.find(command_id.of_event(0), may_be_old=False) is not None:
                return await self._store.head()
            loaded = await load(self._store, DELIVERIES, due.id)
            events = DELIVERIES.decide(command, loaded.state)
            if not events:
                return loaded.position
            encoded = tuple(
                DELIVERIES.codec.encode(event, metadata, command_id.of_event(number))
                for number, event in enumerate(events)
            )
            writes = [Append(DELIVERIES.stream(due.id), encoded, loaded.version)]
            first_attempt_at = loaded.state.first_attempt_at if isinstance(loaded.state, Waiting) else None
            for event in events:
                if isinstance(event, DeliveryAttempted):
                    reason = await self._why_to_disable(event, first_attempt_at or command.now)
                    log.info(
                        "webhook attempt",
                        webhook_id=due.webhook_id,
                        delivery_id=due.id,
                        status=event.status,
                        error=event.error,
                        outcome=event.outcome,
                    )
                    if reason is not None:
                        writes += await self._disabling(due.webhook_id, DisableWebhook(reason, command.now), metadata)
            try:
                return (await self._store.append_all(writes)).position
            except OutcomeUnknown:
                command_id.is_in_doubt = True
                raise
            except WrongExpectedVersion:
                continue  # another writer was faster: decide again

    async def _why_to_disable(self, event: DeliveryAttempted, first_attempt_at: datetime) -> DisablingReason | None:
        if event.outcome == "gone":
            return "gone"
        if event.outcome == "exhausted" and event.event != TEST:
            return None if await delivered_since(self._views, event.webhook_id, first_attempt_at) else "failing"
        return None

    async def _disabling(self, webhook_id: str, command: DisableWebhook, metadata: Metadata) -> list[Append]:
        try:
            planned = await plan(self._store, WEBHOOKS, webhook_id, command, metadata=metadata)
        except NotFound:  # deleted meanwhile
            return []
        return [planned] if planned is not None else []
