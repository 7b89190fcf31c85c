"""Passkeys: sign in with one, add one on the account page, remove one. They are scripts' work, as browsers have it."""

from urllib.parse import urlsplit

import msgspec
from aiohttp import hdrs, web
from msgspec import Struct

from service.commands.access.credentials import add_passkey, note_use_of_passkey, remove_passkey
from service.domain.access.names import is_local, name_of
from service.domain.errors import Forbidden
from service.ports.sign_in import Origin
from service.queries.access.credentials import known_credentials
from service.web.dashboard.page import see_other
from service.web.dashboard.signing_in.sign_in import begin_session, noting_failure
from service.web.http.access.hosts import NAMES, require_same_origin, require_sign_in_by
from service.web.http.access.people import actor, metadata, signed_in
from service.web.http.app_keys import PASSKEYS, STORE
from service.web.http.problems import ACTOR, read_body

NOT_KNOWN = "This passkey does not sign anyone in here. It may have been removed: sign in another way."
MAX_ID_CHARACTERS = 64

routes = web.RouteTableDef()


class SignInBody(Struct):
    answer: msgspec.Raw
    next: str = ""


class NewPasskeyBody(Struct):
    name: str
    answer: msgspec.Raw


@routes.post("/sign-in/passkey/options")
async def sign_in_options(request: web.Request) -> web.Response:
    """Answer with a challenge, for whichever passkey the person chooses."""
    require_same_origin(request)
    require_sign_in_by(request)
    return _json(await request.app[PASSKEYS].sign_in_options(origin_of(request)))


@routes.post("/sign-in/passkey")
async def sign_in(request: web.Request) -> web.Response:
    """Open a session for the person whose passkey answered the challenge."""
    require_same_origin(request)
    require_sign_in_by(request)
    body = await read_body(request, SignInBody)
    with noting_failure(request, "passkey"):
        begun = await _begun(request, body)
    response = _json(msgspec.json.encode({"location": begun.headers["Location"]}).decode())
    response.cookies.update(begun.cookies)
    return response


async def _begun(request: web.Request, body: SignInBody) -> web.Response:
    """Return the answer that signs in the person of a passkey. Raise Forbidden, as ``begin_session`` and others."""
    passkeys, answer = request.app[PASSKEYS], bytes(body.answer)
    claimed = passkeys.claimed(answer)
    person_id = claimed.person_id
    if not (person_id.isascii() and person_id.isalnum() and len(person_id) <= MAX_ID_CHARACTERS):
        raise Forbidden(NOT_KNOWN)
    passkey = (await known_credentials(request.app[STORE], person_id)).passkey(claimed.passkey_id)
    if passkey is None:
        raise Forbidden(NOT_KNOWN)
    count = await passkeys.verify_sign_in(origin_of(request), passkey.public_key, passkey.sign_count, answer)
    request[ACTOR] = actor(person_id)
    await note_use_of_passkey(request.app[STORE], person_id, passkey.id, count, metadata(request))
    return await begin_session(request, person_id, "passkey", next_path=body.next)


@routes.post("/account/passkeys/options")
async def registration_options(request: web.Request) -> web.Response:
    """Answer with a challenge, for a new passkey of the person who is signed in."""
    person = await signed_in(request)
    known = (await known_credentials(request.app[STORE], person.person_id)).passkeys
    named = (person.person_id, person.email, person.name)
    options = request.app[PASSKEYS].registration_options(origin_of(request), named, [one.id for one in known])
    return _json(await options)


@routes.post("/account/passkeys")
async def add(request: web.Request) -> web.Response:
    """Add a passkey that the person's device has just made."""
    person = await signed_in(request)
    body = await read_body(request, NewPasskeyBody)
    made = await request.app[PASSKEYS].verify_registration(origin_of(request), person.person_id, bytes(body.answer))
    await add_passkey(request.app[STORE], person.person_id, made, body.name, metadata(request))
    return _json("{}")


@routes.post("/account/passkeys/{passkeyId}/remove")
async def remove(request: web.Request) -> web.Response:
    """Remove a passkey; sessions that it opened go on until they are signed out."""
    person = await signed_in(request)
    await remove_passkey(request.app[STORE], person.person_id, request.match_info["passkeyId"], metadata(request))
    return see_other(request, "account", notice="The passkey no longer signs you in.")


def origin_of(request: web.Request) -> Origin:
    """Return our own origin as the browser knows it: that of the settings, or this machine's."""
    host = request.headers.get(hdrs.HOST, "").lower()
    name = name_of(host) or ""
    if is_local(name):
        return Origin(f"http://{host}", name)
    public = urlsplit(request.app[NAMES].public_url)
    port = f":{public.port}" if public.port not in (None, 443) else ""
    return Origin(f"{public.scheme}://{public.hostname}{port}", public.hostname or "")


def _json(text: str) -> web.Response:
    return web.Response(text=text, content_type="application/json", headers={"Cache-Control": "no-store"})
