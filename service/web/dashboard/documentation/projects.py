"""Create a project in a browser, from wherever its documentation is, and change it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import get_args

from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import BadHttpMessage
from msgspec import Struct

from service.commands.allowed_folders import allow_folder
from service.commands.guarded_projects import NamedContext, NewProject, ProjectEdit
from service.commands.organizations import create_owned_organization
from service.commands.projects import CheckedProject
from service.domain.errors import BodyTooLarge, BodyTooSlow, Conflict, Invalid, ServiceError, UnsupportedMediaType
from service.domain.projects.contexts import MAX_CONTEXTS
from service.domain.projects.settings import CodeHostKind
from service.queries.projects import get_project
from service.queries.sites import Site
from service.runtime.system import new_id
from service.runtime.uploads import UPLOAD, Upload
from service.runtime.zip_files import MAX_ARCHIVE_BYTES
from service.views.projects import ContextView, ProjectView
from service.web.api.organization.sites import site_of
from service.web.dashboard.documentation.choices import Kind, offered
from service.web.dashboard.documentation.site_page import site_page
from service.web.dashboard.documentation.unread import READ, unread_files
from service.web.dashboard.page import dashboard_page, see_other
from service.web.http.access.people import PEOPLE_DIRECTORY, Member, SignedIn, member, metadata, operator, settle
from service.web.http.app_keys import DATA, GUARDED_PROJECTS, STORE, UPLOADS, VIEWS
from service.web.http.forms import UNREADABLE, new_id_of, read_form
from service.web.http.problems import BODY_SECONDS, status_of
from service.web.pages.html import way_up

BEGIN = "/begin"
NEW = "/dashboard/{organizationId}/projects/new"
SETTINGS = "/dashboard/{organizationId}/sites/{domain}/project"
UPLOAD_PATH = SETTINGS + "/upload"
FIRST_ORGANIZATION = "My organization"
UNREADABLE_PARTS = (ValueError, RuntimeError, BadHttpMessage, web.RequestPayloadError)
"""Raised for a form whose parts are broken; the second for the part that names a charset."""
MAX_FIELD_BYTES = 16_384
"""Limit for a text field of the form with a file."""
MAX_FIELDS = 20
FIELDS = ("name", "repository", "code_host", "ref", "docs_folder", "domain", "api_url", "site_url", "allow")
HOSTS: tuple[CodeHostKind, ...] = ("github", "gitlab", "gitea")

routes = web.RouteTableDef()


class ContextRow(Struct, frozen=True):
    """The fields of a context repository."""

    name: str = ""
    repository: str = ""
    ref: str = ""
    public: bool = False
    hint: str = "For a private repository. It is kept encrypted, and never shown again."
    """Says whether it has a token."""


class Owner(Struct, frozen=True):
    """The person who creates a project, and the organization in which."""

    viewer: Member | SignedIn
    organization_id: str
    """Empty while the organization of a first project is not there."""

    @property
    def person(self) -> SignedIn:
        return self.viewer.person if isinstance(self.viewer, Member) else self.viewer

    @property
    def is_first(self) -> bool:
        """Return whether the organization is created with the project."""
        return not isinstance(self.viewer, Member)


@routes.get(BEGIN)
async def show_beginning(request: web.Request) -> web.Response:
    """Show the first page of a new installation to its operator: its organization is created with the first project."""
    person = await operator(request)
    kind = _kind_of(request.query.get("from"))
    if owned := _owned(person):
        raise web.HTTPSeeOther(f"{way_up(request)}dashboard/{owned}/projects/new?from={kind}")
    return await _new_page(request, Owner(person, ""), kind, {})


@routes.post(BEGIN)
async def begin(request: web.Request) -> web.Response:
    """Create the first project, with an organization that the operator owns."""
    person = await operator(request)
    return await _create(request, Owner(person, _owned(person)))


def _owned(person: SignedIn) -> str:
    """Return the id of an organization that the person owns; empty where there is none."""
    return next((one for one, role in person.roles.items() if role == "owner"), "")


@routes.get(NEW)
async def show_new_project(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    return await _new_page(request, Owner(viewer, viewer.organization_id), _kind_of(request.query.get("from")), {})


@routes.post(NEW)
async def create_project(request: web.Request) -> web.Response:
    """Create a project of the form's fields, or of the archive that the form sends."""
    viewer = await member(request, "owner")
    return await _create(request, Owner(viewer, viewer.organization_id))


async def _create(request: web.Request, owner: Owner) -> web.Response:
    if request.content_type == "multipart/form-data":
        return await _create_from_upload(request, owner)
    values = await read_form(request)
    kind = _kind_of(values.get("from"))
    try:
        owner = await _with_organization(request, owner, values)
        done = await _created(request, owner, kind, values)
    except ServiceError as error:
        return await _new_page(request, owner, kind, values, error)
    return await _to_site(request, owner, done)


async def _with_organization(request: web.Request, owner: Owner, values: Mapping[str, str]) -> Owner:
    """Create the organization of a first project, with the id that its form has, so that a repeat makes no second."""
    if owner.organization_id:
        return owner
    organization_id, name, person_id = new_id_of(values), values.get("organization", ""), owner.person.person_id
    try:
        await create_owned_organization(request.app[STORE], organization_id, name, person_id, metadata(request))
    except Conflict:  # the form was sent again, after its project was refused
        await settle(request)
        if request.app[PEOPLE_DIRECTORY].roles(person_id).get(organization_id) != "owner":
            raise
    await settle(request)
    return Owner(owner.viewer, organization_id)


async def _created(request: web.Request, owner: Owner, kind: Kind, values: Mapping[str, str]) -> CheckedProject:
    """Create a project of a form without a file. Raises as ``GuardedProjects.create``."""
    projects, cause = request.app[GUARDED_PROJECTS], metadata(request)
    if kind == "sample":
        return await projects.create_sample(owner.organization_id, cause)
    host: CodeHostKind | None = "website" if kind == "website" else "local"
    if kind == "host":
        host = next((one for one in HOSTS if one == values.get("code_host")), None)
    if host is None:
        raise Invalid("Choose the code host.")
    repository, is_allowed = values.get("repository", ""), owner.person.is_operator and values.get("allow") == "true"
    if kind == "folder" and is_allowed:
        await allow_folder(request.app[STORE], repository.strip(), request.app[DATA], cause)
    new = NewProject(
        values.get("name", ""),
        repository,
        code_host=host,
        ref=values.get("ref", ""),
        docs_folder=values.get("docs_folder", ""),
        domain=values.get("domain", ""),
        api_url=values.get("api_url", ""),
        token=values.get("token", ""),
        site_url=values.get("site_url", ""),
    )
    may_be_private = is_allowed and kind in ("git", "host")
    return await projects.create(owner.organization_id, new, cause, may_be_private=may_be_private)


async def _create_from_upload(request: web.Request, owner: Owner) -> web.Response:
    values: dict[str, str] = {}
    try:
        async with _uploaded(request, owner, values) as upload:
            owner = await _with_organization(request, owner, values)
            new = NewProject(
                values.get("name", ""),
                docs_folder=values.get("docs_folder", ""),
                domain=values.get("domain", ""),
                site_url=values.get("site_url", ""),
            )
            projects = request.app[GUARDED_PROJECTS]
            done = await projects.create(owner.organization_id, new, metadata(request), upload=upload)
            unread = unread_files(upload.unpacked)
    except ServiceError as error:
        response = await _new_page(request, owner, "upload", values, error)
        response.force_close()  # the rest of the archive is not read
        return response
    return await _to_site(request, owner, done, unread)


@asynccontextmanager
async def _uploaded(request: web.Request, owner: Owner, values: dict[str, str]) -> AsyncIterator[Upload]:
    """Receive a form's archive, once its fields before the file are in ``values``; the files are there until the block
    ends.
    """
    try:
        async with asyncio.timeout(request.app[BODY_SECONDS]):
            file = await _file_of(request, values)
    except TimeoutError:
        raise BodyTooSlow from None
    share = owner.organization_id or owner.person.person_id
    async with request.app[UPLOADS].received(share, file.filename or "", _pieces(file)) as upload:
        yield upload


async def _file_of(request: web.Request, values: dict[str, str]) -> BodyPartReader:
    """Return the form's file, once the fields before it are read. Raises UnsupportedMediaType, Invalid."""
    read = 0
    try:
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader):
                break
            read += 1
            if read > MAX_FIELDS:
                raise Invalid(
                    f"The form has more than {MAX_FIELDS} fields. Open the page again, and send it from there."
                )
            if part.filename is not None:
                return part
            content = bytearray()
            while piece := await part.read_chunk():
                content += piece
                if len(content) > MAX_FIELD_BYTES:
                    raise BodyTooLarge(MAX_FIELD_BYTES)
            values[part.name or ""] = content.decode(errors="replace").strip()
    except UNREADABLE_PARTS:
        raise UnsupportedMediaType(UNREADABLE) from None
    raise Invalid("Choose a zip archive.")


async def _pieces(file: BodyPartReader) -> AsyncIterator[bytes]:
    try:
        while piece := await file.read_chunk(1 << 16):
            yield piece
    except UNREADABLE_PARTS:
        raise Invalid("The archive did not arrive whole. Send it again.") from None


async def _to_site(request: web.Request, owner: Owner, done: CheckedProject, more: str = "") -> web.Response:
    await request.app[VIEWS].wait_for(done.position)
    project = await get_project(request.app[VIEWS], done.id)
    assert project is not None
    job = "" if project.code_host == "website" else ", or give the agent a job"
    steps = f"Next: ask it a question{job}."
    notice = " ".join(filter(None, ("The project is created.", more, steps, *done.warnings)))
    return see_other(request, f"dashboard/{owner.organization_id}/sites/{project.domain}", notice=notice)


def _kind_of(text: str | None) -> Kind:
    return next((kind for kind in get_args(Kind) if kind == text), "upload")


async def _new_page(
    request: web.Request, owner: Owner, kind: Kind, values: Mapping[str, str], error: ServiceError | None = None
) -> web.Response:
    folders = await request.app[GUARDED_PROJECTS].allowed()
    may_allow = owner.person.is_operator
    shown = offered(folders, may_allow=may_allow or kind == "folder")
    first = {"id": owner.organization_id or new_id(), "organization": FIRST_ORGANIZATION}
    return dashboard_page(
        request,
        owner.viewer,
        "documentation/project_new.html",
        status=status_of(error) if error is not None else 200,
        kind=kind,
        choices=shown,
        values={**dict.fromkeys(FIELDS, ""), **first, **values, "token": ""},
        problem=_problem(error, may_allow=may_allow),
        folders=folders,
        may_allow=may_allow,
        is_first=owner.is_first,
        read=READ,
        hosts=HOSTS,
        most_mib=MAX_ARCHIVE_BYTES >> 20,
    )


def _problem(error: ServiceError | None, *, may_allow: bool) -> str:
    """Return what went wrong, with what the person can do here."""
    if error is None:
        return ""
    return (
        f"{error} To allow it, tick the box below." if may_allow and error.code == "folder_not_allowed" else str(error)
    )


@routes.get(SETTINGS)
async def show_project(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    site = await site_of(request, viewer.organization_id)
    return await _settings_page(request, viewer, site)


@routes.post(SETTINGS)
async def change_project(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    site = await site_of(request, viewer.organization_id)
    project, values = await _project_of(request, site), await read_form(request)
    try:
        edit = ProjectEdit(
            name=values.get("name"),
            repository=values.get("repository") or None,
            ref=values.get("ref") or None,
            docs_folder=values.get("docs_folder"),
            api_url=values.get("api_url"),
            token=values.get("token") or None,
            labels=_names(values.get("labels")),
            reviewers=_names(values.get("reviewers")),
            contexts=_contexts(values),
            site_url=values.get("site_url"),
        )
        done = await request.app[GUARDED_PROJECTS].change(project.id, edit, metadata(request))
    except ServiceError as error:
        return await _settings_page(request, viewer, site, values, error)
    notice = " ".join(("The project is changed.", *done.warnings))
    await request.app[VIEWS].wait_for(done.position)
    return see_other(request, f"dashboard/{viewer.organization_id}/sites/{site.view.domain}/project", notice=notice)


@routes.post(UPLOAD_PATH)
async def upload_version(request: web.Request) -> web.Response:
    """Import the files of another archive into a project that was made of one."""
    viewer = await member(request, "owner")
    site = await site_of(request, viewer.organization_id)
    project = await _project_of(request, site)
    try:
        async with _uploaded(request, Owner(viewer, viewer.organization_id), {}) as upload:
            done = await request.app[GUARDED_PROJECTS].upload_again(project.id, upload, metadata(request))
            unread = unread_files(upload.unpacked)
    except ServiceError as error:
        response = await _settings_page(request, viewer, site, None, error)
        response.force_close()  # the rest of the archive is not read
        return response
    notice = " ".join((*(done.warnings or ("The new version is uploaded.",)), unread)).strip()
    return see_other(request, f"dashboard/{viewer.organization_id}/sites/{site.view.domain}", notice=notice)


async def _settings_page(
    request: web.Request,
    viewer: Member,
    site: Site,
    values: Mapping[str, str] | None = None,
    error: ServiceError | None = None,
) -> web.Response:
    project = await _project_of(request, site)
    now = {
        "name": project.name,
        "repository": project.repository,
        "ref": project.ref,
        "docs_folder": project.docs_folder,
        "api_url": project.api_url,
        "labels": ", ".join(project.labels),
        "reviewers": ", ".join(project.reviewers),
        "site_url": project.site_url,
    }
    return await site_page(
        request,
        viewer,
        "documentation/project.html",
        site,
        status=status_of(error) if error is not None else 200,
        values={name: (values or {}).get(name, value) for name, value in now.items()},
        contexts=_context_rows(project, values),
        is_upload=project.repository.startswith(UPLOAD),
        most_mib=MAX_ARCHIVE_BYTES >> 20,
        read=READ,
        problem=str(error) if error is not None else "",
    )


async def _project_of(request: web.Request, site: Site) -> ProjectView:
    project = await get_project(request.app[VIEWS], site.view.project_id)
    assert project is not None  # it was created with its site
    return project


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def _contexts(values: Mapping[str, str]) -> tuple[NamedContext, ...] | None:
    """Return the context repositories of a form, which are numbered; None where it has none of their fields. Those
    without name and address are left out.
    """
    rows = [number for number in range(MAX_CONTEXTS + 1) if f"context_name_{number}" in values]
    return tuple(found for number in rows if (found := _context_of(values, number)) is not None) if rows else None


def _context_of(values: Mapping[str, str], number: int) -> NamedContext | None:
    name, repository, ref, token = (
        values.get(f"context_{field}_{number}", "") for field in ("name", "repository", "ref", "token")
    )
    if not name and not repository:
        return None
    return NamedContext(name, repository, ref, values.get(f"context_public_{number}") == "true", token)


def _context_rows(project: ProjectView, values: Mapping[str, str] | None) -> list[ContextRow]:
    """Return the context repositories to show: those of the form, if it was sent, or the project's; and an empty one.

    A token that was entered is never shown again.
    """
    known = {(one.name, one.repository): one for one in project.contexts}
    sent = _contexts(values or {})
    named = project.contexts if sent is None else sent
    rows = [
        ContextRow(one.name, one.repository, one.ref, one.public, _hint(known.get((one.name, one.repository))))
        for one in named
    ]
    return rows if len(rows) >= MAX_CONTEXTS else [*rows, ContextRow()]


def _hint(context: ContextView | None) -> str:
    if context is not None and context.token_id:
        return "The vault keeps one. Enter another to replace it."
    if context is not None and context.token_env:
        return "The operator's settings hold one. Enter another to replace it."
    return "For a private repository. It is kept encrypted, and never shown again."
