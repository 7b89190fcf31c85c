"""HTTP to addresses that others named, without access to the operator's own network.

A name is checked where it cannot be changed any more: at the socket, with the very address that is about to be
connected to. What a resolver said a moment ago, or says to the next question, does not matter (DNS rebinding), nor how
an address was written (``0x7f.1``, ``[::ffff:7f00:1]``). Proxies of the environment are not used, since they would
connect where we may not.

Names are looked up on threads of their own: asyncio's are few and shared by all, and a name server that does not answer
would hold one for half a minute. They are daemons, so that none holds up the end of the process.
"""

import asyncio
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from service.domain.access.addresses import is_public

LOOKUPS = 16
"""At the same time."""


class AddressNotAllowed(OSError):
    """It is not of the public internet."""

    def __init__(self) -> None:
        super().__init__("the address is not of the public internet")


def guarded_connector(*, allow_private: bool, receive_bytes: int | None = None, **options: Any) -> aiohttp.TCPConnector:
    """A connector that refuses addresses which are not public, unless ``allow_private``.

    A refusal is an ``aiohttp.ClientConnectorError`` (see ``is_refusal``). ``receive_bytes``: the buffer of a socket,
    and so about the most that is parsed at a time. ``options`` are TCPConnector's own.
    """
    opened = _open_socket if allow_private else _open_public_socket

    def factory(info: Sequence[Any]) -> socket.socket:
        one = opened(info)
        if receive_bytes is not None:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        return one

    options.setdefault("resolver", PatientResolver())
    return aiohttp.TCPConnector(socket_factory=factory, **options)


def is_refusal(error: BaseException) -> bool:
    """Return whether a request failed because of where it would have gone."""
    return isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, AddressNotAllowed)


def _open_public_socket(info: Sequence[Any]) -> socket.socket:
    if not is_public(str(info[4][0])):
        raise AddressNotAllowed
    return _open_socket(info)


def _open_socket(info: Sequence[Any]) -> socket.socket:
    family, kind, protocol, *_ = info
    return socket.socket(family, kind, protocol)


class PatientResolver(AbstractResolver):
    """Look up addresses with the system's resolver, on threads of its own with a limit; a cancelled caller does not
    wait.
    """

    def __init__(self, lookups: int = LOOKUPS) -> None:
        self._slots = asyncio.Semaphore(lookups)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Raises OSError."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[ResolveResult]] = loop.create_future()

        def tell(found: list[ResolveResult] | OSError) -> None:
            self._slots.release()
            if answer.done():  # no one waits any more
                return
            if isinstance(found, OSError):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        def look_up() -> None:
            found = _look_up(host, port, family)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(tell, found)

        await self._slots.acquire()
        threading.Thread(target=look_up, name="look-up", daemon=True).start()
        return await answer

    async def close(self) -> None:
        pass


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult] | OSError:
    try:
        infos = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
    except OSError as error:
        return error
    except UnicodeError:  # an empty label, or one of more than 63 characters
        return OSError("not a host name")
    return [
        ResolveResult(
            hostname=host, host=str(address[0]), port=port, family=kind, proto=protocol, flags=socket.AI_NUMERICHOST
        )
        for kind, _, protocol, _, address in infos
    ]
