"""Webhooks out and in, with a served instance and receivers and code hosts around it."""

import asyncio
import json
from contextlib import asynccontextmanager
from io import BytesIO

import msgspec
import pytest
from aiohttp import web
from standardwebhooks.webhooks import Webhook as Oracle

from service.web.api.description.webhook_description import HEADERS, JobChanged, WebhookTested
from tests.end_to_end.talk import create_job, get_job, head, job_events, recorded
from tests.fakes.hooks import hex_of, sample, signed
from tests.service_process import service_in, write_docs


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    """A service that may send to this machine."""
    folder = tmp_path_factory.mktemp("webhooks")
    with service_in(folder, {"DOCSMITH_NETWORK__ALLOW_PRIVATE": "true"}) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        yield service


@pytest.fixture(scope="module")
def secret(instance):
    """Of what code hosts send to the project."""
    made = instance.cli("webhook", "incoming", "kite")
    assert made["path"] == f"/hooks/{instance.project_id}"
    return made["secret"]


class Receiver:
    def __init__(self) -> None:
        self.received: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()
        self.answering = asyncio.Event()
        self.answering.set()
        self.url = ""

    async def handle(self, request):
        self.received.put_nowait((dict(request.headers), await request.read()))
        await self.answering.wait()
        return web.Response(status=204)

    async def next(self):
        async with asyncio.timeout(60):
            return await self.received.get()


@pytest.fixture
async def receiver():
    async with receiving() as receiver:
        yield receiver


@asynccontextmanager
async def receiving():
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/hook", receiver.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield receiver
    receiver.answering.set()
    await runner.cleanup()


@pytest.fixture
async def webhook(instance, receiver):
    made = await asyncio.to_thread(instance.cli, "webhook", "create", "--url", receiver.url)
    yield made
    await asyncio.to_thread(instance.cli, "webhook", "delete", made["id"])


async def test_job_is_sent_while_active_and_when_completed(http, instance, receiver, webhook):
    job = await create_job(http, instance, 'Append "Kites fly." to index.md')
    headers, body = await receiver.next()
    active = Oracle(webhook["secret"]).verify(body, headers)
    headers, body = await receiver.next()
    completed = Oracle(webhook["secret"]).verify(body, headers)
    assert (active["type"], completed["type"]) == ("job.active", "job.completed")
    assert active["data"] == {**job, "queuePosition": None, "projectId": instance.project_id}
    shown = await get_job(http, instance, job["id"])
    assert completed["data"] == {**shown, "projectId": instance.project_id}
    assert completed["data"]["prLink"]
    assert headers["Content-Type"] == "application/json"
    # as it is described
    assert set(HEADERS) <= {name.lower() for name in headers}
    for told in (active, completed):
        assert msgspec.to_builtins(msgspec.convert(told, JobChanged)) == told
    # and the same again, when it is asked for
    delivery = headers["webhook-id"]
    await recorded(instance, f"delivery-{delivery}", until="delivery-attempted")
    before = head(instance)
    await asyncio.to_thread(instance.cli, "webhook", "redeliver", delivery)
    again, same = await receiver.next()
    assert (again["webhook-id"], same) == (delivery, body)
    await recorded(instance, f"delivery-{delivery}", until="delivery-attempted", after=before)
    listed = await asyncio.to_thread(instance.cli, "webhook", "deliveries", webhook["id"])
    assert [(one["event"], one["state"], one["status"]) for one in listed["deliveries"]] == [
        ("job.completed", "delivered", 204), ("job.active", "delivered", 204),
    ]  # fmt: skip
    assert webhook["secret"] not in instance.log()


async def test_test_of_a_webhook_shows_its_outcome(http, instance, receiver, webhook):
    path = f"{instance.url}/v2/webhooks/{webhook['id']}/test"
    async with http.post(path, headers=instance.admin) as answer:
        assert answer.status == 200
        sent = await answer.json()
    assert (sent["event"], sent["jobId"], sent["state"], sent["status"]) == ("webhook.test", None, "delivered", 204)
    headers, body = await receiver.next()
    assert headers["webhook-id"] == sent["id"]
    told = Oracle(webhook["secret"]).verify(body, headers)
    assert msgspec.to_builtins(msgspec.convert(told, WebhookTested)) == told
    async with http.post(path, headers=instance.admin) as answer:
        assert (answer.status, (await answer.json())["code"]) == (409, "conflict")
    assert receiver.received.empty()


def test_command_tests_a_webhook(instance):
    made = instance.cli("webhook", "create", "--url", "http://127.0.0.1:9/closed")
    done = instance.run("webhook", "test", made["id"])
    assert (done.returncode, done.stdout.strip()) == (1, "failed: not connected")
    again = instance.run("webhook", "test", made["id"])
    assert again.returncode == 1
    assert "less than 10 seconds" in again.stderr
    instance.cli("webhook", "delete", made["id"])


async def test_unrecorded_delivery_is_sent_again_after_a_kill(http, tmp_path):
    async with receiving() as receiver:
        with service_in(tmp_path, {"DOCSMITH_NETWORK__ALLOW_PRIVATE": "true"}) as service:
            await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs"))
            webhook = await asyncio.to_thread(
                service.cli, "webhook", "create", "--url", receiver.url, "--event", "job.active"
            )
            await asyncio.to_thread(service.start)
            receiver.answering.clear()
            job = await create_job(http, service, "Make it sing")
            headers, body = await receiver.next()
            service.kill()
            receiver.answering.set()
            await asyncio.to_thread(service.start)
            again, same = await receiver.next()
            assert (again["webhook-id"], same) == (headers["webhook-id"], body)
            Oracle(webhook["secret"]).verify(same, again)
            await recorded(service, f"delivery-{again['webhook-id']}", until="delivery-attempted")
            await job_events(http, service, job["id"])
            (listed,) = (await asyncio.to_thread(service.cli, "webhook", "deliveries"))["deliveries"]
            assert (listed["state"], listed["attempts"]) == ("delivered", 1)
            assert receiver.received.empty()


async def test_secret_is_shown_once_and_deleted_with_the_webhook(instance):
    def steps():
        made = instance.cli(
            "webhook", "create", "--url", "https://example.com/hooks/tell-nobody", "--event", "job.failed"
        )
        assert made["secret"].startswith("whsec_")
        assert (made["events"], made["projectId"]) == (["job.failed"], None)
        listed = instance.run("webhook", "list", "--json").stdout
        assert "tell-nobody" in listed
        assert made["secret"] not in listed
        assert instance.cli("webhook", "delete", made["id"]) == {"id": made["id"], "deleted": True}
        shown = instance.cli("audit", "show", "--stream", f"webhook-{made['id']}")["events"]
        assert [event["type"] for event in shown] == ["webhook-created", "webhook-deleted"]
        assert "tell-nobody" not in json.dumps(shown)

    await asyncio.to_thread(steps)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("create", "--url", "ftp://example.com/"), "https://"),
        (("redeliver", "nothing"), "docsmith webhook deliveries"),
    ],
)
def test_a_mistake_is_one_line_with_the_next_step(instance, arguments, says):
    done = instance.run("webhook", *arguments)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert says in done.stderr


# Incoming


async def tell(http, instance, headers, body, project_id=None):
    url = f"{instance.url}/hooks/{project_id or instance.project_id}"
    async with http.post(url, data=body, headers=dict(headers)) as response:
        text = await response.text()
        return response.status, json.loads(text) if text else None


@pytest.mark.parametrize("name", ["github-push", "gitea-push", "forgejo-push", "gitlab-push"])
async def test_push_to_the_branch_of_a_site_requests_its_index(http, instance, secret, name):
    headers, body = signed(name, secret)
    own = {"X-GitHub-Delivery": name, "X-Gitea-Delivery": name, "X-Forgejo-Delivery": name, "Idempotency-Key": name}
    headers.update({header: value for header, value in own.items() if header in headers})
    before = head(instance)
    assert await tell(http, instance, headers, body) == (202, {"status": "accepted"})
    await recorded(instance, f"incoming-{instance.project_id}", until="push-received", after=before)
    await recorded(instance, f"site-{instance.domain}", until="index-kept", after=before)
    after = head(instance)
    assert await tell(http, instance, headers, body) == (202, {"status": "accepted"})  # told again
    assert head(instance) == after


async def test_irrelevant_delivery_is_answered_and_does_nothing(http, instance, secret):
    before = head(instance)
    assert await tell(http, instance, *signed("github-ping", secret)) == (200, {"status": "pong"})
    for name in ("github-branch-deleted", "github-pull-request-opened", "github-pull-request-merged", "gitlab-note"):
        assert await tell(http, instance, *signed(name, secret)) == (204, None)
    assert await tell(http, instance, *signed("github-push", secret, ref="refs/heads/other")) == (204, None)
    assert await tell(http, instance, *signed("github-push", secret, ref="refs/tags/main")) == (204, None)
    assert head(instance) == before


async def test_webhook_answers_hide_whether_a_project_exists(http, instance, secret):
    headers, body = signed("github-push", secret)
    unsigned, _ = sample("github-push")
    answers = [
        await tell(http, instance, unsigned, body),
        await tell(http, instance, {**headers, "X-Hub-Signature-256": "sha256=" + hex_of("guess", body)}, body),
        await tell(http, instance, headers, body, project_id="0" * 32),
        await tell(http, instance, unsigned, body, project_id="0" * 32),
        await tell(http, instance, headers, b"{", project_id="0" * 32),
    ]
    told = [(status, {**problem, "requestId": ""}) for status, problem in answers]
    assert told == [told[0]] * len(answers)
    assert (told[0][0], told[0][1]["code"]) == (404, "hook_not_found")


async def test_a_body_has_its_bound_and_its_form(http, instance, secret):
    headers, _ = sample("github-push")
    assert (await tell(http, instance, headers, BytesIO(b" " * (5 * 1024 * 1024 + 1))))[0] == 413
    large = json.dumps({"ref": "refs/heads/other", "after": "1", "padding": "x" * 200_000}).encode()
    assert await tell(http, instance, {**headers, "X-Gitlab-Token": secret}, large) == (204, None)
    status, problem = await tell(http, instance, {**headers, "X-Gitlab-Token": secret}, b"{")
    assert (status, problem["code"]) == (400, "invalid_json")
