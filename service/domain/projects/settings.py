"""The settings of a project, and what each may be."""

import re
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from service.domain.errors import Invalid
from service.domain.organizations import checked_name
from service.domain.projects.branches import checked_ref

CodeHostKind = Literal["local", "github", "gitlab", "gitea", "website"]

DOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,98}[a-z0-9])?")
"""A domain identifier: a URL path segment that people can read and type."""

MAX_LABELS = 20


class ProjectSettings(Struct, frozen=True):
    """All that is known of a project. The command that creates it, its state and its row are made of these."""

    organization_id: str
    name: str
    repository: str
    """A URL without credentials, or a path on the operator's machine."""
    ref: str
    docs_folder: str
    """Where the documentation is in the repository: ``""`` or ``a/b``."""
    domain: str
    code_host: CodeHostKind
    api_url: str = ""
    """Where the code host's API is; empty for where it is on such hosts."""
    git_token_env: str = ""
    """The *name* of the environment variable that holds the token; never the token."""
    github_app_id: str = ""
    """A GitHub App's tokens instead of one token."""
    github_app_key_env: str = ""
    """The *name* of the environment variable that holds the App's private key."""
    labels: tuple[str, ...] = ()
    """Labels of each pull request."""
    reviewers: tuple[str, ...] = ()
    """Who is asked to review each pull request: ``name``, or ``organization/team`` where the host has teams."""


class SettingsChange(Struct, frozen=True):
    """The settings that can change; None stays as it is."""

    changed_at: datetime
    name: str | None = None
    repository: str | None = None
    ref: str | None = None
    docs_folder: str | None = None
    api_url: str | None = None
    git_token_env: str | None = None
    github_app_id: str | None = None
    github_app_key_env: str | None = None
    labels: tuple[str, ...] | None = None
    reviewers: tuple[str, ...] | None = None


CHANGEABLE = SettingsChange.__struct_fields__[1:]


def changed(settings: ProjectSettings, change: SettingsChange) -> ProjectSettings:
    """Return the settings with the change."""
    given = {name: value for name in CHANGEABLE if (value := getattr(change, name)) is not None}
    return replace(settings, **given)


def checked(project: ProjectSettings) -> ProjectSettings:
    """With every value in its one form. Raises Invalid, also when they do not go together."""
    project = replace(
        project,
        name=checked_name(project.name),
        repository=checked_repository(project.repository),
        ref=checked_ref(project.ref),
        docs_folder=checked_folder(project.docs_folder),
        domain=checked_domain(project.domain),
        api_url=checked_api_url(project.api_url),
        git_token_env=checked_variable(project.git_token_env),
        github_app_id=checked_app(project.github_app_id),
        github_app_key_env=checked_variable(project.github_app_key_env),
        labels=tuple(dict.fromkeys(checked_label(label) for label in project.labels)),
        reviewers=tuple(dict.fromkeys(checked_reviewer(reviewer) for reviewer in project.reviewers)),
    )
    if max(len(project.labels), len(project.reviewers)) > MAX_LABELS:
        raise Invalid(f"A pull request has at most {MAX_LABELS} labels and {MAX_LABELS} reviewers. Leave some out.")
    if bool(project.github_app_id) != bool(project.github_app_key_env):
        raise Invalid("A GitHub App needs both: its id, and the variable that holds its private key.")
    if project.github_app_id and (project.code_host != "github" or project.git_token_env):
        raise Invalid("A GitHub App is for the code host github, and instead of a token.")
    if project.code_host == "website":
        return _checked_website(project)
    if project.code_host == "local":
        if project.api_url or project.labels or project.reviewers:
            raise Invalid("The embedded code host has no API of its own, no labels and no reviewers.")
        return project
    if not re.match(r"https?://", project.repository, re.IGNORECASE):
        raise Invalid(f"On {project.code_host} a repository is the https:// URL that git clones it from.")
    if not (project.git_token_env or project.github_app_id):
        raise Invalid(f"Name the environment variable that holds a token for {project.code_host}.")
    return project


def _checked_website(project: ProjectSettings) -> ProjectSettings:
    """A live site instead of a repository: it can be read, and nothing of it changed."""
    parts = urlsplit(project.repository)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise Invalid("A website is its https:// URL, such as https://docs.example.com/.")
    if project.api_url or project.git_token_env or project.github_app_id or project.labels or project.reviewers:
        raise Invalid("A website is read as any visitor reads it: it has no API, no token, no labels and no reviewers.")
    if project.docs_folder:
        raise Invalid("A website has no folders. Give the address at which its documentation begins.")
    return project


def checked_domain(domain: str) -> str:
    """Return the domain. Raise Invalid when it is not one."""
    if not DOMAIN.fullmatch(domain):
        raise Invalid("A domain is 1 to 100 lower-case letters, digits, dots and hyphens, such as docs.example.com.")
    return domain


def checked_repository(repository: str) -> str:
    """Return the repository. Raise Invalid when it is no URL or path, or holds credentials."""
    if not repository or len(repository) > 2000 or not repository.isprintable():
        raise Invalid("The repository is not valid: give a URL or a path of at most 2000 printable characters.")
    if re.match(r"[a-z+]+://[^/]*@", repository, re.IGNORECASE):
        raise Invalid("Put no credentials into the repository URL; name the variable that holds the token instead.")
    return repository


def public_repository(repository: str, project_id: str) -> str:
    """Return a repository's address as callers of the API see it: a URL as it is, and for a folder on the server, whose
    path is not theirs to know, where the service itself serves it, below its own address.
    """
    return repository if re.match("https?://", repository, re.IGNORECASE) else f"hosted/{project_id}.git"


def checked_folder(folder: str) -> str:
    """Return the folder as a path without outer slashes. Raise Invalid when it leads out of the repository."""
    parts = [part for part in folder.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts or any(part.lower() == ".git" or not part.isprintable() for part in parts):
        raise Invalid(f"The documentation folder {folder!r} is not valid: give a path inside the repository.")
    return "/".join(parts)


def checked_variable(name: str) -> str:
    """Return the name. Raise Invalid when no environment variable can have it."""
    if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise Invalid("Give the name of an environment variable, not a token.")
    return name


def checked_api_url(url: str) -> str:
    """Return the address without its last slash. Raise Invalid when it is not valid."""
    if not url:
        return ""
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or not url.isprintable() or len(url) > 2000:
        raise Invalid("The address of an API is an https:// URL, such as https://git.example.com/api/v4.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise Invalid("The address of an API has no credentials, no ? and no # in it.")
    return url.rstrip("/")


def checked_app(app_id: str) -> str:
    """Return the number of an App, or its client id: GitHub accepts either. Raise Invalid for others."""
    if app_id and not re.fullmatch(r"[A-Za-z0-9.]{1,40}", app_id):
        raise Invalid("The id of a GitHub App is a number, or begins with Iv; its settings page shows it.")
    return app_id


def checked_label(label: str) -> str:
    """Return the label without outer space. Raise Invalid when it is not one."""
    label = label.strip()
    if not label or len(label) > 100 or not label.isprintable() or "," in label:
        raise Invalid(f"The label {label!r} is not valid: use 1 to 100 printable characters without a comma.")
    return label


def checked_reviewer(name: str) -> str:
    """Return the name without ``@``. Raise Invalid when no account or team can have it."""
    name = name.strip().removeprefix("@")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99})?", name):
        raise Invalid(f"The reviewer {name!r} is not valid: give the name of an account, or organization/team.")
    return name
