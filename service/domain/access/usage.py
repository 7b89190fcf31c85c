"""Accepted requests, and the limits on them: true sliding windows, each counting exactly.

Every accepted request is one event, in one stream for all: the writer of the next one has seen all before it. So the
windows hold across processes, and an auditor can count again.

Searches and reader tokens are in no event. A search records nothing else, takes about a millisecond, and may be made
with each key that a reader presses: an event of each would cost more than the search, and would be most of the log. So
one instance counts them in memory, and several in a table that they share. Their windows are of a minute, so a restart
of the one, or of the table's server, frees no more than that minute.
"""

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal, assert_never

from msgspec import Struct

from service.domain.events import Event

Api = Literal["assistant", "agent", "projects", "uploads", "keys"]
"""Kinds of requests: questions and jobs, then what an organization creates."""
Scope = Literal[
    "assistant-key", "organization", "address", "project", "reader", "reader-day", "key-searches", "address-searches",
    "address-tokens", "public-site", "public-address", "public-searches",
    "organization-jobs", "organization-projects", "organization-uploads", "organization-keys",
]  # fmt: skip

SCOPES: dict[Api, tuple[Scope, ...]] = {
    "assistant": (
        "assistant-key",
        "organization",
        "address",
        "reader",
        "reader-day",
        "public-site",
        "public-address",
    ),
    "agent": ("project", "organization-jobs"),
    "projects": ("organization-projects",),
    "uploads": ("organization-uploads",),
    "keys": ("organization-keys",),
}
WINDOW_SECONDS: dict[Scope, int] = {
    "assistant-key": 30 * 24 * 3600,
    "organization": 3600,
    "address": 24 * 3600,
    "project": 3600,
    "reader": 5 * 60,
    "reader-day": 24 * 3600,
    "key-searches": 60,
    "address-searches": 60,
    "address-tokens": 60,
    "public-site": 24 * 3600,
    "public-address": 3600,
    "public-searches": 60,
    "organization-jobs": 24 * 3600,
    "organization-projects": 24 * 3600,
    "organization-uploads": 24 * 3600,
    "organization-keys": 24 * 3600,
}
LONGEST_WINDOW_SECONDS = max(WINDOW_SECONDS.values())
LONGEST_BESIDE_KEYS_SECONDS = max(seconds for scope, seconds in WINDOW_SECONDS.items() if scope != "assistant-key")
"""An older request counts for its key alone."""

STREAM_ID = "requests"
"""The id of the one stream."""


class RequestAccepted(Event, frozen=True, tag="request-accepted"):
    """A request that counts."""

    api: Api
    accepted_at: datetime
    organization_id: str
    project_id: str
    key_id: str
    """Empty for a request without a key, of a public site."""
    address: str
    """The caller's address as a keyed digest, since an address is personal: it distinguishes callers, and names none.
    """
    is_reader: bool = False
    """Made with a key for browsers, whose readers have limits of their own."""
    fp: str = ""
    """A reader's own name for itself, as a keyed digest; empty when it is anonymous."""
    is_public: bool = False
    """Made without a key."""


UsageEvent = RequestAccepted


class SearchRequest(Struct, frozen=True):
    """A search that counts; its fields are as those of ``RequestAccepted``. Never stored."""

    accepted_at: datetime
    project_id: str
    key_id: str
    address: str
    is_reader: bool = False
    is_public: bool = False


class TokenRequest(Struct, frozen=True):
    """A request for a reader token; its fields are as those of ``RequestAccepted``. Never stored."""

    accepted_at: datetime
    project_id: str
    address: str


Brief = SearchRequest | TokenRequest
"""Counted in memory, or in a table that instances share."""
Counted = RequestAccepted | Brief


class Limits(Struct, frozen=True):
    """How many requests each window takes; 0 for any number."""

    assistant_key: int = 10_000
    organization: int = 10_000
    address: int = 10_000
    project: int = 100
    reader: int = 20
    reader_day: int = 200
    key_searches: int = 600
    address_searches: int = 60
    address_tokens: int = 10
    public_site: int = 1_000
    public_address: int = 60
    public_searches: int = 600
    proof_hour: int = 60
    """No window: questions or reader tokens of a site in an hour, beyond which its usual rate is looked at."""
    organization_jobs: int = 1_000
    organization_projects: int = 100
    organization_uploads: int = 300
    organization_keys: int = 200

    def of(self, scope: Scope) -> int:
        match scope:
            case "assistant-key":
                return self.assistant_key
            case "organization":
                return self.organization
            case "address":
                return self.address
            case "project":
                return self.project
            case "reader":
                return self.reader
            case "reader-day":
                return self.reader_day
            case "key-searches":
                return self.key_searches
            case "address-searches":
                return self.address_searches
            case "address-tokens":
                return self.address_tokens
            case "public-site":
                return self.public_site
            case "public-address":
                return self.public_address
            case "public-searches":
                return self.public_searches
            case "organization-jobs":
                return self.organization_jobs
            case "organization-projects":
                return self.organization_projects
            case "organization-uploads":
                return self.organization_uploads
            case "organization-keys":
                return self.organization_keys
            case _:
                assert_never(scope)


class Standing(Struct, frozen=True):
    """How far one caller is from a limit."""

    scope: Scope
    limit: int
    window_seconds: int
    remaining: int
    reset_milliseconds: int
    """Until the oldest counted request leaves the window, and with it one more fits; the whole window when none is."""


KEPT_WINDOWS = 10_000
"""Windows of a scope that stay in memory though they seem to be over: the clock may be ahead."""


class _Window:
    """The times of one caller's last requests, in milliseconds since 1970, oldest first; their number is its limit.

    None is dropped for its age, and one that is later than now counts: the clock may have been ahead, then or now.
    """

    __slots__ = ("times",)

    def __init__(self, times: Iterable[int] = ()) -> None:
        self.times = array("Q", sorted(times))

    def count(self, after: int) -> int:
        """Return how many are later than this."""
        return len(self.times) - bisect_right(self.times, max(after, 0))

    def add(self, time: int, most: int) -> None:
        self.times.insert(bisect_right(self.times, max(time, 0)), max(time, 0))
        if len(self.times) > most:
            del self.times[: len(self.times) - most]

    def remove(self, time: int) -> None:
        place = bisect_right(self.times, max(time, 0)) - 1
        if place >= 0 and self.times[place] == max(time, 0):
            del self.times[place]


class Usage:
    """Every window in memory. Of more than ``kept`` in a scope, those that are over are dropped, the one that was used
    last longest ago first. Times are milliseconds since 1970.
    """

    def __init__(self, limits: Limits, *, kept: int = KEPT_WINDOWS) -> None:
        self._limits, self._kept = limits, kept
        self._windows: dict[Scope, OrderedDict[str, _Window]] = {scope: OrderedDict() for scope in WINDOW_SECONDS}

    def change_limits(self, limits: Limits) -> None:
        """A limit that was off counts from now on."""
        self._limits = limits

    def is_limited(self, request: Counted) -> bool:
        """Return whether any limit applies to the request."""
        return next(self.scopes_of(request), None) is not None

    def standings(self, request: Counted, now: int) -> list[Standing]:
        """Return the use of each limited scope of a request, whether the request is counted already or not."""
        return [self._standing(scope, caller, now) for scope, caller in self.scopes_of(request)]

    def refusal(self, request: Counted, now: int) -> Standing | None:
        """The scope that has no room for one more, or None: there is room in all. Of several, that which frees last."""
        full = [standing for standing in self.standings(request, now) if standing.remaining == 0]
        return max(full, key=lambda standing: standing.reset_milliseconds, default=None)

    def add(self, request: Counted) -> None:
        """Count a request; ``withdraw`` it should it not be recorded after all."""
        time = milliseconds(request.accepted_at)
        for scope, caller in self.scopes_of(request):
            windows = self._windows[scope]
            self._let_go(windows, time - WINDOW_SECONDS[scope] * 1000)
            window = windows.get(caller)
            if window is None:
                window = windows[caller] = _Window()
            else:
                windows.move_to_end(caller)
            window.add(time, self._limits.of(scope))

    def add_of_key(self, key_id: str, times: Iterable[int]) -> None:
        """Count requests to the assistant, of which all other windows are over: their times in milliseconds."""
        if self._limits.assistant_key > 0:
            windows = self._windows["assistant-key"]
            before = windows[key_id].times if key_id in windows else ()
            windows[key_id] = _Window((*before, *times))

    def withdraw(self, request: Counted) -> None:
        time = milliseconds(request.accepted_at)
        for scope, caller in self.scopes_of(request):
            window = self._windows[scope].get(caller)
            if window is not None:
                window.remove(time)

    def __len__(self) -> int:
        """Windows in memory."""
        return sum(map(len, self._windows.values()))

    def standing_of(self, scope: Scope, caller: str, now: int) -> Standing | None:
        """Return the use of one window; None where the scope is not limited."""
        return self._standing(scope, caller, now) if self._limits.of(scope) > 0 else None

    def _standing(self, scope: Scope, caller: str, now: int) -> Standing:
        limit, seconds = self._limits.of(scope), WINDOW_SECONDS[scope]
        window = self._windows[scope].get(caller)
        count = 0 if window is None else window.count(now - seconds * 1000)
        reset = seconds * 1000
        if window is not None and count:
            first = window.times[-min(count, limit)]  # more than the limit: it was lowered since
            reset = min(max(first + seconds * 1000 - now, 1), seconds * 1000)
        return Standing(scope, limit, seconds, max(limit - count, 0), reset)

    def scopes_of(self, request: Counted) -> Iterator[tuple[Scope, str]]:
        """Return the limited scopes of a request, and who is counted there: in one scope perhaps two, of whom neither
        may be over the limit.
        """
        callers: Iterator[tuple[Scope, str]]
        match request:
            case SearchRequest():
                callers = _searchers(request)
            case TokenRequest():
                callers = iter((("address-tokens", f"{request.project_id} {request.address}"),))
            case RequestAccepted():
                callers = _callers(request)
        return ((scope, caller) for scope, caller in callers if self._limits.of(scope) > 0)

    def _let_go(self, windows: OrderedDict[str, _Window], before: int) -> None:
        """Drop the windows that were used last longest ago, as far as they are over: two for each one that may come."""
        for _ in range(2):
            caller = next(iter(windows), None) if len(windows) >= self._kept else None
            if caller is None or windows[caller].count(before):
                return
            del windows[caller]


def _searchers(search: SearchRequest) -> Iterator[tuple[Scope, str]]:
    if search.is_public:
        yield "public-searches", search.project_id
    if search.is_reader or search.is_public:
        yield "address-searches", f"{search.project_id} {search.address}"
    else:
        yield "key-searches", search.key_id


def _callers(request: RequestAccepted) -> Iterator[tuple[Scope, str]]:
    for scope in SCOPES[request.api]:
        match scope:
            case "assistant-key" if request.key_id:
                yield scope, request.key_id
            case (
                "organization"
                | "organization-jobs"
                | "organization-projects"
                | "organization-uploads"
                | "organization-keys"
            ):
                yield scope, request.organization_id
            case "address":
                yield scope, request.address
            case "project":
                yield scope, request.project_id
            case "reader" | "reader-day" if request.is_reader:
                # A name is the client's own choice, and an address may be that of a whole office: the fuller counts.
                yield scope, f"{request.project_id} {request.address}"
                if request.fp:
                    yield scope, f"{request.project_id} fp {request.fp}"
            case "public-site" if request.is_public:
                yield scope, request.project_id
            case "public-address" if request.is_public:
                yield scope, f"{request.project_id} {request.address}"
            case _:
                pass


def milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)


# As the other things of the log, for what reads all of it: the windows themselves are too large for a state


class AcceptRequest(Struct, frozen=True):
    request: RequestAccepted


UsageCommand = AcceptRequest


class Accepted(Struct, frozen=True):
    """How many requests were ever accepted."""

    count: int = 0


def decide(command: UsageCommand, _state: Accepted) -> list[UsageEvent]:
    return [command.request]


def evolve(state: Accepted, _event: UsageEvent) -> Accepted:
    return Accepted(state.count + 1)
