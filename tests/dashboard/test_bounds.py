"""What one person or organization may take of the pages."""

from contextlib import AsyncExitStack

import pytest

from service.streams import AUDIT
from service.web.dashboard.page import LIVE_OF_SESSION
from tests.dashboard.conftest import SAME_ORIGIN, open_data


async def test_session_has_a_bound_of_live_pages(viewer, editor, service):
    path = f"/dashboard/{service.organization_id}/jobs/live"
    async with AsyncExitStack() as opened:
        for _ in range(LIVE_OF_SESSION):
            answer = await opened.enter_async_context(viewer.get(path))
            assert answer.content_type == "text/event-stream"
        async with viewer.get(path) as refused:
            assert (refused.status, await refused.read()) == (204, b"")
        async with editor.get(path) as other:
            assert other.status == 200


async def test_number_of_any_length_in_the_address_is_no_error(editor, service):
    jobs = f"/dashboard/{service.organization_id}/jobs"
    fields = {"project": service.project_id, "prompt": "Look around"}
    async with editor.post(f"{jobs}/new", data=fields, headers=SAME_ORIGIN, allow_redirects=False) as made:
        job = f"{jobs}/{made.headers['Location'].rsplit('/', 1)[1]}"
    for number in ("0" * 14 + "1" * 30, "0" * 14 + "1" * 5_000, "9" * 15, "-1", "٣"):
        async with editor.get(job, params={"before": number}) as page:
            assert page.status == 200, number


async def test_archive_that_does_not_end_is_refused(owner, service):
    head = b'--b\r\nContent-Disposition: form-data; name="archive"; filename="a.zip"\r\n\r\n'
    kind = {**SAME_ORIGIN, "Content-Type": "multipart/form-data; boundary=b"}
    path = f"/dashboard/{service.organization_id}/projects/new"
    long_line = b"--b\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n"
    many_lines = b"--b\r\n" + b"X: y\r\n" * 1_000 + b"\r\n"
    charset = b'--b\r\nContent-Disposition: form-data; name="_charset_"\r\n\r\n' + b"x" * 100 + b"\r\n--b--\r\n"
    for body in (head + b"PK", head, b"--b\r\n", b"", b"--c--", long_line, many_lines, charset):
        async with owner.post(path, data=body, headers=kind, allow_redirects=False) as page:
            assert page.status in (400, 415), (body, page.status)


async def readings(service):
    async with open_data(service.data) as runtime:
        return [one.data for one in await runtime.store.read_all(category=AUDIT.category)]


@pytest.mark.parametrize("address", ["questions?site", "gaps?site", "jobs?project"])
async def test_words_of_an_address_do_not_come_into_the_log(viewer, service, address):
    for number in range(3):
        async with viewer.get(f"/dashboard/{service.organization_id}/{address}=words-{number}") as page:
            assert page.status == 200
        if number == 0:
            before = await readings(service)
    assert await readings(service) == before
    assert not any(b"words-" in one for one in before)
