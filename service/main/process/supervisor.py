"""The interface of systemd and its like to a service: a socket that is open already, and an address for its status.

Both are variables of the environment and a socket (sd_listen_fds(3), sd_notify(3)), so no library is needed. Without
the variables nothing happens.
"""

import os
import socket
import time
from collections.abc import MutableMapping
from typing import Self

import structlog

log = structlog.get_logger()

FIRST_DESCRIPTOR = 3
"""SD_LISTEN_FDS_START."""


def inherited_socket(env: MutableMapping[str, str]) -> socket.socket | None:
    """The listening socket that was passed to this process, if one was. The variables are taken out, so that children
    do not take it for theirs.

    Raises OSError: it is no listening stream socket.
    """
    meant, count = env.pop("LISTEN_PID", ""), env.pop("LISTEN_FDS", "")
    env.pop("LISTEN_FDNAMES", None)
    if meant != str(os.getpid()) or not count.isdecimal() or int(count) < 1:
        return None
    os.set_inheritable(FIRST_DESCRIPTOR, False)
    inherited = socket.socket(fileno=FIRST_DESCRIPTOR)
    if inherited.type != socket.SOCK_STREAM or not inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise OSError("the socket that was passed on (LISTEN_FDS) does not listen for connections")
    if int(count) > 1:
        log.warning("only the first socket that was passed on is used", sockets=int(count))
    return inherited


STOP_SECONDS = 15.0
"""Longer than a stop takes."""


class Supervisor:
    """Receives the service's status, if there is a supervisor."""

    def __init__(self, address: str, watchdog_seconds: float | None) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self.watchdog_seconds = watchdog_seconds
        """A service that says nothing for so long is taken for dead; None: it is not watched."""

    @classmethod
    def of(cls, env: MutableMapping[str, str]) -> Self:
        """Return the supervisor that the environment names, and remove its variables, which are not for children."""
        address = env.pop("NOTIFY_SOCKET", "")
        meant, microseconds = env.pop("WATCHDOG_PID", str(os.getpid())), env.pop("WATCHDOG_USEC", "")
        watched = meant == str(os.getpid()) and microseconds.isdecimal() and int(microseconds) > 0
        return cls(address, int(microseconds) / 1e6 if watched else None)

    def starting(self, seconds: float) -> None:
        """It takes longer: wait for so long again, whatever the limit was."""
        self._tell(f"EXTEND_TIMEOUT_USEC={round(seconds * 1e6)}\nSTATUS=starting")

    def ready(self, status: str) -> None:
        self._tell(f"READY=1\nSTATUS={status}")

    def reloading(self) -> None:
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def alive(self) -> None:
        self._tell("WATCHDOG=1")

    def stopping(self, drain_seconds: float) -> None:
        """It goes down: wait for the drain, and the stop after it."""
        more = f"\nEXTEND_TIMEOUT_USEC={round((drain_seconds + STOP_SECONDS) * 1e6)}" if drain_seconds else ""
        self._tell(f"STOPPING=1{more}")

    def _tell(self, message: str) -> None:
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
            out.setblocking(False)
            try:
                out.sendto(message.encode(), self._address)
            except OSError as error:  # the service is worth more than what its supervisor knows of it
                log.warning("supervisor not told", reason=error.strerror)
