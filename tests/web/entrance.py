"""The admission on a real socket, with handlers behind it that do nothing: what gets through to them is what counts."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from socket import socket

from aiohttp import web
from msgspec import Struct

from eventstore import Append, NewEvent, SQLiteEventStore, Views, execute
from service.domain.access.keys import CreateKey
from service.domain.organizations import CreateOrganization
from service.domain.projects.decider import CreateProject
from service.domain.projects.settings import ProjectSettings
from service.domain.sites import ChangeSiteAccess, RegisterSite
from service.integrity.shared_secrets import FileSecrets, usage_secret
from service.projections import all_projections
from service.runtime.system import new_id, new_key_token, now
from service.streams import KEYS, ORGANIZATIONS, PROJECTS, SITES
from service.web.api.assistant import reader_tokens
from service.web.http import entrance as http
from service.web.http.access.access import git_organization, project_for, site_for
from service.web.http.answers import errors
from service.web.http.app_keys import STORE, VIEWS
from service.web.http.connections.admission import Admission, AdmissionSettings
from service.web.http.connections.connections import listen
from service.web.http.connections.limits import metered_store, name_reader
from service.web.http.problems import MAX_BODY_BYTES, json_response, read_body

ORGANIZATIONS_PROJECTS = {"one": ("alpha", "beta"), "two": ("gamma",)}


class Body(Struct):
    text: str = ""
    fp: str = "anonymous"
    tree: object = None


async def agent(request: web.Request) -> web.Response:
    project = await project_for(request)
    return await _answer(request, project.id)


async def assistant(request: web.Request) -> web.Response:
    project = await site_for(request)
    return await _answer(request, project.id)


async def _answer(request: web.Request, project_id: str) -> web.Response:
    if request.method == "POST":
        name_reader(request, (await read_body(request, Body)).fp)
        write = Append(f"asked-{new_id()}", (NewEvent("asked", b"{}"),), 0)
        await metered_store(request).append_all([write])
    return json_response({"project": project_id})


async def git(request: web.Request) -> web.Response:
    return json_response({"allowed": await git_organization(request, request.match_info["projectId"]) is not None})


async def much(_: web.Request) -> web.Response:
    """More than a socket's buffers hold."""
    return web.Response(body=b"x" * 50_000_000)


class Entrance:
    """One admission, and who may make keys and projects behind it."""

    def __init__(self, url: str, port: int, store: SQLiteEventStore, admission: Admission) -> None:
        self.url, self.port, self.store, self.admission = url, port, store, admission

    async def key(self, kind="admin", organization="one", *, domains=(), store=None, expired=False, **lists) -> str:
        """The token of a new key; its id is the token's last part."""
        token, at = new_key_token(kind), now() - timedelta(days=31)
        expires_at = at + timedelta(days=30 if expired else 60)
        if kind == "assistant":
            domains = domains or ORGANIZATIONS_PROJECTS[organization]
            lists.setdefault("needs_reader_token", False)
        command = CreateKey(kind, organization, "key", token, tuple(domains), at, expires_at, **lists)
        await execute(store or self.store, KEYS, key_id(token), command)
        return token

    async def open_site(self, domain="alpha", *origins, public=True) -> None:
        """Make a site public, or private again; the admission knows it a moment later."""
        await execute(self.store, SITES, domain, ChangeSiteAccess(now(), public, origins))


def key_id(token: str) -> str:
    return f"id{token[-20:]}"


@asynccontextmanager
async def entrance(
    data: Path,
    settings: AdmissionSettings | None = None,
    *,
    clock: Callable[[], datetime] = now,
    prepare: Callable[[web.Application], None] = lambda _: None,
) -> AsyncIterator[Entrance]:
    """``prepare`` adds further routes, and what they need."""
    async with await SQLiteEventStore.open(data / "events.db", vault_path=data / "keys.db") as store:
        if await store.head() == 0:
            await _make_tenants(store)
        async with await Views.open(data / "views.db", store, all_projections()) as views:
            await views.catch_up()
            secret = await usage_secret(FileSecrets(data))
            admission = Admission(store, views, secret, settings or AdmissionSettings(), clock=clock)
            await admission.load()
            app = web.Application(middlewares=[http.Entrance().enter], client_max_size=MAX_BODY_BYTES)
            app[STORE], app[VIEWS] = store, views
            admission.install(app)
            app.router.add_route("*", "/v2/agent/{projectId}/job", agent)
            app.router.add_route("*", "/v2/other/{projectId}", agent)
            app.router.add_route("*", "/discovery/v2/assistant/{domain}/message", assistant)
            app.router.add_post("/discovery/v1/assistant/{domain}/message", assistant)
            app.router.add_get("/much", much)
            app.router.add_get("/git/{projectId}", git)
            app.add_routes(errors.routes)
            app.add_routes(reader_tokens.routes)
            prepare(app)
            runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
            await runner.setup()
            tasks = [asyncio.create_task(run()) for run in (views.run, *(run for _, run, _ in admission.workers()))]
            bound = socket()
            bound.bind(("127.0.0.1", 0))
            server = await listen(runner.server, bound, admission.connection_limiter, logging.Logger("nobody"))
            port = bound.getsockname()[1]
            try:
                yield Entrance(f"http://127.0.0.1:{port}", port, store, admission)
            finally:
                server.close()
                await runner.cleanup()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


async def _make_tenants(store: SQLiteEventStore) -> None:
    for organization, projects in ORGANIZATIONS_PROJECTS.items():
        await execute(store, ORGANIZATIONS, organization, CreateOrganization(organization, now()))
        for project in projects:
            command = CreateProject(
                ProjectSettings(organization, project, "/nowhere", "main", "", project, "local"), now()
            )
            await execute(store, PROJECTS, project, command)
            await execute(store, SITES, project, RegisterSite(project, organization, now()))
