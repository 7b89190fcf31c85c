"""Admission: a request is accepted in the same append that records its effect, or not at all.

So a request that is recorded is counted, one that is refused or fails is not, a crash leaves nothing in between, and a
request that is sent again and records nothing (its job is there already) is not counted twice.

All accepted requests are one stream. An append names the version that it was decided on, so it fails when another
process accepted something meanwhile: then the new events are read, and the request is decided again. Within this
process, one append is under way at a time, for all requests that wait. (An append for each, with the version that it
will find if those before it are stored, is wrong: when another process takes that version instead, the next one fits
again, and does not know what it missed.)

Between several instances versions alone would be unfair: the one that was stored last knows the version, and is often
the next again. So each takes a turn, and reads in it what the others have accepted.
"""

import asyncio
import hmac
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256

from msgspec.structs import replace

from eventstore import (
    Append,
    Appended,
    EventStore,
    EventStoreError,
    Metadata,
    RecordedEvent,
    StoreClosed,
    StoreUnavailable,
    SubjectErased,
    Views,
    WrongExpectedVersion,
    new_event_id,
)
from service.domain.access.usage import (
    LONGEST_BESIDE_KEYS_SECONDS,
    LONGEST_WINDOW_SECONDS,
    STREAM_ID,
    WINDOW_SECONDS,
    Api,
    Brief,
    Counted,
    Limits,
    RequestAccepted,
    Scope,
    Standing,
    Usage,
    milliseconds,
)
from service.domain.errors import RateLimited, Unavailable
from service.ports.bounds import CountBound, ignore_bounds
from service.ports.shared.brief_counts import BriefCounts, Window
from service.ports.shared.turns import MAX_TURN_SECONDS, Turns
from service.queries.access.usage import LAST, accepted_after, counted_version, key_times, last_accepted
from service.streams import USAGE, decoded

MAX_TOGETHER = 256
"""Requests in one append."""
MAX_AHEAD = timedelta(hours=1)
"""How far a clock may be ahead of the last request and of what has passed since."""
MAX_ASLEEP = timedelta(seconds=LONGEST_WINDOW_SECONDS)
"""The same for the first request of a process: it is not known how long none was there."""
MAX_FULL = 10_000
"""Limit for the windows that are known to have no room."""
STREAM = USAGE.stream(STREAM_ID)

SENTENCES: dict[Scope, str] = {
    "assistant-key": "This key has used up its requests for the month",
    "organization": "There were too many questions in the last hour",
    "address": "You have asked too many questions today",
    "project": "There were too many jobs in the last hour",
    "reader": "You have asked too many questions in the last 5 minutes",
    "reader-day": "You have asked too many questions today",
    "key-searches": "There were too many searches with this key in the last minute",
    "address-searches": "You have searched too often in the last minute",
    "address-tokens": "You have fetched too many reader tokens in the last minute",
    "public-site": "This site has had all its questions of the day",
    "public-address": "You have asked too many questions in the last hour",
    "organization-jobs": "Your organization has had all its jobs of the day",
    "organization-projects": "Your organization has created all its projects of the day",
    "organization-uploads": "Your organization has had all its uploads of the day",
    "organization-keys": "Your organization has created all its keys of the day",
    "public-searches": "There were too many searches of this site in the last minute",
}


class OverLimit(RateLimited):
    """A limit of ours has no room."""

    def __init__(self, refusal: Standing) -> None:
        seconds = -(-refusal.reset_milliseconds // 1000)
        wait = f"{seconds} s" if seconds < 120 else f"{-(-seconds // 60)} minutes"
        super().__init__(f"{SENTENCES[refusal.scope]}; try again in {wait}.", retry_after_seconds=seconds)
        self.refusal = refusal


class _Wanted:
    """A request that waits for its admission, and the future that its caller awaits."""

    __slots__ = ("metadata", "outcome", "request", "writes")

    def __init__(self, request: RequestAccepted, metadata: Metadata, writes: Sequence[Append]) -> None:
        self.request, self.metadata, self.writes = request, metadata, writes
        self.outcome: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()

    def fail(self, error: BaseException) -> None:
        if not self.outcome.done():
            self.outcome.set_exception(error)
            self.outcome.exception()  # the caller may have gone


class Admissions:
    """``clock`` gives the time in UTC. No request is admitted unless ``run`` runs. ``turns``: other instances may
    accept requests at the same time. ``brief``: where they count searches and reader tokens with this one.
    """

    def __init__(
        self,
        store: EventStore,
        limits: Limits,
        secret: bytes,
        clock: Callable[[], datetime],
        *,
        turns: Turns | None = None,
        brief: BriefCounts | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._limits, self._secret, self._clock, self._turns = store, limits, secret, clock, turns
        self._brief = brief
        self._full: dict[tuple[Scope, str], tuple[int, Standing]] = {}
        """Windows of ``brief`` without room, and until when, in milliseconds since 1970."""
        self._usage = Usage(limits)
        self.count_bound: CountBound = ignore_bounds
        self._version = 0
        """The stream up to here is counted."""
        self._waiting: deque[_Wanted] = deque()
        self._any = asyncio.Event()
        self._counting = asyncio.Lock()
        """Held while events of the stream are appended, or counted."""
        self._ahead = timedelta(0)
        """Time by which the clock that all instances share is ahead of this one's, as it was found last."""
        self._is_closed = False
        self._steady = steady
        self._last: tuple[datetime, float, timedelta] | None = None
        """The time of the newest counted request, when that was by ``steady``, and how far it may be from it."""

    def _now(self) -> datetime:
        """Return the time by the clock that all instances share: by its own, one that is ahead would let in what the
        others have refused.
        """
        return self._clock() + self._ahead

    def change_limits(self, limits: Limits) -> None:
        self._limits = limits
        self._usage.change_limits(limits)
        self._full.clear()

    async def load(self, views: Views) -> None:
        """Count what was accepted in the last 30 days: from the rows as far as they go, then from the log.

        Most of those days count for the keys alone, whose times are read in one row a key: a request at a time, a
        start took seconds for each hundred thousand.
        """
        version, now = await counted_version(views), milliseconds(self._now())
        now = min(now, await last_accepted(views) or now)  # the clock may be ahead now
        recent = now - LONGEST_BESIDE_KEYS_SECONDS * 1000
        for key_id, times in await key_times(views, now - LONGEST_WINDOW_SECONDS * 1000, recent, version):
            self._usage.add_of_key(key_id, times)
        place = (recent, LAST)
        while True:
            requests, place = await accepted_after(views, place, version)
            for request in requests:
                self._usage.add(request)
                self._note(request, MAX_ASLEEP)
            if not requests:
                break
        self._version = version
        await self._catch_up()

    def digest_of(self, address: str) -> str:
        """Return the digest of an address for the log: the same for the same, and meaningless without the secret."""
        return hmac.digest(self._secret, address.encode(), sha256).hex()[:24]

    def standing(self, request: Counted) -> Standing | None:
        """Return the use of the scope that is closest to its limit; None when none is limited."""
        now = milliseconds(self._now())
        standings = [*self._usage.standings(request, now), *self._known_full(request, now)]
        return min(standings, key=_nearness, default=None)

    def standing_of(self, scope: Scope, caller: str) -> Standing | None:
        """Return the use of one window, such as that of one key; None where the scope is not limited."""
        return self._usage.standing_of(scope, caller, milliseconds(self._now()))

    async def append(self, request: RequestAccepted, metadata: Metadata, writes: Sequence[Append]) -> Appended:
        """Record what a request asks for, and that it was accepted, together; its time is set here.

        Raises:
            OverLimit: one of the limits has no room; nothing was recorded or counted.
            Whatever ``EventStore.append_all`` raises; of WrongExpectedVersion only that of the writes' own streams.
        """
        if not self._usage.is_limited(request):
            return await self._store.append_all(writes)
        return await self._admitted(request, metadata, writes)

    async def accept(self, api: Api, organization_id: str, metadata: Metadata) -> None:
        """Count a try to create something, whatever comes of it: each costs work. Raises as ``append``."""
        request = RequestAccepted(api, self._now(), organization_id, project_id="", key_id="", address="")
        if self._usage.is_limited(request):
            await self._admitted(request, metadata, ())

    async def _admitted(self, request: RequestAccepted, metadata: Metadata, writes: Sequence[Append]) -> Appended:
        if self._is_closed:
            raise StoreClosed("no request is admitted any more")
        wanted = _Wanted(request, metadata, writes)
        self._waiting.append(wanted)
        self._any.set()
        return await wanted.outcome

    def require_room(self, request: Counted) -> None:
        """Raise OverLimit where a limit has no room for the request, before anything is done for it."""
        now = milliseconds(self._now())
        refusal = next(iter(self._known_full(request, now)), None) or self._usage.refusal(request, now)
        if refusal is not None:
            raise self._over_limit(request, refusal)

    def _over_limit(self, request: Counted, refusal: Standing) -> OverLimit:
        self.count_bound("searches" if isinstance(request, Brief) else "requests")
        return OverLimit(refusal)

    async def count_briefly(self, request: Brief) -> Standing | None:
        """Count a search or token that is about to be made.

        Return the use of the scope that is closest to its limit; None where ``standing`` knows. While the table that
        instances share is away, each counts by itself. Raises OverLimit: it is not counted then.
        """
        self.require_room(request)
        scopes = list(self._usage.scopes_of(request))
        if self._brief is None or not scopes:
            self._usage.add(request)
            return None
        windows = [
            Window(f"{scope} {caller}", self._limits.of(scope), WINDOW_SECONDS[scope] * 1000)
            for scope, caller in scopes
        ]
        try:
            found = await self._brief.count(windows)
        except Unavailable:
            self.require_room(request)  # others may have taken it meanwhile
            self._usage.add(request)
            return None
        standings = {
            (scope, caller): Standing(
                scope, window.limit, WINDOW_SECONDS[scope], max(window.limit - use.used, 0), use.reset_milliseconds
            )
            for (scope, caller), window, use in zip(scopes, windows, found.uses, strict=True)
        }
        if found.is_counted:
            self._usage.add(request)  # for the time without the table
            return min(standings.values(), key=_nearness)
        self._note_full(standings)
        full = [one for one in standings.values() if not one.remaining] or list(standings.values())
        raise self._over_limit(request, max(full, key=lambda one: one.reset_milliseconds))

    def _note_full(self, standings: Mapping[tuple[Scope, str], Standing]) -> None:
        """A window without room has none until its oldest leaves: till then there is no need to ask again."""
        now = milliseconds(self._now())
        if len(self._full) >= MAX_FULL:
            self._full.clear()
        self._full |= {key: (now + one.reset_milliseconds, one) for key, one in standings.items() if not one.remaining}

    def _known_full(self, request: Counted, now: int) -> Iterator[Standing]:
        if not self._full or not isinstance(request, Brief):
            return
        for key in self._usage.scopes_of(request):
            until, standing = self._full.get(key, (0, None))
            if standing is not None and now < until:
                yield replace(standing, reset_milliseconds=until - now)
            elif standing is not None:
                del self._full[key]

    async def run(self) -> None:
        """Let requests in until cancelled."""
        taken: list[_Wanted] = []
        try:
            while True:
                await self._any.wait()
                if self._turns is None:
                    await self._let_next_in(taken)
                    continue
                asked_at = self._clock()
                async with self._turns.turn() as shared_time:
                    self._compare_clocks(asked_at, shared_time)
                    with suppress(EventStoreError):  # then the append fails, or finds another version
                        await self._catch_up()
                    await self._let_next_in(taken)
        finally:
            self._is_closed = True
            for wanted in (*taken, *self._waiting):
                wanted.fail(StoreClosed("no request is admitted any more"))

    def _compare_clocks(self, asked_at: datetime, shared_time: datetime | None) -> None:
        """Note by how much the clock that all share is ahead, unless the answer is old: this process was paused."""
        now = self._clock()
        if shared_time is not None and now - asked_at <= timedelta(seconds=MAX_TURN_SECONDS):
            self._ahead = shared_time - now

    async def follow(self) -> None:
        """Count what other instances accept, until cancelled: before it is known here, more seems to remain."""
        async for page in self._store.follow(after=await self._store.head(), stream=STREAM):
            async with self._counting:
                with suppress(EventStoreError):  # the next page counts what is missing
                    if page[0].stream_version > self._version + 1:
                        await self._count_others()
                    self._count(page)

    async def _let_next_in(self, taken: list[_Wanted]) -> None:
        while self._waiting and len(taken) < MAX_TOGETHER:
            taken.append(self._waiting.popleft())
        if not self._waiting:
            self._any.clear()
        await self._let_in(taken)
        taken.clear()

    async def _let_in(self, wanted: Sequence[_Wanted]) -> None:
        """Give each an outcome. One that cannot be recorded is taken out, and the others are tried again."""
        refused: list[tuple[_Wanted, Standing]] = []
        while left := [one for one in wanted if not one.outcome.done()]:
            async with self._counting:
                admitted, refused = self._admit(left)
                if not admitted:
                    break
                outcome = await self._record(admitted)
            if isinstance(outcome, Appended):
                self._tell([one for one, _ in admitted], outcome)
                break
            await self._failed([one for one, _ in admitted], outcome)
        for one, refusal in refused:  # not before it is certain that those who took the room have it
            self.count_bound("requests")
            one.fail(OverLimit(refusal))

    async def _record(self, admitted: Sequence[tuple[_Wanted, RequestAccepted]]) -> Appended | Exception:
        """Append what was admitted, all or nothing; return the error where it cannot be."""
        accepted = tuple(USAGE.codec.encode(request, one.metadata, new_event_id()) for one, request in admitted)
        writes = [write for one, _ in admitted for write in one.writes]
        try:
            appended = await self._store.append_all([Append(STREAM, accepted, self._version), *writes])
        except BaseException as error:
            for _, request in admitted:
                self._usage.withdraw(request)
            if not isinstance(error, Exception):
                raise
            return error
        self._version += len(admitted)
        return appended

    def _admit(
        self, wanted: Sequence[_Wanted]
    ) -> tuple[list[tuple[_Wanted, RequestAccepted]], list[tuple[_Wanted, Standing]]]:
        """Return the requests that every limit allows, counted; and the others, each with the limit that is reached."""
        admitted, refused = [], []
        for one in wanted:
            request = replace(one.request, accepted_at=self._bounded(self._now()))
            refusal = self._usage.refusal(request, milliseconds(request.accepted_at))
            if refusal is None:
                self._usage.add(request)
                self._note(request)
                admitted.append((one, request))
            else:
                refused.append((one, refusal))
        return admitted, refused

    def _bounded(self, at: datetime) -> datetime:
        """Return a time that is not far ahead of the newest one by the log's order and what has passed since: what the
        clock says once, while it is wrong, would count for as long as it is ahead.
        """
        if self._last is not None:
            last, noted, slack = self._last
            at = min(at, last + timedelta(seconds=self._steady() - noted) + slack)
        return at

    def _note(self, request: RequestAccepted, slack: timedelta = MAX_AHEAD) -> None:
        self._last = (request.accepted_at, self._steady(), slack)

    def _tell(self, wanted: Sequence[_Wanted], appended: Appended) -> None:
        """Positions are given in order, so each one's last is as far from the end as there are events after it."""
        position = appended.position
        for one in reversed(wanted):
            version = one.writes[-1].expected_version + len(one.writes[-1].events) if one.writes else 0
            if not one.outcome.done():
                one.outcome.set_result(Appended(position, version))
            position -= sum(len(write.events) for write in one.writes)

    async def _failed(self, wanted: Sequence[_Wanted], error: Exception) -> None:
        """Nothing of an append was stored, or it is not known whether it was: find out on whose account.

        What turns out to be stored is counted when the next append finds another version than it expects.
        """
        if isinstance(error, WrongExpectedVersion) and error.stream == STREAM:
            await self._try_to_catch_up(wanted)
            return
        stream = ""
        if isinstance(error, WrongExpectedVersion):
            stream = error.stream
        elif isinstance(error, SubjectErased):
            stream = error.subject
        at_fault = [one for one in wanted if any(write.stream == stream for write in one.writes)]
        if at_fault:
            at_fault[-1].fail(error)  # of two for one stream, the first may fit
        elif isinstance(error, StoreUnavailable | StoreClosed) or len(wanted) == 1:
            for one in wanted:
                one.fail(error)
        else:  # it does not say: each on its own
            for one in wanted:
                await self._let_in([one])

    async def _try_to_catch_up(self, wanted: Sequence[_Wanted]) -> None:
        try:
            await self._catch_up()
        except EventStoreError as error:
            for one in wanted:
                one.fail(error)

    async def _catch_up(self) -> None:
        async with self._counting:
            await self._count_others()

    async def _count_others(self) -> None:
        async for recorded in self._store.iterate_stream(STREAM, after_version=self._version):
            self._count([recorded])

    def _count(self, page: Sequence[RecordedEvent]) -> None:
        """Count those events of the stream that are not counted yet."""
        for recorded in page:
            if recorded.stream_version > self._version:
                for _, request in decoded(USAGE, [recorded]):
                    self._usage.add(request)
                    self._note(request)
                self._version = recorded.stream_version


def _nearness(standing: Standing) -> tuple[int, int]:
    """Order standings by how close they are to their limits."""
    return standing.remaining, -standing.reset_milliseconds
