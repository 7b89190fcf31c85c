"""The HTTP proxies that the environment names, with the usual variables (curl(1), "ENVIRONMENT")."""

from collections.abc import Mapping
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed leaves it out


class Proxies:
    """Read once. Names in lower case win over those in upper case, a scheme's own over ``all_proxy``."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._proxies = {
            scheme: proxy
            for scheme in ("http", "https")
            for name in ("all_proxy", f"{scheme}_proxy")
            if (proxy := env.get(name) or env.get(name.upper()))
        }
        self._bypass = {"no": env.get("no_proxy") or env.get("NO_PROXY") or ""}

    def for_host(self, scheme: str, host: str) -> str | None:
        """Return the proxy for a host, or None where it is reached directly."""
        proxy = self._proxies.get(scheme)
        return None if proxy is None or proxy_bypass_environment(host, self._bypass) else proxy
