"""Errors that a caller may see. ``code`` is API and stable; the message is for people."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers of the system: the disk is full, or a user's or a process's share of it."""

OUT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
"""Error numbers of the system: the process, or the machine, has too many files open."""


class ServiceError(Exception):
    """Base of the errors that leave the service with their own words."""

    code = "internal"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class Invalid(ServiceError):
    """The input does not fit. ``problems`` are pairs of JSON path (``$.messages[0].role``) and message."""

    code = "invalid_request"

    def __init__(self, message: str, *, code: str | None = None, problems: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message, code=code)
        self.problems = problems


class BodyBroken(Invalid):
    """The body is not encoded as its headers say, or ends early."""

    def __init__(self) -> None:
        super().__init__("The body is not what its headers say: its encoding, or its length.")


class BodyTooSlow(Invalid):
    """The body did not arrive in time."""

    code = "body_too_slow"
    sentence = "The request body did not arrive in time."

    def __init__(self) -> None:
        super().__init__(self.sentence)


class BodyTooLarge(Invalid):
    """The body is larger than its limit, in bytes."""

    code = "body_too_large"

    def __init__(self, most: int) -> None:
        super().__init__(f"The request body is larger than {most / 1024 / 1024:.3g} MiB.")


class UnsupportedMediaType(Invalid):
    """The body's content type or coding is none that is read here."""

    code = "unsupported_media_type"


class Unauthorized(ServiceError):
    """No usable key."""

    code = "unauthorized"


class Forbidden(ServiceError):
    """A good key that may not do this."""

    code = "forbidden"


class NotFound(ServiceError):
    """The thing does not exist, or this caller may not know that it does."""

    code = "not_found"


class Conflict(ServiceError):
    """It does not fit the present state; the same call will be refused again."""

    code = "conflict"


Dependency = Literal["model", "git", "code_host", "disk"]
"""The things outside of the process that a job waits for while they are away."""


class Unavailable(ServiceError):
    """A dependency failed in a way that may pass."""

    code = "unavailable"
    dependency: Dependency | None = None
    """Set by ``depending_on``."""

    def __init__(self, message: str, *, code: str | None = None, retry_after_seconds: float | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after_seconds = retry_after_seconds


class KeptElsewhere(Unavailable):
    """The repositories of the embedded code host are not in this instance's data folder."""

    code = "kept_elsewhere"

    def __init__(self) -> None:
        super().__init__("The repository is on another instance, which is home to the embedded code host. Ask there.")


class Damaged(Unavailable):
    """A repository does not hold what was written. A clone is made again; of a hosted repository, which cannot be,
    the message has the operator's way back (``names_remedy``). ``is_named``: it says which repository it is.
    """

    code = "damaged"

    def __init__(self, message: str, *, is_named: bool = False, names_remedy: bool = False) -> None:
        super().__init__(message)
        self.is_named, self.names_remedy = is_named, names_remedy


class NotShared(Unavailable):
    """The folder of the repositories that instances share is not safe to write in: their locks do not hold there."""

    code = "hosted_folder_not_shared"

    def __init__(
        self,
        message: str = "The repositories of the embedded code host cannot be used: hosted_folder is not one folder with"
        " locks for all instances. The operator finds the reason at /readyz.",
    ) -> None:
        super().__init__(message)


class DiskFull(Unavailable):
    """A disk of this service has no room for a file. What was under way can be done again, once there is."""

    def __init__(self, message: str = "The disk of the data folder, or of temporary files, is full.") -> None:
        super().__init__(message)


@contextmanager
def needs_room() -> Iterator[None]:
    """Raise DiskFull for what the system says when files cannot grow."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise DiskFull from error
        raise


@contextmanager
def depending_on(dependency: Dependency) -> Iterator[None]:
    """Name the dependency in each Unavailable that names none."""
    try:
        yield
    except Unavailable as error:
        error.dependency = error.dependency or dependency
        raise


class RateLimited(Unavailable):
    """Too many requests, ours or a vendor's; it says when to come back if it knows."""

    code = "rate_limited"


class QuotaUsedUp(RateLimited):
    """The account behind a key has no credit left: hours may pass until it has."""

    code = "quota_used_up"


def is_temporary(status: int) -> bool:
    """Return whether a request that was answered with this HTTP status may succeed later, unchanged.

    408, 425 and 429 say so (RFC 9110, RFC 8470, RFC 6585); a server error is the server's own.
    """
    return status in (408, 425, 429) or status >= 500
