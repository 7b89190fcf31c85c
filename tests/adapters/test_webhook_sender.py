"""Sending to strangers: what they may answer, and where they may not lead."""

import asyncio
import os
import socket
import ssl
import sys
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import aiohttp
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from service.adapters.outbound import PatientResolver, guarded_connector, is_refusal
from service.adapters.webhook_sender import MAX_ANSWER_BYTES, AiohttpWebhookSender
from service.ports.webhook_sender import Answer
from tests.contracts.webhook_sender import HEADERS, WebhookSenderContract
from tests.fakes.webhook_sender import FakeWebhookSender, Sent


class Receiver:
    """A web server on this machine, and what it was sent."""

    def __init__(self) -> None:
        self.received: list[Sent] = []
        self.answers: list[web.StreamResponse] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?a=%41%2Fb"

    async def handle(self, request):
        self.received.append(Sent(request.raw_path, await request.read(), dict(request.headers)))
        return self.answers.pop(0) if self.answers else web.Response()


@asynccontextmanager
async def serving(receiver, *, host="127.0.0.1", tls=None):
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, host, 0, ssl_context=tls)
    await site.start()
    receiver.port = runner.addresses[0][1]
    yield receiver
    await runner.cleanup()


@pytest.fixture
async def receiver():
    async with serving(Receiver()) as receiver:
        yield receiver


@pytest.fixture
async def sender():
    sender = AiohttpWebhookSender(allow_private=True, timeout_seconds=60)
    yield sender
    await sender.close()


class TestFake(WebhookSenderContract):
    @pytest.fixture
    def prepared(self):
        async def prepare(answers):
            sender = FakeWebhookSender()
            sender.answers["https://one.example/"] = list(answers)
            return sender, "https://one.example/", sender.sent

        return prepare


class TestAiohttp(WebhookSenderContract):
    @pytest.fixture
    def prepared(self, receiver, sender):
        async def prepare(answers):
            receiver.answers = [
                web.Response(
                    status=answer.status,
                    headers={"Retry-After": str(int(answer.retry_after_seconds))} if answer.retry_after_seconds else {},
                )
                for answer in answers
            ]
            return sender, receiver.url, receiver.received

        return prepare


async def test_the_address_is_asked_for_byte_for_byte(receiver, sender):
    await sender.send(receiver.url, b"{}", HEADERS)
    (sent,) = receiver.received
    assert sent.url == "/hook?a=%41%2Fb"
    assert sent.headers["Content-Type"] == "application/json"
    assert sent.headers["User-Agent"] == "Docsmith"


async def test_a_redirect_is_not_followed_and_cookies_are_not_kept(receiver, sender):
    headers = {"Location": f"http://127.0.0.1:{receiver.port}/elsewhere", "Set-Cookie": "a=b"}
    receiver.answers = [web.Response(status=307, headers=headers)]
    assert await sender.send(receiver.url, b"{}", HEADERS) == Answer(307)
    await sender.send(receiver.url, b"{}", HEADERS)
    assert [sent.url for sent in receiver.received] == ["/hook?a=%41%2Fb"] * 2
    assert "Cookie" not in receiver.received[1].headers


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("120", 120.0), ("0", 0.0), ("soon", None), ("-5", None), ("9" * 50, 999999999.0), ("", None)],
)
async def test_retry_after_in_seconds(receiver, sender, text, seconds):
    receiver.answers = [web.Response(status=503, headers={"Retry-After": text})]
    assert await sender.send(receiver.url, b"{}", HEADERS) == Answer(503, "", seconds)


async def test_retry_after_as_a_date(receiver, sender):
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    receiver.answers = [web.Response(status=503, headers={"Retry-After": until})]
    answer = await sender.send(receiver.url, b"{}", HEADERS)
    assert 80 <= answer.retry_after_seconds <= 91


class Endless(web.Response):
    """An answer whose body goes on for as long as somebody reads it."""

    def __init__(self) -> None:
        super().__init__(status=200)
        self.written = 0

    async def prepare(self, request):
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionResetError):
            while True:
                await response.write(b"x" * 4096)
                self.written += 4096
        return response


async def test_of_a_body_without_end_only_the_beginning_is_read(receiver, sender):
    endless = Endless()
    receiver.answers = [endless]
    async with asyncio.timeout(50):  # less than the sender's own
        assert await sender.send(receiver.url, b"{}", HEADERS) == Answer(200)
    assert endless.written >= MAX_ANSWER_BYTES


@asynccontextmanager
async def speaking(answer):
    """A server that says these bytes, or nothing for ever when they are None."""

    talks = []

    async def talk(reader, writer):
        talks.append(asyncio.current_task())
        await reader.readuntil(b"{}")
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        await asyncio.gather(*talks)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", "disconnected"),
        (b"not HTTP at all\r\n\r\n", "bad_answer"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"a" * 90_000, "bad_answer"),
    ],
)
async def test_invalid_answer_is_reported_by_its_kind(sender, answer, kind):
    async with speaking(answer) as url:
        assert await sender.send(url, b"{}", HEADERS) == Answer(None, kind)


async def test_receiver_that_does_not_answer_is_given_up():
    sender = AiohttpWebhookSender(allow_private=True, timeout_seconds=1)
    async with speaking(None) as url:
        assert await sender.send(url, b"{}", HEADERS) == Answer(None, "timed_out")
    await sender.close()


async def test_missing_receiver_is_reported(sender):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        assert await sender.send(url, b"{}", HEADERS) == Answer(None, "not_connected")
    assert await sender.send("http://nobody.invalid/", b"{}", HEADERS) == Answer(None, "not_resolved")
    assert await sender.send(f"http://{'a' * 64}.example/", b"{}", HEADERS) == Answer(None, "not_resolved")


def certificate(folder):
    """A server's side of TLS, by nobody that anybody trusts."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")]),
    )
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    file = folder / "server.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    return context


async def test_untrusted_certificate_is_reported(tmp_path, sender):
    async with serving(Receiver(), tls=certificate(tmp_path)) as receiver:
        answer = await sender.send(receiver.url.replace("http:", "https:"), b"{}", HEADERS)
    assert answer == Answer(None, "tls")
    assert receiver.received == []


# Where they may not lead


class Lying(AbstractResolver):
    """A name server in somebody else's hand: another answer to each question."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers, self.asked = list(answers), 0

    async def resolve(self, host, port=0, family=socket.AF_UNSPEC):
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            {
                "hostname": host, "host": address, "port": port, "proto": socket.IPPROTO_TCP,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET, "flags": socket.AI_NUMERICHOST,
            }
            for address in answer
        ]  # fmt: skip

    async def close(self):
        pass


async def refusal(url, **options):
    """Whether asking for it was refused, for where it leads."""
    async with aiohttp.ClientSession(connector=guarded_connector(allow_private=False, **options)) as session:
        try:
            async with session.get(url):
                return False
        except aiohttp.ClientError as error:
            return is_refusal(error) or isinstance(error, aiohttp.InvalidURL)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]"],
)
async def test_no_way_of_writing_it_leads_to_this_machine(receiver, host):
    assert await refusal(f"http://{host}:{receiver.port}/")
    assert receiver.received == []


async def test_the_private_network_is_not_even_tried():
    for address in ("10.0.0.1", "169.254.169.254", "192.168.0.1", "[fd00::1]", "[fe80::1]", "[::1]", "224.0.0.1"):
        assert await refusal(f"http://{address}/")


@pytest.mark.parametrize(
    "answers", [["127.0.0.1"], ["::ffff:127.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["::1", "127.0.0.1"]]
)
async def test_a_name_that_leads_to_this_machine_is_refused(receiver, answers):
    assert await refusal(f"http://harmless.example:{receiver.port}/", resolver=Lying(answers))
    assert receiver.received == []


async def test_a_name_that_changes_its_mind_is_refused(receiver):
    """The check is at the socket: there is no later question whose answer could be another one."""
    resolver = Lying(["192.0.2.1"], ["127.0.0.1"])
    for _ in range(3):
        assert await refusal(f"http://rebinding.example:{receiver.port}/", resolver=resolver, use_dns_cache=False)
    assert resolver.asked == 3
    assert receiver.received == []


async def test_no_proxy_of_the_environment_is_asked(receiver, sender):
    """Set for a process of its own: the environment is everybody's."""
    code = (
        "import asyncio, sys\n"
        "from service.adapters.webhook_sender import AiohttpWebhookSender\n"
        "async def main():\n"
        "    sender = AiohttpWebhookSender(allow_private=True)\n"
        "    print((await sender.send(sys.argv[1], b'{}', {})).status)\n"
        "    await sender.close()\n"
        "asyncio.run(main())\n"
    )
    environment = {
        **os.environ,
        "http_proxy": "http://127.0.0.1:9/",
        "HTTP_PROXY": "http://127.0.0.1:9/",
        "no_proxy": "",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, receiver.url, stdout=asyncio.subprocess.PIPE, env=environment
    )
    output, _ = await process.communicate()
    assert output.split() == [b"200"]


async def test_private_and_plain_addresses_need_the_setting(receiver):
    sender = AiohttpWebhookSender(allow_private=False)
    for url in (receiver.url, receiver.url.replace("http:", "https:"), "https://localhost/", "file:///etc/passwd"):
        assert await sender.send(url, b"{}", HEADERS) == Answer(None, "address_not_allowed")
    await sender.close()
    assert receiver.received == []


async def test_lookups_are_bounded_and_cancelling_one_loses_none():
    resolver = PatientResolver(lookups=1)
    first, second = (asyncio.create_task(resolver.resolve("localhost", 80)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    async with asyncio.timeout(60):
        found = await second
        assert {one["host"] for one in found} & {"127.0.0.1", "::1"}
        assert await resolver.resolve("127.0.0.1", 80)
    with pytest.raises(OSError, match="not a host name"):
        await resolver.resolve("a" * 64 + ".example", 80)
