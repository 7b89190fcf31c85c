"""``docsmith health``: whether the service of a data folder can do its work. What watches containers asks it."""

import asyncio
import http.client
from urllib.parse import urlsplit

import click
import msgspec
from msgspec import Struct

from service.cli.output import DONE, FAILED, Output
from service.cli.parsing import Options, command
from service.cli.runtime import address_of_server, is_served, reachable
from service.domain.errors import Unavailable

ANSWER_SECONDS = 10.0
MOST_BYTES = 1 << 20


class Health(Struct, frozen=True):
    address: str
    ready: bool
    reasons: dict[str, str]
    """What is not ready, and why."""
    behind: dict[str, str] = {}
    """Sites whose search index is older than their documentation, and why."""
    degraded: dict[str, str] = {}
    """Parts that do less than they should, and why."""


class _Told(Struct):
    reasons: dict[str, str]
    behind: dict[str, str] = {}
    degraded: dict[str, str] = {}


@command(
    "health",
    more="It asks /readyz, where the service of the data folder listens, or at --url; exits with 1 when something "
    f"is not ready, or there is no answer within {ANSWER_SECONDS:g} seconds.",
    examples=["health", "health --url http://127.0.0.1:8080 --json", "health --requests"],
    works_alone=True,
)
@click.option("--url", help="where to ask, instead of the service of the data folder")
@click.option(
    "--requests",
    is_flag=True,
    help="ask /readyz/requests: whether a proxy should send requests there, though something may be wrong",
)
async def health(options: Options, output: Output) -> int:
    """Print whether the service is ready. Raise Unavailable when none answers, or none can be found."""
    url = options.url
    if url is None:
        url = address_of_server(options.data) if is_served(options.data) else None
    if url is None:
        raise Unavailable(f"No service has the data folder {options.data}, or it is only just starting.")
    url = reachable(url.rstrip("/"))
    try:
        found = await asyncio.to_thread(_ask, url, "/readyz/requests" if options.requests else "/readyz")
    except msgspec.MsgspecError:
        raise Unavailable(f"What answers at {url} is no Docsmith.") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split())
        raise Unavailable(f"{url} cannot be asked: {reason}.") from None
    shown = [f"{url}: {'ready' if found.ready else 'not ready'}"]
    shown += [
        f"{name}: {why}" for name, why in (*found.reasons.items(), *found.behind.items(), *found.degraded.items())
    ]
    output.result(found, "\n".join(shown))
    return DONE if found.ready else FAILED


def _ask(url: str, path: str) -> Health:
    """Raises OSError, HTTPException, MsgspecError, and ValueError for what is no address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is no http:// address")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", f"{parts.path}{path}")
        answer = connection.getresponse()
        health = msgspec.json.decode(answer.read(MOST_BYTES), type=_Told)
    finally:
        connection.close()
    return Health(url, answer.status == http.HTTPStatus.OK, health.reasons, health.behind, health.degraded)
