"""Which sites ask for proof of work, and which proofs were used.

The usual rate of a site comes from the rows of its questions, and from the reader tokens that were made, which may be
many more: a search needs one, too. A proof is good once: those used are kept in memory until they would end, at most
``MAX_USED``; of more, the oldest is forgotten, so that using it again costs as much work as it took to push it out. A
process takes no proof of a challenge that was made before it started, since it cannot know whether that was used.

Several instances count tokens, and mark proofs as used, in tables that they share; while those are away, each does by
itself.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from eventstore import Views
from service.domain.access.proof_of_work import (
    HOURS,
    LIFETIME,
    MAX_NUMBER,
    Challenge,
    Solution,
    is_over_usual,
    new_challenge,
    solved_at,
)
from service.domain.errors import Unavailable
from service.ports.bounds import CountBound, ignore_bounds
from service.ports.shared.brief_counts import TokenCounts
from service.ports.shared.used_once import UsedOnce
from service.queries.access.usage import questions_by_hour

MAX_USED = 100_000
SHARE_SECONDS = 5.0
"""Between two looks for what other instances made: a site's rate is that of an hour."""
SALT_BYTES = 12


class Proofs:
    """``least``: tokens or questions in an hour that no site needs proof for; 0: none ever does."""

    def __init__(
        self,
        views: Views,
        least: int,
        clock: Callable[[], datetime],
        *,
        most_used: int = MAX_USED,
        once: UsedOnce | None = None,
        shared_tokens: TokenCounts | None = None,
    ) -> None:
        self._most_used, self._once, self._shared_tokens = most_used, once, shared_tokens
        self._views, self.least, self._clock = views, least, clock
        self.count_bound: CountBound = ignore_bounds
        self._started = clock().replace(microsecond=0)
        self._tokens: dict[str, Counter[int]] = {}
        """By site and hour; of all instances, as far as is known."""
        self._unshared: Counter[tuple[str, int]] = Counter()
        """Those of this process that the others do not know of yet."""
        self._used: dict[str, datetime] = {}
        self._forgotten_in = 0
        """The hour in which old counts were last forgotten."""

    async def are_needed(self, project_id: str) -> bool:
        """Return whether the project's site is asked far more than usual."""
        if not self.least:
            return False
        now = self._clock()
        first = _hour(now) - HOURS
        counts = await questions_by_hour(self._views, project_id, first)
        for hour, tokens in self._tokens.get(project_id, {}).items():
            counts[hour] = max(counts.get(hour, 0), tokens)
        return is_over_usual(counts, now, self.least)

    def count_token(self, project_id: str) -> None:
        """Count a reader token that was made."""
        hour = _hour(self._clock())
        tokens = self._tokens.setdefault(project_id, Counter())
        if hour not in tokens:
            _forget_old(tokens, hour)
        tokens[hour] += 1
        if self._shared_tokens is not None:
            self._unshared[project_id, hour] += 1

    async def share(self) -> None:
        """Let the other instances know of tokens, and learn of theirs, until cancelled."""
        since = _hour(self._clock()) - HOURS
        while True:
            if await self.share_once(since):
                since = _hour(self._clock()) - 1
            await asyncio.sleep(SHARE_SECONDS)

    async def share_once(self, since_hour: int) -> bool:
        """Return whether it is known what all made since an hour."""
        assert self._shared_tokens is not None
        hour, new = _hour(self._clock()), self._unshared.copy()
        self._unshared.clear()
        try:
            known = await self._shared_tokens.add(new, since_hour=since_hour)
            if hour != self._forgotten_in:
                await self._shared_tokens.forget(before_hour=hour - HOURS)
                self._forgotten_in = hour
        except Unavailable:
            self._unshared += new
            return False
        for (project_id, hour_), count in known.items():
            tokens = self._tokens.setdefault(project_id, Counter())
            tokens[hour_] = count + self._unshared[project_id, hour_]
        for project_id, tokens in list(self._tokens.items()):
            _forget_old(tokens, hour)
            if not tokens:
                del self._tokens[project_id]
        return True

    def challenge(self, secret: bytes) -> Challenge:
        """Return work for the caller whose challenges this secret signs."""
        self.count_bound("proofs")
        number = secrets.randbelow(MAX_NUMBER + 1)
        return new_challenge(secret, secrets.token_hex(SALT_BYTES), number, self._clock())

    async def use(self, secret: bytes, solution: Solution) -> bool:
        """Return whether a proof is right, in time, and not used before; it is used now."""
        ends, now = solved_at(secret, solution), self._clock()
        if ends is None or not now < ends or solution.challenge in self._used:
            return False
        if self._once is None and ends - LIFETIME < self._started:
            return False
        self._forget(now)
        self._used[solution.challenge] = ends
        if self._once is not None:
            with suppress(Unavailable):
                return await self._once.use(solution.challenge.encode(), ends)
        return True

    def _forget(self, now: datetime) -> None:
        """Forget the oldest that are over, two for each one that may come, and the oldest where there are too many."""
        for _ in range(2):
            oldest = next(iter(self._used), None)
            if oldest is None or (self._used[oldest] > now and len(self._used) < self._most_used):
                return
            del self._used[oldest]


def _hour(time: datetime) -> int:
    return int(time.timestamp() // 3600)


def _forget_old(tokens: Counter[int], hour: int) -> None:
    for old in [one for one in tokens if one < hour - HOURS]:
        del tokens[old]
