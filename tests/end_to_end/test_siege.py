"""``scripts/siege`` in small: A attacks in every way that it knows, B is served, and A is answered as it should be.

How long anything takes is the script's to measure.
"""

import asyncio
from collections import defaultdict

import pytest
import pytest_asyncio

from scripts.attacks import http, packs, pages, work
from scripts.attacks.all import ATTACKS, make
from scripts.attacks.ground import Elsewhere, Ground
from scripts.attacks.neighbour import Neighbour
from tests.service_process import service_in

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

SCALE = 0.01
SECONDS = 3.0
QUICK = {"DOCSMITH_SERVER__HEAD_SECONDS": "1", "DOCSMITH_SERVER__BODY_SECONDS": "1"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(tmp_path_factory):
    folder = tmp_path_factory.mktemp("siege")
    async with Elsewhere().open() as elsewhere:
        with service_in(folder, QUICK) as service:
            ground = Ground(service, elsewhere)
            try:
                await ground.set_up(folder)
                yield ground
            finally:
                service.kill()
                await ground.close()


async def stands(ground, attacks, seconds=SECONDS):
    """Whether B is served while A makes all of these attacks at once, and what A is answered is right."""
    target = ground.target(SCALE)
    attacking = [asyncio.create_task(make(one, target, seconds)) for one in attacks]
    neighbour = Neighbour(ground.service.url, ground.b)
    try:
        await neighbour.once()
    finally:
        answered = await asyncio.gather(*attacking)
    wrong = defaultdict(list)
    for one, answers in zip(attacks, answered, strict=True):
        for status in set(answers) - one.answers:
            wrong[one.name].append(status)
    assert not wrong
    assert not neighbour.failures
    assert "unhandled" not in ground.service.log()


async def test_neighbour_is_served_under_attacks_by_http(ground):
    await stands(ground, http.ATTACKS)


async def test_neighbour_is_served_under_attacks_by_git(ground):
    await stands(ground, packs.ATTACKS)


async def test_neighbour_is_served_under_attacks_by_work(ground):
    await stands(ground, [one for one in work.ATTACKS if not one.mood])


@pytest.mark.parametrize("attacks", [pages.ATTACKS[at : at + 6] for at in range(0, len(pages.ATTACKS), 6)])
async def test_neighbour_is_served_under_attacks_by_pages(ground, attacks):
    """One site after the other: each begins to be indexed while the next one is pushed."""
    for one in attacks[:-1]:
        answers = await make(one, ground.target(SCALE), 1)
        assert set(answers) <= one.answers
    await stands(ground, attacks[-1:])


async def test_neighbour_is_served_while_machines_elsewhere_misbehave(ground):
    moody = [one for one in work.ATTACKS if one.mood]
    for one in moody:
        ground.elsewhere.mood = one.mood
        assert set(await make(one, ground.target(SCALE), 1)) <= one.answers
    await stands(ground, moody[:1])
    ground.elsewhere.mood = ""


async def test_attacks_have_names_of_their_own():
    families = (http, packs, pages, work)
    assert len(ATTACKS) == sum(len(family.ATTACKS) for family in families) > 60
    assert all(one.what for one in ATTACKS.values())
