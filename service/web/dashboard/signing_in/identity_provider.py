"""Sign-in with an account at the identity provider of the settings (OpenID Connect).

The secrets of one sign-in are in a cookie, so that nothing has to be remembered for those who never come back, and an
answer of the provider counts only in the browser that began.
"""

import hmac
import secrets

import msgspec
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from service.commands.access.credentials import person_of_account, unlink_account
from service.domain.errors import Forbidden, NotFound, ServiceError
from service.ports.sign_in import Attempt, IdentityProvider
from service.web.dashboard.page import see_other
from service.web.dashboard.signing_in.passkeys import MAX_ID_CHARACTERS, origin_of
from service.web.dashboard.signing_in.sign_in import accounts_to_choose, begin_session, noting_failure, sign_in_page
from service.web.http.access.cookies import cookies_of, drop_cookie, set_cookie
from service.web.http.access.hosts import NAMES, require_sign_in_by
from service.web.http.access.people import PEOPLE_DIRECTORY, known_person, metadata, safe_next, signed_in
from service.web.http.app_keys import ADMITS, IDENTITY_PROVIDER, STORE, VIEWS
from service.web.http.forms import read_form
from service.web.http.problems import ACTOR

COOKIE = "docsmith-oidc"
COOKIE_SECONDS = 600
MAX_NEXT, MAX_COOKIE = 1_000, 4_000
"""Characters."""
REFUSALS = {
    "access_denied": "{} did not let you in, or you cancelled. Try again.",
    "login_required": "{} asks you to sign in there first. Try again.",
    "temporarily_unavailable": "{} is not available right now. Try again later.",
}
"""Sentences for errors of a provider (RFC 6749, section 4.1.2.1). Its own words are not shown: a link may hold any."""

NOT_BEGUN = "This sign-in was begun in another browser, or too long ago. Begin again."

routes = web.RouteTableDef()


class Kept(Struct, frozen=True, array_like=True):
    """The value of the cookie."""

    state: str
    nonce: str
    verifier: str
    next: str
    wanted: str = ""
    """The one of several people with the same address, as the person chose; what it opens is checked at the end."""


@routes.get("/sign-in/oidc")
async def begin(request: web.Request) -> web.Response:
    """Send the browser to the provider, or say on the sign-in page why not."""
    attempt = Attempt(*(secrets.token_urlsafe(32) for _ in range(3)))
    try:
        require_sign_in_by(request)
        url = await _provider(request).authorization_url(attempt, redirect_url(request))
    except ServiceError as error:
        return sign_in_page(request, error=error)
    next_path = safe_next(request.query.get("next", "")[:MAX_NEXT])
    wanted = request.query.get("account", "")[:MAX_ID_CHARACTERS]
    kept = Kept(attempt.state, attempt.nonce, attempt.verifier, next_path, wanted)
    response = web.Response(status=303, headers={"Location": url, "Cache-Control": "no-store"})
    set_cookie(request, response, COOKIE, msgspec.json.encode(kept).hex(), COOKIE_SECONDS)
    return response


@routes.get("/sign-in/oidc/callback")
async def finish(request: web.Request) -> web.Response:
    """Open a session for the person whose account the provider names, or say on the sign-in page why not."""
    next_path = None
    try:
        kept = _kept(request)
        next_path = kept.next
        with noting_failure(request, "oidc"):
            person_id = await _person(request, kept)
            response = await begin_session(request, person_id, "oidc", next_path=kept.next)
    except ServiceError as error:
        accounts = await accounts_to_choose(request, error, "sign-in/oidc")
        response = sign_in_page(request, error=error, next_path=next_path, accounts=accounts)
    drop_cookie(request, response, COOKIE)
    return response


async def _person(request: web.Request, kept: Kept) -> str:
    """Return the id of the person whom the provider names. Raise Forbidden, Unavailable, NotFound."""
    require_sign_in_by(request)
    provider, query = _provider(request), request.query
    if not hmac.compare_digest(query.get("state", "").encode(), kept.state.encode()):
        raise Forbidden(NOT_BEGUN)
    if "error" in query:
        refusal = REFUSALS.get(query["error"], "{} reports an error. Try again, or ask its operator.")
        raise Forbidden(refusal.format(provider.name))
    attempt = Attempt(kept.state, kept.nonce, kept.verifier)
    account = await provider.account(query.get("code", ""), attempt, redirect_url(request), query.get("iss"))
    account = replace(account, wanted=kept.wanted)
    present = known_person(request)
    request[ACTOR] = "oidc"
    people, admits = request.app[PEOPLE_DIRECTORY], request.app[ADMITS]
    return await person_of_account(
        request.app[STORE], request.app[VIEWS], people, account, admits, metadata(request),
        present=present.person_id if present is not None else "",
    )  # fmt: skip


@routes.post("/account/provider/remove")
async def disconnect(request: web.Request) -> web.Response:
    """Forget which account at the provider signs the person in; the next one with their address is linked."""
    person = await signed_in(request)
    form = await read_form(request)
    await unlink_account(request.app[STORE], person.person_id, form.get("issuer", ""), metadata(request))
    return see_other(request, "account", notice="The account no longer signs you in, until you sign in with it again.")


def redirect_url(request: web.Request) -> str:
    """Return the address that the provider sends the browser back to, as it is registered there: by the settings, never
    by what a request says, except on this machine.
    """
    names = request.app[NAMES]
    origin = origin_of(request)
    base = (
        names.public_url if names.public_url.startswith("https://") and origin.url.startswith("https:") else origin.url
    )
    return f"{base}/sign-in/oidc/callback"


def _provider(request: web.Request) -> IdentityProvider:
    provider = request.app[IDENTITY_PROVIDER]
    if provider is None:
        raise NotFound("No identity provider signs people in here. Name one in the settings: [sign_in.oidc] issuer.")
    return provider


def _kept(request: web.Request) -> Kept:
    """Return what the browser kept. Raise Forbidden where it kept nothing."""
    value = next(iter(cookies_of(request, COOKIE)), "")
    try:
        return msgspec.json.decode(bytes.fromhex(value[:MAX_COOKIE]), type=Kept)
    except (ValueError, msgspec.DecodeError):
        raise Forbidden(NOT_BEGUN) from None
