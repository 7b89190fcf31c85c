"""A small, true OpenID provider: discovery, authorization, codes that work once, PKCE, signed ID tokens, userinfo."""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_plus

from aiohttp import web
from aiohttp.test_utils import TestServer
from joserfc import jwt
from joserfc.jwk import RSAKey
from yarl import URL

CLIENT_ID, SECRET = "docsmith", "client secret:+/"
KEYS = [RSAKey.generate_key(2048, parameters={"kid": kid, "use": "sig"}) for kid in ("one", "two")]


class FakeOidc:
    """``account``: who is signed in there. ``twisted`` changes a token's claims before they are signed."""

    def __init__(self, port: int = 0) -> None:
        self.account: dict[str, Any] = {"sub": "248289", "email": "ada@example.com", "email_verified": True}
        self.twisted: Callable[[dict[str, Any]], None] = lambda claims: None
        self.key = KEYS[0]
        self.published = [KEYS[0]]
        self.forged: Callable[[dict[str, Any]], str] | None = None
        self.in_userinfo: dict[str, Any] | None = None
        self.metadata: dict[str, Any] = {}
        self.asked: list[str] = []
        self.codes: dict[str, dict[str, str]] = {}
        self.server = TestServer(self._app(), port=port or None)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/realms/main"

    def _app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/realms/main/.well-known/openid-configuration", self._discover)
        app.router.add_get("/realms/main/authorize", self._authorize)
        app.router.add_post("/realms/main/token", self._token)
        app.router.add_get("/realms/main/keys", self._keys)
        app.router.add_get("/realms/main/userinfo", self._userinfo)
        return app

    async def _discover(self, _request: web.Request) -> web.Response:
        self.asked.append("discovery")
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
        }
        return web.json_response(found | self.metadata)

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = dict(request.query)
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(8)
        self.codes[code] = asked
        back = URL(asked["redirect_uri"]).update_query(code=code, state=asked["state"])
        raise web.HTTPFound(str(back))

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        asked = self.codes.pop(str(form["code"]), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(str(form["code_verifier"]).encode()).digest())
        basic = base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode()
        name, _, secret = basic.partition(":")
        if (
            asked is None
            or asked["code_challenge"] != challenge.decode().rstrip("=")
            or asked["redirect_uri"] != form["redirect_uri"]
            or (unquote_plus(name), unquote_plus(secret)) != (CLIENT_ID, SECRET)
        ):
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response({"access_token": "at", "token_type": "Bearer", "id_token": self.id_token(asked)})

    def id_token(self, asked: dict[str, str]) -> str:
        at = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "exp": at + 300, "iat": at, "nonce": asked["nonce"]}
        claims |= self.account
        self.twisted(claims)
        if self.forged is not None:
            return self.forged(claims)
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)

    async def _keys(self, _request: web.Request) -> web.Response:
        self.asked.append("keys")
        return web.json_response({"keys": [key.as_dict(private=False) for key in self.published]})

    async def _userinfo(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer at"
        return web.json_response(self.in_userinfo)


def unsigned(claims: dict[str, Any]) -> str:
    """A token with the algorithm ``none``."""
    return ".".join((*_parts({"alg": "none"}, claims), ""))


def signed_with_public_key(claims: dict[str, Any]) -> str:
    """A token of HS256 whose secret is the provider's public key."""
    return _hs256(claims, KEYS[0].as_pem(private=False))


def signed_with_secret(claims: dict[str, Any]) -> str:
    """A token of HS256 whose secret is the client's."""
    return _hs256(claims, SECRET.encode())


def _hs256(claims: dict[str, Any], secret: bytes) -> str:
    signed = ".".join(_parts({"alg": "HS256", "kid": "one"}, claims))
    return f"{signed}.{_encoded(hmac.digest(secret, signed.encode(), 'sha256'))}"


def _parts(header: dict[str, Any], claims: dict[str, Any]) -> tuple[str, str]:
    return _encoded(json.dumps(header).encode()), _encoded(json.dumps(claims).encode())


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def signed_by_other(claims: dict[str, Any]) -> str:
    """A token of another key that claims the id of the provider's."""
    return jwt.encode({"alg": "RS256", "kid": "one"}, claims, KEYS[1])


def with_own_key(claims: dict[str, Any]) -> str:
    """A token whose header brings the key that it is signed with."""
    return jwt.encode({"alg": "RS256", "jwk": KEYS[1].as_dict(private=False)}, claims, KEYS[1])
