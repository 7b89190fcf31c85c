"""Projects of an organization: list, create and change them; make one of an uploaded archive."""

from collections.abc import AsyncIterator
from typing import Annotated

from aiohttp import web
from msgspec import Meta, Struct
from msgspec.structs import asdict

from service.commands.guarded_projects import NamedContext, NewProject, ProjectEdit
from service.commands.projects import CheckedProject
from service.domain.errors import BodyBroken, NotFound
from service.domain.projects.settings import CodeHostKind
from service.domain.projects.values import public_repository
from service.queries.organizations import get_organization
from service.queries.projects import get_project, list_projects_of
from service.runtime.zip_files import MAX_ARCHIVE_BYTES
from service.views.fields import NextCursor, described
from service.views.organizations import OrganizationView
from service.views.projects import ProjectView
from service.web.api.description.operations import Answer, Parameter, Routes, cursor_parameter, limit_parameter
from service.web.http.access.access import admin_key, project_for
from service.web.http.app_keys import GUARDED_PROJECTS, UPLOADS, VIEWS
from service.web.http.problems import json_response, metadata_of, read_body
from service.web.http.query_params import query_param, text_cursor, whole_param

LISTED, MAX_LISTED = 20, 100
PROJECT_EXAMPLE = {
    "id": "0b9c3d5e7f8a4c1d9e2f3a4b5c6d7e8f",
    "organizationId": "4f2a9c1e6b7d4e0f8a9b0c1d2e3f4a5b",
    "name": "Guide",
    "repository": "https://git.example.com/acme/guide",
    "ref": "main",
    "docsFolder": "docs",
    "domain": "guide",
    "codeHost": "github",
    "apiUrl": "",
    "gitTokenEnv": "",
    "githubAppId": "",
    "githubAppKeyEnv": "",
    "labels": ["docs"],
    "reviewers": [],
    "contexts": [],
    "createdAt": "2026-11-21T09:30:00.000Z",
    "guarded": True,
    "tokenId": "7d6c5b4a39284716a5b4c3d2e1f00918",
    "siteUrl": "https://docs.example.com",
    "maxCostUsdDay": 5.0,
    "follows": [],
}
ORGANIZATION_EXAMPLE = {
    "id": "4f2a9c1e6b7d4e0f8a9b0c1d2e3f4a5b", "name": "Acme", "createdAt": "2026-11-21T09:30:00.000Z"
}  # fmt: skip
CURSOR = cursor_parameter(Annotated[str, Meta(max_length=100)])
LIMIT = limit_parameter(LISTED, MAX_LISTED)

Text = Annotated[str, Meta(max_length=2_000)]
Name = Annotated[str, Meta(max_length=200)]
Names = Annotated[tuple[Name, ...], Meta(max_length=20)]


class ContextRepositoryBody(Struct, frozen=True):
    """A repository that the agent may read."""

    name: Annotated[Name, described("Its name: to the agent its files are @name/….")]
    repository: Annotated[Text, described("Its https:// URL; or, of one that is there already, its address.")]
    ref: Annotated[Name, described("A branch or tag; empty for the branch that it shows by default.")] = ""
    public: Annotated[bool, described("Its text may be quoted in pull requests.")] = False
    token: Annotated[
        str,
        Meta(
            max_length=4_096,
            description="A token for it; kept encrypted, and never shown again. Empty: of one that is there already,"
            " the token stays; another address needs its token again.",
        ),
    ] = ""


class NewProjectBody(Struct, frozen=True, rename="camel"):
    """A project: its repository, its code host and its site."""

    name: Annotated[Name, described("Its name for people.")]
    repository: Annotated[
        Text,
        described(
            "The https:// URL of a git repository or a website, or a folder of the server below its `[network]"
            " local_folders`."
        ),
    ]
    code_host: Annotated[CodeHostKind, described("Where its pull requests are opened; `local`: here.")] = "local"
    ref: Annotated[Name, described("The branch that the site shows; empty: the repository's default.")] = ""
    docs_folder: Annotated[Text, described("The folder that holds the documentation; empty: all of it.")] = ""
    domain: Annotated[Name, described("The identifier of its site; empty: from the name.")] = ""
    api_url: Annotated[Text, described("Where the code host's API is, when it is not where it usually is.")] = ""
    token: Annotated[
        str, Meta(max_length=4_096, description="A token for the repository; kept encrypted, and never shown again.")
    ] = ""
    labels: Annotated[Names, described("For each pull request.")] = ()
    reviewers: Annotated[Names, described("Who is asked to review each pull request.")] = ()
    contexts: Annotated[
        Annotated[tuple[ContextRepositoryBody, ...], Meta(max_length=20)],
        described("Repositories that the agent reads."),
    ] = ()
    site_url: Annotated[
        Text, described("The address at which its pages are published, so that sources lead there.")
    ] = ""


class ProjectBody(Struct, frozen=True, rename="camel"):
    """Changes of a project. What is left out stays as it is."""

    name: Annotated[Name | None, described("Its name for people.")] = None
    repository: Annotated[Text | None, described("Its new https:// URL. It needs the token again.")] = None
    ref: Annotated[Name | None, described("The branch that the site shows.")] = None
    docs_folder: Annotated[Text | None, described("The folder that holds the documentation; empty: all of it.")] = None
    api_url: Annotated[Text | None, described("Where the code host's API is. Another needs the token again.")] = None
    token: Annotated[
        Annotated[str, Meta(max_length=4_096)] | None,
        described("A new token instead of the old one; kept encrypted, and never shown again."),
    ] = None
    labels: Annotated[Names | None, described("For each pull request; instead of those so far.")] = None
    reviewers: Annotated[Names | None, described("Who is asked to review; instead of those so far.")] = None
    contexts: Annotated[
        Annotated[tuple[ContextRepositoryBody, ...], Meta(max_length=20)] | None,
        described("Repositories that the agent reads; all from now on."),
    ] = None
    site_url: Annotated[Text | None, described("The address at which its pages are published; empty: not known.")] = (
        None
    )
    max_cost_usd_day: Annotated[
        Annotated[float, Meta(ge=0, le=1_000_000)] | None,
        described("The most that replies of its site may cost in a day of UTC; 0: no bound of its own."),
    ] = None


class ProjectList(Struct, frozen=True, rename="camel"):
    """Projects of an organization."""

    projects: Annotated[tuple[ProjectView, ...], described("By domain.")]
    next_cursor: NextCursor


class CheckedProjectView(Struct, frozen=True):
    """A project that was created or changed."""

    project: Annotated[ProjectView, described("The project as it is now.")]
    warnings: Annotated[tuple[str, ...], described("What may soon be a problem, in sentences.")]


routes = Routes()
CHECKED_EXAMPLE = {"project": PROJECT_EXAMPLE, "warnings": []}
REFUSALS = {
    400: ("bad_repository", "no_such_repository", "no_such_branch"),
    403: ("folder_not_allowed", "token_missing", "token_refused", "rights_missing"),
    409: ("domain_taken", "repository_moved", "repository_archived", "read_only"),
    503: ("code_host_unavailable",),
}


@routes.operation(
    "GET",
    "/v2/organization",
    "getOrganization",
    "Projects",
    "Get the organization",
    {200: Answer("The organization of the key.", OrganizationView, example=ORGANIZATION_EXAMPLE)},
)
async def show_organization(request: web.Request) -> web.Response:
    key = await admin_key(request)
    found = await get_organization(request.app[VIEWS], key.state.organization_id)
    if found is None:
        raise NotFound("Organization not found. Use a key of an organization that exists.")
    return json_response(found)


@routes.operation(
    "GET",
    "/v2/projects",
    "listProjects",
    "Projects",
    "List projects",
    {200: Answer("By domain.", ProjectList, example={"projects": [PROJECT_EXAMPLE], "nextCursor": None})},
    parameters=(LIMIT, CURSOR),
)
async def show_projects(request: web.Request) -> web.Response:
    key = await admin_key(request)
    limit = whole_param(request, "limit", LISTED, least=1, most=MAX_LISTED)
    after = text_cursor(request)
    rows = await list_projects_of(request.app[VIEWS], key.state.organization_id, after=after, limit=limit + 1)
    shown = tuple(_public(row) for row in rows[:limit])
    return json_response(ProjectList(shown, shown[-1].domain if len(rows) > limit else None))


@routes.operation(
    "POST",
    "/v2/projects",
    "createProject",
    "Projects",
    "Create a project",
    {201: Answer("The project; its site is being indexed.", CheckedProjectView, example=CHECKED_EXAMPLE)},
    description="Its repository and its code host are asked first. Servers must have public addresses, unless the"
    " operator allows others.",
    body=NewProjectBody,
    body_examples={
        "git": {"name": "Guide", "repository": "https://git.example.com/guide.git", "docsFolder": "docs"},
        "code host": {
            "name": "Guide",
            "codeHost": "github",
            "repository": "https://github.com/acme/guide",
            "token": "github_pat_…",
        },
        "website": {"name": "Guide", "codeHost": "website", "repository": "https://docs.example.com/"},
    },
    errors=REFUSALS,
)
async def create_project(request: web.Request) -> web.Response:
    key = await admin_key(request)
    body = await read_body(request, NewProjectBody)
    new = NewProject(**{**asdict(body), "contexts": _contexts(body.contexts)})
    done = await request.app[GUARDED_PROJECTS].create(key.state.organization_id, new, metadata_of(request))
    return json_response(await _checked(request, done), status=201)


@routes.operation(
    "POST",
    "/v2/uploads",
    "uploadProject",
    "Projects",
    "Create a project from a zip archive",
    {201: Answer("The project; its site is being indexed.", CheckedProjectView, example=CHECKED_EXAMPLE)},
    description=f"The body is a zip archive of at most {MAX_ARCHIVE_BYTES >> 20} MiB, sent as it is. Its files"
    " become a repository of the embedded code host. Symbolic links are left out.",
    file="application/octet-stream",
    parameters=(
        Parameter("name", "The project's name for people.", Name, required=True, example="Guide"),
        Parameter("docsFolder", "The folder that holds the documentation; all of it when left out.", Text),
        Parameter("domain", "The name of its site, a part of addresses; from the project's name when left out.", Name),
    ),
    errors={
        400: ("bad_archive", "too_large"),
        408: ("body_too_slow",),
        409: ("domain_taken", "read_only"),
        413: ("body_too_large",),
    },
)
async def upload_project(request: web.Request) -> web.Response:
    key = await admin_key(request)
    new = NewProject(
        query_param(request, "name") or "",
        docs_folder=query_param(request, "docsFolder") or "",
        domain=query_param(request, "domain") or "",
    )
    organization_id = key.state.organization_id
    async with request.app[UPLOADS].received(organization_id, "upload.zip", _pieces(request)) as upload:
        done = await request.app[GUARDED_PROJECTS].create(organization_id, new, metadata_of(request), upload=upload)
    return json_response(await _checked(request, done), status=201)


@routes.operation(
    "POST",
    "/v2/projects/{projectId}/upload",
    "uploadVersion",
    "Projects",
    "Upload a new version of a project's files",
    {200: Answer("The project; its site is being indexed.", CheckedProjectView, example=CHECKED_EXAMPLE)},
    description="For a project that was created from a zip archive: the body is another one, of at most"
    f" {MAX_ARCHIVE_BYTES >> 20} MiB, with all files. Files that it lacks are removed. Changes that were merged here"
    " since the last upload stay; where the archive changes the same file, nothing is imported (`diverged`). Safe to"
    " repeat.",
    file="application/octet-stream",
    errors={
        400: ("bad_archive", "too_large"),
        408: ("body_too_slow",),
        409: ("diverged", "not_uploaded", "read_only"),
        413: ("body_too_large",),
    },
)
async def upload_version(request: web.Request) -> web.Response:
    project = await project_for(request)
    received = request.app[UPLOADS].received(project.organization_id, "upload.zip", _pieces(request))
    async with received as upload:
        done = await request.app[GUARDED_PROJECTS].upload_again(project.id, upload, metadata_of(request))
    return json_response(await _checked(request, done))


@routes.operation(
    "GET",
    "/v2/projects/{projectId}",
    "getProject",
    "Projects",
    "Get a project",
    {200: Answer("The project.", ProjectView, example=PROJECT_EXAMPLE)},
)
async def show_project(request: web.Request) -> web.Response:
    return json_response(_public(await project_for(request)))


@routes.operation(
    "POST",
    "/v2/projects/{projectId}",
    "updateProject",
    "Projects",
    "Change a project",
    {200: Answer("The project as it is now.", CheckedProjectView, example=CHECKED_EXAMPLE)},
    description="What is left out stays. The repository and its code host are asked first.",
    body=ProjectBody,
    body_examples={"folder": {"docsFolder": ""}, "token": {"token": "github_pat_…"}},
    errors=REFUSALS,
)
async def update_project(request: web.Request) -> web.Response:
    project = await project_for(request)
    body = await read_body(request, ProjectBody)
    contexts = None if body.contexts is None else _contexts(body.contexts)
    edit = ProjectEdit(**{**asdict(body), "contexts": contexts})
    done = await request.app[GUARDED_PROJECTS].change(project.id, edit, metadata_of(request))
    return json_response(await _checked(request, done))


def _contexts(bodies: tuple[ContextRepositoryBody, ...]) -> tuple[NamedContext, ...]:
    return tuple(NamedContext(one.name, one.repository, one.ref, one.public, one.token) for one in bodies)


async def _checked(request: web.Request, done: CheckedProject) -> CheckedProjectView:
    views = request.app[VIEWS]
    await views.wait_for(done.position)
    project = await get_project(views, done.id)
    assert project is not None
    return CheckedProjectView(_public(project), done.warnings)


def _public(project: ProjectView) -> ProjectView:
    """Return the project without paths of the server."""
    fields = {**asdict(project), "repository": public_repository(project.repository, project.id)}
    return ProjectView(**fields)


async def _pieces(request: web.Request) -> AsyncIterator[bytes]:
    try:
        async for piece in request.content.iter_any():
            yield piece
    except web.RequestPayloadError:
        raise BodyBroken from None
