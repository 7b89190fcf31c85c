"""``docsmith organization`` and ``docsmith project``."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args
from urllib.parse import urlsplit

import click
from msgspec import to_builtins
from msgspec.structs import asdict, replace

from eventstore import Metadata
from service.cli.output import DONE, Output, table, warning
from service.cli.parsing import PLACE, Choice, Decorator, Group, Options, together
from service.cli.runtime import Runtime
from service.commands.organizations import create_organization
from service.commands.projects import change_project, create_project, repository_from
from service.domain.errors import Invalid, NotFound
from service.domain.projects.contexts import ContextRepository
from service.domain.projects.decider import ChangeProject
from service.domain.projects.settings import CodeHostKind, ProjectSettings
from service.domain.projects.values import domain_from
from service.queries.organizations import get_organization, list_organizations
from service.queries.projects import get_project, list_projects, project_of_domain
from service.queries.read_models import catch_up
from service.queries.sites import get_site
from service.runtime.system import cli_actor, now
from service.views.projects import ContextView, ProjectView
from service.views.sites import SiteView

organization = Group("organization")


project = Group("project")


def _access(default: str | None) -> Decorator:
    """Return the options for the code host's address and for access to it."""
    return together(
        click.option(
            "--api-url",
            default=default,
            metavar="URL",
            help="the address of the code host's API, when it is not the usual one on the repository's server",
        ),
        click.option(
            "--git-token-env",
            default=default,
            metavar="VARIABLE",
            help="the environment variable that holds the token; with _FILE at its end, the name of a file that does",
        ),
        click.option("--github-app-id", default=default, metavar="ID", help="of a GitHub App, instead of a token"),
        click.option(
            "--github-app-key-env",
            default=default,
            metavar="VARIABLE",
            help="the environment variable that holds the App's private key; with _FILE at its end, the name of a file",
        ),
    )


_CONTEXTS = together(
    click.option(
        "--context",
        multiple=True,
        metavar="NAME=URL[#REF]",
        help="a repository that the agent reads beside the documentation, as @NAME/…, and never writes; repeatable",
    ),
    click.option(
        "--context-token-env",
        multiple=True,
        metavar="NAME=VARIABLE",
        help="the environment variable that holds that repository's token; with _FILE at its end, a file's name",
    ),
    click.option(
        "--context-public",
        multiple=True,
        metavar="NAME",
        help="its text may be quoted in pull requests (default: only its paths and lines are named)",
    ),
    click.option(
        "--context-internal",
        multiple=True,
        metavar="NAME",
        help="its server may be on this machine or in a private network",
    ),
)


def _typed_contexts(options: Options, before: Sequence[ContextView] = ()) -> tuple[ContextRepository, ...]:
    """Return the contexts as the options leave them. One that is named again begins without its earlier options.

    Raise Invalid for an option about a context that does not exist.
    """
    contexts = {one.name: ContextRepository(**asdict(one)) for one in before}
    for text in options.context:
        name, url = _assigned(text, "--context", "NAME=URL or NAME=URL#REF")
        address, _, ref = url.partition("#")
        repository = repository_from(address)
        contexts[name] = ContextRepository(name, repository, ref, internal="://" not in repository)
    for text in options.context_token_env:
        name, variable = _assigned(text, "--context-token-env", "NAME=VARIABLE")
        contexts[name] = replace(_named(contexts, name), token_env=variable, token_id="")
    for name in options.context_public:
        contexts[name] = replace(_named(contexts, name), public=True)
    for name in options.context_internal:
        contexts[name] = replace(_named(contexts, name), internal=True)
    for name in getattr(options, "no_context", ()):
        _named(contexts, name)
        del contexts[name]
    return tuple(contexts.values())


def _assigned(text: str, option: str, form: str) -> tuple[str, str]:
    name, is_there, value = text.partition("=")
    if not is_there:
        raise Invalid(f"{option} {text!r} has no =. Write it as {form}.")
    return name, value


def _named(contexts: Mapping[str, ContextRepository], name: str) -> ContextRepository:
    if name not in contexts:
        known = ", ".join(contexts) or "none"
        raise Invalid(
            f"Context repository not found: {name}. The project has: {known}. Add one with --context NAME=URL."
        )
    return contexts[name]


def _typed_access(options: Options) -> dict[str, Any]:
    names = ("api_url", "git_token_env", "github_app_id", "github_app_key_env")
    return {name: getattr(options, name) for name in names}


@organization.command(
    "create", does="create an organization", examples=["organization create --name Acme"], creates_data_folder=True
)
@click.option("--name", required=True, help="what people call it")
async def create_organization_(runtime: Runtime, options: Options, output: Output) -> int:
    created = await create_organization(runtime.store, options.name, Metadata(actor=cli_actor()))
    await catch_up(runtime.views)
    output.result(await get_organization(runtime.views, created.id), f"organization {created.id}")
    return DONE


@organization.command("list", does="list the organizations")
async def list_organizations_(runtime: Runtime, _options: Options, output: Output) -> int:
    rows = await list_organizations(runtime.views)
    output.result({"organizations": rows}, table(("ID", "NAME"), [(row.id, row.name) for row in rows]))
    return DONE


@project.command(
    "create",
    does="create a project",
    more="Pull requests go to the embedded code host, which begins with a copy of the repository (the original is "
    "never changed), or with --code-host to the one that keeps the repository.",
    examples=[
        "project create --name Guide --repository ../guide --domain guide",
        "project create --name Guide --repository https://git.example.com/guide.git --docs docs \\\n"
        "      --git-token-env GUIDE_TOKEN",
        "project create --name Guide --website https://docs.example.com/",
        "project create --name Guide --code-host github --git-token-env GITHUB_TOKEN \\\n"
        "      --repository https://github.com/acme/guide --label docs --reviewer acme/writers",
        "project create --name Guide --code-host github --github-app-id 12345 \\\n"
        "      --github-app-key-env GUIDE_APP_KEY --repository https://github.com/acme/guide",
        "project create --name Guide --code-host gitlab --git-token-env GITLAB_TOKEN \\\n"
        "      --repository https://git.example.com/gitlab/acme/guide.git \\\n"
        "      --api-url https://git.example.com/gitlab/api/v4",
        "project create --name Guide --repository ../guide \\\n"
        "      --context code=https://github.com/acme/kite#v2 --context-public code",
    ],
    one_of=("repository", "website"),
)
@click.option("--name", required=True, help="what people call it")
@click.option("--repository", type=PLACE, metavar="URL_OR_PATH", help="a git repository, or a plain folder")
@click.option(
    "--website",
    metavar="URL",
    help="a live site instead, read by its llms.txt, sitemap.xml or llms-full.txt; it can be asked, not changed",
)
@click.option("--ref", default="", help="the branch to work from (default: the repository's)")
@click.option(
    "--docs", default="", metavar="SUBFOLDER", help="the folder of it that holds the documentation (default: all of it)"
)
@click.option(
    "--domain", metavar="SITE", help="name of its site, a part of addresses, such as guide (default: from the name)"
)
@click.option(
    "--code-host",
    type=Choice([kind for kind in get_args(CodeHostKind) if kind != "website"]),
    default="local",
    help="where pull requests go; gitea is Forgejo, too (default: local, the embedded one)",
)
@_access("")
@click.option("--label", multiple=True, metavar="LABEL", help="for each pull request; repeatable")
@click.option(
    "--reviewer",
    multiple=True,
    metavar="NAME",
    help="whom each pull request asks for a review, a name or organization/team; repeatable",
)
@click.option("--site-url", metavar="URL", default="", help="where its pages are published, so that sources lead there")
@_CONTEXTS
@click.option("--organization", metavar="ID", help="whose it is; needed only when there are several")
async def create_project_(runtime: Runtime, options: Options, output: Output) -> int:
    new = ProjectSettings(
        organization_id=await the_organization(runtime, options.organization),
        name=options.name,
        repository=options.website or repository_from(options.repository),
        ref=options.ref,
        docs_folder=options.docs,
        domain=options.domain or domain_from(options.name),
        code_host="website" if options.website else options.code_host,
        labels=options.label,
        reviewers=options.reviewer,
        contexts=_typed_contexts(options),
        site_url=options.site_url,
        **_typed_access(options),
    )
    created = await create_project(
        runtime.store, runtime.views, runtime.docs, runtime.code_hosts, new, Metadata(actor=cli_actor())
    )
    await catch_up(runtime.views)
    row = await get_project(runtime.views, created.id)
    assert row is not None
    _warn(row, created.warnings)
    output.result(row, f"project {created.id}\nsite {new.domain}")
    return DONE


@project.command(
    "update",
    does="change a project",
    more="What is not named stays. The repository and its code host are asked first, as when a project is made.",
    examples=[
        "project update guide --ref next --docs site/docs",
        "project update guide --repository https://github.com/acme/new-name",
        "project update guide --label docs --label bot --no-reviewers",
        "project update guide --context code=https://git.example.com/kite.git \\\n"
        "      --context-token-env code=KITE_TOKEN --no-context old-code",
    ],
    at_most_one=[("label", "no_labels"), ("reviewer", "no_reviewers")],
)
@click.argument("project", metavar="ID_OR_SITE")
@click.option("--name", help="what people call it")
@click.option("--repository", metavar="URL", help="its new address, where its code host is not the embedded one")
@click.option("--ref", help="the branch to work from")
@click.option("--docs", metavar="SUBFOLDER", help='the folder that holds the documentation; "" for all of it')
@_access(None)
@click.option("--label", multiple=True, metavar="LABEL", help="instead of those so far; repeatable")
@click.option("--no-labels", is_flag=True, help="none from now on")
@click.option("--reviewer", multiple=True, metavar="NAME", help="instead of those so far; repeatable")
@click.option("--no-reviewers", is_flag=True, help="none from now on")
@click.option("--site-url", metavar="URL", help='where its pages are published; "" where that is not known')
@click.option(
    "--max-cost-usd-day",
    type=float,
    metavar="X",
    help="the most that replies may cost in a day; 0: no bound of its own",
)
@_CONTEXTS
@click.option("--no-context", multiple=True, metavar="NAME", help="remove a context repository; repeatable")
async def update_project_(runtime: Runtime, options: Options, output: Output) -> int:
    row = await the_project(runtime, options.project)
    change = ChangeProject(
        now(),
        name=options.name,
        repository=options.repository,
        ref=options.ref,
        docs_folder=options.docs,
        labels=() if options.no_labels else options.label or None,
        reviewers=() if options.no_reviewers else options.reviewer or None,
        contexts=_typed_contexts(options, row.contexts),
        site_url=options.site_url,
        max_cost_usd_day=options.max_cost_usd_day,
        **_typed_access(options),
    )
    changed = await change_project(
        runtime.store, runtime.docs, runtime.code_hosts, row.id, change, Metadata(actor=cli_actor())
    )
    await catch_up(runtime.views)
    after = await get_project(runtime.views, row.id)
    assert after is not None
    _warn(after, changed.warnings)
    output.result(after, "Nothing changed: these settings are in effect already." if after == row else _shown(after))
    return DONE


@project.command("show", does="show all settings of a project")
@click.argument("project", metavar="ID_OR_SITE")
async def show_project_(runtime: Runtime, options: Options, output: Output) -> int:
    row = await the_project(runtime, options.project)
    site = await get_site(runtime.views, row.domain)
    assert site is not None  # it was registered with the project
    output.result({**to_builtins(row), "index": site.view}, _shown(row, _index_of(site.view)))
    return DONE


def _index_of(site: SiteView) -> dict[str, str]:
    """The state of a site's search index, and why it is behind if it is."""
    found = {"indexed": f"{site.indexed_at}, {site.pages:,} pages" if site.indexed_at else "never"}
    if site.public:
        found["access"] = f"public, without a key: docsmith site show {site.domain}"
    if (failure := site.failure) is not None:
        times = f"{failure.times} times in a row, the last time" if failure.times > 1 else "the last time"
        found["behind"] = (
            f"since {site.wanted_at or failure.at}: indexing failed {times} at {failure.at} ({failure.code}):"
            f" {failure.message} To try again at once: docsmith index {site.domain}"
        )
    elif site.index_wanted:
        found["behind"] = f"since {site.wanted_at}: it waits for its turn, or is being read; docsmith health says which"
    return found


def _shown(row: ProjectView, more: Mapping[str, str] = {}) -> str:
    values = {name: _cell(value) for name, value in asdict(row).items()} | dict(more)
    width = max(len(name) for name in values)
    return "\n".join(f"{name.replace('_', ' ').ljust(width)}  {value or '-'}" for name, value in values.items())


def _cell(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    return ", ".join(_shown_context(one) if isinstance(one, ContextView) else one for one in value)


def _shown_context(context: ContextView) -> str:
    marks = [f"token {context.token_env}"] if context.token_env else ["token in the vault"] if context.token_id else []
    marks += ["public"] if context.public else []
    marks += ["internal"] if context.internal else []
    ref = f"#{context.ref}" if context.ref else ""
    notes = f" ({', '.join(marks)})" if marks else ""
    return f"{context.name}={context.repository}{ref}{notes}"


def _warn(row: ProjectView, warnings: Sequence[str]) -> None:
    """Print warnings on standard error, so that ``--json`` still prints one document."""
    has_token = bool(row.git_token_env or row.github_app_id)
    addresses = [*((row.repository, row.api_url) if has_token else ())]
    addresses += [context.repository for context in row.contexts if context.token_env or context.token_id]
    if unencrypted := {url for url in addresses if _is_unencrypted(url)}:
        warning(
            f"The token travels to {' and '.join(sorted(unencrypted))} unencrypted; use https:// if it is available."
        )
    for sentence in warnings:
        warning(sentence)


def _is_unencrypted(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme.lower() == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1")


@project.command("list", does="list the projects")
async def list_projects_(runtime: Runtime, _options: Options, output: Output) -> int:
    rows = await list_projects(runtime.views)
    cells = [(row.id, row.name, row.domain, row.code_host, row.repository, row.ref) for row in rows]
    output.result({"projects": rows}, table(("ID", "NAME", "SITE", "CODE HOST", "REPOSITORY", "REF"), cells))
    return DONE


async def the_organization(runtime: Runtime, named: str | None) -> str:
    """The one that was named, or the only one there is."""
    if named is not None:
        if await get_organization(runtime.views, named) is None:
            raise NotFound(f"Organization not found: {named}. See: docsmith organization list")
        return named
    rows = await list_organizations(runtime.views)
    if not rows:
        raise NotFound("There is no organization yet. Create one: docsmith organization create --name NAME")
    if len(rows) > 1:
        raise Invalid(
            "There are several organizations. Choose one with --organization ID (docsmith organization list)."
        )
    return rows[0].id


async def the_project(runtime: Runtime, named: str | None) -> ProjectView:
    """The one that was named by its id or its site's name, or the only one there is."""
    if named is not None:
        row = await get_project(runtime.views, named) or await project_of_domain(runtime.views, named)
        if row is None:
            raise NotFound(f"Project not found: {named}. See: docsmith project list")
        return row
    rows = await list_projects(runtime.views)
    if not rows:
        raise NotFound("There is no project yet. Create one: docsmith project create --name NAME --repository PATH")
    if len(rows) > 1:
        raise Invalid("There are several projects. Choose one with --project ID_OR_SITE (docsmith project list).")
    return rows[0]
