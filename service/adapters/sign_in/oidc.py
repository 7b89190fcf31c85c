"""Sign-in by OpenID Connect: the authorization code flow with PKCE (OpenID Connect Core 1.0, section 3.1; RFC 7636).

- One provider, named in the settings by its issuer. Its addresses come from its own discovery document, whose issuer
  must be the configured one, letter for letter; so must that of each ID token, and of the redirect where it names one
  (RFC 9207): an answer of another provider is never taken for this one's.
- An ID token counts only with an asymmetric signature by a key that the provider publishes: never ``none``, and never
  the client's own secret, which the header of a forged token could ask for (RFC 8725, section 3.1).
- Redirects are not followed, since they would carry the code and the secret elsewhere; answers have a limit.
- The operator's own word names the issuer, which may well be in a private network: addresses are not looked at.
"""

import asyncio
import hashlib
import hmac
import math
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeGuard, TypeVar
from urllib.parse import quote_plus, urlsplit

import aiohttp
import msgspec
import structlog
from msgspec import Struct
from yarl import URL

from service.adapters.proxies import Proxies
from service.adapters.sign_in.id_tokens import KeySource, email_of, read_id_token
from service.adapters.unreachable import reason_of
from service.domain.errors import Forbidden, Unavailable
from service.ports.sign_in import Account, Attempt

T = TypeVar("T")

log = structlog.get_logger()

TIMEOUT = aiohttp.ClientTimeout(total=15, connect=5)
MAX_ANSWER_BYTES = 256 * 1024
KEPT_SECONDS = 3600
"""How long the provider's addresses and keys are kept."""
LEAST_SECONDS = 60
"""Between two reads of the keys because of a token with an unknown one: anyone can invent key ids."""
MAX_LIFETIME_SECONDS = 366 * 86_400
"""The longest that an ID token may be valid."""
FAILED_SECONDS = 3
"""Between two reads of a provider that does not answer."""
SCOPE = "openid email profile"


class Metadata(Struct, frozen=True):
    """The part of the discovery document that is used (OpenID Connect Discovery 1.0, section 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class Client(Struct, frozen=True):
    issuer: str
    client_id: str
    secret: str
    """Empty for a public client, which PKCE alone protects."""
    name: str = ""


class OidcProvider:
    """Use it within one event loop, and close it. ``seconds`` is for tests."""

    def __init__(self, client: Client, env: Mapping[str, str], seconds: Callable[[], float] = time.monotonic) -> None:
        self._client, self._proxies, self._seconds = client, Proxies(env), seconds
        self._session: aiohttp.ClientSession | None = None
        self._lock = asyncio.Lock()
        self._metadata: tuple[float, Metadata] | None = None
        self._keys: tuple[float, KeySource] | None = None
        self._failure: tuple[float, str] | None = None
        self.name = client.name or urlsplit(client.issuer).hostname or client.issuer

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def authorization_url(self, attempt: Attempt, redirect_url: str) -> str:
        metadata = await self._discovered()
        challenge = urlsafe_b64encode(hashlib.sha256(attempt.verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self._client.client_id,
            "redirect_uri": redirect_url,
            "scope": SCOPE,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return str(URL(metadata.authorization_endpoint).update_query(query))

    async def account(self, code: str, attempt: Attempt, redirect_url: str, issuer: str | None) -> Account:
        metadata = await self._discovered()
        if issuer is None and metadata.authorization_response_iss_parameter_supported:
            raise Forbidden(f"{self.name} did not name itself in its answer. Try again.")
        if issuer is not None and issuer != metadata.issuer:
            raise Forbidden(f"The answer comes from another provider than {self.name}. Try again.")
        tokens = await self._tokens(metadata, code, attempt, redirect_url)
        id_token, access_token = tokens.get("id_token"), tokens.get("access_token")
        if not isinstance(id_token, str):
            raise Forbidden(f"{self.name} sent no ID token. Check the client's settings there.")
        claims = await self._claims(metadata, id_token, attempt.nonce)
        subject = claims["sub"]
        if "email" not in claims and metadata.userinfo_endpoint and isinstance(access_token, str):
            userinfo = await self._fetch("GET", metadata.userinfo_endpoint, {"Authorization": f"Bearer {access_token}"})
            if userinfo.get("sub") != subject:
                raise Forbidden(f"{self.name} answered for another account. Try again.")
            claims = {**userinfo, **claims}
        name = claims.get("name")
        return Account(metadata.issuer, subject, email_of(claims, self.name), name if isinstance(name, str) else "")

    async def _tokens(self, metadata: Metadata, code: str, attempt: Attempt, redirect_url: str) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_url,
            "code_verifier": attempt.verifier,
        }
        headers = {}
        client, methods = self._client, metadata.token_endpoint_auth_methods_supported
        if client.secret and ("client_secret_basic" in methods or "client_secret_post" not in methods):
            # Each part is form-encoded before it is joined (RFC 6749, section 2.3.1)
            pair = f"{quote_plus(client.client_id)}:{quote_plus(client.secret)}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": client.client_id} | ({"client_secret": client.secret} if client.secret else {})
        return await self._fetch("POST", metadata.token_endpoint, headers, form)

    async def _claims(self, metadata: Metadata, id_token: str, nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token. A key that is not known yet is looked for once among the current ones."""
        keys = await self._current_keys(metadata, KEPT_SECONDS)
        claims = await asyncio.to_thread(read_id_token, id_token, keys)
        if claims is None:
            keys = await self._current_keys(metadata, LEAST_SECONDS)
            claims = await asyncio.to_thread(read_id_token, id_token, keys)
        if claims is None:
            log.info("ID token refused", issuer=metadata.issuer, reason="signature")
            raise Forbidden(f"The ID token of {self.name} is not signed by one of its keys. Try again.")
        problem = self._problem(claims, metadata.issuer, nonce)
        if problem:
            log.info("ID token refused", issuer=metadata.issuer, reason=problem)
            raise Forbidden(f"The ID token of {self.name} does not fit this sign-in: {problem}. Try again.")
        return claims

    def _problem(self, claims: Mapping[str, Any], issuer: str, nonce: str) -> str:
        """Return what is wrong with the claims (OpenID Connect Core 1.0, section 3.1.3.7), or nothing."""
        leeway, at = 60, time.time()
        audience, subject, sent = claims.get("aud"), claims.get("sub"), claims.get("nonce")
        audiences = audience if isinstance(audience, list) else [audience]
        ours = self._client.client_id
        expiry, issued = claims.get("exp"), claims.get("iat")
        if claims.get("iss") != issuer:
            return "it has another issuer"
        if ours not in audiences or (len(audiences) > 1 and claims.get("azp") != ours):
            return "it was made for another client"
        if "azp" in claims and claims["azp"] != ours:
            return "it was made for another client"
        if not _is_time(expiry) or expiry + leeway < at:
            return "it has expired"
        if expiry > at + MAX_LIFETIME_SECONDS:
            return "it does not expire"
        if not _is_time(issued) or issued - leeway > at:
            return "it is from the future"
        if "nbf" in claims and (not _is_time(claims["nbf"]) or claims["nbf"] - leeway > at):
            return "it is from the future"
        if not isinstance(sent, str) or not hmac.compare_digest(sent.encode(), nonce.encode()):
            return "it belongs to another sign-in"
        return "" if isinstance(subject, str) and 0 < len(subject) <= 255 else "it names no account"

    async def _discovered(self) -> Metadata:
        async with self._lock:
            if self._metadata is None or self._metadata[0] + KEPT_SECONDS < self._seconds():
                self._metadata = self._seconds(), await self._read(self._discover)
            return self._metadata[1]

    async def _discover(self) -> Metadata:
        issuer = self._client.issuer
        found = await self._fetch("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        try:
            metadata = msgspec.convert(found, Metadata)
        except msgspec.ValidationError as error:
            raise Unavailable(f"The discovery document of {issuer} cannot be used: {error}.") from None
        if metadata.issuer != issuer:
            raise Unavailable(
                f"{issuer} names itself {metadata.issuer}. Write that into sign_in.oidc.issuer, if it is the right one."
            )
        endpoints = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri)
        if not all(is_secure(one) for one in (*endpoints, metadata.userinfo_endpoint or issuer)):
            raise Unavailable(f"{issuer} has addresses without https. It needs https to sign people in.")
        return metadata

    async def _current_keys(self, metadata: Metadata, at_most: float) -> KeySource:
        """Return the provider's keys, of which the last reading is at most these seconds old."""
        async with self._lock:
            if self._keys is None or self._keys[0] + at_most < self._seconds():
                found = await self._read(partial(self._fetch, "GET", metadata.jwks_uri))
                self._keys = self._seconds(), KeySource(found)
            return self._keys[1]

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        """Return what the provider publishes. A failure stands for some seconds, for all who wait."""
        if self._failure is not None and self._failure[0] + FAILED_SECONDS > self._seconds():
            raise Unavailable(self._failure[1])
        self._failure = None
        try:
            return await read()
        except Unavailable as error:
            self._failure = self._seconds(), str(error)
            raise

    async def _fetch(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, form: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return a JSON object. Raise Unavailable, and Forbidden where the provider refuses."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=TIMEOUT, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)
        parts = urlsplit(url)
        proxy = self._proxies.for_host(parts.scheme, parts.hostname or "")
        try:
            async with self._session.request(
                method,
                url,
                headers={"Accept": "application/json", **(headers or {})},
                data=form,
                allow_redirects=False,
                proxy=proxy,
            ) as response:
                body = await response.content.read(MAX_ANSWER_BYTES)
                while not response.content.at_eof() and len(body) < MAX_ANSWER_BYTES:
                    body += await response.content.read(MAX_ANSWER_BYTES - len(body))
                status = response.status
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            log.warning("identity provider not reached", host=parts.hostname, error=type(error).__name__)
            raise Unavailable(f"{self.name} cannot be reached: {reason_of(error)}. Try again later.") from None
        if status in (400, 401, 403) and form is not None:
            log.warning("identity provider refused the code", host=parts.hostname, status=status)
            raise Forbidden(f"{self.name} refused this sign-in. Try again.")
        try:
            found = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError):
            found = None
        if status != 200 or not isinstance(found, dict):
            log.warning("identity provider answered oddly", host=parts.hostname, status=status)
            raise Unavailable(f"{self.name} answered with status {status} and no JSON object. Try again later.")
        return found


def _is_time(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_secure(url: str) -> bool:
    """Return whether what is sent to an address stays secret on its way: https, or this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1"))
