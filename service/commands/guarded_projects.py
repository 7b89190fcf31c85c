"""Projects as people in a browser and callers of the API create and change them.

They have no access to this machine, so what they name is bounded where the operator's own word at the terminal is not:

- Servers must have addresses of the public internet (``guarded``), unless the settings, or an operator who creates the
  project, allow others.
- Folders are those below ``[network] local_folders`` and those that an operator has allowed, never the service's own
  data.
- A token is entered, and kept in the vault. No variable of the service's environment can be named, or it could be sent
  anywhere. For the same reason a project that goes to another address needs its token entered again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from eventstore import EventStore, EventStoreError, Metadata, OutcomeUnknown, Secrets, Views, load
from service.commands.allowed_folders import allowed_folders
from service.commands.projects import CheckedProject, CodeHosts, change_project, create_project
from service.commands.sites import request_index
from service.domain.access.usage import Api
from service.domain.errors import Conflict, Forbidden, Invalid
from service.domain.projects.contexts import ContextRepository
from service.domain.projects.decider import ChangeProject, project_not_found
from service.domain.projects.settings import CodeHostKind, ProjectSettings, changed
from service.domain.projects.values import domain_from, name_from
from service.ports.docs_source import DocsSource
from service.ports.shared.shared_secrets import PREFIX
from service.queries.projects import project_of_domain, source_from
from service.runtime.sample import sample_folder
from service.runtime.shares import Shares
from service.runtime.system import new_id, now
from service.runtime.uploads import UPLOAD, Upload
from service.streams import PROJECTS

MAX_TOKEN_CHARACTERS = 4_096
UNUSED_FOR = timedelta(days=1)
SAMPLE, MAX_SAMPLES = "Docsmith manual", 1_000
SLOTS, SLOTS_EACH, WAITING_EACH, WAIT_SECONDS = 6, 2, 4, 60.0
"""Projects that are created or changed at a time, whose repositories are copied: of all organizations, of one, and of
one that wait.
"""


def _shares() -> Shares:
    return Shares(SLOTS, (SLOTS_EACH,), waiting=WAITING_EACH, seconds=WAIT_SECONDS, on_refused=lambda: None)


async def _accept(_api: Api, _organization_id: str, _metadata: Metadata) -> None:
    """Nothing is limited."""


class NamedContext(Struct, frozen=True):
    """A context repository, as people name it."""

    name: str
    repository: str
    ref: str = ""
    public: bool = False
    token: str = ""
    """Empty: the token that one with this name and address has stays."""

    def __repr__(self) -> str:
        return f"NamedContext({self.name!r}, {self.repository!r})"  # no token in a log or a traceback


class NewProject(Struct, frozen=True):
    """A project as people enter it."""

    name: str = ""
    """Empty: made of the repository."""
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
    site_url: str = ""

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
    site_url: str | None = None
    max_cost_usd_day: float | None = None

    def __repr__(self) -> str:
        return f"ProjectEdit({self.name!r}, {self.repository!r})"


@dataclass(frozen=True)
class GuardedProjects:
    """See the module. ``folders``: those that the settings allow."""

    store: EventStore
    views: Views
    docs: DocsSource
    code_hosts: CodeHosts
    secrets: Secrets
    data: Path
    folders: Sequence[str]
    allow_private: bool
    shares: Shares = field(default_factory=_shares)
    accept: Callable[[Api, str, Metadata], Awaitable[None]] = _accept
    """Counts what an organization is about to create; raises RateLimited."""

    async def allowed(self) -> Sequence[str]:
        """Return the folders that projects may be made of, with what is below them."""
        return tuple(dict.fromkeys((*self.folders, *await allowed_folders(self.store))))

    async def create(
        self,
        organization_id: str,
        new: NewProject,
        metadata: Metadata,
        *,
        upload: Upload | None = None,
        may_be_private: bool = False,
    ) -> CheckedProject:
        """Create a project of an organization that exists. ``may_be_private``: an operator says that its server may
        have a private address. Raises as ``create_project``, Forbidden and Unavailable.
        """
        async with self._slot(organization_id, metadata):
            repository, is_url = (upload.repository, False) if upload is not None else await self._checked(new)
            if not may_be_private:
                self._require_encrypted(new.token, repository, new.api_url)
            guarded = upload is None and not (is_url and may_be_private)
            return await self._create(organization_id, new, repository, metadata, guarded=guarded)

    async def create_sample(self, organization_id: str, metadata: Metadata) -> CheckedProject:
        """Create a project of the sample documentation, by the first name that is free. Raises as ``create``."""
        folder = str((await asyncio.to_thread(sample_folder, self.data)).resolve())
        for number in range(1, MAX_SAMPLES + 1):
            name = SAMPLE if number == 1 else f"{SAMPLE} {number}"
            if await project_of_domain(self.views, domain_from(name)) is None:
                break
        async with self._slot(organization_id, metadata):
            return await self._create(organization_id, NewProject(name), folder, metadata, guarded=False)

    @asynccontextmanager
    async def _slot(self, organization_id: str, metadata: Metadata) -> AsyncIterator[None]:
        """Wait for a place to create a project, and count that."""
        async with self.shares.slot(organization_id):
            await self.accept("projects", organization_id, metadata)
            yield

    async def _create(
        self, organization_id: str, new: NewProject, repository: str, metadata: Metadata, *, guarded: bool
    ) -> CheckedProject:
        name = new.name or name_from(repository)
        settings = ProjectSettings(
            organization_id=organization_id,
            name=name,
            repository=repository,
            ref=new.ref,
            docs_folder=new.docs_folder,
            domain=new.domain or domain_from(name),
            code_host=new.code_host,
            api_url=new.api_url,
            labels=new.labels,
            reviewers=new.reviewers,
            guarded=guarded,
            site_url=new.site_url,
        )
        async with self._kept(new.token, *(one.token for one in new.contexts)) as (token_id, *of_contexts):
            contexts = self._contexts(new.contexts, of_contexts, ())
            settings = replace(settings, token_id=token_id, contexts=contexts)
            return await create_project(self.store, self.views, self.docs, self.code_hosts, settings, metadata)

    async def change(self, project_id: str, edit: ProjectEdit, metadata: Metadata) -> CheckedProject:
        """Change a project. Raises as ``change_project``, Forbidden and Unavailable."""
        before = await self._settings_of(project_id)
        async with self.shares.slot(before.organization_id):
            return await self._change(project_id, edit, metadata)

    async def upload_again(self, project_id: str, upload: Upload, metadata: Metadata) -> CheckedProject:
        """Import the files of an upload into a project that was made of one, and index its site again. What was merged
        here meanwhile stays. Safe to repeat.

        Raises NotFound, Unavailable, and Conflict: the project was made of something else, or a file was changed in
        the upload and here (``diverged``).
        """
        before = await self._settings_of(project_id)
        if not before.repository.startswith(UPLOAD):
            raise Conflict(
                f"The project {before.name} was not made of an upload. Change the repository that it was made from.",
                code="not_uploaded",
            )
        async with self.shares.slot(before.organization_id):
            source = replace(source_from(project_id, before), repository=upload.repository)
            is_new = await self.docs.refresh(source)
            # Always: a process that was killed after the import has requested none.
            position = await request_index(self.store, before.domain, "new files were uploaded", metadata)
        unchanged = "The upload has the same files as the last one: nothing was imported."
        return CheckedProject(project_id, position, () if is_new else (unchanged,))

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
            site_url=edit.site_url,
            max_cost_usd_day=edit.max_cost_usd_day,
        )
        change = self._with_address(change, edit, before)
        if edit.token and before.code_host == "website":
            raise Invalid("A website is read as any visitor reads it, without a token. Leave the token out.")
        repository, api_url = change.repository or before.repository, change.api_url or before.api_url
        self._require_encrypted(edit.token or "", repository, api_url)
        named = edit.contexts or ()
        async with self._kept(edit.token or "", *(one.token for one in named)) as (token_id, *of_contexts):
            if token_id:
                # With the addresses that it was entered for: someone else may change them meanwhile.
                change = replace(
                    change, repository=repository, api_url=api_url, token_id=token_id, git_token_env="",
                    github_app_id="", github_app_key_env="",
                )  # fmt: skip
            if edit.contexts is not None:
                change = replace(change, contexts=self._contexts(named, of_contexts, before.contexts))
            done = await change_project(self.store, self.docs, self.code_hosts, project_id, change, metadata)
        for unused in _tokens_of(before) - _tokens_of(changed(before, change)):
            await self._forget(unused)
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

    async def _checked(self, new: NewProject) -> tuple[str, bool]:
        """Return the repository, and whether it is a URL. Raise Invalid or Forbidden."""
        text = new.repository.strip()
        if new.code_host != "local" or "://" in text:
            _require_url(text)
            return text, True
        if new.token:
            raise Invalid("A folder needs no token. Leave it out.")
        return str(self._folder(text, await self.allowed())), False

    def _folder(self, text: str, allowed: Sequence[str]) -> Path:
        """Return a folder that may be read. Whether others exist is not said."""
        if not allowed:
            raise Forbidden(
                "No folder of this machine may be read. An operator allows those that may, on the page New project or "
                "in [network] local_folders.",
                code="folder_not_allowed",
            )
        folder, data = Path(text).resolve(), self.data.resolve()
        roots = [Path(root).resolve() for root in allowed]
        is_inside = any(folder.is_relative_to(root) for root in roots)
        if not is_inside or folder.is_relative_to(data) or data.is_relative_to(folder):
            raise Forbidden(
                f"The folder {text!r} may not be read. Name one below: {', '.join(allowed)}.",
                code="folder_not_allowed",
            )
        return folder

    def _contexts(
        self, named: Sequence[NamedContext], token_ids: Sequence[str], before: Sequence[ContextRepository]
    ) -> tuple[ContextRepository, ...]:
        """Return the contexts; one that keeps its address keeps its token, and what the terminal alone may set."""
        known = {(one.name, one.repository): one for one in before}
        made = []
        for one, token_id in zip(named, token_ids, strict=True):
            old = known.get((one.name, one.repository))
            if old is None:
                _require_url(one.repository)
                old = ContextRepository(one.name, one.repository)
            if "://" in one.repository:
                self._require_encrypted(one.token, one.repository)
            new = replace(old, ref=one.ref, public=one.public)
            made.append(replace(new, token_id=token_id, token_env="") if token_id else new)
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
    async def _kept(self, *tokens: str) -> AsyncIterator[list[str]]:
        """Keep tokens for the block that records them, and give the id of each; empty for an empty one. Forget them
        where the block recorded nothing.
        """
        ids: list[str] = []
        try:
            for token in tokens:
                ids.append(await self._keep(token) if token else "")  # noqa: PERF401  (those so far are forgotten)
            yield ids
        except OutcomeUnknown:
            raise
        except BaseException:
            for token_id in filter(None, ids):
                await self._forget(token_id)
            raise

    async def _forget(self, token_id: str) -> None:
        with suppress(EventStoreError):  # a later start forgets it
            await self.secrets.forget_secret(token_id)


async def forget_unused_tokens(secrets: Secrets, used: Collection[str], now_: datetime) -> None:
    """Forget the tokens that no project uses, which a killed process left.

    Those of the last day stay: another process may be creating the project.
    """
    for name in await secrets.secret_names(before=now_ - UNUSED_FOR):
        if name not in used and not name.startswith(PREFIX):
            await secrets.forget_secret(name)


def _tokens_of(project: ProjectSettings) -> set[str]:
    return {project.token_id, *(one.token_id for one in project.contexts)} - {""}


def _require_url(text: str) -> None:
    try:
        parts = urlsplit(text)
        is_url = parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
    except ValueError:  # brackets that hold no address
        is_url = False
    if not is_url:
        raise Invalid(f"{text!r} is not an https:// URL. Give the address that git clones the repository from.")
