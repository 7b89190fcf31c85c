"""litellm, imported late and tamed.

Facts (1.106, measured): the import takes 2 to 4 s and 150 MB. Without LITELLM_LOCAL_MODEL_COST_MAP it fetches a price
table over the network and waits for it; without LITELLM_MODE=PRODUCTION it loads a ``.env`` file from the current
folder or any parent. Its loggers write prompts at debug level, and on some failures at error level; httpx logs
addresses, which with some providers carry the key.

Attributes of the module are untyped on purpose: mypy would follow a plain import into all of litellm.
"""

import asyncio
import functools
import gc
import importlib
import importlib.util
import logging
import os
import ssl
import sys
import threading
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from msgspec import Struct

_NOISY = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "litellm", "openai", "httpx", "httpcore")

OWN_CLIENTS = 16
"""The most clients that litellm may keep for itself, which it does for providers that do not go through us."""


class Library(Struct, frozen=True):
    module: Any
    """litellm itself."""
    client: Any
    """Its AsyncHTTPHandler over our transport, for the providers whose requests take a client."""
    transport: Any
    """The ``ProviderTransport`` that all of them send through."""
    certificates: ssl.SSLContext | bool
    """As litellm's settings have it: SSL_CERT_FILE, else the ones that come with certifi."""

    async def close_own_clients(self) -> None:
        """Close the clients that litellm has made for itself on this event loop; it makes new ones when it needs them.

        Its own function for that also closes the one that all OpenAI clients share, for good.
        """
        cache = self.module.in_memory_llm_clients_cache
        loop = str(id(asyncio.get_running_loop()))  # by which litellm keeps clients of one loop from another's
        for key, client in list(cache.cache_dict.items()):
            if key.endswith(loop) and isinstance(client, type(self.client)):
                await client.close()
                del cache.cache_dict[key]


_lock = threading.RLock()  # what litellm imports under it may ask for the table of tokens
_library: list[Library] = []
"""None or one. A module is imported once in a process, so what was done to it is remembered here too."""


async def load() -> Library:
    """litellm, imported in a thread if it is not yet: its import must not hold up those who are served."""
    return _library[0] if _library else await asyncio.to_thread(_load)


def _load() -> Library:
    with _lock:
        if not _library:
            _library.append(_tame(_import()))
        return _library[0]


def _import() -> Any:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    _silence()
    return _frozen(("litellm",))[0]


def import_for_calls(*, of_openai: bool) -> None:
    """Import, for a thread, what litellm imports when it is first called. On the event loop that took 0.6 s.

    ``of_openai``: the call goes through OpenAI's client, as those of most providers do.
    """
    with _lock:
        _frozen((*_OF_CALLS, *(_OF_OPENAI if of_openai else ())))


_OF_CALLS = ("anyio._backends._asyncio",)
_OF_OPENAI = ("openai.resources",)


def _frozen(names: Sequence[str]) -> list[Any]:
    """Import modules without collections: while half a million objects came into being, these held the event loop up
    for 250 ms, not 45. What an import makes stays for good, so it is frozen: no later collection walks it again.
    """
    if all(name in sys.modules for name in names):
        return [sys.modules[name] for name in names]
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        modules = [importlib.import_module(name) for name in names]
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()
    return modules


def _silence() -> None:
    for name in _NOISY:
        logger = logging.getLogger(name)
        logger.setLevel(logging.CRITICAL + 1)
        logger.handlers.clear()
        logger.propagate = False


def _do_without_mcp() -> None:
    """Let litellm use the Responses API, which OpenAI's newest models need for tools, where mcp is not installed.

    litellm 1.106 imports its gateway to MCP servers on that path, to ask whether a tool belongs to it; none does here,
    and mcp, a web framework with it, is not among what litellm installs. So the gateway is one that says no.
    """
    if importlib.util.find_spec("mcp") is not None:
        return
    gateway: Any = ModuleType(_GATEWAY)
    gateway.LiteLLM_Proxy_MCP_Handler = _NoGateway
    sys.modules[_GATEWAY] = gateway


_GATEWAY = "litellm.responses.mcp.litellm_proxy_mcp_handler"


class _NoGateway:
    @staticmethod
    def should_use_litellm_mcp_gateway(tools: object) -> bool:  # noqa: ARG004  litellm names it
        return False


def _hand_client_to_responses(client: Any) -> None:
    """Let requests of the Responses API go through our client: litellm 1.106 hands the one it is given on to it only
    where it does not wait for the answer. Else such a request, and a rehearsal of it, goes out past us.
    """
    bridge: Any = importlib.import_module("litellm.completion_extras")
    asks = bridge.responses_api_bridge.transformation_handler
    asks.transform_request = functools.partial(asks.transform_request, client=client)


def _load_encoding_late() -> None:
    """Let litellm load the table by which it counts tokens when it counts the first: that takes 0.5 s and 39 MB.

    litellm 1.106 loads it at its first call, and counts tokens only where it reads an answer itself and the provider
    has not said how many there were.
    """
    module: Any = ModuleType(_ENCODING)
    module.encoding = _LateEncoding()
    sys.modules[_ENCODING] = module


_ENCODING = "litellm.litellm_core_utils.default_encoding"


class _LateEncoding:
    name = "cl100k_base"

    def __getattr__(self, name: str) -> Any:
        return getattr(_encoding(), name)


def _encoding() -> Any:
    """Return the table itself, loaded if need be."""
    with _lock:
        if isinstance(sys.modules[_ENCODING].encoding, _LateEncoding):
            del sys.modules[_ENCODING]
        return _frozen((_ENCODING,))[0].encoding


def _tame(litellm: Any) -> Library:
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.set_verbose = False
    litellm.turn_off_message_logging = True
    litellm.disable_streaming_logging = True
    litellm.disable_hf_tokenizer_download = True  # else a Llama's tokens are counted by a tokenizer from the network
    litellm.num_retries = 0
    litellm.DEFAULT_MAX_RETRIES = 0  # what a call for vectors uses in place of its own 0
    for name in ("callbacks", "input_callback", "success_callback", "failure_callback", "service_callback"):
        setattr(litellm, name, [])
    _silence()  # again: the import has given its loggers handlers
    _do_without_mcp()
    _load_encoding_late()
    vars(litellm.utils).pop("json_data", None)  # 14 MB that nothing reads: a tokenizer's table, once more as a text
    # Said of litellm's types: nothing that an operator could act on, and the second quotes what it is about.
    warnings.filterwarnings("ignore", message="Item '.*' on TypedDict class .* `ReadOnly`", category=UserWarning)
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)
    litellm.in_memory_llm_clients_cache.max_size_in_memory = OWN_CLIENTS

    from service.adapters.models.transport import ProviderTransport  # late as litellm is: it imports httpx

    httpx: Any = importlib.import_module("httpx")
    handler: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
    transport = ProviderTransport(os.environ)
    litellm.aclient_session = httpx.AsyncClient(transport=transport, trust_env=False)  # of all OpenAI clients it makes
    client = handler.AsyncHTTPHandler(transport=transport, follow_redirects=False)
    _hand_client_to_responses(client)
    return Library(
        module=litellm,
        client=client,
        transport=transport,
        certificates=handler.get_ssl_configuration(),
    )
