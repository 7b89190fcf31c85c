"""``docsmith audit``: check the log, read it, sign it, and erase a person from it."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import click
import msgspec

from eventstore import EventStore, Metadata, Verified
from service.cli.audit.export import export
from service.cli.audit.kept_checkpoints import kept_checkpoint_options, keys_to_compare, signature_problem
from service.cli.audit.loss import accept_loss
from service.cli.audit.reading import (
    filter_of,
    filter_options,
    log_of,
    one_line,
    reading,
)
from service.cli.audit.replay import replay
from service.cli.audit.reproduce import reproduce
from service.cli.audit.verify_export import verify_export
from service.cli.output import DONE, FAILED, VERIFICATION_FAILED, WRONG_USAGE, Output
from service.cli.parsing import COUNT, FILE, Group, Options
from service.cli.runtime import Runtime
from service.commands.erasures import erase_subject
from service.domain.errors import Invalid
from service.domain.formats import NewerFormat
from service.domain.threads.threads import ANONYMOUS, ThreadStarted
from service.integrity.checkpoints import (
    CHECKPOINTS,
    KEPT,
    PUBLIC_KEY,
    SignedCheckpoint,
    parse_checkpoints,
    read_checkpoints,
    read_public_key,
)
from service.integrity.identity import Identity, fingerprint, identity_in, own_key
from service.integrity.shared_secrets import shared_secrets
from service.integrity.verification import verify_log
from service.queries.audit import PAGE, pages, shown
from service.runtime.system import cli_actor
from service.streams import THREADS
from service.views.audit import EventView
from service.workers.checkpointing import make_checkpoint

SHOWN_CHARACTERS = 200
KEEP_ONE = "keep a checkpoint there: docsmith audit checkpoint --output FILE"


audit = Group("audit")


@audit.command(
    "verify",
    does="check the log's hash chain, against signed checkpoints too",
    more="It exits with 3 when the log is not sound.",
    examples=["audit verify", "audit verify --checkpoint kept.json --public-key kept.pub"],
    works_alone=True,
)
@kept_checkpoint_options
@click.option("--from", "start", type=COUNT, default=1, metavar="POSITION", help="trust what is before it")
async def verify(options: Options, output: Output) -> int:
    log = await asyncio.to_thread(log_of, options.data)
    start = options.start
    kept: list[tuple[Path, SignedCheckpoint]] = []
    for file in options.checkpoint:
        kept += [(file, one) for one in read_checkpoints(file)]
    own: Path = options.data / CHECKPOINTS
    identity = await identity_in(log)
    try:
        kept += [(own, one) for one in parse_checkpoints(_content(own), str(own))]
    except NewerFormat:
        raise
    except Invalid as error:
        return _report(Verified(0, b"", None, str(error)), options, kept, identity, output)
    expected = read_public_key(options.public_key) if options.public_key is not None else None
    if expected is not None and not kept:
        none = f"there is no checkpoint that {options.public_key} could be checked with"
        return _report(Verified(0, b"", None, none), options, kept, identity, output)
    asked_for = options.checkpoint or [own]
    for file, one in kept:
        if problem := signature_problem(file, one, expected if file in asked_for else None):
            return _report(Verified(0, b"", None, problem), options, kept, identity, output)
    checkpoints = [one.checkpoint() for _, one in kept]
    found = await asyncio.to_thread(
        verify_log,
        options.data,
        checkpoints,
        from_position=start,
        progress=lambda done, total: output.progress("verifying", done, total),
    )
    return _report(found, options, kept, identity, output)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def _report(
    found: Verified,
    options: Options,
    kept: list[tuple[Path, SignedCheckpoint]],
    identity: Identity | None,
    output: Output,
) -> int:
    own = own_key(options.data / PUBLIC_KEY)
    given = [one for file, one in kept if file in options.checkpoint]
    compared = [str(file) for file in (*options.checkpoint, options.public_key) if file is not None]
    value = {
        "sound": found.problem is None,
        "from": options.start,
        "events": found.position,
        "head": found.hash.hex(),
        "badPosition": found.bad_position,
        "problem": found.problem,
        "checkpoints": [
            {"file": str(file), "position": one.position, "time": one.time, "publicKey": one.public_key}
            for file, one in kept
        ],
        "publicKeyGiven": options.public_key is not None,
        "key": None if own is None else fingerprint(own),
        "keyInLog": None if identity is None else fingerprint(identity.public_key),
        "comparedWith": compared,
    }
    if found.problem is not None:
        where = f"position {found.bad_position}: " if found.bad_position else ""
        output.result(value, f"NOT sound: {where}{found.problem}")
        return VERIFICATION_FAILED
    lines = [f"sound: {found.position} events, head {found.hash.hex()}"]
    if options.start > 1:
        lines.append(f"the events before position {options.start} were not looked at")
    if kept:
        lines.append(f"it holds each of {len(kept)} signed checkpoints, the last of position {kept[-1][1].position}")
    if given and options.public_key is None:
        lines.append(keys_to_compare(given))
    lines.append(_key_line(own, identity))
    if compared:
        lines.append(f"compared with what was kept: {', '.join(compared)}")
    else:
        lines.append(f"compared with nothing kept elsewhere: an exchanged log would not be noticed ({KEEP_ONE})")
    output.result(value, "\n".join(lines))
    return DONE


def _key_line(own: str | None, identity: Identity | None) -> str:
    """Say which key signs, and whether the log names the same one."""
    if own is None:
        signs = "no key signs checkpoints here yet"
        return signs if identity is None else f"{signs}; the log names {fingerprint(identity.public_key)}"
    if identity is None:
        return f"key {fingerprint(own)}; the log does not name it yet: the service does at its next start"
    where = f"event {identity.position}"
    if own == identity.public_key:
        return f"key {fingerprint(own)}, as {where} of the log says"
    return f"key {fingerprint(own)}, and NOT the one that {where} of the log names: {fingerprint(identity.public_key)}"


@audit.command(
    "checkpoint",
    does="sign the log's present state, for others to keep",
    examples=["audit checkpoint --output kept.json"],
    works_alone=True,
)
@click.option("--output", type=FILE, metavar="FILE", help="write the checkpoint to a file, too")
async def checkpoint(options: Options, output: Output) -> int:
    log = await asyncio.to_thread(log_of, options.data)
    async with await log.open(read_only=log.is_local) as store:  # in PostgreSQL the key is made in the vault
        secrets = shared_secrets(options.data, store, is_local=log.is_local)
        made = await make_checkpoint(store, secrets, options.data)
    if made is None:
        output.failed("the log is empty: there is nothing to sign.", "conflict")
        return FAILED
    text = msgspec.json.encode(made).decode()
    if options.output is not None:
        await asyncio.to_thread(options.output.write_text, f"{text}\n", "utf-8")
        await asyncio.to_thread((options.data / KEPT).write_text, f"{options.output.absolute()}\n", "utf-8")
    output.result(made, text)
    return DONE


@audit.command(
    "show",
    does="print events, oldest first",
    more="The reading itself is recorded, too.",
    examples=["audit show --stream job-ID", "audit show --category thread --since 2026-01-31 --json"],
    works_alone=True,
)
@filter_options
@click.option("--limit", type=COUNT, default=1000, metavar="N", help="at most N events (default: 1000)")
async def show(options: Options, output: Output) -> int:
    found: list[EventView] = []
    count, wanted = 0, filter_of(options)
    async with (
        reading(options.data, "audit show", wanted.as_texts(), after=wanted.after) as (store, through),
        aclosing(pages(store, wanted, through=through)) as all_pages,
    ):
        async for page, _ in all_pages:
            for event in page[: options.limit - count]:
                count += 1
                one = shown(event)
                if output.as_json:
                    found.append(one)
                else:
                    output.line(_line(one))
            if count >= options.limit:
                break
    output.result({"events": found}, "")
    return DONE


@audit.command(
    "erase",
    does="erase the personal text of a thread or job, or a person's name and address, for good",
    more="It deletes the data key of each: text that was sealed with it cannot be read any more, in any copy or"
    " backup, and the hash chain stays whole. What a job did to the repository (changed files, commit, branch, pull"
    " request) is not erased. A person's rights, sessions and passkeys end; docsmith person list shows the ids.",
    examples=["audit erase thread-ID", "audit erase thread-ID --yes", "audit erase person-ID --yes"],
)
@click.argument("subject", nargs=-1, metavar="SUBJECT", help="a stream, such as thread-ID, job-ID or person-ID")
@click.option("--fp", help="every thread that was started with this fp")
@click.option("--yes", is_flag=True, help="do it; without this, only say what would be done")
async def erase(runtime: Runtime, options: Options, output: Output) -> int:
    subjects = list(dict.fromkeys(options.subject))
    if options.fp is not None:
        subjects += [one for one in await _threads_of(runtime.store, options.fp, output) if one not in subjects]
    if not subjects:
        output.failed("there is nothing to erase: name a stream, such as thread-ID, job-ID or person-ID.", "not_found")
        return WRONG_USAGE if options.fp is None else FAILED
    if not options.yes:
        text = "\n".join(f"would erase {subject}" for subject in subjects)
        output.result({"erased": [], "wouldErase": subjects}, f"{text}\nnothing was erased: add --yes to do it")
        return WRONG_USAGE
    erased = []
    for subject in subjects:
        done = await erase_subject(runtime.store, runtime.views, subject, Metadata(actor=cli_actor()))
        erased.append(done)
        output.line(f"{subject}: {'had been erased before' if done.again else 'erased'}")
        for one in done.kept:
            output.line(f"  not erased, since it is the repository's: {one}")
    output.result({"erased": erased}, "")
    return DONE


async def _threads_of(store: EventStore, fp: str, output: Output) -> list[str]:
    """The streams of the threads that were started with this fp; those that were erased do not know theirs."""
    if fp == ANONYMOUS:
        raise Invalid("Many readers share the name anonymous: name the threads instead.")
    found, after, head = [], 0, await store.head()
    while page := await store.read_all(after=after, category=THREADS.category, limit=PAGE):
        after = page[-1].position
        output.progress("searching", min(after, head), head)
        for event in page:
            if event.stream_version == 1 and not event.erased:
                match THREADS.codec.decode(event):
                    case ThreadStarted(fp=started_with) if started_with == fp:
                        found.append(event.stream)
                    case _:
                        pass
    return found


def _line(one: EventView) -> str:
    gone = "[erased] " if one.erased else "[damaged] " if one.damaged else ""
    return (
        f"{one.position:>6}  {one.recorded_at}  {one.stream}@{one.stream_version}  {one.type}  {one.actor}"
        f"  {gone}{one_line(bytes(one.data).decode(), SHOWN_CHARACTERS)}"
    )


for one in (replay, reproduce, export, verify_export, accept_loss):
    audit.add_command(one)
