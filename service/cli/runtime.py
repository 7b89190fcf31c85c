"""The parts that the commands work with: built by the composition root, which alone knows the adapters."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # each of them takes longer to import than a small command runs
    from eventstore import EventStore, Secrets, Views
    from service.domain.model_profiles import ModelProfile
    from service.domain.projects.settings import CodeHostKind
    from service.ports.code_host import HostedPullRequests
    from service.ports.docs_source import DocsSource
    from service.ports.model import Model, Models
    from service.ports.model_provider import KnownModel, ModelProvider
    from service.ports.review_host import ReviewHost
    from service.ports.shared.instances import Instances
    from service.ports.shared.shared_secrets import SharedSecrets
    from service.queries.models import AddedModels
    from service.retrieval.search.meaning import Meaning
    from service.retrieval.search.query import SiteIndexes
    from service.runtime.hosted_place import HostedPlace
    from service.runtime.settings.settings import Settings
    from service.runtime.settings.settings_shown import SettingsReader


class Runtime(Protocol):
    """An open data folder. What a command does not ask for is not built."""

    @property
    def data(self) -> Path: ...
    @property
    def settings(self) -> "Settings": ...
    @property
    def store(self) -> "EventStore": ...
    @property
    def secrets(self) -> "Secrets":
        """The secrets of the vault."""
        ...

    @property
    def shared_secrets(self) -> "SharedSecrets":
        """The secrets of which all instances have the same."""
        ...

    @property
    def views(self) -> "Views": ...
    @property
    def docs(self) -> "DocsSource": ...
    @property
    def code_hosts(self) -> "Mapping[CodeHostKind, ReviewHost]":
        """The code hosts besides the embedded one."""
        ...

    @property
    def hosted(self) -> "HostedPullRequests":
        """The pull requests of the embedded code host."""
        ...

    @property
    def hosted_place(self) -> "HostedPlace": ...
    @property
    def models(self) -> "Models": ...
    @property
    def added(self) -> "AddedModels | None":
        """The models that were added as the folder was opened."""
        ...

    def known_models(self) -> "Sequence[KnownModel]":
        """Return all models that have a name."""
        ...

    @property
    def model_providers(self) -> "Sequence[ModelProvider]":
        """The providers of which a model can be added by name."""
        ...

    def open_model(self, profile: "ModelProfile", key: str = "") -> "AbstractAsyncContextManager[Model]":
        """A model on its own, to be tried. ``key``: one that the vault does not keep."""
        ...

    @property
    def index(self) -> "SiteIndexes": ...
    @property
    def meaning(self) -> "Meaning | None":
        """Search by meaning; None unless the settings name an embedding model."""
        ...

    def join(self) -> "AbstractAsyncContextManager[Instances]":
        """Be an instance of the log, under a name of its own, for as long as the context is open."""
        ...

    async def is_served(self) -> bool:
        """Return whether a service works on the log, by what is known of it: good enough for a hint."""
        ...

    def scratch_docs(self, scratch: Path) -> "DocsSource":
        """``docs`` as seen from a scratch folder, which takes whatever is written."""
        ...


def is_served(data: Path) -> bool:
    """Return whether a service runs on the data folder, by the process id in its lock file. Good enough for a hint: the
    id of a killed one may belong to another process by now, but locking the file could keep a service from starting.
    """
    try:
        os.kill(int((data / "server.lock").read_text().partition("\n")[0]), 0)
    except PermissionError:
        return True  # it belongs to another user
    except (OSError, ValueError):
        return False
    return True


def address_of_server(data: Path) -> str | None:
    """Return where the service listens that has the data folder now, or had it last; None when there was none, or it
    has not listened yet.
    """
    try:
        lines = (data / "server.lock").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return lines[1] if len(lines) > 1 else None


def reachable(url: str) -> str:
    """Return the address of a service as one that can be opened: "any" cannot."""
    scheme, _, rest = url.partition("://")
    for anywhere in ("0.0.0.0", "[::]"):  # noqa: S104  (it is read, not listened on)
        if rest == anywhere or rest.startswith(f"{anywhere}:"):
            return f"{scheme}://localhost{rest.removeprefix(anywhere)}"
    return url


@dataclass(frozen=True)
class Program:
    """The composition root's own functions."""

    open: "Callable[[Path, Settings], AbstractAsyncContextManager[Runtime]]"
    """Open a data folder for a command; works beside a running server. The views are up to date."""
    serve: "Callable[[Path, Settings, SettingsReader, bool], Awaitable[None]]"
    """Until SIGTERM or SIGINT. At SIGHUP the settings are read again, by the function. The last: as a drill."""
    openapi: Callable[[], dict[str, Any]]
    """The API's description, as ``/openapi.json`` serves it."""
    check: "Callable[[Path, Settings], Awaitable[None]]"
    """Raise ServiceError when the parts of the service cannot be built from the settings and the log."""
    find_damages: Callable[[list[Path]], dict[str, str]]
    """What is wrong with which of the hosted repositories, by the names of their folders; it reads all of them."""
    schemas: Mapping[str, Mapping[str, str]]
    """The kinds of tables in the database of the log, and in that of the vault, each with the package of its steps."""
