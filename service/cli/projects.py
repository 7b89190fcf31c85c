"""``docsmith organization`` and ``docsmith project``."""

import argparse
import re
from pathlib import Path
from typing import Any

from eventstore import Metadata
from service.cli.output import DONE, Output, table
from service.cli.parsing import add_command
from service.cli.runtime import Runtime
from service.domain.errors import Invalid, NotFound
from service.operations import NewProject, create_organization, create_project
from service.projections.organizations import get_organization, list_organizations
from service.projections.projects import get_project, list_projects
from service.system import cli_actor


def add_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    organization = add_command(commands, "organization", "make and list organizations: who owns projects and keys")
    actions = organization.add_subparsers(title="commands", metavar="COMMAND", required=True)
    one = add_command(
        actions, "create", "make an organization", examples=["organization create --name Acme"], parents=[common]
    )
    one.add_argument("--name", required=True, help="what people call it")
    one.set_defaults(command=create_organization_)
    one = add_command(actions, "list", "list the organizations", parents=[common])
    one.set_defaults(command=list_organizations_)

    project = add_command(commands, "project", "make and list projects: a repository, its code host, its site")
    actions = project.add_subparsers(title="commands", metavar="COMMAND", required=True)
    one = add_command(
        actions,
        "create",
        "make a project",
        more=(
            "Pull requests go to the embedded code host, which begins with a copy of the repository; "
            "the original is never changed."
        ),
        examples=[
            "project create --name Guide --repository ../guide --domain guide",
            "project create --name Guide --repository https://git.example.com/guide.git --docs docs \\\n"
            "      --git-token-env GUIDE_TOKEN",
        ],
        parents=[common],
    )
    one.add_argument("--name", required=True, help="what people call it")
    one.add_argument("--repository", required=True, metavar="URL_OR_PATH", help="a git repository, or a plain folder")
    one.add_argument("--ref", default="", help="the branch to work from (default: the repository's)")
    one.add_argument(
        "--docs",
        default="",
        metavar="SUBFOLDER",
        help="the folder of it that holds the documentation (default: all of it)",
    )
    one.add_argument("--domain", help="what the site is called in the assistant's addresses (default: from the name)")
    one.add_argument(
        "--code-host", default="local", choices=("local",), help="where pull requests go (default: %(default)s)"
    )
    one.add_argument(
        "--git-token-env", default="", metavar="VARIABLE", help="the environment variable that holds git's token"
    )
    one.add_argument("--organization", metavar="ID", help="whose it is; needed only when there are several")
    one.set_defaults(command=create_project_)
    one = add_command(actions, "list", "list the projects", parents=[common])
    one.set_defaults(command=list_projects_)


async def create_organization_(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
    created = await create_organization(runtime.store, options.name, Metadata(actor=cli_actor()))
    output.result({"id": created.id, "name": options.name}, f"organization {created.id}")
    return DONE


async def list_organizations_(runtime: Runtime, _options: argparse.Namespace, output: Output) -> int:
    rows = await list_organizations(runtime.views)
    output.result({"organizations": rows}, table(("ID", "NAME"), [(row.id, row.name) for row in rows]))
    return DONE


async def create_project_(runtime: Runtime, options: argparse.Namespace, output: Output) -> int:
    new = NewProject(
        organization_id=await the_organization(runtime, options.organization),
        name=options.name,
        repository=repository_from(options.repository),
        ref=options.ref,
        docs_folder=options.docs,
        domain=options.domain or domain_from(options.name),
        code_host=options.code_host,
        git_token_env=options.git_token_env,
    )
    created = await create_project(runtime.store, runtime.views, runtime.docs, new, Metadata(actor=cli_actor()))
    await runtime.views.catch_up()
    row = await get_project(runtime.views, created.id)
    output.result(row, f"project {created.id}\ndomain {new.domain}")
    return DONE


async def list_projects_(runtime: Runtime, _options: argparse.Namespace, output: Output) -> int:
    rows = await list_projects(runtime.views)
    cells = [(row.id, row.name, row.domain, row.repository, row.ref) for row in rows]
    output.result({"projects": rows}, table(("ID", "NAME", "DOMAIN", "REPOSITORY", "REF"), cells))
    return DONE


async def the_organization(runtime: Runtime, named: str | None) -> str:
    """The one that was named, or the only one there is."""
    if named is not None:
        if await get_organization(runtime.views, named) is None:
            raise NotFound(f"There is no organization {named}; see: docsmith organization list")
        return named
    rows = await list_organizations(runtime.views)
    if not rows:
        raise NotFound("There is no organization yet; make one: docsmith organization create --name NAME")
    if len(rows) > 1:
        raise Invalid("There are several organizations; say whose with --organization ID (docsmith organization list).")
    return rows[0].id


def repository_from(text: str) -> str:
    """A URL as it is; a path made absolute, for the service may run elsewhere."""
    path = Path(text).expanduser()
    return str(path.resolve()) if "://" not in text and path.exists() else text


def domain_from(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:100] or "docs"
