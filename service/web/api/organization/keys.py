"""An organization's API keys: list, create, change and revoke them."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from aiohttp import web
from msgspec import Meta, Struct

from service.commands.access.keys import NewKey, change_key, create_key, revoke_key
from service.domain.access.callers import MAX_ENTRIES
from service.domain.access.keys import ChangeKey, KeyKind, KeyScope
from service.domain.errors import Invalid, NotFound
from service.queries.access.keys import key_of, keys_page
from service.queries.read_models import wait_for_head
from service.runtime.system import now
from service.views.access.keys import CreatedKeyView, KeyList, KeyView
from service.views.fields import described
from service.web.api.description.operations import ID_CURSOR, Answer, Routes, limit_parameter
from service.web.http.access.access import admin_key
from service.web.http.app_keys import STORE, VIEWS
from service.web.http.connections.limits import ADMISSIONS
from service.web.http.problems import json_response, metadata_of, read_body
from service.web.http.query_params import id_cursor, whole_param
from service.web.http.schemas import NOT_BLANK

MAX_LISTED, LISTED = 100, 50
MAX_DOMAINS = 100
Lifetime = Literal[7, 30, 60, 90]
Name = Annotated[str, Meta(min_length=1, max_length=200, extra_json_schema=NOT_BLANK)]
Entries = Annotated[tuple[str, ...], Meta(max_length=MAX_ENTRIES)]
Domains = Annotated[tuple[str, ...], Meta(max_length=MAX_DOMAINS)]
PURPOSE = described("The key's purpose, for the list.")
ADDRESSES = described("Addresses and networks, such as `192.0.2.0/24`, that may use it; empty for any.")
ORIGINS = described("Websites, such as `https://*.example.com`, whose pages may use an assistant key; empty for any.")
READER_TOKENS = described("Whether each call from a page carries a reader token; when not given, with origins only.")

KEY_EXAMPLE: Mapping[str, Any] = {
    "id": "5b0f1d8f3a524b7a9c1e7d33019a8e6c",
    "kind": "admin",
    "organizationId": "0a52c1f7e3b94d0e8c9d6f1b2a3c4d5e",
    "name": "CI",
    "lastFour": "x7Qb",
    "status": "in_force",
    "domains": [],
    "allowedAddresses": ["192.0.2.0/24"],
    "allowedOrigins": [],
    "createdAt": "2026-11-21T09:30:00.000Z",
    "expiresAt": "2027-02-19T09:30:00.000Z",
    "usedAt": None,
    "revokedAt": None,
    "use": None,
    "readerTokens": False,
    "scope": "jobs",
}
KEY_ANSWER = {200: Answer("The key.", KeyView, example=KEY_EXAMPLE)}
ID = "/v2/keys/{keyId}"


class KeyBody(Struct, rename="camel"):
    """A new key."""

    kind: Annotated[KeyKind, described("Which of the two APIs it opens.")]
    name: Annotated[Name, PURPOSE]
    scope: Annotated[KeyScope | None, described("What an admin key may do; `all` when not given.")] = None
    domains: Annotated[Domains | None, described("The sites that an assistant key serves, at least one.")] = None
    expires_days: Annotated[Lifetime | None, described("In how many days it expires; never when not given.")] = None
    allowed_addresses: Annotated[Entries | None, ADDRESSES] = None
    allowed_origins: Annotated[Entries | None, ORIGINS] = None
    server: Annotated[bool, described("No web page may use the assistant key.")] = False
    reader_tokens: Annotated[bool | None, READER_TOKENS] = None

    def new(self, organization_id: str) -> NewKey:
        return NewKey(
            self.kind,
            organization_id,
            self.name,
            domains=self.domains or (),
            expires_at=now() + timedelta(days=self.expires_days) if self.expires_days is not None else None,
            allowed_addresses=self.allowed_addresses or (),
            allowed_origins=self.allowed_origins or (),
            scope=self.scope or "all",
            is_server=self.server,
            needs_reader_token=self.reader_tokens,
        )


class KeyChangeBody(Struct, rename="camel"):
    """A change of a key. What is left out stays as it is; a list takes the place of the one before."""

    name: Annotated[Name | None, PURPOSE] = None
    allowed_addresses: Annotated[Entries | None, ADDRESSES] = None
    allowed_origins: Annotated[Entries | None, ORIGINS] = None
    reader_tokens: Annotated[bool | None, described("Whether each call from a page carries a reader token.")] = None


routes = Routes()


@routes.operation(
    "GET",
    "/v2/keys",
    "listKeys",
    "Organization",
    "List keys",
    {200: Answer("The newest first.", KeyList, example={"keys": [KEY_EXAMPLE], "nextCursor": None})},
    description="The keys of the organization, revoked and expired ones included, without their secret part.",
    parameters=(limit_parameter(LISTED, MAX_LISTED), ID_CURSOR),
)
async def show_keys(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    limit = whole_param(request, "limit", LISTED, least=1, most=MAX_LISTED)
    return json_response(await keys_page(request.app[VIEWS], organization_id, limit=limit, cursor=id_cursor(request)))


@routes.operation(
    "POST",
    "/v2/keys",
    "createKey",
    "Organization",
    "Create a key",
    {201: Answer("The key, with its secret part: it is shown this once.", CreatedKeyView, example={
        **KEY_EXAMPLE, "token": "docsmith_7hV3…",
    })},
    body=KeyBody,
    body_examples={
        "admin": {"kind": "admin", "name": "CI", "scope": "jobs", "expiresDays": 90},
        "assistant": {
            "kind": "assistant", "name": "Website", "domains": ["guide"], "allowedOrigins": ["https://docs.example.com"]
        },
    },
)  # fmt: skip
async def post_key(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    body = await read_body(request, KeyBody)
    created = await created_key(request, body.new(organization_id))
    return json_response(created, status=201)


async def created_key(request: web.Request, new: NewKey, *, key_id: str = "") -> CreatedKeyView:
    """Create a key, and return it with its secret part. Raise Invalid, and Conflict when the id is used."""
    store, views = request.app[STORE], request.app[VIEWS]
    await request.app[ADMISSIONS].accept("keys", new.organization_id, metadata_of(request))
    try:
        created = await create_key(store, views, new, metadata_of(request), key_id=key_id)
    except NotFound as error:  # a name in the body, not in the address
        raise Invalid(str(error), problems=(("$.domains", str(error)),)) from error
    await wait_for_head(store, views)
    key = await key_of(views, new.organization_id, created.id)
    return CreatedKeyView(**{name: getattr(key, name) for name in KeyView.__struct_fields__}, token=created.token)


@routes.operation(
    "GET", ID, "getKey", "Organization", "Get a key", KEY_ANSWER, errors={404: ("key_not_found",)}
)  # fmt: skip
async def show_key(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    return json_response(await key_of(request.app[VIEWS], organization_id, request.match_info["keyId"]))


@routes.operation(
    "POST",
    ID,
    "changeKey",
    "Organization",
    "Change a key",
    KEY_ANSWER,
    description="Its name, or from where it may be used. The secret part stays, and so do kind, scope and expiry.",
    body=KeyChangeBody,
    body_examples={"rename": {"name": "CI of the guide"}, "anywhere": {"allowedAddresses": []}},
    errors={404: ("key_not_found",), 409: ("conflict",)},
)
async def post_key_change(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    store, views, key_id = request.app[STORE], request.app[VIEWS], request.match_info["keyId"]
    body = await read_body(request, KeyChangeBody)
    await key_of(views, organization_id, key_id)
    change = ChangeKey(now(), body.name, body.allowed_addresses, body.allowed_origins, body.reader_tokens)
    await change_key(store, key_id, change, metadata_of(request))
    await wait_for_head(store, views)
    return json_response(await key_of(views, organization_id, key_id))


@routes.operation(
    "POST",
    f"{ID}/revoke",
    "revokeKey",
    "Organization",
    "Revoke a key",
    KEY_ANSWER,
    description="At once and for good; streams that were opened with it end. Again does nothing.",
    errors={404: ("key_not_found",)},
)
async def post_key_revoke(request: web.Request) -> web.Response:
    organization_id = (await admin_key(request)).state.organization_id
    store, views, key_id = request.app[STORE], request.app[VIEWS], request.match_info["keyId"]
    await key_of(views, organization_id, key_id)
    await revoke_key(store, key_id, metadata_of(request))
    await wait_for_head(store, views)
    return json_response(await key_of(views, organization_id, key_id))
