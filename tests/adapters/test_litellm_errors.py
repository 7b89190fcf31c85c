"""When to come back, and how often."""

import pytest

from service.adapters.models.errors import Retries, error_of, retry_after_seconds
from service.adapters.redaction import secrets_of
from service.domain.errors import Forbidden, Invalid, RateLimited, ServiceError, Unavailable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "5"}, 5.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "7", "retry-after-ms": "6500"}, 6.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),
        ({"retry-after": "soon"}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers, seconds):
    assert retry_after_seconds(headers) == seconds


def test_waits_double_with_full_jitter_and_are_capped():
    retries = Retries(tries=99, total_seconds=9999)
    waits = [retries.wait_seconds(Unavailable("x"), tried=n, spent_seconds=0, random=1.0) for n in range(1, 9)]
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0]
    assert retries.wait_seconds(Unavailable("x"), tried=5, spent_seconds=0, random=0.0) == 0.0


def test_tries_and_time_are_bounded():
    retries = Retries(tries=3, total_seconds=10)
    assert retries.wait_seconds(Unavailable("x"), tried=3, spent_seconds=0, random=1.0) is None
    assert retries.wait_seconds(RateLimited("x", retry_after_seconds=9), tried=1, spent_seconds=2, random=1.0) is None
    assert retries.wait_seconds(RateLimited("x", retry_after_seconds=8), tried=1, spent_seconds=2, random=1.0) == 8


@pytest.mark.parametrize("error", [Invalid("x"), Forbidden("x"), ServiceError("x")])
def test_permanent_error_is_not_retried(error):
    assert Retries().wait_seconds(error, tried=1, spent_seconds=0, random=1.0) is None


def test_a_fault_of_our_own_is_not_blamed_on_the_provider():
    error = error_of(TypeError("prompt inside"), model="a/b", status=0, headers={}, secrets=["s"])
    assert type(error) is ServiceError
    assert "prompt inside" not in str(error)


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
        "Your input exceeds the context window of this model.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Input is too long for requested model.",
        "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
        "the request exceeds the available context size, try increasing it",
    ],
)
def test_too_long_prompt_is_recognized_for_many_providers(said):
    class BadRequestError(Exception):
        pass

    error = error_of(BadRequestError(said), model="a/b", status=400, headers={}, secrets=["s"])
    assert (type(error), error.code) == (Invalid, "context_window_exceeded")


def test_failure_within_a_stream_is_reported_by_its_kind():
    class Wrapper(Exception):
        original_exception = type("AuthenticationError", (Exception,), {})("no")

    error = error_of(Wrapper("wrapped"), model="a/b", status=0, headers={}, secrets=["s"])
    assert (type(error), error.code) == (Forbidden, "model_key_refused")


@pytest.mark.parametrize(
    "said",
    [
        "Incorrect API key provided: sk-proj-Abc123Def456Ghi789.",
        'bad header {"authorization": "Bearer Abc123Def456Ghi789"}',
        "cannot use https://me:Abc123Def456Ghi789@host/v1",
        "GET /v1?api_key=Abc123Def456Ghi789&x=1 failed",
        "x-api-key: Abc123Def456Ghi789",
        "the variable holds Abc123Def456Ghi789",
    ],
)
def test_no_secret_is_quoted(said):
    class BadRequestError(Exception):
        pass

    secrets = secrets_of({"OTHER_API_KEY": "Abc123Def456Ghi789"}) if "variable" in said else ()
    error = error_of(BadRequestError(said), model="a/b", status=400, headers={}, secrets=secrets)
    assert "Abc123" not in str(error)
    assert isinstance(error, Forbidden) or "…" in str(error)


def test_text_that_is_no_secret_is_quoted():
    class BadRequestError(Exception):
        pass

    env = {"DOCSMITH_MODELS__X__API_KEY_ENV": "MY_MODEL_KEY", "KEY_FILE": "/run/key-file", "A_KEY": "short"}
    said = "max_tokens: 9000 is too large for https://host/v1/chat, key MY_MODEL_KEY in /run/key-file, short @ risk"
    error = error_of(BadRequestError(said), model="a/b", status=400, headers={}, secrets=secrets_of(env))
    assert said in str(error)


def test_provider_error_is_shortened_and_leaves_out_the_key():
    class BadRequestError(Exception):
        pass

    said = BadRequestError("the key sk-1 and\n" + "very " * 200)
    error = error_of(said, model="a/b", status=400, headers={}, secrets=["sk-1"])
    assert (type(error), error.code) == (Invalid, "model_refused_request")
    assert "sk-1" not in str(error)
    assert len(str(error)) < 400
    assert "\n" not in str(error)
