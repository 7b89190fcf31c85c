"""Models with small windows: answers with fewer passages, jobs that say what they need."""

import json

import pytest

from tests.end_to_end.provider_kinds import ASK, kinds_service, raw, run_job
from tests.fakes.provider import Asked, Failure, Reply, ScriptedProvider
from tests.service_process import DOCS, free_port

WINDOW = 2_048
PAGES = {f"part{number}.md": f"# Install part {number}\n\n" + "Run the installer of Kite. " * 80 for number in range(8)}


@pytest.fixture(scope="module")
def port():
    return free_port()


def tokens(body):
    """Tokens of a request's texts and of its reply, as a server counts them, about."""
    return len(json.dumps([body["messages"], body.get("tools", [])])) // 4 + body["max_tokens"]


@pytest.fixture(params=["says so", "sends nothing"])
async def provider(port, request):
    def answer(asked: Asked) -> Reply | Failure:
        if tokens(asked.body) <= WINDOW:
            return Reply(("Run the installer [1].",))
        if request.param == "sends nothing":
            return raw(b"")
        words = f"Requested tokens ({tokens(asked.body)}) exceed context window of {WINDOW}"
        return Failure(400, "invalid_request_error", words)

    async with ScriptedProvider(answer, port=port) as provider:
        yield provider


@pytest.fixture(scope="module", params=["set", "not set"])
def service(tmp_path_factory, port, request):
    settings = {"MODELS__OWN__CONTEXT_TOKENS": str(WINDOW)} if request.param == "set" else {}
    folder = tmp_path_factory.mktemp("small")
    with kinds_service(folder, port, {**DOCS, **PAGES}, **settings) as service:
        service.is_set = request.param == "set"
        yield service


@pytest.mark.parametrize("version", [1, 2])
async def test_answer_fits_a_small_window(http, service, provider, version):
    answered = await ASK[version](http, service)
    assert answered.error == ""
    if service.is_set:
        assert answered.text.startswith("Run the installer [")
        assert len(provider.asked) == 1
    else:  # a prompt for an unknown window is halved, and the passages are quoted where that is not enough
        assert "](/" in answered.text
        assert len(provider.asked) <= 6


async def test_job_says_what_window_it_needs(http, service, provider):
    done = await run_job(http, service)
    assert (done.view["status"], done.has_waited) == ("failed", False)
    assert "context_tokens" in done.failure["message"]
    assert len(provider.asked) <= (0 if service.is_set else 4)
