"""No page or form shows or changes anything of an organization to someone of another, whatever ids its address has."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dashboard.conftest import COOKIE, SAME_ORIGIN, ask_page, open_data
from tests.dashboard.entities import made
from tests.dashboard.served import BELOW, LEAST, filled

ROUTES = [route for route in LEAST if BELOW in route and not route.endswith("/live")]
SECRETS = ("zygomorphic", "Kites are seen", "hooks.example", "Acme", "owner@example.com", "editor@example.com")
"""Texts of the organization's own things, names and people, which no one else may read."""
PARTS = ("threadId", "jobId", "keyId", "webhookId", "domain", "personId", "position")
KINDS = ("job", "thread", "key", "webhook", "site", "project", "members", "credentials")
FORM = {
    "role": "owner", "email": "new@beta.example", "name": "Changed", "url": "https://beta.example/", "text": "Go on",
    "prompt": "Go on", "kind": "admin", "access": "public", "question": "What?", "job.completed": "true",
}  # fmt: skip
"""Fields of all forms at once."""


@pytest.fixture(scope="module")
def entities(service, people):
    return {**made(service).values, "personId": people.ids["viewer"]}


def streams_of(service, entities):
    """The number of events in each stream that is about the organization's own things."""
    ids = {*entities.values(), service.project_id}

    async def counted():
        async with open_data(service.data) as runtime:
            events = await runtime.store.read_all(limit=1_000_000)
        named = {one.stream: one.stream_version for one in events}
        return {
            one: version for one, version in named.items() if one.startswith(KINDS) and one.partition("-")[2] in ids
        }

    return asyncio.run(counted())


def test_other_organization_reads_and_changes_nothing(service, people, entities):
    before = streams_of(service, entities)

    @given(st.sampled_from(ROUTES), st.booleans(), st.sets(st.sampled_from(PARTS)))
    def holds(route, is_theirs, named):
        method, _, path = route.partition(" ")
        values = {name: entities[name] for name in named}
        organization_id = people.other_organization_id if is_theirs else service.organization_id
        address = service.url + filled(path, **{**values, "organizationId": organization_id})
        headers = {**SAME_ORIGIN, "Cookie": f"{COOKIE}={people.cookies['outsider']}", "Accept": "text/html"}
        answer = ask_page(address, FORM if method == "POST" else None, headers)
        assert not [secret for secret in SECRETS if secret in answer.text], (route, answer.text)
        assert is_theirs or answer.status == 404, (route, answer.status)

    holds()
    assert {job for job in before if job.startswith("job")}
    assert streams_of(service, entities) == before
