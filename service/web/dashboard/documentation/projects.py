"""Create a project in a browser, from wherever its documentation is, and change it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Literal, get_args

from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import BadHttpMessage
from msgspec import Struct

from service.commands.guarded_projects import NamedContext, NewProject, ProjectEdit
from service.commands.projects import CheckedProject
from service.domain.errors import BodyTooLarge, BodyTooSlow, Invalid, ServiceError, UnsupportedMediaType
from service.domain.projects.contexts import MAX_CONTEXTS
from service.domain.projects.settings import CodeHostKind
from service.queries.projects import get_project
from service.queries.sites import Site
from service.runtime.uploads import UPLOAD, Upload
from service.runtime.zip_files import MAX_ARCHIVE_BYTES
from service.views.projects import ContextView, ProjectView
from service.web.api.organization.sites import site_of
from service.web.dashboard.page import dashboard_page, see_other
from service.web.http.access.people import Member, member, metadata
from service.web.http.app_keys import GUARDED_PROJECTS, UPLOADS, VIEWS
from service.web.http.forms import UNREADABLE, read_form
from service.web.http.problems import BODY_SECONDS, status_of

Kind = Literal["upload", "git", "host", "folder", "website"]
NEW = "/dashboard/{organizationId}/projects/new"
SETTINGS = "/dashboard/{organizationId}/sites/{domain}/project"
UPLOAD_PATH = SETTINGS + "/upload"
UNREADABLE_PARTS = (ValueError, RuntimeError, BadHttpMessage, web.RequestPayloadError)
"""Raised for a form whose parts are broken; the second for the part that names a charset."""
MAX_FIELD_BYTES = 16_384
"""Limit for a text field of the form with a file."""
MAX_FIELDS = 20
FIELDS = ("name", "repository", "code_host", "ref", "docs_folder", "domain", "api_url", "site_url")
HOSTS: tuple[CodeHostKind, ...] = ("github", "gitlab", "gitea")

routes = web.RouteTableDef()


class Choice(Struct, frozen=True):
    """A place where documentation may be."""

    label: str
    text: str


class ContextRow(Struct, frozen=True):
    """The fields of a context repository."""

    name: str = ""
    repository: str = ""
    ref: str = ""
    public: bool = False
    hint: str = "For a private repository. It is kept encrypted, and never shown again."
    """Says whether it has a token."""


CHOICES: Mapping[Kind, Choice] = {
    "upload": Choice("Upload", "A zip archive from your computer. Pull requests are opened here."),
    "git": Choice("Git address", "Any git repository. It is copied once; pull requests are opened here, not there."),
    "host": Choice("Code host", "GitHub, GitLab, Gitea or Forgejo. Pull requests are opened there."),
    "folder": Choice("Folder", "A folder on the machine of this service. Pull requests are opened here."),
    "website": Choice("Website", "A live site. Readers can ask; the agent cannot change it."),
}


@routes.get(NEW)
async def show_new_project(request: web.Request) -> web.Response:
    viewer = await member(request, "owner")
    return _new_page(request, viewer, _kind_of(request.query.get("from")), {})


@routes.post(NEW)
async def create_project(request: web.Request) -> web.Response:
    """Create a project of the form's fields, or of the archive that the form sends."""
    viewer = await member(request, "owner")
    if request.content_type == "multipart/form-data":
        return await _create_from_upload(request, viewer)
    values = await read_form(request)
    kind = _kind_of(values.get("from"))
    host: CodeHostKind | None = "website" if kind == "website" else "local"
    if kind == "host":
        host = next((one for one in HOSTS if one == values.get("code_host")), None)
    if host is None:
        return _new_page(request, viewer, kind, values, Invalid("Choose the code host."))
    new = NewProject(
        values.get("name", ""),
        values.get("repository", ""),
        code_host=host,
        ref=values.get("ref", ""),
        docs_folder=values.get("docs_folder", ""),
        domain=values.get("domain", ""),
        api_url=values.get("api_url", ""),
        token=values.get("token", ""),
        site_url=values.get("site_url", ""),
    )
    try:
        done = await request.app[GUARDED_PROJECTS].create(viewer.organization_id, new, metadata(request))
    except ServiceError as error:
        return _new_page(request, viewer, kind, values, error)
    return await _to_site(request, viewer, done)


async def _create_from_upload(request: web.Request, viewer: Member) -> web.Response:
    values: dict[str, str] = {}
    try:
        async with _uploaded(request, viewer, values) as upload:
            new = NewProject(
                values.get("name", ""),
                docs_folder=values.get("docs_folder", ""),
                domain=values.get("domain", ""),
                site_url=values.get("site_url", ""),
            )
            projects = request.app[GUARDED_PROJECTS]
            done = await projects.create(viewer.organization_id, new, metadata(request), upload=upload)
            left_out = _left_out(upload)
    except ServiceError as error:
        response = _new_page(request, viewer, "upload", values, error)
        response.force_close()  # the rest of the archive is not read
        return response
    return await _to_site(request, viewer, done, left_out)


@asynccontextmanager
async def _uploaded(request: web.Request, viewer: Member, values: dict[str, str]) -> AsyncIterator[Upload]:
    """Receive a form's archive, once its fields before the file are in ``values``; the files are there until the block
    ends.
    """
    try:
        async with asyncio.timeout(request.app[BODY_SECONDS]):
            file = await _file_of(request, values)
    except TimeoutError:
        raise BodyTooSlow from None
    async with request.app[UPLOADS].received(viewer.organization_id, file.filename or "", _pieces(file)) as upload:
        yield upload


def _left_out(upload: Upload) -> str:
    number = upload.unpacked.left_out_count
    return f"{number:,} symbolic links or special files were not imported." if number else ""


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


async def _to_site(request: web.Request, viewer: Member, done: CheckedProject, more: str = "") -> web.Response:
    await request.app[VIEWS].wait_for(done.position)
    project = await get_project(request.app[VIEWS], done.id)
    assert project is not None
    notice = " ".join(("The project is created.", more, *done.warnings)).strip()
    return see_other(request, f"dashboard/{viewer.organization_id}/sites/{project.domain}", notice=notice)


def _kind_of(text: str | None) -> Kind:
    return next((kind for kind in get_args(Kind) if kind == text), "upload")


def _new_page(
    request: web.Request, viewer: Member, kind: Kind, values: Mapping[str, str], error: ServiceError | None = None
) -> web.Response:
    folders = request.app[GUARDED_PROJECTS].folders
    shown = {name: choice for name, choice in CHOICES.items() if name != "folder" or folders or kind == "folder"}
    return dashboard_page(
        request,
        viewer,
        "documentation/project_new.html",
        status=status_of(error) if error is not None else 200,
        kind=kind,
        choices=shown,
        values={**dict.fromkeys(FIELDS, ""), **values, "token": ""},
        problem=str(error) if error is not None else "",
        folders=folders,
        hosts=HOSTS,
        most_mib=MAX_ARCHIVE_BYTES >> 20,
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
        async with _uploaded(request, viewer, {}) as upload:
            done = await request.app[GUARDED_PROJECTS].upload_again(project.id, upload, metadata(request))
            left_out = _left_out(upload)
    except ServiceError as error:
        response = await _settings_page(request, viewer, site, None, error)
        response.force_close()  # the rest of the archive is not read
        return response
    notice = " ".join((*(done.warnings or ("The new version is uploaded.",)), left_out)).strip()
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
    return dashboard_page(
        request,
        viewer,
        "documentation/project.html",
        status=status_of(error) if error is not None else 200,
        site=site.view,
        project=project,
        values={name: (values or {}).get(name, value) for name, value in now.items()},
        contexts=_context_rows(project, values),
        is_upload=project.repository.startswith(UPLOAD),
        most_mib=MAX_ARCHIVE_BYTES >> 20,
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
