"""The checks between the open network and the handlers: keys, limits, addresses, connections, headers."""

from collections.abc import Callable, Coroutine, Iterator
from datetime import date, datetime
from pathlib import Path

from aiohttp import web
from msgspec import Struct, field
from msgspec.structs import replace

from eventstore import EventStore, Metadata, Views
from service.domain.access.reader_tokens import signing_secret
from service.domain.access.usage import Limits, RequestAccepted
from service.ports.bounds import CountBound
from service.queries.keys import KeyDirectory
from service.queries.projects import ProjectDirectory
from service.queries.sites import PublicSites
from service.runtime.system import now
from service.web.http.access import KEY_DIRECTORY, KEY_USES, PROJECT_DIRECTORY, PUBLIC_SITES, READER_SECRET
from service.web.http.client_address import PROXIES, Proxies
from service.web.http.connections import COMPLETE_HEAD, LOCAL, ConnectionLimiter, ConnectionLimits
from service.web.http.cors import allow_origin
from service.web.http.limits import ADMISSIONS, tell_limits
from service.web.http.problems import BODY_SECONDS, name_request
from service.web.http.security_headers import IS_HTTPS, secure
from service.web.http.versioning import SUNSET, tell_version
from service.workers.admission.admissions import Admissions, load_secret
from service.workers.admission.key_uses import KeyUses
from service.workers.admission.metered_store import MeteredStore


class AdmissionSettings(Struct, frozen=True):
    """See the settings of ``[server]`` and ``[limits]``."""

    limits: Limits = Limits()
    proxies: Proxies = field(default_factory=Proxies)
    connections: ConnectionLimits = ConnectionLimits()
    body_seconds: float = 60
    is_https: bool = False
    sunset: date | None = None


class Admission:
    def __init__(
        self,
        store: EventStore,
        views: Views,
        data: Path,
        settings: AdmissionSettings,
        *,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._store, self._views, self._settings = store, views, settings
        self._keys, self._projects = KeyDirectory(store), ProjectDirectory(store, views)
        self._public_sites = PublicSites(store, views)
        self._uses = KeyUses(store)
        secret = load_secret(data / "usage.key")
        self._admissions, self._reader_secret = (
            Admissions(store, settings.limits, secret, clock),
            signing_secret(secret),
        )
        proxied = (*LOCAL, *settings.proxies.trusted)
        self.connection_limiter = ConnectionLimiter(_unlimited(settings.connections, proxied))

    def count_with(self, count_bound: CountBound) -> None:
        """Count what the limits refuse."""
        self.connection_limiter.count_bound = self._admissions.count_bound = count_bound

    def install(self, app: web.Application) -> None:
        settings = self._settings
        app[KEY_DIRECTORY], app[PROJECT_DIRECTORY], app[KEY_USES] = self._keys, self._projects, self._uses
        app[PUBLIC_SITES], app[READER_SECRET] = self._public_sites, self._reader_secret
        app[ADMISSIONS], app[PROXIES] = self._admissions, settings.proxies
        app[BODY_SECONDS], app[IS_HTTPS] = settings.body_seconds, settings.is_https
        app[SUNSET] = settings.sunset
        app.on_response_prepare.append(_before_head)
        app[COMPLETE_HEAD] = complete_head

    def metered(self, organization_id: str, project_id: str, metadata: Metadata) -> EventStore:
        """Return the store for a follow-up that came by no request: its first append counts, or raises OverLimit."""
        counted = RequestAccepted("agent", now(), organization_id, project_id, key_id="", address="")
        return MeteredStore(self._store, self._admissions, counted, metadata)

    def change(self, settings: AdmissionSettings) -> None:
        """Other limits and proxies from now on; what else differs takes a restart."""
        ours, proxies = self._settings.proxies, settings.proxies
        ours.trusted, ours.header = proxies.trusted, proxies.header
        self._admissions.change_limits(settings.limits)
        limits = replace(self.connection_limiter.limits, per_address=settings.connections.per_address)
        self.connection_limiter.limits = _unlimited(limits, (*LOCAL, *proxies.trusted))

    async def load(self) -> None:
        """Read keys, projects and counts; call it before the first request."""
        await self._keys.catch_up()
        await self._projects.load()
        await self._public_sites.load()
        await self._admissions.load(self._views)

    def workers(self) -> Iterator[tuple[str, Callable[[], Coroutine[None, None, None]], bool]]:
        """Yield what keeps it up to date: its name, its work, and whether a service that only reads needs it."""
        yield "keys", self._keys.run, True
        yield "projects", self._projects.run, True
        yield "public-sites", self._public_sites.run, True
        yield "admissions", self._admissions.run, True  # it answers each request that it cannot be recorded
        yield "key-uses", self._uses.run, False


async def _before_head(request: web.Request, response: web.StreamResponse) -> None:
    """The signal of every answer that aiohttp sends: errors and streams included."""
    complete_head(request, response)


def complete_head(request: web.Request, response: web.StreamResponse) -> None:
    """Add the fields to every answer's head."""
    name_request(request, response)
    secure(request, response)
    allow_origin(request, response)
    if request.method == "POST":
        tell_limits(request, response)
    tell_version(request, response)


def _unlimited(limits: ConnectionLimits, networks: tuple[str, ...]) -> ConnectionLimits:
    return ConnectionLimits(
        limits.in_all, limits.per_address, limits.head_seconds, limits.idle_seconds, limits.write_seconds, networks
    )
