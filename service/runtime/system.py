"""The clock, the random source and the program's own file: what the pure parts are given inside commands."""

import asyncio
import getpass
import os
import secrets
import time
from datetime import UTC, datetime

from service.domain.access.keys import BASE62, RANDOM_CHARACTERS, KeyKind, make_token


def now() -> datetime:
    return datetime.now(UTC)


class SystemClock:
    """The machine's clocks, as the port has them."""

    def now(self) -> datetime:
        return now()

    def seconds(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def new_id() -> str:
    """128 random bits as 32 hex digits, for what is found by its id alone and is not sorted."""
    return secrets.token_hex(16)


def new_capability() -> str:
    """Return some 192 random bits, URL-safe: a caller who has them may act.

    The text begins with a letter or digit: a hyphen would make it an option of a command, or a formula in a
    spreadsheet.
    """
    while True:
        made = secrets.token_urlsafe(24)
        if made[0].isalnum():
            return made


def new_job_id() -> str:
    """A UUID whose first 48 bits are the milliseconds since 1970 (version 7, RFC 9562, section 5.7): jobs sort by
    their creation. 74 bits are random; a job is only ever looked up together with its project, whose id has 128.
    """
    milliseconds = time.time_ns() // 1_000_000
    number = (milliseconds << 80) | (0x7 << 76) | (secrets.randbits(12) << 64) | (0b10 << 62) | secrets.randbits(62)
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def new_key_token(kind: KeyKind) -> str:
    return make_token(kind, "".join(secrets.choice(BASE62) for _ in range(RANDOM_CHARACTERS)))


def user_name() -> str:
    """Return the name of the user that runs this, or their number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return str(os.getuid())


def cli_actor() -> str:
    """Return the user of the command line, for event metadata."""
    return f"cli:{user_name()}"


_program: list[str] = []


def set_program_file(file: str) -> None:
    """Name the file that people run, once, at the start of the single binary."""
    _program[:] = [file]


def program_file() -> str | None:
    """Return the file that people run, or None where this is not the single binary."""
    return _program[-1] if _program else None
