"""The door: a request is accepted in the same append that records what it asks for, or not at all.

So a request that is recorded is counted, one that is refused or fails is not, a crash leaves nothing in between, and a
request that is told again and records nothing (its job is there already) is not counted twice.

All accepted requests are one stream. An append names the version that it was decided on, so what another process
accepted meanwhile makes it fail: then that is read, and decided again. Within this process nobody waits for anybody:
each append names the version that it will find if those before it, which are on their way to the same writer in the
same order, are stored.
"""

import asyncio
import hmac
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from eventstore import Append, Appended, EventStore, Metadata, Views, WrongExpectedVersion
from service.domain.errors import RateLimited, Unavailable
from service.domain.usage import (
    LONGEST_WINDOW_SECONDS,
    SCOPES,
    STREAM_ID,
    Limits,
    RequestAccepted,
    Scope,
    Standing,
    Usage,
    milliseconds,
)
from service.projections.usage import accepted_since
from service.streams import USAGE, decoded

MAX_TRIES = 1_000
"""Each time that one is in vain, another process got through."""
STREAM = USAGE.stream(STREAM_ID)

SENTENCES: dict[Scope, str] = {
    "assistant-key": "This key has used up its requests for the month",
    "organization": "There were too many questions in the last hour",
    "address": "You have asked too many questions today",
    "project": "There were too many jobs in the last hour",
}


class OverLimit(RateLimited):
    """A limit of ours has no room."""

    def __init__(self, refusal: Standing) -> None:
        seconds = -(-refusal.reset_milliseconds // 1000)
        wait = f"{seconds} s" if seconds < 120 else f"{-(-seconds // 60)} minutes"
        super().__init__(f"{SENTENCES[refusal.scope]}; try again in {wait}.", retry_after_seconds=seconds)
        self.refusal = refusal


class Admissions:
    """``clock`` gives the time in UTC."""

    def __init__(self, store: EventStore, limits: Limits, secret: bytes, clock: Callable[[], datetime]) -> None:
        self._store, self._limits, self._secret, self._clock = store, limits, secret, clock
        self._usage = Usage(limits)
        self._seen = 0
        """The stream up to this version is counted."""
        self._next = 0
        """The version that the next append will find, if those on their way are stored."""
        self._on_their_way = 0
        self._is_behind = False
        self._catching_up = asyncio.Lock()
        self._ended = asyncio.Event()

    async def load(self, views: Views) -> None:
        """Count what was accepted in the last 30 days: from the rows as far as they go, then from the log."""
        since = milliseconds(self._clock()) - LONGEST_WINDOW_SECONDS * 1000
        while True:
            requests, version = await accepted_since(views, since, self._seen)
            for request in requests:
                self._usage.add(request)
            if not requests:
                break
            self._seen = version
        await self._catch_up()

    def digest_of(self, address: str) -> str:
        """What stands for an address in the log: the same for the same, and nothing without the secret."""
        return hmac.digest(self._secret, address.encode(), sha256).hex()[:24]

    def is_limited(self, request: RequestAccepted) -> bool:
        return any(self._limits.of(scope) > 0 for scope in SCOPES[request.api])

    def standing(self, request: RequestAccepted) -> Standing | None:
        """Of the scope that is closest to its limit; None when none is limited."""
        standings = self._usage.standings(request, milliseconds(self._clock()))
        return min(standings, key=lambda one: (one.remaining, -one.reset_milliseconds), default=None)

    async def append(self, request: RequestAccepted, metadata: Metadata, writes: Sequence[Append]) -> Appended:
        """Record what a request asks for, and that it was accepted, together; its time is set here.

        Raises:
            OverLimit: one of the limits has no room; nothing was recorded or counted.
            Unavailable: other processes were faster again and again.
            Whatever ``EventStore.append_all`` raises; of WrongExpectedVersion only that of the writes' own streams.
        """
        if not self.is_limited(request):
            return await self._store.append_all(writes)
        for _ in range(MAX_TRIES):
            if self._is_behind:
                await self._until_up_to_date()
            request = replace(request, accepted_at=self._clock())
            refusal = self._usage.refusal(request, milliseconds(request.accepted_at))
            if refusal is not None:
                if self._usage.is_settled(refusal, request):
                    raise OverLimit(refusal)
                await self._ended.wait()  # one of those on their way may fail, and leave room
                continue
            appended = await self._try(request, metadata, writes)
            if appended is not None:
                return appended
        raise Unavailable("Too many requests came at once; try again.", retry_after_seconds=1)

    async def _try(self, request: RequestAccepted, metadata: Metadata, writes: Sequence[Append]) -> Appended | None:
        """None: another process was faster."""
        accepted = Append(STREAM, (USAGE.codec.encode(request, metadata),), self._next)
        self._usage.add(request, settled=False)
        self._next += 1
        self._on_their_way += 1
        try:
            appended = await self._store.append_all([accepted, *writes])
        except BaseException as error:
            # Not stored; or, when the caller was cancelled, perhaps: then the log has it, and is read.
            self._usage.withdraw(request)
            self._is_behind = True
            if isinstance(error, WrongExpectedVersion) and error.stream == STREAM:
                return None
            raise
        else:
            self._usage.settle(request)
            self._seen = max(self._seen, accepted.expected_version + 1)
            return appended
        finally:
            self._on_their_way -= 1
            ended, self._ended = self._ended, asyncio.Event()
            ended.set()

    async def _until_up_to_date(self) -> None:
        while self._on_their_way:  # they name versions that are to come, and some may yet be stored
            await self._ended.wait()
        async with self._catching_up:
            if self._is_behind and not self._on_their_way:
                await self._catch_up()

    async def _catch_up(self) -> None:
        async for recorded in self._store.iterate_stream(STREAM, after_version=self._seen):
            for _, request in decoded(USAGE, [recorded]):
                self._usage.add(request)
            self._seen = recorded.stream_version
        self._next, self._is_behind = self._seen, False


def load_secret(file: Path) -> bytes:
    """The installation's secret for addresses, made at the first call; whoever loses it loses a day's counts only."""
    if not file.exists():
        fresh = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
        fresh.touch(mode=0o600)
        fresh.write_bytes(secrets.token_bytes(32))
        with suppress(FileExistsError):  # another process was faster
            os.link(fresh, file)
        fresh.unlink()
    return file.read_bytes()
