"""The checks between the open network and the handlers: keys, limits, addresses, connections, headers."""

from collections.abc import Callable, Coroutine, Iterator
from datetime import date, datetime

from aiohttp import web
from msgspec import Struct, field
from msgspec.structs import replace

from eventstore import EventStore, Metadata, Views
from service.domain.access.reader_tokens import signing_secret
from service.domain.access.usage import Api, Limits, RequestAccepted
from service.ports.bounds import CountBound
from service.queries.access.keys import KeyDirectory
from service.queries.projects import ProjectDirectory
from service.queries.sites import PublicSites
from service.runtime.system import now
from service.web.http.access.access import KEY_DIRECTORY, KEY_USES, PROJECT_DIRECTORY, PUBLIC_SITES, READER_SECRET
from service.web.http.access.proofs import PROOFS
from service.web.http.answers.cors import allow_origin
from service.web.http.answers.security_headers import IS_HTTPS, secure
from service.web.http.answers.versioning import SUNSET, tell_version
from service.web.http.connections.client_address import PROXIES, Proxies
from service.web.http.connections.connections import COMPLETE_HEAD, LOCAL, ConnectionLimiter, ConnectionLimits
from service.web.http.connections.limits import ADMISSIONS, tell_limits
from service.web.http.problems import BODY_SECONDS, name_request
from service.workers.admission.admissions import Admissions
from service.workers.admission.key_uses import KeyUses
from service.workers.admission.metered_store import MeteredStore
from service.workers.admission.proofs import Proofs
from service.workers.admission.shared_counts import SharedCounts


class AdmissionSettings(Struct, frozen=True):
    """See the settings of ``[server]`` and ``[limits]``."""

    limits: Limits = Limits()
    proxies: Proxies = field(default_factory=Proxies)
    connections: ConnectionLimits = ConnectionLimits()
    body_seconds: float = 60
    is_https: bool = False
    sunset: date | None = None


class Admission:
    """``secret`` is the installation's, for digests of addresses and for reader tokens. ``shared``: other instances of
    the service admit requests, too.
    """

    def __init__(
        self,
        store: EventStore,
        views: Views,
        secret: bytes,
        settings: AdmissionSettings,
        *,
        clock: Callable[[], datetime] = now,
        shared: SharedCounts | None = None,
    ) -> None:
        self._store, self._views, self._settings = store, views, settings
        self._keys, self._projects = KeyDirectory(store), ProjectDirectory(store, views)
        self._public_sites = PublicSites(store, views)
        self._uses = KeyUses(store)
        self._shared = shared
        self._admissions = _admissions(store, settings.limits, secret, clock, shared)
        self._reader_secret = signing_secret(secret)
        self._proofs = _proofs(views, settings.limits.proof_hour, clock, shared)
        proxied = (*LOCAL, *settings.proxies.trusted)
        self.connection_limiter = ConnectionLimiter(_unlimited(settings.connections, proxied))

    def count_with(self, count_bound: CountBound) -> None:
        """Count what the limits refuse."""
        self.connection_limiter.count_bound = self._admissions.count_bound = count_bound
        self._proofs.count_bound = count_bound

    def install(self, app: web.Application) -> None:
        settings = self._settings
        app[KEY_DIRECTORY], app[PROJECT_DIRECTORY], app[KEY_USES] = self._keys, self._projects, self._uses
        app[PUBLIC_SITES], app[READER_SECRET] = self._public_sites, self._reader_secret
        app[ADMISSIONS], app[PROXIES], app[PROOFS] = self._admissions, settings.proxies, self._proofs
        app[BODY_SECONDS], app[IS_HTTPS] = settings.body_seconds, settings.is_https
        app[SUNSET] = settings.sunset
        app.on_response_prepare.append(_before_head)
        app[COMPLETE_HEAD] = complete_head

    def metered(self, organization_id: str, project_id: str, metadata: Metadata) -> EventStore:
        """Return the store for a follow-up that came by no request: its first append counts, or raises OverLimit."""
        counted = RequestAccepted("agent", now(), organization_id, project_id, key_id="", address="")
        return MeteredStore(self._store, self._admissions, counted, metadata)

    async def accept(self, api: Api, organization_id: str, metadata: Metadata) -> None:
        """Count what an organization is about to create. Raises OverLimit."""
        await self._admissions.accept(api, organization_id, metadata)

    def change(self, settings: AdmissionSettings) -> None:
        """Other limits and proxies from now on; what else differs takes a restart."""
        ours, proxies = self._settings.proxies, settings.proxies
        ours.trusted, ours.header = proxies.trusted, proxies.header
        self._admissions.change_limits(settings.limits)
        self._proofs.least = settings.limits.proof_hour
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
        if self._shared is not None:
            yield "others-admissions", self._admissions.follow, True
            yield "others-tokens", self._proofs.share, True
        yield "key-uses", self._uses.run, False


def _admissions(
    store: EventStore, limits: Limits, secret: bytes, clock: Callable[[], datetime], shared: SharedCounts | None
) -> Admissions:
    if shared is None:
        return Admissions(store, limits, secret, clock)
    return Admissions(store, limits, secret, clock, turns=shared.turns, brief=shared.brief)


def _proofs(views: Views, least: int, clock: Callable[[], datetime], shared: SharedCounts | None) -> Proofs:
    if shared is None:
        return Proofs(views, least, clock)
    return Proofs(views, least, clock, once=shared.once, shared_tokens=shared.tokens)


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
