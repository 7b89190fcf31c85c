"""``docsmith audit``: check the log, read the log."""

import argparse
import asyncio
from typing import Any

import msgspec

from eventstore import RecordedEvent
from eventstore import verify as verify_chain
from service.cli.output import DONE, FAILED, VERIFICATION_FAILED, Output, failure
from service.cli.runtime import Runtime

PAGE = 500


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    audit = commands.add_parser("audit", help="check and read the log")
    actions = audit.add_subparsers(title="commands", metavar="COMMAND", required=True)
    one = actions.add_parser("verify", parents=[common], help="check the hash chain of the whole log")
    one.set_defaults(command=verify)
    one = actions.add_parser("show", parents=[common], help="print events, oldest first")
    one.add_argument("--stream", help="only of one stream, such as job-ID")
    one.add_argument("--type", help="only of one type, such as job-requested")
    one.add_argument("--actor", help="only what one actor caused: a key's id, system, or cli:USER")
    one.add_argument("--request", help="only what one request caused, by its X-Request-Id")
    one.add_argument("--after", type=int, default=0, metavar="POSITION", help="only later ones")
    one.add_argument("--limit", type=int, default=1000)
    one.set_defaults(command=show)


async def verify(options: argparse.Namespace, output: Output) -> int:
    log = options.data / "events.db"
    if not log.is_file():
        failure(f"{log}: there is no log here.")
        return FAILED
    found = await asyncio.to_thread(
        verify_chain, log, progress=lambda done, total: output.progress("verifying", done, total)
    )
    value = {
        "sound": found.is_sound,
        "events": found.position,
        "head": found.hash.hex(),
        "badPosition": found.bad_position,
        "problem": found.problem,
    }
    if found.is_sound:
        output.result(value, f"sound: {found.position} events, head {found.hash.hex()}")
        return DONE
    output.result(value, f"NOT sound: position {found.bad_position}: {found.problem}")
    return VERIFICATION_FAILED


class ShownEvent(msgspec.Struct, frozen=True, rename="camel"):
    """An event as auditors read it: its fields as one JSON object."""

    position: int
    stream: str
    stream_version: int
    type: str
    recorded_at: str
    actor: str
    request_id: str
    causation: int | None
    data: msgspec.Raw
    erased: bool
    hash: str


async def show(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
    found: list[ShownEvent] = []
    after = options.after
    while len(found) < options.limit:
        page = await runtime.store.read_all(after=after, limit=PAGE)
        if not page:
            break
        after = page[-1].position
        for event in page:
            if _is_wanted(event, options) and len(found) < options.limit:
                one = _shown(event)
                found.append(one)
                output.line(
                    f"{one.position:>6}  {one.recorded_at}  {one.stream}@{one.stream_version}  {one.type}"
                    f"  {one.actor}  {bytes(one.data).decode()[:200]}"
                )
    output.result({"events": found}, "")
    return DONE


def _is_wanted(event: RecordedEvent, options: argparse.Namespace) -> bool:
    return (
        (options.stream is None or event.stream == options.stream)
        and (options.type is None or event.type == options.type)
        and (options.actor is None or event.metadata.actor == options.actor)
        and (options.request is None or event.metadata.correlation_id == options.request)
    )


def _shown(event: RecordedEvent) -> ShownEvent:
    data = msgspec.json.decode(event.data, type=dict[str, object])
    if event.personal is not None:
        data.update(msgspec.json.decode(event.personal, type=dict[str, object]))
    return ShownEvent(
        event.position, event.stream, event.stream_version, event.type, event.recorded_at.isoformat(),
        event.metadata.actor, event.metadata.correlation_id, event.metadata.causation,
        msgspec.Raw(msgspec.json.encode(data)), event.erased, event.hash.hex(),
    )  # fmt: skip
