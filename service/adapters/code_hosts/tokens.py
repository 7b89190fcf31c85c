"""The token of each project: the one that it names, one of the vault, or one that GitHub gives its App."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

from service.adapters.code_hosts.api_client import ApiClient
from service.adapters.code_hosts.github import InstallationToken, installation_token, repository_address
from service.adapters.code_hosts.named_secrets import secret, token_from
from service.domain.errors import Forbidden
from service.ports.code_host import TOKEN_MISSING, TOKEN_REFUSED
from service.ports.docs_source import Source

RENEW_SECONDS = 600.0
"""Before an installation token expires: what is begun with it may take minutes."""


Kept = Callable[[str], Awaitable[str | None]]
"""A function that returns what the vault keeps under a name."""


class Tokens:
    """For each source the token to use now."""

    def __init__(
        self,
        env: Mapping[str, str],
        client: ApiClient,
        *,
        kept: Kept | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._env, self._client, self._kept, self._now = env, client, kept, now
        self._of_apps: dict[tuple[str, ...], InstallationToken] = {}

    async def token(self, source: Source) -> str:
        """Raises Forbidden, and for an App whatever a ``CodeHost`` raises."""
        if source.token_id:
            return await self._of_vault(source)
        if not source.github_app_id:
            return await asyncio.to_thread(token_from, self._env, source)
        known = self._of_apps.get(_key(source))
        if known is None or known.expires_at.timestamp() - self._now() < RENEW_SECONDS:
            known = await self._of_app(source)
            self._of_apps[_key(source)] = known
        return known.token

    async def _of_vault(self, source: Source) -> str:
        token = await self._kept(source.token_id) if self._kept is not None else None
        if token is None:
            raise Forbidden(
                f"The vault has no token for {source.repository} any more. Enter it again.", code=TOKEN_MISSING
            )
        return token

    def forget(self, source: Source) -> None:
        """The code host refused it: the next one is a new one."""
        self._of_apps.pop(_key(source), None)

    async def _of_app(self, source: Source) -> InstallationToken:
        key = await asyncio.to_thread(
            secret, self._env, source.github_app_key_env, f"the private key of the GitHub App {source.github_app_id}"
        )
        jwt = await asyncio.to_thread(_signed, source.github_app_id, key, source.github_app_key_env)
        place = repository_address(source.repository, source.api_url)
        return await self._client.run(installation_token(place, source.github_app_id, jwt))


def _key(source: Source) -> tuple[str, ...]:
    return source.repository, source.api_url, source.github_app_id, source.github_app_key_env


def _signed(app_id: str, key: str, variable: str) -> str:
    from gidgethub.apps import get_jwt  # late: 90 ms, for PyJWT
    from jwt import PyJWTError

    try:
        return get_jwt(app_id=app_id, private_key=key.replace("\\n", "\n"))  # many secret stores keep one line
    except (PyJWTError, ValueError, TypeError):
        raise Forbidden(
            f"The variable {variable} does not hold the private key of a GitHub App, as GitHub gives it (PEM).",
            code=TOKEN_REFUSED,
        ) from None
