"""Reader tokens for proof of work, while a site is asked far more than usual; attacked as programs would."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import aiohttp
import altcha
import pytest

from eventstore import SQLiteEventStore, Views
from service.domain.access.proof_of_work import LIFETIME, Solution
from service.domain.access.usage import Limits
from service.domain.errors import Unavailable
from service.projections import all_projections
from service.runtime.system import now
from service.web.http.connections.admission import AdmissionSettings
from service.web.http.connections.client_address import Proxies
from service.workers.admission.proofs import Proofs
from tests.web.entrance import entrance

DOCS = "https://docs.example.com"
TOKEN = "/discovery/v1/token/alpha"
PROXIES = Proxies.of("127.0.0.1", "X-Forwarded-For")
BUSY = AdmissionSettings(Limits(proof_hour=1), PROXIES)
"""The third token of an hour needs proof."""


@pytest.fixture
async def http():
    async with aiohttp.ClientSession() as session:
        yield session


async def fetched(http, entry, key, proof=None, address="192.0.2.1"):
    headers = {"Authorization": f"Bearer {key}", "Origin": DOCS, "X-Forwarded-For": address}
    body = None if proof is None else {"proof": proof}
    async with http.post(entry.url + TOKEN, headers=headers, json=body) as response:
        return response.status, await response.json()


def solution_of(challenge):
    found = altcha.solve_challenge_v1(
        challenge["challenge"], challenge["salt"], challenge["algorithm"], challenge["maxnumber"]
    )
    assert found is not None
    return {**{name: value for name, value in challenge.items() if name != "maxnumber"}, "number": found.number}


async def asked_for_proof(http, entry, key, **caller):
    """The challenge of the first request that needs proof."""
    for _ in range(3):
        status, body = await fetched(http, entry, key, **caller)
        if status == 403:
            assert body["code"] == "proof_required"
            return body["challenge"]
        assert status == 200, body
    raise AssertionError("no proof was asked for")


async def test_busy_site_gives_tokens_for_proof(tmp_path, http):
    async with entrance(tmp_path, BUSY) as entry:
        key = await entry.key("assistant", allowed_origins=(DOCS,), needs_reader_token=None)
        challenge = await asked_for_proof(http, entry, key)
        proof = solution_of(challenge)
        other = await fetched(http, entry, key, proof, address="192.0.2.2")
        assert (other[0], other[1]["code"]) == (403, "proof_required")
        wrong = await fetched(http, entry, key, {**proof, "number": proof["number"] ^ 1})
        assert (wrong[0], wrong[1]["code"]) == (403, "proof_required")
        status, body = await fetched(http, entry, key, {**proof, "took": 12})  # as ALTCHA's own clients add
        assert (status, set(body)) == (200, {"token", "expiresAt", "expiresIn"})
        again = await fetched(http, entry, key, proof)
        assert (again[0], again[1]["code"]) == (403, "proof_required")
        renamed = await fetched(http, entry, key, {**proof, "challenge": "0" * 64})
        assert (renamed[0], renamed[1]["code"]) == (403, "proof_required")
        bad = await fetched(http, entry, key, {**proof, "number": -1})
        assert (bad[0], bad[1]["code"]) == (400, "invalid_request")


async def test_proof_of_before_a_restart_is_not_used_again(tmp_path, http):
    async with entrance(tmp_path, BUSY) as entry:
        key = await entry.key("assistant", allowed_origins=(DOCS,), needs_reader_token=None)
        challenge = await asked_for_proof(http, entry, key)
        used, proof = [], solution_of(challenge)
        used.append((await fetched(http, entry, key, proof))[0])
    started = datetime.fromtimestamp(int(challenge["salt"].split("=")[1][:-1]), UTC) - LIFETIME
    later = AdmissionSettings(BUSY.limits, PROXIES)
    async with entrance(tmp_path, later, clock=lambda: started + timedelta(seconds=2)) as entry:
        await asked_for_proof(http, entry, key)
        used.append((await fetched(http, entry, key, proof))[0])
    assert used == [200, 403]


async def test_many_addresses_share_a_site_s_tokens_without_proof(tmp_path, http):
    settings = AdmissionSettings(Limits(), PROXIES)
    async with entrance(tmp_path, settings) as entry:
        key = await entry.key("assistant", allowed_origins=(DOCS,), needs_reader_token=None)
        found = [(await fetched(http, entry, key, address=f"198.51.100.{one}"))[0] for one in range(100)]
        assert (found[:61], found[61:]) == ([200] * 61, [403] * 39)


async def test_one_address_gets_few_answers_of_a_thousand(tmp_path, http):
    async with entrance(tmp_path, AdmissionSettings(Limits(), PROXIES)) as entry:
        key = await entry.key("assistant", allowed_origins=(DOCS,), needs_reader_token=None)
        tokens = [await fetched(http, entry, key) for _ in range(20)]
        assert [status for status, _ in tokens] == [200] * 10 + [429] * 10
        headers = {"Authorization": f"Bearer {key}", "Origin": DOCS, "X-Forwarded-For": "192.0.2.1"}
        answered = 0
        for number in range(1_000):
            headers["X-Reader-Token"] = tokens[number % 10][1]["token"]
            url = f"{entry.url}/discovery/v2/assistant/alpha/message"
            async with http.post(url, headers=headers, json={"fp": f"reader {number}"}) as response:
                answered += response.status == 200
        assert answered == 20


async def test_used_proofs_are_kept_within_a_bound(tmp_path):
    at = [datetime(2026, 1, 1, tzinfo=UTC)]
    async with (
        await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store,
        await Views.open(tmp_path / "views.db", store, all_projections()) as views,
    ):
        kept = Proofs(views, 1, lambda: at[0], most_used=2)
        solved = []
        for _ in range(3):
            challenge = kept.challenge(b"secret")
            fields = solution_of({name: getattr(challenge, name) for name in challenge.__struct_fields__})
            solved.append(Solution(**fields))
            assert await kept.use(b"secret", solved[-1])
        assert not await kept.use(b"secret", solved[-1])
        assert await kept.use(b"secret", solved[0])  # pushed out by the work of another
        at[0] += LIFETIME
        assert not await kept.use(b"secret", solved[1])


class Table:
    """Marks and counts that instances share; away on request."""

    def __init__(self):
        self.used, self.counts, self.is_away = set(), Counter(), False

    def _require(self):
        if self.is_away:
            raise Unavailable("away")

    async def use(self, what, ends_at):
        self._require()
        is_new = what not in self.used
        self.used.add(what)
        return is_new

    async def add(self, counts, *, since_hour):
        self._require()
        self.counts.update(counts)
        return {key: count for key, count in self.counts.items() if key[1] >= since_hour}

    async def forget(self, *, before_hour):
        self._require()


@pytest.fixture
async def instances(tmp_path):
    """Two instances that share a table."""
    async with (
        await SQLiteEventStore.open(tmp_path / "events.db", vault_path=tmp_path / "keys.db") as store,
        await Views.open(tmp_path / "views.db", store, all_projections()) as views,
    ):
        table = Table()
        yield table, *(Proofs(views, 20, now, once=table, shared_tokens=table) for _ in range(2))


async def test_proof_is_good_once_at_all_instances(instances):
    table, one, two = instances
    solved = []
    for _ in range(2):
        challenge = one.challenge(b"secret")
        solved.append(Solution(**solution_of({name: getattr(challenge, name) for name in challenge.__struct_fields__})))
    assert [await each.use(b"secret", solved[0]) for each in (two, one, two)] == [True, False, False]
    table.is_away = True
    assert [await one.use(b"secret", solved[1]) for _ in range(2)] == [True, False]


async def test_tokens_of_all_instances_make_a_site_busy(instances):
    table, one, two = instances
    for each in (one, two):
        for _ in range(15):
            each.count_token("site")
        assert not await each.are_needed("site")
    table.is_away = True
    assert not await one.share_once(0)
    table.is_away = False
    for each in (one, two, one):
        assert await each.share_once(0)
    assert [await each.are_needed("site") for each in (one, two)] == [True, True]
    assert sum(table.counts.values()) == 30
