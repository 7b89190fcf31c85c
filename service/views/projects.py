"""Projects."""

from typing import Annotated

from msgspec import Struct

from service.domain.projects.settings import CodeHostKind
from service.views.fields import Timestamp, described


class ContextView(Struct, frozen=True, rename="camel"):
    """A repository that a project's agent reads, and never writes."""

    name: Annotated[str, described("Its name: to the agent its files are @name/….")]
    repository: Annotated[str, described("The repository's URL, or a folder on the server.")]
    ref: Annotated[str, described("The branch or tag; empty for the branch that it shows by default.")]
    token_env: Annotated[str, described("The environment variable that holds its token; empty for none.")]
    public: Annotated[bool, described("Its text may be quoted in pull requests.")]
    internal: Annotated[bool, described("It may be on this machine, or in a private network.")]
    token_id: Annotated[str, described("The vault's name for its token, which is never shown; empty for none.")]


class ProjectView(Struct, frozen=True, rename="camel"):
    """A documentation repository, its code host and its site."""

    id: Annotated[str, described("The project's id.")]
    organization_id: Annotated[str, described("The organization that owns it.")]
    name: Annotated[str, described("Its name for people.")]
    repository: Annotated[str, described("The repository's URL, or a folder on the server.")]
    ref: Annotated[str, described("The branch that the site shows and jobs start from.")]
    docs_folder: Annotated[str, described("The folder of it that holds the documentation; empty for all of it.")]
    domain: Annotated[str, described("The identifier of its site.")]
    code_host: Annotated[CodeHostKind, described("Where its pull requests are opened.")]
    api_url: Annotated[str, described("Where the code host's API is; empty when where it usually is.")]
    git_token_env: Annotated[str, described("The environment variable that holds the code host's token.")]
    github_app_id: Annotated[str, described("The GitHub App that is used instead of a token.")]
    github_app_key_env: Annotated[str, described("The environment variable that holds the App's private key.")]
    labels: Annotated[tuple[str, ...], described("For each pull request.")]
    reviewers: Annotated[tuple[str, ...], described("The reviewers of each pull request.")]
    contexts: Annotated[tuple[ContextView, ...], described("Its context repositories.")]
    guarded: Annotated[
        bool,
        described("A browser or the API named it: its servers must have public addresses, its folder must be allowed."),
    ]
    token_id: Annotated[str, described("The vault's name for its token, which is never shown; empty for none.")]
    site_url: Annotated[str, described("The address at which its pages are published; empty where it is not known.")]
    max_cost_usd_day: Annotated[
        float, described("The most that replies of its site may cost in a day of UTC; 0: no bound of its own.")
    ]
    follows: Annotated[
        tuple[str, ...],
        described("The names that the repository's default branch has had, the last one now; empty: one was chosen."),
    ]
    created_at: Annotated[Timestamp, described("When it was created.")]
