"""Erasures: delete what people typed for a thread or a job, and a person's name and address."""

from contextlib import aclosing, suppress

from msgspec import Struct

from eventstore import EventStore, Metadata, Views, execute, load
from service.commands.access.people import remove_person
from service.domain.access.credentials import ForgetCredentials
from service.domain.erasures import CATEGORIES, EraseSubject
from service.domain.errors import Conflict, NotFound
from service.domain.jobs.decider import BranchPushed, Committed, FailJob, FileChanged, PullRequestOpened
from service.domain.threads.recorded_reply import FailReply
from service.domain.threads.threads import Thread
from service.runtime.system import now
from service.streams import CREDENTIALS, ERASURES, JOBS, PEOPLE, THREADS, decoded

ERASED_MEANWHILE = "What people had typed for this was erased."


class ErasedSubject(Struct, frozen=True, rename="camel"):
    subject: str
    position: int
    """The position of the record of its erasure."""
    again: bool
    """It was erased before."""
    kept: tuple[str, ...]
    """Kept of a job, since it is in the repository: changed files, commit, branch, pull request."""


async def erase_subject(store: EventStore, views: Views, subject: str, metadata: Metadata) -> ErasedSubject:
    """Delete the data key of a thread, job or person, record that, and clear the read models of what it had sealed.

    What is under way for it ends first; a person's rights, sessions and passkeys end. Safe to repeat after a failure,
    which may have left it half done.

    Raise NotFound when it does not exist, Conflict ``last_owner`` for a person, and StoreUnavailable.
    """
    category, _, entity_id = subject.partition("-")
    if category not in CATEGORIES or not entity_id or await store.stream_version(subject) == 0:
        raise NotFound(f"Not found: {subject}. Name a stream, such as thread-ID, job-ID or person-ID.")
    if category == PEOPLE.category:
        await _end_person(store, views, entity_id, metadata)
        return await _erased(store, views, (subject, CREDENTIALS.stream(entity_id)), (), metadata)
    kept = await _end(store, category, entity_id, metadata)
    await store.erase(subject)
    await _end(store, category, entity_id, metadata)  # what began meanwhile; nothing can from now on
    return await _erased(store, views, (subject,), kept, metadata)


async def _erased(
    store: EventStore, views: Views, subjects: tuple[str, ...], kept: tuple[str, ...], metadata: Metadata
) -> ErasedSubject:
    """Delete the keys, record it, and return the record of the first."""
    records = []
    for subject in subjects:
        await store.erase(subject)
        records.append(await execute(store, ERASURES, subject, EraseSubject(now()), metadata=metadata))
    await views.catch_up()
    await views.scrub()
    return ErasedSubject(subjects[0], records[0].position, again=not records[0].events, kept=kept)


async def _end_person(store: EventStore, views: Views, person_id: str, metadata: Metadata) -> None:
    """End a person's rights, and with them the sessions, and the ways to sign in."""
    await remove_person(store, views, person_id, metadata)
    await execute(store, CREDENTIALS, person_id, ForgetCredentials(now()), metadata=metadata)


async def _end(store: EventStore, category: str, entity_id: str, metadata: Metadata) -> tuple[str, ...]:
    """End a job, or a thread's replies; return what of the job is kept."""
    if category == THREADS.category:
        thread = (await load(store, THREADS, entity_id)).state
        for turn in thread.turns if isinstance(thread, Thread) else ():
            if turn.reply is not None and turn.reply.state == "active":
                failed = FailReply(turn.reply.reply_id, "erased", ERASED_MEANWHILE, now())
                await execute(store, THREADS, entity_id, failed, metadata=metadata)
        return ()
    with suppress(Conflict):  # it has ended
        await execute(store, JOBS, entity_id, FailJob("erased", ERASED_MEANWHILE, now()), metadata=metadata)
    files: set[str] = set()
    kept: dict[str, None] = {}  # of all rounds, in order
    async with aclosing(store.iterate_stream(JOBS.stream(entity_id))) as events:
        async for recorded in events:
            for _, event in decoded(JOBS, [recorded]):
                match event:
                    case FileChanged(path=path):
                        files.add(path)
                    case Committed(commit=commit):
                        kept[f"commit {commit}"] = None
                    case BranchPushed(branch=branch):
                        kept[f"branch {branch}"] = None
                    case PullRequestOpened(url=url):
                        kept[f"pull request {url}"] = None
                    case _:
                        pass
    return (*(f"changed file {path}" for path in sorted(files)), *kept)
