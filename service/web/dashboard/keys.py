"""``/dashboard/{organizationId}/keys``: an organization's keys, for its owners. A new one is shown once."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import get_args

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from service.commands.access.keys import NewKey, change_key, revoke_key
from service.domain.access.callers import completed_origins
from service.domain.access.keys import LIFETIMES_DAYS, ChangeKey, KeyKind, KeyScope
from service.domain.errors import Conflict, Invalid
from service.queries.access.keys import key_of, keys_page
from service.queries.projects import get_project
from service.queries.read_models import wait_for_head
from service.queries.sites import list_organization_sites
from service.runtime.system import new_id, now
from service.views.access.keys import CreatedKeyView
from service.views.projects import ProjectView
from service.web.api.organization.keys import created_key
from service.web.dashboard.documentation.widget import Tag, mcp_entry_of, tags_of
from service.web.dashboard.page import dashboard_page, see_other
from service.web.http.access.hosts import service_address
from service.web.http.access.people import Member, member, metadata
from service.web.http.app_keys import STORE, VIEWS
from service.web.http.forms import new_id_of, read_form
from service.web.http.query_params import id_cursor
from service.web.pages.rendering import rendered

PAGE_LENGTH = 50
MAX_SHOWN = 20
"""Projects, and sites, that the page of a new key shows."""
MAX_DOMAINS = 200
"""Sites of the organization that the form lists."""
SITE = "site-"
"""Beginning of the names of the form's boxes for sites."""
KINDS: tuple[KeyKind, ...] = get_args(KeyKind)
SCOPES: Mapping[KeyScope, str] = {
    "read": "Read: jobs, questions, keys and usage",
    "jobs": "Jobs: read, and create, steer and cancel jobs",
    "all": "All: everything of the organization, keys and git pushes included",
}
USES = {
    "browser": "Web pages of the websites below",
    "server": "A server: refused where a web page sends it",
    "open": "Anyone who has the key",
}
EXPIRES = [("", "Never"), *((str(days), f"In {days} days") for days in LIFETIMES_DAYS)]
DEFAULT_EXPIRES = "90"
SEARCH = '{"query": "install"}'
QUESTION = '{"fp": "anonymous", "messages": [{"role": "user", "parts": [{"type": "text", "text": "How do I start?"}]}]}'
PRINT_TOKEN = """sed -E 's/.*"token": *"([^"]+)".*/\\1/'"""  # noqa: S105  (a command)
"""Command that prints the token of an answer."""

routes = web.RouteTableDef()


class Example(Struct, frozen=True):
    """A request to paste into a terminal."""

    label: str
    text: str


class KeyedSite(Struct, frozen=True):
    """A site that a new key serves, with what uses the key there."""

    domain: str
    tags: Sequence[Tag]
    """The tags of its widget; empty for a key that web pages may not use."""
    mcp_entry: str
    """Empty for a key that takes reader tokens, which no agent fetches."""


@routes.get("/dashboard/{organizationId}/keys")
async def show_keys(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    await wait_for_head(request.app[STORE], request.app[VIEWS])
    cursor = id_cursor(request)
    found = await keys_page(request.app[VIEWS], viewer.organization_id, limit=PAGE_LENGTH, cursor=cursor)
    return dashboard_page(
        request, viewer, "access/keys.html", keys=found.keys, next=found.next_cursor, cursor=cursor or ""
    )


@routes.get("/dashboard/{organizationId}/keys/new")
async def show_form(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    kind = "assistant" if request.query.get("kind") == "assistant" else "admin"
    site, use = request.query.get("site", ""), "server" if request.query.get("use") == "server" else "browser"
    # A key in web pages that expires takes the assistant away from their readers, on a day that nobody has in mind.
    expires = "" if (kind, use) == ("assistant", "browser") else DEFAULT_EXPIRES
    return await _form(request, viewer, {"kind": kind, "use": use, "expires": expires, f"{SITE}{site}": "true"})


@routes.post("/dashboard/{organizationId}/keys")
async def create(request: web.Request) -> web.Response:
    """Show the new key in the answer itself, so that it is nowhere else. The form's id makes a repeat create none."""
    viewer = await member(request, "owner")
    form = await read_form(request)
    try:
        created = await created_key(request, _new(viewer, form), key_id=new_id_of(form))
    except Invalid as error:
        return await _form(request, viewer, form, error=str(error))
    except Conflict:
        raise Conflict("This key was created before, and is shown only once. Revoke it, and create another.") from None
    return dashboard_page(
        request,
        viewer,
        "access/key_created.html",
        key=created,
        completed=completed_origins(_lines(form, "origins")) if created.allowed_origins else "",
        scopes=SCOPES,
        projects=await _projects_of(request, viewer.organization_id) if created.kind == "admin" else [],
        tag=_tag(request, created),
        sites=_sites_of(request, created),
        mcp_entry=_own_mcp_entry(request, created),
        examples=await _examples(request, viewer.organization_id, created),
    )


@routes.get("/dashboard/{organizationId}/keys/{keyId:[0-9a-f]{32}}")
async def show_key(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    await wait_for_head(request.app[STORE], request.app[VIEWS])
    return await _key_page(request, viewer)


@routes.post("/dashboard/{organizationId}/keys/{keyId:[0-9a-f]{32}}")
async def change(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    form, key_id = await read_form(request), request.match_info["keyId"]
    key = await key_of(request.app[VIEWS], viewer.organization_id, key_id)
    origins = _lines(form, "origins") if key.kind == "assistant" and "origins" in form else None
    addresses = _lines(form, "addresses") if "addresses" in form else None
    tokens = True if form.get("reader_tokens") == "true" else None
    wanted = ChangeKey(now(), form.get("name", ""), addresses, origins, tokens)
    try:
        await change_key(request.app[STORE], key_id, wanted, metadata(request))
    except Invalid as error:
        return await _key_page(request, viewer, form, error=str(error))
    notice = f"The key is changed. {completed_origins(origins or ())}".strip()
    return see_other(request, f"dashboard/{viewer.organization_id}/keys/{key_id}", notice=notice)


@routes.post("/dashboard/{organizationId}/keys/{keyId:[0-9a-f]{32}}/revoke")
async def revoke(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    key = await key_of(request.app[VIEWS], viewer.organization_id, request.match_info["keyId"])
    await revoke_key(request.app[STORE], key.id, metadata(request))
    return see_other(request, f"dashboard/{viewer.organization_id}/keys", notice=f"The key {key.name} is revoked.")


async def _form(request: web.Request, viewer: Member, form: Mapping[str, str], *, error: str = "") -> web.Response:
    await wait_for_head(request.app[STORE], request.app[VIEWS])
    sites = await list_organization_sites(request.app[VIEWS], viewer.organization_id)
    domains = [site.view.domain for site in sites]
    chosen = [domain for domain in domains if f"{SITE}{domain}" in form]
    return dashboard_page(
        request,
        viewer,
        "access/key_new.html",
        status=400 if error else 200,
        form=form,
        kind=form.get("kind", "admin"),
        id=new_id(),
        domains=domains[:MAX_DOMAINS],
        chosen=chosen if chosen or len(domains) != 1 else domains,
        scopes=list(SCOPES.items()),
        uses=list(USES.items()),
        expires=EXPIRES,
        error=error,
    )


async def _key_page(
    request: web.Request, viewer: Member, form: Mapping[str, str] | None = None, *, error: str = ""
) -> web.Response:
    key = await key_of(request.app[VIEWS], viewer.organization_id, request.match_info["keyId"])
    values = form or {
        "name": key.name, "addresses": "\n".join(key.allowed_addresses), "origins": "\n".join(key.allowed_origins),
    }  # fmt: skip
    status = 400 if error else 200
    return dashboard_page(
        request, viewer, "access/key.html", status=status, key=key, form=values, error=error, scopes=SCOPES, uses=USES
    )


def _new(viewer: Member, form: Mapping[str, str]) -> NewKey:
    """Return the key that a form wants. Raise Invalid."""
    kind = next((one for one in KINDS if one == form.get("kind")), None)
    days = form.get("expires", "")
    if kind is None or (days and days not in map(str, LIFETIMES_DAYS)):
        raise Invalid("Choose a kind and an expiry from the lists.")
    expires_at = now() + timedelta(days=int(days)) if days else None
    new = NewKey(kind, viewer.organization_id, form.get("name", ""), expires_at=expires_at,
                 allowed_addresses=_lines(form, "addresses"))  # fmt: skip
    return _admin(new, form) if kind == "admin" else _assistant(new, form)


def _admin(new: NewKey, form: Mapping[str, str]) -> NewKey:
    scope = next((one for one in SCOPES if one == form.get("scope")), None)
    if scope is None:
        raise Invalid("Choose from the list what the key may do.")
    return replace(new, scope=scope)


def _assistant(new: NewKey, form: Mapping[str, str]) -> NewKey:
    use, origins = form.get("use", ""), _lines(form, "origins")
    if use not in USES:
        raise Invalid("Choose from the list who uses the key.")
    domains = tuple(name.removeprefix(SITE) for name, value in form.items() if name.startswith(SITE) and value)
    if not domains:
        raise Invalid("Choose at least one site that the key serves.")
    if use == "browser" and not origins:
        raise Invalid("Name the websites whose pages use the key, or choose who else uses it.")
    return replace(new, domains=domains, allowed_origins=origins if use == "browser" else (), is_server=use == "server")


def _lines(form: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return the lines of a field that are not blank."""
    return tuple(line.strip() for line in form.get(name, "").splitlines() if line.strip())


async def _examples(request: web.Request, organization_id: str, key: CreatedKeyView) -> list[Example]:
    """Return requests that the new key opens, complete with address, key, and project or site."""
    base, header = service_address(request), f"-H 'Authorization: Bearer {key.token}'"
    if key.kind == "admin":
        sites = await list_organization_sites(request.app[VIEWS], organization_id)
        project = await get_project(request.app[VIEWS], sites[0].view.project_id) if sites else None
        path = f"/v2/agent/{project.id}/jobs" if project is not None else "/v2/keys"
        label = f"List the jobs of {project.name}" if project is not None else "List the keys"
        return [Example(label, f"curl -sS {base}{path} {header}")]
    domain, sends = key.domains[0], f"{header} -H 'Content-Type: application/json'"
    search, ask = f"{base}/discovery/v1/search/{domain}", f"{base}/discovery/v2/assistant/{domain}/message"
    fetch = []
    if key.reader_tokens:
        origin = f"-H 'Origin: {key.allowed_origins[0].replace('*', 'docs')}'"
        token = f"curl -sS -X POST {base}/discovery/v1/token/{domain} {header} {origin}"
        fetch = [Example("Fetch a reader token, as a page does", f"TOKEN=$({token} | {PRINT_TOKEN})")]
        sends += f' {origin} -H "X-Reader-Token: $TOKEN"'
    return [
        *fetch,
        Example(f"Search {domain}", f"curl -sS {search} {sends} -d '{SEARCH}'"),
        Example(f"Ask {domain}", f"curl -sSN {ask} {sends} -d '{QUESTION}'"),
    ]


async def _projects_of(request: web.Request, organization_id: str) -> list[ProjectView]:
    """Return the projects whose ids the paths of the API take."""
    sites = await list_organization_sites(request.app[VIEWS], organization_id)
    found = [await get_project(request.app[VIEWS], site.view.project_id) for site in sites[:MAX_SHOWN]]
    return [project for project in found if project is not None]


def _sites_of(request: web.Request, key: CreatedKeyView) -> list[KeyedSite]:
    base = service_address(request)
    return [
        KeyedSite(
            domain,
            tags_of(base, domain, key.token) if key.use != "server" else [],
            mcp_entry_of(domain, f"{base}/mcp/{domain}", key.token) if not key.reader_tokens else "",
        )
        for domain in key.domains[:MAX_SHOWN]
    ]


def _own_mcp_entry(request: web.Request, key: CreatedKeyView) -> str:
    """Return the entry of the server for the organization's own agents; empty for a key that may not use it."""
    if key.kind != "admin" or key.scope == "read":
        return ""
    return mcp_entry_of("docsmith", f"{service_address(request)}/mcp", key.token)


def _tag(request: web.Request, key: CreatedKeyView) -> str:
    """Return the lines that ask the key's site from a web page; empty for a key that none may use."""
    if key.kind != "assistant" or key.use == "server":
        return ""
    return rendered(
        "access/key_tag.html", base=service_address(request), site=json.dumps(key.domains[0]), key=json.dumps(key.token)
    )
