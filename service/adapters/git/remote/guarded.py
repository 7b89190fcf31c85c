"""Connections to git servers that are not the operator's own word: to addresses of the public internet, and no others.

As in ``adapters/outbound.py``, an address is checked at the socket, so that every name look-up and every redirect is
covered; urllib3 has no other place where the address is known. Proxies of the environment are not used: they would
connect where we may not.
"""

import socket
from typing import Any

from urllib3 import PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NameResolutionError, NewConnectionError

from service.domain.access.addresses import is_public
from service.domain.errors import Forbidden

ADDRESS_NOT_ALLOWED = "address_not_allowed"


class _PublicHttp(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _connected(self)


class _PublicHttps(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _connected(self)


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _PublicHttp


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _PublicHttps


def guarded_pool(**options: Any) -> PoolManager:
    """Return a pool whose connections raise Forbidden ``address_not_allowed`` where a name has no public address."""
    pool = PoolManager(cert_reqs="CERT_REQUIRED", **options)
    pool.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
    return pool


def _connected(connection: HTTPConnection) -> socket.socket:
    try:
        found = socket.getaddrinfo(connection.host.strip("[]"), connection.port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        reason = error if isinstance(error, socket.gaierror) else socket.gaierror(str(error))
        raise NameResolutionError(connection.host, connection, reason) from error
    public = [info for info in found if is_public(str(info[4][0]))]
    if not public:
        raise Forbidden(
            f"{connection.host} is not an address of the public internet. If it may be read, the operator names it at"
            " the terminal, a context repository with --context-internal.",
            code=ADDRESS_NOT_ALLOWED,
        )
    failure: OSError | None = None
    for family, kind, protocol, _, address in public:
        opened = socket.socket(family, kind, protocol)
        try:
            if isinstance(connection.timeout, int | float):
                opened.settimeout(connection.timeout)
            for option in connection.socket_options or ():
                opened.setsockopt(*option)
            opened.connect(address)
        except OSError as error:
            opened.close()
            failure = error
        else:
            return opened
    raise NewConnectionError(connection, f"Failed to establish a new connection: {failure}") from failure
