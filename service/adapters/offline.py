"""The ports of a drill: what is on this machine works, and nothing reaches another one."""

from collections.abc import Awaitable, Callable
from typing import Protocol, cast

from service.domain.errors import Forbidden
from service.domain.projects.settings import CodeHostKind
from service.ports.docs_source import DocsSource, Source
from service.ports.review_host import ReviewHost
from service.runtime.uploads import UPLOAD

REMOTE_KINDS: tuple[CodeHostKind, ...] = ("github", "gitlab", "gitea")


def offline_docs(docs: DocsSource) -> DocsSource:
    return cast("DocsSource", _Offline(docs))


def offline_code_hosts() -> dict[CodeHostKind, ReviewHost]:
    return {kind: cast("ReviewHost", _Offline(None)) for kind in REMOTE_KINDS}


class _Method(Protocol):
    def __call__(self, source: Source, *args: object, **named: object) -> Awaitable[object]: ...


class _Offline:
    """A port whose methods are coroutine functions that take the source first: ``DocsSource``, ``CodeHost``."""

    def __init__(self, port: object) -> None:
        self._port = port

    def __getattr__(self, operation: str) -> Callable[..., Awaitable[object]]:
        async def offline(source: Source, *args: object, **named: object) -> object:
            if source.code_host != "local":
                raise _drill(source)
            is_elsewhere = "://" in source.repository and not source.repository.startswith(UPLOAD)
            if is_elsewhere:  # the embedded code host's own is here; what it was made from is not
                if operation == "refresh":
                    return False
                if operation in ("register", "default_branch"):
                    raise _drill(source)
            method: _Method = getattr(self._port, operation)
            return await method(source, *args, **named)

        return offline


def _drill(source: Source) -> Forbidden:
    return Forbidden(
        f"This is a drill, in which nothing leaves the machine: {source.repository} is not asked.", code="drill"
    )
