"""Projects as people in a browser and callers of the API create and change them.

They have no access to this machine, so what they name is bounded where the operator's own word at the terminal is not:

- Servers must have addresses of the public internet (``guarded``), unless the settings allow others.
- Folders are those below ``[network] local_folders``, never the service's own data.
- A token is entered, and kept in the vault. No variable of the service's environment can be named, or it could be sent
  anywhere. For the same reason a project that goes to another address needs its token entered again.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from eventstore import EventStore, EventStoreError, Metadata, OutcomeUnknown, Secrets, Views, load
from service.commands.projects import CheckedProject, CodeHosts, change_project, create_project
from service.domain.errors import Forbidden, Invalid
from service.domain.projects.contexts import ContextRepository
from service.domain.projects.decider import ChangeProject, project_not_found
from service.domain.projects.settings import CodeHostKind, ProjectSettings
from service.domain.projects.values import domain_from
from service.ports.docs_source import DocsSource
from service.runtime.shares import Shares
from service.runtime.system import new_id, now
from service.runtime.uploads import Upload
from service.streams import PROJECTS

MAX_TOKEN_CHARACTERS = 4_096
UNUSED_FOR = timedelta(days=1)
SLOTS, SLOTS_EACH, WAITING_EACH, WAIT_SECONDS = 6, 2, 4, 60.0
"""Projects that are created or changed at a time, whose repositories are copied: of all organizations, of one, and of
one that wait.
"""


def _shares() -> Shares:
    return Shares(SLOTS, (SLOTS_EACH,), waiting=WAITING_EACH, seconds=WAIT_SECONDS, on_refused=lambda: None)


class NamedContext(Struct, frozen=True):
    """A context repository, as people name it."""

    name: str
    repository: str
    ref: str = ""
    public: bool = False


class NewProject(Struct, frozen=True):
    """A project as people enter it."""

    name: str
    repository: str = ""
    """The URL of a git repository or a website, or a folder; empty for an upload."""
    code_host: CodeHostKind = "local"
    ref: str = ""
    docs_folder: str = ""
    domain: str = ""
    """Empty: made of the name."""
    api_url: str = ""
    token: str = ""
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    contexts: tuple[NamedContext, ...] = ()

    def __repr__(self) -> str:
        return f"NewProject({self.name!r}, {self.repository!r})"  # no token in a log or a traceback


class ProjectEdit(Struct, frozen=True):
    """Changes of a project as people enter them; None stays as it is."""

    name: str | None = None
    repository: str | None = None
    ref: str | None = None
    docs_folder: str | None = None
    api_url: str | None = None
    token: str | None = None
    labels: tuple[str, ...] | None = None
    reviewers: tuple[str, ...] | None = None
    contexts: tuple[NamedContext, ...] | None = None

    def __repr__(self) -> str:
        return f"ProjectEdit({self.name!r}, {self.repository!r})"


@dataclass(frozen=True)
class GuardedProjects:
    """See the module. ``folders``: those that may be read."""

    store: EventStore
    views: Views
    docs: DocsSource
    code_hosts: CodeHosts
    secrets: Secrets
    data: Path
    folders: Sequence[str]
    allow_private: bool
    shares: Shares = field(default_factory=_shares)

    async def create(
        self, organization_id: str, new: NewProject, metadata: Metadata, *, upload: Upload | None = None
    ) -> CheckedProject:
        """Create a project of an organization that exists. Raises as ``create_project``, Forbidden and Unavailable."""
        async with self.shares.slot(organization_id):
            return await self._create(organization_id, new, metadata, upload)

    async def _create(
        self, organization_id: str, new: NewProject, metadata: Metadata, upload: Upload | None
    ) -> CheckedProject:
        repository, is_url = (upload.repository, False) if upload is not None else self._checked(new)
        self._require_encrypted(new.token, repository, new.api_url)
        settings = ProjectSettings(
            organization_id=organization_id,
            name=new.name,
            repository=repository,
            ref=new.ref,
            docs_folder=new.docs_folder,
            domain=new.domain or domain_from(new.name),
            code_host=new.code_host,
            api_url=new.api_url,
            labels=new.labels,
            reviewers=new.reviewers,
            contexts=self._contexts(new.contexts, ()),
            guarded=is_url,
        )
        if not new.token:
            return await create_project(self.store, self.views, self.docs, self.code_hosts, settings, metadata)
        async with self._kept(new.token) as token_id:
            settings = replace(settings, token_id=token_id)
            return await create_project(self.store, self.views, self.docs, self.code_hosts, settings, metadata)

    async def change(self, project_id: str, edit: ProjectEdit, metadata: Metadata) -> CheckedProject:
        """Change a project. Raises as ``change_project``, Forbidden and Unavailable."""
        before = await self._settings_of(project_id)
        async with self.shares.slot(before.organization_id):
            return await self._change(project_id, edit, metadata)

    async def _settings_of(self, project_id: str) -> ProjectSettings:
        found = (await load(self.store, PROJECTS, project_id)).state
        if not isinstance(found, ProjectSettings):
            raise project_not_found()
        return found

    async def _change(self, project_id: str, edit: ProjectEdit, metadata: Metadata) -> CheckedProject:
        before = await self._settings_of(project_id)
        change = ChangeProject(
            now(),
            name=edit.name,
            ref=edit.ref,
            docs_folder=edit.docs_folder,
            labels=edit.labels,
            reviewers=edit.reviewers,
            contexts=None if edit.contexts is None else self._contexts(edit.contexts, before.contexts),
        )
        change = self._with_address(change, edit, before)
        if not edit.token:
            return await change_project(self.store, self.docs, self.code_hosts, project_id, change, metadata)
        if before.code_host == "website":
            raise Invalid("A website is read as any visitor reads it, without a token. Leave the token out.")
        repository, api_url = change.repository or before.repository, change.api_url or before.api_url
        self._require_encrypted(edit.token, repository, api_url)
        async with self._kept(edit.token) as token_id:
            change = replace(change, token_id=token_id, git_token_env="", github_app_id="", github_app_key_env="")
            done = await change_project(self.store, self.docs, self.code_hosts, project_id, change, metadata)
        if before.token_id:
            await self._forget(before.token_id)
        return done

    def _with_address(self, change: ChangeProject, edit: ProjectEdit, before: ProjectSettings) -> ChangeProject:
        """Return the change with the addresses that differ; they are guarded, and need the token entered again."""
        repository = edit.repository if edit.repository not in (None, before.repository) else None
        api_url = edit.api_url if edit.api_url not in (None, before.api_url) else None
        if repository is None and api_url is None:
            return change
        if repository is not None:
            _require_url(repository)
        has_token = before.git_token_env or before.github_app_id or before.token_id
        if has_token and not edit.token:
            raise Invalid(
                "Another address needs the token again: the one that is kept was entered for the old address."
            )
        return replace(change, repository=repository, api_url=api_url, guarded=True)

    def _checked(self, new: NewProject) -> tuple[str, bool]:
        """Return the repository, and whether it is a URL. Raise Invalid or Forbidden."""
        text = new.repository.strip()
        if new.code_host != "local" or "://" in text:
            _require_url(text)
            return text, True
        if new.token:
            raise Invalid("A folder needs no token. Leave it out.")
        return str(self._folder(text)), False

    def _folder(self, text: str) -> Path:
        """Return a folder that may be read. Whether others exist is not said."""
        if not self.folders:
            raise Forbidden(
                "No folder of this machine may be read. The operator names those that may in [network] local_folders.",
                code="folder_not_allowed",
            )
        folder, data = Path(text).resolve(), self.data.resolve()
        roots = [Path(root).resolve() for root in self.folders]
        is_inside = any(folder.is_relative_to(root) for root in roots)
        if not is_inside or folder.is_relative_to(data) or data.is_relative_to(folder):
            raise Forbidden(
                f"The folder {text!r} may not be read. Name one below: {', '.join(self.folders)}.",
                code="folder_not_allowed",
            )
        return folder

    def _contexts(
        self, named: Sequence[NamedContext], before: Sequence[ContextRepository]
    ) -> tuple[ContextRepository, ...]:
        """Return the contexts; one that keeps its address keeps what the terminal alone may set."""
        known = {(one.name, one.repository): one for one in before}
        made = []
        for one in named:
            old = known.get((one.name, one.repository))
            if old is None:
                _require_url(one.repository)
                old = ContextRepository(one.name, one.repository)
            made.append(replace(old, ref=one.ref, public=one.public))
        return tuple(made)

    def _require_encrypted(self, token: str, *addresses: str) -> None:
        if not token or self.allow_private:
            return
        for address in addresses:
            if address and urlsplit(address).scheme.lower() != "https":
                raise Invalid(f"A token would travel to {address} unencrypted. Give its https:// URL.")

    async def _keep(self, token: str) -> str:
        """Keep a token in the vault; return its name there. Raise Invalid."""
        token = token.strip()
        if not token or len(token) > MAX_TOKEN_CHARACTERS or not token.isascii() or not token.isprintable():
            raise Invalid("The token is not valid: tokens are printable ASCII characters, without line breaks.")
        if " " in token:
            raise Invalid("The token is not valid: tokens have no spaces.")
        token_id = new_id()
        await self.secrets.keep_secret(token_id, token)
        return token_id

    @asynccontextmanager
    async def _kept(self, token: str) -> AsyncIterator[str]:
        """Keep a token for the block that records it, and give its id; forget it where the block recorded nothing."""
        token_id = await self._keep(token)
        try:
            yield token_id
        except OutcomeUnknown:
            raise
        except BaseException:
            await self._forget(token_id)
            raise

    async def _forget(self, token_id: str) -> None:
        with suppress(EventStoreError):  # a later start forgets it
            await self.secrets.forget_secret(token_id)


async def forget_unused_tokens(secrets: Secrets, used: Sequence[str], now_: datetime) -> None:
    """Forget the tokens that no project uses, which a killed process left.

    Those of the last day stay: another process may be creating the project.
    """
    for name in await secrets.secret_names(before=now_ - UNUSED_FOR):
        if name not in used:
            await secrets.forget_secret(name)


def _require_url(text: str) -> None:
    parts = urlsplit(text)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise Invalid(f"{text!r} is not an https:// URL. Give the address that git clones the repository from.")
