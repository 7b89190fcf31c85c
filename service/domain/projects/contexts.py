"""Context repositories: what a project's agent may read besides its documentation, such as the code it describes."""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from service.domain.errors import Invalid
from service.domain.projects.branches import checked_ref
from service.domain.projects.values import checked_repository, checked_variable

MAX_CONTEXTS = 20
"""Each is fetched, or looked at, as a job starts."""

NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,38}[a-z0-9])?")


class ContextRepository(Struct, frozen=True, omit_defaults=True):
    """A repository that the agent reads and never writes. Its files are ``@NAME/…`` to the agent."""

    name: str
    repository: str
    """A URL without credentials, or a path on the operator's machine."""
    ref: str = ""
    """A branch or a tag; empty for the branch that the repository shows by default."""
    token_env: str = ""
    """The *name* of the environment variable that holds the token; never the token."""
    public: bool = False
    """Its text may be quoted where the pull request is read."""
    internal: bool = False
    """The operator at the terminal lets it be on this machine, or in a private network."""
    token_id: str = ""
    """The name under which the vault keeps the token, instead of a variable; never the token."""


def checked_contexts(contexts: Sequence[ContextRepository]) -> tuple[ContextRepository, ...]:
    """Return them in their one form. Raise Invalid, also for two with one name."""
    if len(contexts) > MAX_CONTEXTS:
        raise Invalid(f"A project has at most {MAX_CONTEXTS} context repositories, not {len(contexts)}. Remove some.")
    names = [context.name for context in contexts]
    if twice := [name for name in names if names.count(name) > 1]:
        raise Invalid(f"Two context repositories have the name {twice[0]}. Give each a name of its own.")
    return tuple(_checked(context) for context in contexts)


def _checked(context: ContextRepository) -> ContextRepository:
    name = context.name
    if not NAME.fullmatch(name) or name.endswith(".git"):
        raise Invalid(
            f"The name {name!r} of a context repository is not valid: use 1 to 40 lower-case letters, digits, dots and"
            " hyphens."
        )
    repository = checked_repository(context.repository)
    is_url = urlsplit(repository).scheme.lower() in ("http", "https")
    if not is_url and "://" in repository:
        raise Invalid(
            f"The context repository {name} has the address {repository!r}. Give its https:// URL, or a path."
        )
    if not is_url and not context.internal:
        raise Invalid(
            f"The context repository {name} is a path, which only the operator at the terminal may name. Give its URL."
        )
    if not is_url and (context.token_env or context.token_id):
        raise Invalid(f"The context repository {name} is on this machine and needs no token. Leave its token out.")
    if context.token_env and context.token_id:
        raise Invalid(
            f"The context repository {name} has one token: the variable's, or the one that the vault keeps. Leave one"
            " out."
        )
    ref = checked_ref(context.ref) if context.ref else ""
    return replace(context, repository=repository, ref=ref, token_env=checked_variable(context.token_env))
