"""Sign-in by OpenID Connect against a provider on this machine that signs real tokens."""

import aiohttp
import pytest
from joserfc.jwk import RSAKey
from yarl import URL

from service.adapters.sign_in.oidc import FAILED_SECONDS, Client, OidcProvider
from service.domain.errors import Forbidden, Unavailable
from service.ports.sign_in import Account, Attempt
from tests.fakes import oidc
from tests.fakes.oidc import CLIENT_ID, KEYS, SECRET, FakeOidc

BACK = "http://localhost:8080/sign-in/oidc/callback"
ATTEMPT = Attempt(state="s" * 32, nonce="n" * 32, verifier="v" * 43)


@pytest.fixture
async def server():
    fake = FakeOidc()
    async with fake.server:
        yield fake


@pytest.fixture
async def seconds():
    return [0.0]


@pytest.fixture
async def provider(server, seconds):
    client = OidcProvider(Client(server.issuer, CLIENT_ID, SECRET), {}, lambda: seconds[0])
    yield client
    await client.close()


async def code_from(provider, attempt=ATTEMPT):
    """Go to the provider as a browser does, and return the parameters that it sends back."""
    url = await provider.authorization_url(attempt, BACK)
    async with aiohttp.ClientSession() as browser, browser.get(url, allow_redirects=False) as answer:
        back = URL(answer.headers["Location"])
    assert str(back.with_query(None)) == BACK
    assert back.query["state"] == attempt.state
    return back.query["code"]


async def signed_in(provider, *, issuer=None):
    return await provider.account(await code_from(provider), ATTEMPT, BACK, issuer)


async def test_verified_account_is_returned(provider, server):
    server.account["name"] = "Ada"
    assert await signed_in(provider) == Account(server.issuer, "248289", "ada@example.com", "Ada")
    await signed_in(provider, issuer=server.issuer)
    assert server.asked == ["discovery", "keys"]


async def test_code_works_once_and_for_its_verifier_alone(provider):
    code = await code_from(provider)
    with pytest.raises(Forbidden, match="refused"):
        await provider.account(code, Attempt(ATTEMPT.state, ATTEMPT.nonce, "w" * 43), BACK, None)
    code = await code_from(provider)
    await provider.account(code, ATTEMPT, BACK, None)
    with pytest.raises(Forbidden, match="refused"):
        await provider.account(code, ATTEMPT, BACK, None)


@pytest.mark.parametrize(
    "forge",
    [oidc.unsigned, oidc.signed_with_public_key, oidc.signed_with_secret, oidc.signed_by_other, oidc.with_own_key],
)
async def test_token_without_provider_signature_is_refused(provider, server, forge):
    server.forged = forge
    with pytest.raises(Forbidden, match="not signed by one of its keys"):
        await signed_in(provider)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"iss": "https://other.example"}, "another issuer"),
        ({"aud": "another"}, "another client"),
        ({"aud": [CLIENT_ID, "another"]}, "another client"),
        ({"azp": "another"}, "another client"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "expired"),
        ({"exp": float("inf")}, "expired"),
        ({"exp": float("nan")}, "expired"),
        ({"exp": 1e300}, "does not expire"),
        ({"nbf": 99999999999}, "future"),
        ({"nbf": "soon"}, "future"),
        ({"iat": float("-inf")}, "future"),
        ({"iat": 99999999999}, "future"),
        ({"nonce": "another"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"sub": ""}, "no account"),
        ({"sub": 5}, "no account"),
        ({"email_verified": False}, "not verified your email"),
        ({"email_verified": None}, "not verified your email"),
        ({"email_verified": 1}, "not verified your email"),
        ({"email": ["ada@example.com"]}, "no email"),
    ],
)
async def test_token_that_does_not_fit_is_refused(provider, server, claims, reason):
    server.twisted = lambda made: made.update(claims)
    with pytest.raises(Forbidden, match=reason):
        await signed_in(provider)


@pytest.mark.filterwarnings("ignore:Key size")
async def test_short_key_of_the_provider_counts_for_nothing(provider, server):
    server.key = RSAKey.generate_key(1_024, parameters={"kid": "short", "use": "sig"})
    server.published = [server.key]
    with pytest.raises(Forbidden, match="not signed by one of its keys"):
        await signed_in(provider)


async def test_answer_that_names_another_issuer_is_refused(provider, server):
    with pytest.raises(Forbidden, match="another provider"):
        await signed_in(provider, issuer="https://other.example")
    server.metadata["authorization_response_iss_parameter_supported"] = True
    fresh = OidcProvider(Client(server.issuer, CLIENT_ID, SECRET), {})
    with pytest.raises(Forbidden, match="did not name itself"):
        await signed_in(fresh)
    await fresh.close()


async def test_email_comes_from_userinfo_of_same_account(provider, server):
    server.account = {"sub": "248289"}
    server.in_userinfo = {"sub": "248289", "email": "ada@example.com", "email_verified": True}
    assert (await signed_in(provider)).email == "ada@example.com"
    server.in_userinfo["sub"] = "other"
    with pytest.raises(Forbidden, match="another account"):
        await signed_in(provider)


async def test_new_key_of_provider_is_read_at_most_once_a_minute(provider, server, seconds):
    await signed_in(provider)
    server.key, server.published = KEYS[1], KEYS
    with pytest.raises(Forbidden):
        await signed_in(provider)
    seconds[0] = 61.0
    await signed_in(provider)
    assert server.asked == ["discovery", "keys", "keys"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://other.example"},
        {"token_endpoint": "http://login.example.com/token"},
        {"authorization_endpoint": None},
    ],
)
async def test_discovery_document_that_does_not_fit_is_refused(provider, server, metadata):
    server.metadata = metadata
    with pytest.raises(Unavailable):
        await signed_in(provider)


async def test_provider_that_is_away_is_unavailable(provider, server):
    await server.server.close()
    with pytest.raises(Unavailable, match="cannot be reached"):
        await provider.authorization_url(ATTEMPT, BACK)


async def test_failure_of_the_provider_stands_for_some_seconds(provider, server, seconds):
    """Many who sign in at once would else wait for it one after the other."""
    server.metadata = {"authorization_endpoint": None}
    for _ in range(3):
        with pytest.raises(Unavailable):
            await provider.authorization_url(ATTEMPT, BACK)
    server.metadata, seconds[0] = {}, FAILED_SECONDS + 1.0
    assert await provider.authorization_url(ATTEMPT, BACK)
    assert server.asked == ["discovery", "discovery"]
