"""The dashboard's pages asked for over HTTP, as a browser asks: how long each takes, and what open live pages cost."""

import asyncio
import http.client
import importlib
import math
import pkgutil
import re
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from statistics import median
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from msgspec import Struct

import service.web.dashboard

COOKIE = "__Host-docsmith"
WARM = 3
NO_PAGES = ("/live", "/export", "/favicon.ico", "/callback", "/sign-in/oidc")
"""Ends of the paths of the dashboard's package that are no pages."""
CHOICES = {
    "/dashboard/{organizationId}/jobs": ("only=failed", "only=archived"),
    "/dashboard/{organizationId}/questions": ("outcome=unanswered", "days=7", "text=retry", "text=zzqxv"),
    "/dashboard/{organizationId}/analytics": ("days=7",),
    "/dashboard/{organizationId}/gaps": ("days=7",),
    "/dashboard/{organizationId}/usage": ("days=7",),
    "/dashboard/{organizationId}/sites/{domain}/search": ("q=retry+delay",),
    "/operator/audit": ("category=job", "type=job-failed", "actor=no-one", "before=5000"),
}
"""Queries that choose from a page's list, by the page's path; each is measured like a page of its own."""


def paths(values: Mapping[str, str]) -> Iterator[str]:
    """Yield the path of every page that the dashboard's modules have, with its parts filled in."""
    found = set()
    for one in pkgutil.walk_packages(service.web.dashboard.__path__, "service.web.dashboard."):
        for value in vars(importlib.import_module(one.name)).values():
            if isinstance(value, web.RouteTableDef):
                found |= {route.path for route in value if isinstance(route, web.RouteDef) and route.method == "GET"}
    for path in sorted(re.sub(r"\{(\w+):(?:[^{}]|\{[^{}]*\})*\}", r"{\1}", one) for one in found):
        if not path.endswith(NO_PAGES):
            filled = path.format_map(values)
            yield filled
            yield from (f"{filled}?{query}" for query in CHOICES.get(path, ()))


def sign_in(url: str, link: str) -> str:
    """Return the secret of a new session, by a sign-in link."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    form = urllib.parse.urlencode({"link": link.partition("#")[2]})
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/sign-in", form, headers)
    answer = connection.getresponse()
    cookie = next(one for one in answer.headers.get_all("Set-Cookie", ()) if one.startswith(f"{COOKIE}="))
    connection.close()
    return cookie.partition("=")[2].partition(";")[0]


def page_text(url: str, session: str, path: str) -> str:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request("GET", path, headers={"Cookie": f"{COOKIE}={session}", "Accept": "text/html"})
    text = connection.getresponse().read().decode()
    connection.close()
    return text


class Cost(Struct):
    """Milliseconds of each request up to the last byte of its answer, and of the server's processor for one."""

    latencies_ms: list[float]
    processor_ms: float


def page_costs(
    url: str, session: str, asked: Sequence[str], times: int, processor_ms: Callable[[], float]
) -> dict[str, Cost]:
    """Ask for each page over one connection that stays open; ``processor_ms``: the server's processor time so far."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    headers = {"Cookie": f"{COOKIE}={session}", "Accept": "text/html"}
    found: dict[str, Cost] = {}
    for path in asked:
        latencies: list[float] = []
        before = 0.0
        for number in range(WARM + times):
            if number == WARM:
                before = processor_ms()
            began = time.perf_counter()
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            answer.read()
            elapsed = (time.perf_counter() - began) * 1000
            assert answer.status in (200, 303), f"{path}: {answer.status}"
            if number >= WARM:
                latencies.append(elapsed)
        found[path] = Cost(latencies, (processor_ms() - before) / times)
    connection.close()
    return found


def shares(values: Sequence[float]) -> tuple[float, float]:
    """Return the median, and the value that 95 in 100 are not above."""
    return median(values), sorted(values)[math.ceil(0.95 * len(values)) - 1]


async def live_pages(
    url: str, sessions: Sequence[str], addresses: Sequence[str], measure: Callable[[], float]
) -> tuple[int, float]:
    """Open an address as a live page for each, by turns over the sessions; return how many are open, and their memory.

    ``measure`` returns the server's memory in MB. It is read when each page has its first fragment.
    """
    before, opened = measure(), 0
    async with AsyncExitStack() as stack:
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
        client = await stack.enter_async_context(aiohttp.ClientSession(url, connector=connector, timeout=timeout))
        pages = []
        for number, address in enumerate(addresses):
            headers = {"Cookie": f"{COOKIE}={sessions[number % len(sessions)]}", "Accept": "text/event-stream"}
            page = await stack.enter_async_context(client.get(address, headers=headers))
            assert page.status == 200, f"{address}: {page.status}"
            pages.append(page)

        async def first_fragment(page: aiohttp.ClientResponse) -> None:
            async for line in page.content:
                if line.startswith(b"data:"):
                    return

        await asyncio.gather(*map(first_fragment, pages))
        opened = len(pages)
        return opened, measure() - before
