"""The one name of a service on its own machine.

Browsers keep a session for the name in the address, and passkeys need a name: so people are shown ``localhost``
everywhere, never ``127.0.0.1`` in one place and ``localhost`` in another.
"""

import errno
import socket
from contextlib import suppress
from urllib.parse import urlsplit

LOCALHOST = "localhost"
_LED_TO_BY_LOCALHOST = ("127.0.0.1", "::1", "0.0.0.0", "::")  # noqa: S104  (compared, not listened on)


def local_address(listening: str) -> str:
    """Return the address at which people on this machine open a service that listens at ``listening``.

    It is ``localhost``, unless that name leads to another program: browsers try ``::1`` first, and this service may
    listen on IPv4 alone.
    """
    parts = urlsplit(listening)
    host, port = parts.hostname or "", parts.port or 80
    if host not in _LED_TO_BY_LOCALHOST:
        return listening
    name = "127.0.0.1" if "." in host and _is_taken("::1", port) else LOCALHOST
    return f"{parts.scheme}://{name}:{port}"


def _is_taken(host: str, port: int) -> bool:
    """Return whether another program has the port of this address."""
    with suppress(OSError), socket.socket(socket.AF_INET6) as trial:
        try:
            trial.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False
