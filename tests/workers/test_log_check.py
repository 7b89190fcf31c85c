"""The check of a log for a person who waits for it."""

import asyncio
from contextlib import aclosing

import pytest

from eventstore import NewEvent, SQLiteEventStore
from service.integrity.shared_secrets import FileSecrets
from service.workers.checkpointing import make_checkpoint
from service.workers.log_check import LogCheck


async def make_log(data, events=900):
    async with await SQLiteEventStore.open(data / "events.db", vault_path=data / "keys.db") as store:
        new = [NewEvent("noted", b'{"text":"%06d"}' % number) for number in range(events)]
        await store.append("note-1", new, expected_version=0)
        await make_checkpoint(store, FileSecrets(data), data)


async def states_of(check):
    async with asyncio.timeout(120), aclosing(check.changes()) as states:
        return [state async for state in states]


async def test_check_reports_its_progress_and_the_head(tmp_path):
    await make_log(tmp_path)
    check = LogCheck(tmp_path)
    assert check.start()
    assert not check.start()
    states = await states_of(check)
    positions = [state.position for state in states]
    assert positions == sorted(positions)
    assert states[-1].found.position == states[-1].head
    assert (states[-1].found.problem, states[-1].found.checkpoints) == ("", 1)
    assert check.start()
    await check.close()
    assert not check.state.is_running


async def test_form_sent_twice_starts_one_check(tmp_path):
    await make_log(tmp_path)
    check = LogCheck(tmp_path)
    assert check.start("a form")
    assert check.start("a form")
    await states_of(check)
    ended = check.state
    assert check.start("a form")
    assert check.state is ended
    assert check.start("another form")
    await check.close()


@pytest.mark.parametrize("number", [3, 450, 899])
async def test_check_finds_one_flipped_bit(tmp_path, number):
    await make_log(tmp_path)
    log = tmp_path / "events.db"
    content = bytearray(log.read_bytes())
    at = content.index(b'{"text":"%06d"}' % number) + 10
    content[at] ^= 1
    log.write_bytes(content)
    check = LogCheck(tmp_path)
    check.start()
    (*_, last) = await states_of(check)
    assert last.found.problem
    assert number < last.found.bad_position <= number + 3


async def test_check_of_a_log_that_is_gone_has_a_reason(tmp_path):
    check = LogCheck(tmp_path)
    check.start()
    (*_, last) = await states_of(check)
    assert last.failure or last.found.problem
