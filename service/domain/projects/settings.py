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
from service.domain.projects.contexts import ContextRepository, checked_contexts
from service.domain.projects.values import (
    checked_api_url,
    checked_app,
    checked_domain,
    checked_folder,
    checked_label,
    checked_repository,
    checked_reviewer,
    checked_site_url,
    checked_variable,
)

CodeHostKind = Literal["local", "github", "gitlab", "gitea", "website"]

MAX_LABELS = 20
MAX_COST_USD = 1_000_000


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
    contexts: tuple[ContextRepository, ...] = ()
    guarded: bool = False
    """Its servers must have public addresses, and its folder must be allowed: people without access to this machine
    named them.
    """
    token_id: str = ""
    """The name under which the vault keeps the token, instead of a variable; never the token."""
    site_url: str = ""
    """The address at which the site's pages are published, without a slash at its end; empty where it is not known."""
    max_cost_usd_day: float = 0.0
    """The most that replies of its site may cost in a day of UTC, in US dollars; 0 for no bound of its own."""
    follows: tuple[str, ...] = ()
    """The names that the repository's default branch has had, the last one ``ref``; empty where a branch was chosen."""


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
    contexts: tuple[ContextRepository, ...] | None = None
    """All from now on."""
    guarded: bool | None = None
    token_id: str | None = None
    site_url: str | None = None
    max_cost_usd_day: float | None = None
    follows: tuple[str, ...] | None = None


CHANGEABLE = SettingsChange.__struct_fields__[1:]


def changed(settings: ProjectSettings, change: SettingsChange) -> ProjectSettings:
    """Return the settings with the change. Who chooses another branch follows the default one no longer."""
    given = {name: value for name in CHANGEABLE if (value := getattr(change, name)) is not None}
    if change.follows is None and given.get("ref", settings.ref) != settings.ref:
        given["follows"] = ()
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
        contexts=checked_contexts(project.contexts),
        site_url=checked_site_url(project.site_url),
    )
    if not 0 <= project.max_cost_usd_day <= MAX_COST_USD:
        raise Invalid(f"A cost limit is 0 to {MAX_COST_USD:,} US dollars a day; {project.max_cost_usd_day:g} is not.")
    if max(len(project.labels), len(project.reviewers)) > MAX_LABELS:
        raise Invalid(f"A pull request has at most {MAX_LABELS} labels and {MAX_LABELS} reviewers. Leave some out.")
    if bool(project.github_app_id) != bool(project.github_app_key_env):
        raise Invalid("A GitHub App needs both: its id, and the variable that holds its private key.")
    if project.github_app_id and (project.code_host != "github" or project.git_token_env or project.token_id):
        raise Invalid("A GitHub App is for the code host github, and instead of a token.")
    if project.git_token_env and project.token_id:
        raise Invalid("A project has one token: the variable's, or the one that the vault keeps. Leave one out.")
    if project.code_host == "website":
        return _checked_website(project)
    if project.code_host == "local":
        if project.api_url or project.labels or project.reviewers:
            raise Invalid("The embedded code host has no API of its own, no labels and no reviewers.")
        return project
    if not re.match(r"https?://", project.repository, re.IGNORECASE):
        raise Invalid(f"On {project.code_host} a repository is the https:// URL that git clones it from.")
    if not (project.git_token_env or project.github_app_id or project.token_id):
        raise Invalid(f"{project.code_host} needs a token. Name the environment variable that holds it, or enter it.")
    return project


def _checked_website(project: ProjectSettings) -> ProjectSettings:
    """A live site instead of a repository: it can be read, and nothing of it changed."""
    parts = urlsplit(project.repository)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise Invalid("A website is its https:// URL, such as https://docs.example.com/.")
    access = project.api_url or project.git_token_env or project.github_app_id or project.token_id
    if access or project.labels or project.reviewers:
        raise Invalid("A website is read as any visitor reads it: it has no API, no token, no labels and no reviewers.")
    if project.site_url:
        raise Invalid("A website has one address. Leave the address of the site out.")
    if project.contexts:
        raise Invalid("A website is read and never changed: no job could use its context repositories.")
    if project.docs_folder:
        raise Invalid("A website has no folders. Give the address at which its documentation begins.")
    return project
