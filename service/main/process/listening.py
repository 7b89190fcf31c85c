"""Where the service listens, and how many connections the system lets it have."""

import errno
import resource
import socket

import structlog

from service.domain.access.usage import Limits
from service.domain.errors import Forbidden
from service.runtime.local_address import LOCALHOST, local_address
from service.runtime.settings.settings import Settings
from service.web.http.connections.admission import AdmissionSettings
from service.web.http.connections.client_address import Proxies
from service.web.http.connections.connections import ConnectionLimits

log = structlog.get_logger()

DESCRIPTORS_ELSEWHERE = 256
"""File descriptors that are kept for what is no connection of a caller."""
FEWEST_CONNECTIONS = 16
LEAST_DESCRIPTORS = 128
"""A service at rest, with one site, has 39 files open; its fewest connections and a job need some more."""


class Address:
    """How people reach the service: what the settings say, else where it is opened on its machine, once it listens."""

    def __init__(self, public_url: str) -> None:
        self._public_url = public_url.rstrip("/")
        self.local = f"http://{LOCALHOST}"
        """Where people on this machine open it, without a slash at its end."""

    def listening_on(self, url: str) -> None:
        self.local = local_address(url)

    def __call__(self) -> str:
        return self._public_url or self.local


def room_for(connections: int) -> int:
    """Return how many connections there can be, with file descriptors left for files, child processes and models'
    servers.
    """
    soft = _raised_limit(connections + DESCRIPTORS_ELSEWHERE)
    return max(min(connections, soft - DESCRIPTORS_ELSEWHERE), FEWEST_CONNECTIONS)


def require_descriptors(connections: int) -> None:
    """Say so when this many connections are more than the system allows the process.

    Raises Forbidden ``too_few_descriptors`` when the service could not work at all.
    """
    soft, wanted = _raised_limit(connections + DESCRIPTORS_ELSEWHERE), connections + DESCRIPTORS_ELSEWHERE
    mend = f"ulimit -n {wanted}, or LimitNOFILE={wanted} in the systemd unit"
    if soft < LEAST_DESCRIPTORS:
        raise Forbidden(
            f"This process may have {soft} files open, and the service needs {LEAST_DESCRIPTORS}: raise the limit "
            f"({mend}).",
            code="too_few_descriptors",
        )
    if soft < wanted:
        log.warning(
            "few files may be open: fewer connections are taken", limit=soft, taken=room_for(connections), mend=mend
        )


def _raised_limit(wanted: int) -> int:
    """The number of files that may be open, raised as far as it is wanted and allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        more = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
        except (OSError, ValueError) as error:  # forbidden here, or more than the kernel has (fs.nr_open)
            log.warning("the number of open files cannot be raised", limit=soft, wanted=more, reason=str(error))
        else:
            soft = more
    return soft


def socket_of(host: str, port: int, option: str = "--port") -> socket.socket:
    """A listening socket. Raises OSError when the address is taken, or not ours."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        text = f"cannot listen on {host}: {error.strerror}; give an address of this machine"
        raise OSError(error.errno, text) from None
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        listening.close()
        hint = f"; choose another with {option}, or 0 for a free one" if error.errno == errno.EADDRINUSE else ""
        raise OSError(error.errno, f"cannot listen on {host} port {port}: {error.strerror}{hint}") from None
    return listening


def url_of(listening: socket.socket) -> str:
    """Return the URL of the address that the socket is bound to."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def admission_settings(settings: Settings) -> AdmissionSettings:
    server, limits = settings.server, settings.limits
    return AdmissionSettings(
        limits=Limits(
            limits.assistant_key_month,
            limits.organization_hour,
            limits.address_day,
            limits.project_hour,
            limits.reader_5_minutes,
            limits.reader_day,
            limits.key_searches_minute,
            limits.address_searches_minute,
            limits.address_tokens_minute,
            limits.public_site_day,
            limits.public_address_hour,
            limits.public_searches_minute,
            limits.proof_hour,
            limits.organization_jobs_day,
            limits.organization_projects_day,
            limits.organization_uploads_day,
            limits.organization_keys_day,
        ),
        proxies=Proxies.of(server.trusted_proxies, server.proxy_header),
        connections=ConnectionLimits(
            room_for(server.max_connections),
            server.max_connections_per_address,
            server.head_seconds,
            server.idle_seconds,
            server.write_seconds,
        ),
        body_seconds=server.body_seconds,
        is_https=server.public_url.startswith("https:"),
        sunset=server.v1_sunset,
    )
