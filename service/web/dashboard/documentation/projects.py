"""Create a project in a browser, from wherever its documentation is, and change it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Literal, get_args

from aiohttp import BodyPartReader, web
from msgspec import Struct

from service.commands.guarded_projects import NamedContext, NewProject, ProjectEdit
from service.commands.projects import CheckedProject
from service.domain.errors import BodyTooLarge, BodyTooSlow, Invalid, ServiceError, UnsupportedMediaType
from service.domain.projects.settings import CodeHostKind
from service.queries.projects import get_project
from service.queries.sites import Site
from service.runtime.zip_files import MAX_ARCHIVE_BYTES
from service.views.projects import ContextView, ProjectView
from service.web.api.organization.sites import site_of
from service.web.dashboard.page import dashboard_page, see_other
from service.web.http.app_keys import GUARDED_PROJECTS, UPLOADS, VIEWS
from service.web.http.forms import UNREADABLE, read_form
from service.web.http.people import Member, member, metadata
from service.web.http.problems import BODY_SECONDS, status_of

Kind = Literal["upload", "git", "host", "folder", "website"]
NEW = "/dashboard/{organizationId}/projects/new"
SETTINGS = "/dashboard/{organizationId}/sites/{domain}/project"
MAX_FIELD_BYTES = 16_384
"""Limit for a text field of the form with a file."""
MAX_FIELDS = 20
FIELDS = ("name", "repository", "code_host", "ref", "docs_folder", "domain", "api_url")
HOSTS: tuple[CodeHostKind, ...] = ("github", "gitlab", "gitea")

routes = web.RouteTableDef()


class Choice(Struct, frozen=True):
    """A place where documentation may be."""

    label: str
    text: str


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
    )
    try:
        done = await request.app[GUARDED_PROJECTS].create(viewer.organization_id, new, metadata(request))
    except ServiceError as error:
        return _new_page(request, viewer, kind, values, error)
    return await _to_site(request, viewer, done)


async def _create_from_upload(request: web.Request, viewer: Member) -> web.Response:
    values: dict[str, str] = {}
    try:
        try:
            async with asyncio.timeout(request.app[BODY_SECONDS]):
                file = await _file_of(request, values)
        except TimeoutError:
            raise BodyTooSlow from None
        new = NewProject(
            values.get("name", ""), docs_folder=values.get("docs_folder", ""), domain=values.get("domain", "")
        )
        received = request.app[UPLOADS].received(viewer.organization_id, file.filename or "", _pieces(file))
        async with received as upload:
            projects = request.app[GUARDED_PROJECTS]
            done = await projects.create(viewer.organization_id, new, metadata(request), upload=upload)
            left_out = upload.unpacked.left_out_count
    except ServiceError as error:
        response = _new_page(request, viewer, "upload", values, error)
        response.force_close()  # the rest of the archive is not read
        return response
    return await _to_site(
        request, viewer, done, f"{left_out:,} symbolic links or special files were left out." if left_out else ""
    )


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
    except (ValueError, web.RequestPayloadError):
        raise UnsupportedMediaType(UNREADABLE) from None
    raise Invalid("Choose a zip archive.")


async def _pieces(file: BodyPartReader) -> AsyncIterator[bytes]:
    try:
        while piece := await file.read_chunk(1 << 16):
            yield piece
    except (ValueError, web.RequestPayloadError):
        raise Invalid("The archive did not arrive whole. Send it again.") from None


async def _to_site(request: web.Request, viewer: Member, done: CheckedProject, more: str = "") -> web.Response:
    await request.app[VIEWS].wait_for(done.position)
    project = await get_project(request.app[VIEWS], done.id)
    assert project is not None
    notice = " ".join(("The project is created. Its pages are being read now.", more, *done.warnings)).strip()
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
        "project_new.html",
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
            contexts=_contexts(values.get("contexts")),
        )
        done = await request.app[GUARDED_PROJECTS].change(project.id, edit, metadata(request))
    except ServiceError as error:
        return await _settings_page(request, viewer, site, values, error)
    notice = " ".join(("The project is changed.", *done.warnings))
    await request.app[VIEWS].wait_for(done.position)
    return see_other(request, f"dashboard/{viewer.organization_id}/sites/{site.view.domain}/project", notice=notice)


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
        "contexts": "\n".join(_context_line(one) for one in project.contexts),
    }
    return dashboard_page(
        request,
        viewer,
        "project.html",
        status=status_of(error) if error is not None else 200,
        site=site.view,
        project=project,
        values={**now, **(values or {}), "token": ""},
        problem=str(error) if error is not None else "",
    )


async def _project_of(request: web.Request, site: Site) -> ProjectView:
    project = await get_project(request.app[VIEWS], site.view.project_id)
    assert project is not None  # it was created with its site
    return project


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def _context_line(context: ContextView) -> str:
    ref, public = f"#{context.ref}" if context.ref else "", " public" if context.public else ""
    return f"{context.name}={context.repository}{ref}{public}"


def _contexts(text: str | None) -> tuple[NamedContext, ...] | None:
    """Return the contexts of a field with one on each line: ``NAME=URL#REF public``. Raises Invalid."""
    if text is None:
        return None
    found = []
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        name, equals, address = words[0].partition("=")
        if not equals or words[1:] not in ([], ["public"]):
            raise Invalid(f"{line.strip()!r} is not a context repository. Write NAME=URL or NAME=URL#REF on each line.")
        repository, _, ref = address.partition("#")
        found.append(NamedContext(name, repository, ref, words[1:] == ["public"]))
    return tuple(found)
