"""A project: one documentation repository, its code host, and the domain of its site."""

import re
from datetime import datetime
from typing import Literal, assert_never

from msgspec import Struct

from service.domain.errors import Conflict, Invalid
from service.domain.events import Event
from service.domain.organizations import checked_name

CodeHostKind = Literal["local", "github", "gitlab", "gitea"]

DOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,98}[a-z0-9])?")
"""A domain identifier: a URL path segment that people can read and type."""

MAX_BRANCH_PART_BYTES = 240
"""Of the 255 that file systems allow a name, some are git's: ``.lock``."""


class ProjectCreated(Event, frozen=True, tag="project-created"):
    organization_id: str
    name: str
    repository: str
    """A URL without credentials, or a path on the operator's machine."""
    ref: str
    docs_folder: str
    """Where the documentation is in the repository: ``""`` or ``a/b``."""
    domain: str
    code_host: CodeHostKind
    created_at: datetime
    api_url: str = ""
    git_token_env: str = ""
    """The *name* of the environment variable that holds the token; never the token."""


ProjectEvent = ProjectCreated


class CreateProject(Struct, frozen=True):
    organization_id: str
    name: str
    repository: str
    ref: str
    docs_folder: str
    domain: str
    code_host: CodeHostKind
    now: datetime
    api_url: str = ""
    git_token_env: str = ""


ProjectCommand = CreateProject


class Absent(Struct, frozen=True):
    pass


class Project(Struct, frozen=True):
    organization_id: str
    name: str
    repository: str
    ref: str
    docs_folder: str
    domain: str
    code_host: CodeHostKind
    api_url: str
    git_token_env: str


ProjectState = Absent | Project


def decide(command: ProjectCommand, state: ProjectState) -> list[ProjectEvent]:
    match command, state:
        case CreateProject() as new, Absent():
            return [
                ProjectCreated(
                    organization_id=new.organization_id,
                    name=checked_name(new.name),
                    repository=checked_repository(new.repository),
                    ref=checked_ref(new.ref),
                    docs_folder=checked_folder(new.docs_folder),
                    domain=checked_domain(new.domain),
                    code_host=new.code_host,
                    created_at=new.now,
                    api_url=new.api_url,
                    git_token_env=checked_variable(new.git_token_env),
                )
            ]
        case CreateProject(), Project():
            raise Conflict("This project exists already.")
        case _:
            raise AssertionError(command)


def evolve(_state: ProjectState, event: ProjectEvent) -> ProjectState:
    match event:
        case ProjectCreated() as made:
            return Project(
                made.organization_id, made.name, made.repository, made.ref, made.docs_folder, made.domain,
                made.code_host, made.api_url, made.git_token_env,
            )  # fmt: skip
        case _:
            assert_never(event)


def checked_domain(domain: str) -> str:
    if not DOMAIN.fullmatch(domain):
        raise Invalid("A domain is 1 to 100 lower-case letters, digits, dots and hyphens, such as docs.example.com.")
    return domain


def checked_repository(repository: str) -> str:
    if not repository or len(repository) > 2000 or not repository.isprintable():
        raise Invalid("A repository is a URL or a path.")
    if re.match(r"[a-z+]+://[^/]*@", repository, re.IGNORECASE):
        raise Invalid("Put no credentials into the repository URL; name the variable that holds the token instead.")
    return repository


def checked_folder(folder: str) -> str:
    parts = [part for part in folder.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts or any(part.lower() == ".git" or not part.isprintable() for part in parts):
        raise Invalid("The documentation folder is a path inside the repository.")
    return "/".join(parts)


def checked_ref(ref: str) -> str:
    """A branch name that git accepts (git-check-ref-format(1))."""
    if ref != legal_branch(ref) or len(ref) > 200:
        raise Invalid(f"Git does not accept {ref!r} as the name of a branch.")
    return ref


def checked_variable(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise Invalid("Give the name of an environment variable, not a token.")
    return name


def legal_branch(name: str, *, fallback: str = "docs/update") -> str:
    """The nearest branch name that git accepts, by the rules of git-check-ref-format(1); idempotent.

    Each part of it is a file's name on most servers, and so has at most MAX_BRANCH_PART_BYTES.
    """
    name = re.sub(r"[\x00-\x20\x7f~^:?*\[\\]+|\.\.+|@\{", "-", name[:200])
    parts: list[str] = []
    for part in name.split("/"):
        part = part.encode(errors="ignore")[:MAX_BRANCH_PART_BYTES].decode(errors="ignore")
        part = part.lstrip(".-" if not parts else ".").rstrip(".")
        while part.endswith(".lock"):
            part = part[: -len(".lock")].rstrip(".")
        if part:
            parts.append(part)
    legal = "/".join(parts)
    return fallback if legal in ("", "@", "HEAD") else legal
