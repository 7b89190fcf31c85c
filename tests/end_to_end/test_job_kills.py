"""kill -9 at every step of a job and at any instant between: one branch, one pull request, no reply paid for twice, and
a log that still gives the pushed commit.

A few kills by default, spread over a job's steps; ``JOB_KILLS=100`` makes that many for each of the two models:
one after each event, the rest at random instants, every third of which is followed by a second kill.
"""

import asyncio
import json
import os
import random
import re
import sqlite3
import time
from collections import Counter
from contextlib import closing, contextmanager

import pytest
from dulwich.repo import Repo

from eventstore.postgres.connections import Address, Connections
from tests.end_to_end.talk import create_job, get_job, job_events
from tests.end_to_end.test_crashes import with_model
from tests.fakes.provider import Call, Reply, ScriptedProvider
from tests.service_process import service_in, write_docs

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("JOB_KILLS", "3"))
SEED = int(os.environ.get("JOB_KILLS_SEED", "1"))
LOOK_SECONDS = 0.0005
"""Between two looks at the log by whoever kills at an event: far less than a step of a job takes."""
ONCE = ("committed", "branch-pushed", "pull-request-opened", "job-completed")


@contextmanager
def rows_of(service):
    """A function that reads the log with its database alone; the one value of a query is ``$1``."""
    if service.place.is_local:
        file = f"file:{service.data / 'events.db'}?mode=ro"
        with closing(sqlite3.connect(file, uri=True, check_same_thread=False)) as db:
            yield lambda query, value: db.execute(query, {"1": value}).fetchall()
    else:
        with closing(Connections.open(Address(service.variables["DOCSMITH_STORE"]))) as connections:
            yield connections.fetch


def events_of(service, job_id):
    query = "SELECT type, data FROM events WHERE stream = $1 ORDER BY stream_version"
    with rows_of(service) as rows:
        return [(type_, json.loads(data)) for type_, data in rows(query, f"job-{job_id}")]


def kill_at_event(service, job_id, number):
    """As soon as the log has so many events of the job."""
    with rows_of(service) as rows:
        until = time.monotonic() + 60
        query = "SELECT count(*) FROM events WHERE stream = $1"
        while rows(query, f"job-{job_id}")[0][0] < number:
            assert time.monotonic() < until
            time.sleep(LOOK_SECONDS)
    service.kill()


async def kill_after(service, seconds):
    await asyncio.sleep(seconds)  # the very instant is what is tried
    await asyncio.to_thread(service.kill)


async def killed_job(http, service, instruction, moment, second):
    """A job whose service is killed, started again, perhaps killed again, and serves it to its end."""
    job = await create_job(http, service, instruction)
    kind, when = moment
    if kind == "event":
        await asyncio.to_thread(kill_at_event, service, job["id"], when)
    else:
        await kill_after(service, when)
    await asyncio.to_thread(service.start)
    if second is not None:
        await kill_after(service, second)
        await asyncio.to_thread(service.start)
    await job_events(http, service, job["id"])
    return await get_job(http, service, job["id"])


def moments(steps, seconds):
    """After each event, or some of them, then at random instants; each with the instant of a second kill, or None."""
    chance = random.Random(SEED)
    numbers = range(1, steps + 1)
    if steps >= KILLS:
        numbers = [1 + (2 * index + 1) * steps // (2 * KILLS) for index in range(KILLS)]
    found = [(("event", number), None) for number in numbers]
    while len(found) < KILLS:
        second = chance.uniform(0, seconds) if len(found) % 3 == 0 else None
        found.append((("instant", chance.uniform(0, 1.1 * seconds)), second))
    return found


def branches(service):
    with Repo(str(service.data / "hosted" / f"{service.project_id}.git")) as repository:
        return {name.decode(): commit.decode() for name, commit in repository.refs.as_dict(b"refs/heads").items()}


def pull_requests(service):
    folder = service.data / "hosted" / f"{service.project_id}.git" / "docsmith" / "pulls"
    return [json.loads(file.read_text()) for file in folder.glob("*.json")]


def check_ended_once(service, job, replies):
    """One branch, one commit, one pull request; as many replies of the model as when nobody is killed."""
    assert (job["status"], job["failure"]) == ("completed", None)
    events = events_of(service, job["id"])
    counts = Counter(type_ for type_, _ in events)
    assert {type_: counts[type_] for type_ in ONCE} == dict.fromkeys(ONCE, 1)
    assert counts["model-replied"] == replies
    by_type = dict(events)
    assert branches(service)[job["branch"]] == by_type["committed"]["commit"] == by_type["branch-pushed"]["commit"]
    (opened,) = [one for one in pull_requests(service) if one["head"] == job["branch"]]
    assert job["prLink"].endswith(f"/pulls/{opened['number']}-{opened['token']}")


def check_reproduced(service, jobs):
    found = service.cli("audit", "reproduce", *(job["id"] for job in jobs))
    heads = branches(service)
    assert found["same"] is True
    for job, one in zip(jobs, found["jobs"], strict=True):
        (commit,) = one["commits"]
        assert commit["rebuilt"] == heads[job["branch"]]
    assert len(heads) == 1 + len(jobs)
    assert len(pull_requests(service)) == len(jobs)
    assert service.place.verify().is_sound


async def clean_job(http, service, instruction):
    """How many events and seconds a job takes when nobody is killed, and how many replies."""
    began = time.monotonic()
    job = await create_job(http, service, instruction)
    await job_events(http, service, job["id"])
    seconds = time.monotonic() - began
    events = events_of(service, job["id"])
    replies = sum(type_ == "model-replied" for type_, _ in events)
    job = await get_job(http, service, job["id"])
    check_ended_once(service, job, replies)
    return job, len(events), seconds, replies


async def test_the_builtin_model_is_killed(http, tmp_path):
    with service_in(tmp_path) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"), index=False)
        await asyncio.to_thread(service.start)

        def instruction(number):
            return f'Replace "20 MB" with "{number + 30} MB" in install.md; add "Number {number}." to retry.md'

        first, steps, seconds, replies = await clean_job(http, service, instruction(0))
        jobs = [first]
        for number, (moment, second) in enumerate(moments(steps - 1, seconds), 1):
            job = await killed_job(http, service, instruction(number), moment, second)
            check_ended_once(service, job, replies)
            jobs.append(job)
        await asyncio.to_thread(check_reproduced, service, jobs)


def scripted(asked):
    """Four replies, told apart by how many came before: nothing is kept between calls, as with a real provider.

    When the checks send the work back, the last one comes again.
    """
    number = re.search(r"Write page (\d+) please", json.dumps(asked.body["messages"]))[1]
    before = sum(message["role"] == "assistant" for message in asked.body["messages"])
    page = {"path": f"page-{number}.md", "text": f"# Page {number}\n\nSee [the installer](/install).\n"}
    edit = {"path": "install.md", "old": "20 MB", "new": f"{number}0 MB"}
    listed = {"path": "docs.json", "old": '"retry"', "new": f'"retry", "page-{number}"'}
    steps = [
        (Call("write", (json.dumps(page),), id="c1"), Call("replace", (json.dumps(listed),), id="c0")),
        (Call("replace", (json.dumps(edit),), id="c2"), Call("read", ('{"path": "retry.md"}',), id="c3")),
        (Call("check_links", ('{"changed": true}',), id="c4"),),
        (Call("finish", (json.dumps({"title": f"Add page {number}", "summary": "Done."}),), id="c5"),),
    ]
    return Reply(("One ", "moment ", "please."), steps[min(before, 3)], delay_seconds=0.005)


def asked_of(provider, instruction):
    """How often each step of the job was asked."""
    mine = [asked.body["messages"] for asked in provider.asked if instruction in json.dumps(asked.body["messages"])]
    return Counter(sum(message["role"] == "assistant" for message in messages) for messages in mine)


async def test_a_model_that_is_paid_for_is_not_asked_twice(http, tmp_path):
    async with ScriptedProvider(scripted) as provider:
        with service_in(tmp_path, with_model(provider)) as service:
            await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"), index=False)
            await asyncio.to_thread(service.start)

            def instruction(number):
                return f"Write page {1000 + number} please"

            first, steps, seconds, replies = await clean_job(http, service, instruction(0))
            assert replies >= 4
            jobs = [first]
            for number, (moment, second) in enumerate(moments(steps - 1, seconds), 1):
                job = await killed_job(http, service, instruction(number), moment, second)
                check_ended_once(service, job, replies)
                jobs.append(job)
                calls = asked_of(provider, instruction(number))
                kills = 1 if second is None else 2
                assert set(calls) == set(range(replies))
                assert calls.total() <= replies + kills  # only what was in flight at a kill is asked again
            await asyncio.to_thread(check_reproduced, service, jobs)
