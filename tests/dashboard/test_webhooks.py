"""The pages of webhooks and usage."""

import asyncio
import re

import pytest

from tests.dashboard.conftest import browser, invite, sign_in
from tests.service_process import service_in, write_docs


@pytest.fixture
def base(service):
    return f"/dashboard/{service.organization_id}"


async def created(owner, base, **fields):
    """The answer to the form of a new webhook, and the webhook's id."""
    async with owner.get(f"{base}/webhooks/new") as page:
        webhook_id = re.search(r'name="id" value="([0-9a-f]{32})"', await page.text())[1]
    fields = {"id": webhook_id, "url": "https://hooks.example/secret", "job.completed": "true", **fields}
    async with owner.post(f"{base}/webhooks", data=fields) as answer:
        return answer.status, await answer.text(), webhook_id


async def test_secret_of_a_webhook_is_shown_once(owner, base):
    status, text, webhook_id = await created(owner, base)
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+", text)[0]
    assert status == 200
    async with owner.get(f"{base}/webhooks/{webhook_id}") as page:
        assert secret not in await page.text()
    status, text, _ = await created(owner, base, id=webhook_id)
    assert status == 409
    assert secret not in text
    async with owner.post(f"{base}/webhooks/{webhook_id}/delete") as page:
        assert page.url.path == f"{base}/webhooks"
    async with owner.get(f"{base}/webhooks/{webhook_id}") as page:
        assert page.status == 404


async def test_webhook_form_that_does_not_fit_says_why(owner, base):
    for fields, says in (({"url": "http://127.0.0.1/"}, "https://"), ({"job.completed": ""}, "at least one event")):
        status, text, _ = await created(owner, base, **fields)
        assert status == 400
        assert says in text


async def test_address_of_a_webhook_is_shown_to_owners_alone(owner, viewer, base):
    _, _, webhook_id = await created(owner, base)
    for client, shown in ((owner, "https://hooks.example/secret"), (viewer, "https://hooks.example/…")):
        for path in (f"{base}/webhooks", f"{base}/webhooks/{webhook_id}"):
            async with client.get(path) as page:
                assert page.status == 200
                text = await page.text()
                assert shown in text
                assert ("hooks.example/secret" in text) is (client is owner)


async def test_delivery_is_sent_again(service, owner, base):
    _, _, webhook_id = await created(owner, base, **{"job.active": "true"})
    path = f"/v2/agent/{service.project_id}/job"
    async with owner.post(service.url + path, json={"prompt": "Fix broken links"}, headers=service.admin) as job:
        assert job.status == 201
    async with owner.get(f"{base}/webhooks/{webhook_id}") as page:
        delivery = re.search(r'name="delivery" value="([^"]+)"', await page.text())[1]
    async with owner.post(f"{base}/webhooks/{webhook_id}/redeliver", data={"delivery": delivery}) as page:
        assert page.url.path == f"{base}/webhooks/{webhook_id}"
        assert page.status == 200
    async with owner.post(f"{base}/webhooks/{webhook_id}/redeliver", data={"delivery": "msg_nothing"}) as answer:
        assert answer.status == 404
    async with owner.get(f"{base}/webhooks/{webhook_id}?state=lost") as page:
        assert page.status == 400


async def test_button_sends_a_test_and_shows_its_outcome(owner, viewer, base):
    _, _, webhook_id = await created(owner, base, url="https://nowhere.invalid/hook")
    path = f"{base}/webhooks/{webhook_id}"
    async with owner.get(path) as page:
        assert f'{webhook_id}/test"' in await page.text()
    async with viewer.get(path) as page:
        assert f"{webhook_id}/test" not in await page.text()
    async with viewer.post(f"{path}/test") as answer:
        assert answer.status == 403
    for _ in range(2):  # the second comes too soon
        async with owner.post(f"{path}/test") as page:
            text = await page.text()
            assert page.url.path == path
            assert text.count("webhook.test") == 1
            assert "not resolved, 1 attempt" in text


async def test_usage_shows_requests_and_limits(service, owner, viewer, base):
    path = f"/v2/agent/{service.project_id}/job"
    async with owner.post(service.url + path, json={"prompt": "Fix broken links"}, headers=service.admin) as job:
        assert job.status == 201
    for client in (owner, viewer):
        async with client.get(f"{base}/usage?days=7") as page:
            text = await page.text()
            assert page.status == 200
            assert "Jobs and messages to the agent" in text
            assert "New jobs and messages" in text


async def test_viewer_sees_scheme_and_port_of_a_webhook(tmp_path):
    with service_in(tmp_path, {"DOCSMITH_NETWORK__ALLOW_PRIVATE": "true"}) as service:
        service.set_up(write_docs(tmp_path / "docs"), index=False)
        service.cli("webhook", "create", "--url", "http://127.0.0.1:8099/secret?a=b")
        service.start()
        _, link = await invite(
            service.data, email="viewer@example.com", organization_id=service.organization_id, role="viewer"
        )
        cookie = await asyncio.to_thread(sign_in, service.url, link)
        path = f"/dashboard/{service.organization_id}/webhooks"
        async with browser(service.url, cookie) as viewer, viewer.get(path) as page:
            text = await page.text()
    assert "http://127.0.0.1:8099/…" in text
    assert "secret" not in text
