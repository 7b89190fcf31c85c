"""Challenges that the service need not remember until they are used.

A challenge holds its expiry and a code over it and its purpose, so that a flood of requests for challenges takes no
memory and displaces none. Only the used ones are kept, until they expire. The key is the process's own: a restart ends
the sign-ins under way, which people simply begin again. Several instances share a key, and what was used.
"""

import hmac
import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from service.ports.shared.used_once import UsedOnce

LIFETIME_SECONDS = 300
_RANDOM_BYTES, _TIME_BYTES, _CODE_BYTES = 16, 8, 32


class Challenges:
    """``seconds`` is a clock that never goes back or, for several instances, the time since 1970.

    ``key``, ``once``: of several instances; else the challenges are those of this process.
    """

    def __init__(self, seconds: Callable[[], float], *, key: bytes = b"", once: UsedOnce | None = None) -> None:
        self._key = key or secrets.token_bytes(32)
        self._seconds, self._once = seconds, once
        self._used: dict[bytes, float] = {}

    def issue(self, purpose: str) -> bytes:
        expiry = int((self._seconds() + LIFETIME_SECONDS) * 1000).to_bytes(_TIME_BYTES, "big")
        body = secrets.token_bytes(_RANDOM_BYTES) + expiry
        return body + self._code(purpose, body)

    def is_valid(self, purpose: str, challenge: bytes) -> bool:
        """Return whether it was issued for this purpose, has not expired and was not used."""
        if len(challenge) != _RANDOM_BYTES + _TIME_BYTES + _CODE_BYTES:
            return False
        body, code = challenge[:-_CODE_BYTES], challenge[-_CODE_BYTES:]
        if not hmac.compare_digest(code, self._code(purpose, body)):
            return False
        return _expiry(body) > self._seconds() and challenge not in self._used

    async def use(self, challenge: bytes) -> bool:
        """Mark a valid one as used; return whether it was not before. Raises Unavailable."""
        if self._once is not None:
            return await self._once.use(challenge, datetime.fromtimestamp(_expiry(challenge), UTC))
        now = self._seconds()
        for old in [one for one, expiry in self._used.items() if expiry <= now]:
            del self._used[old]
        if challenge in self._used:
            return False
        self._used[challenge] = _expiry(challenge)
        return True

    def _code(self, purpose: str, body: bytes) -> bytes:
        return hmac.digest(self._key, purpose.encode() + b"\0" + body, "sha256")


def _expiry(challenge: bytes) -> float:
    return int.from_bytes(challenge[_RANDOM_BYTES : _RANDOM_BYTES + _TIME_BYTES], "big") / 1000
