"""Model over litellm, for every provider that it knows.

litellm knows how each provider wants to be asked: names, keys, addresses, parameters, prices, kinds of failure. It
builds and makes the request. What comes back in one of OpenAI's two forms or in Anthropic's, which is nearly all, is
read here (``streams``, ``responses``), for its own reader costs twenty times the CPU; any other stream is read through
litellm.

Importing this module imports nothing of litellm (``model_library``).
"""

import asyncio
import hashlib
import math
import random
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from service.adapters.models.capabilities import PartRefused, arranged, is_used
from service.adapters.models.errors import Retries, address_of, error_of
from service.adapters.models.exchange import (
    EXCHANGE,
    Exchange,
    Outgoing,
    Protocol,
    open_session,
    protocol_of,
    wants_stream,
)
from service.adapters.models.failures import MODEL_KEY_REFUSED, MODEL_REFUSED_REQUEST, ContentRefused
from service.adapters.models.library import Library, import_for_calls, load
from service.adapters.models.memory import packed
from service.adapters.models.messages import continued, in_openai_form, mark_for_cache
from service.adapters.models.model_settings import ModelSettings
from service.adapters.models.parameters import chosen_parameters
from service.adapters.models.patterns import Patterns, RequestPattern, kind_of, pattern_of, rehearsals_of
from service.adapters.models.responses import ResponsesReader
from service.adapters.models.sources import LitellmSource, ProviderSource, Source, failure_of
from service.adapters.models.streams import (
    ChatCompletionsReader,
    Ending,
    MessagesReader,
    StreamReader,
    Tokens,
)
from service.adapters.redaction import secrets_of
from service.domain.errors import Forbidden, Invalid, ServiceError
from service.domain.model import Usage
from service.domain.model_capabilities import Capability
from service.domain.texts.tokens import estimated
from service.ports.capabilities import Capabilities, LearnedHere
from service.ports.model import (
    MODEL_TAKES_NO_TOOLS,
    ModelChunk,
    ModelEnd,
    ModelRequest,
    ModelText,
    ModelWaiting,
    Price,
    SystemMessage,
    UserMessage,
    without_prompt,
)

NOTICED_SECONDS = 1.0
"""A shorter wait is not worth a word."""

USUAL_WINDOW_TOKENS = 100_000
"""Context window of a model that litellm's table does not know."""


_OLLAMA = ("ollama", "ollama_chat")
_OLLAMA_WINDOW_TOKENS = 32_768
"""The window that is sent with each request to Ollama, whose default is 4,096; it silently cuts what is longer. A large
window needs memory there.
"""


# Providers whose requests litellm makes through a client that can be handed in (1.106: those of its
# base_llm_http_handler, and Anthropic and Gemini); those of the OpenAI client all use the one of model_library. Any
# other provider uses litellm's own clients and is read through litellm.
_TAKE_A_CLIENT = frozenset(
    {
        "anthropic",
        "cohere",
        "cohere_chat",
        "databricks",
        "deepseek",
        "fireworks_ai",
        "gemini",
        "groq",
        "hosted_vllm",
        "huggingface",
        "mistral",
        "ollama",
        "ollama_chat",
        "openrouter",
        "ovhcloud",
        "together_ai",
        "vercel_ai_gateway",
        "vertex_ai",
        "xai",
    }
)

_NO_KEY = "none"
"""OpenAI's client insists on a key; servers without keys ignore it."""

_SCHEMA_TOOL = "json_tool_call"
"""litellm's name for the tool that stands for a schema."""

CHARACTERS_PER_TOKEN = 4
"""For the few providers that do not count: a budget by an estimate is better than none."""


class LitellmModel:
    """One model of one provider. ``sleep``, ``clock`` and ``jitter`` are for tests."""

    def __init__(
        self,
        spec: ModelSettings,
        *,
        env: Mapping[str, str],
        retries: Retries = Retries(),  # noqa: B008  frozen
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        capabilities: Capabilities | None = None,
    ) -> None:
        self._spec = spec
        self._env = env
        self._retries = retries
        self._sleep, self._clock, self._jitter = sleep, clock, jitter
        self._session: aiohttp.ClientSession | None = None
        self._facts: _Facts | None = None
        self._patterns = Patterns()
        self._capabilities = LearnedHere() if capabilities is None else capabilities
        self._refuses_prefill = False
        """Whether its provider has refused to go on with a prefilled message, whatever litellm's table says."""
        self._server_id: str | None = None
        self._refused, self._accepted = spec.refused_parts, spec.accepted_parts
        """As the settings say."""
        self._used_own_clients = False
        """Whether a request went past us, through a client of litellm's own."""

    @property
    def name(self) -> str:
        return self._spec.model

    @property
    def settings(self) -> ModelSettings:
        return self._spec

    @property
    def key_is_missing(self) -> bool:
        """Return whether the settings name a variable for the key that is not set."""
        return bool(self._spec.api_key_env) and not self._env.get(self._spec.api_key_env)

    async def window_tokens(self) -> int | None:
        """Return the window of the settings, else of litellm's table."""
        return self._spec.context_tokens or (await self._learn(await load())).window_tokens

    async def price(self) -> Price | None:
        """Return the price of the settings, else of litellm's table."""
        spec = self._spec
        if spec.input_usd_per_million_tokens is not None and spec.output_usd_per_million_tokens is not None:
            return Price(spec.input_usd_per_million_tokens, spec.output_usd_per_million_tokens)
        return (await self._learn(await load())).price

    async def prepare(self) -> None:
        """Import litellm and rehearse a call without network, so that the first real one is as fast as the next.

        Raises:
            NotFound: litellm knows no provider for the model (``code`` ``unknown_model``).
        """
        library = await load()
        facts = await self._learn(library)
        if self.key_is_missing:
            return
        request = ModelRequest(messages=(SystemMessage("Rehearse."), UserMessage("Say nothing.")))
        exchange = Exchange(None, first_token_timeout_seconds=self._spec.first_token_timeout_seconds)
        # Through us, everything but the network is rehearsed; litellm's own way to answer without it stops earlier.
        more = {} if facts.speaks_through_us else {"mock_response": "Nothing."}
        stream = await self._ask(library, facts, request, exchange, frozenset(), **more)
        await stream.aclose()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._used_own_clients:
            await (await load()).close_own_clients()

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelChunk, None]:
        began, tried, prompt = self._clock(), 0, sum(len(message.text) for message in request.messages)
        trying: list[Capability] = []
        while True:
            tried += 1
            has_begun = False
            try:
                library, facts = await self._ready_for(request)
                refused = await self.refused(facts) | set(trying)
                if request.tools and "tools" in refused:
                    raise self._takes_no_tools()
                exchange = Exchange(
                    self._open_session(library), first_token_timeout_seconds=self._spec.first_token_timeout_seconds
                )
                source: Source | None = None
                ending: Ending | None = None
                written, output = 0, 0.0
                try:
                    source = await self._source(library, facts, request, exchange, refused)
                    # No generator of its own: each one that a piece goes through costs about as much as reading it.
                    while (texts := await source.read()) is not None:
                        if request.is_cut:
                            output += sum(map(estimated, texts))
                            all_output = output + source.hidden_characters / CHARACTERS_PER_TOKEN
                            if all_output > request.max_output_tokens:
                                for text in texts:
                                    yield ModelText(text)
                                ending = _cut(source.tokens(), prompt, all_output)
                                break
                        if has_begun and request.on_text is not None:
                            text = "".join(texts)
                            if request.on_text(text):
                                written += len(text)
                                continue
                        if not has_begun and texts:
                            has_begun, request = True, without_prompt(request)
                        for text in texts:
                            written += len(text)
                            yield ModelText(text)
                    if ending is None:
                        ending = await source.ending()
                except ContentRefused:
                    ending = Ending("refused", (), Tokens(0, 0), "")
                finally:
                    if source is not None:
                        if ending is None and source.has_begun:
                            used = source.tokens() or _estimate(prompt, written)
                            self._report_usage(library, facts, request, used)
                        await source.close()
                    exchange.close()
                for capability in trying:
                    await self._capabilities.learn(self._server(facts), capability, **self._place())
                if request.output_schema is not None and (document := _document_of(ending)):
                    yield ModelText(document)
                    ending = replace(ending, reason="stop", tool_calls=())
                yield await self._end(library, facts, ending, _estimate(prompt, written))
                return
            except ServiceError as caught:
                error = caught
                if isinstance(caught, PartRefused):
                    error = caught.otherwise
                    part = None if has_begun else self._other_way(caught, request, refused)
                    if part == "tools":
                        await self._capabilities.learn(self._server(facts), part, **self._place())
                        raise self._takes_no_tools() from None
                    if part is not None:
                        trying.append(part)
                        continue
                if not has_begun and self._may_be_refused_for_prefill(request, error):
                    self._refuses_prefill = True
                    continue
                wait = self._retries.wait_seconds(
                    error, tried=tried, spent_seconds=self._clock() - began, random=self._jitter()
                )
                if has_begun or wait is None:
                    raise error from None
            if request.reports_waits and wait >= NOTICED_SECONDS:
                yield ModelWaiting(wait)
            await self._sleep(wait)
            if request.before_retry is not None:
                await request.before_retry()

    def _may_be_refused_for_prefill(self, request: ModelRequest, error: ServiceError) -> bool:
        is_prefilled = request.continuation is not None and self._facts is not None and self._facts.takes_prefill
        return is_prefilled and not self._refuses_prefill and error.code == MODEL_REFUSED_REQUEST

    async def _ready_for(self, request: ModelRequest) -> tuple[Library, "_Facts"]:
        if self.key_is_missing:
            raise Forbidden(f"{self._spec.api_key_env} is not set", code=MODEL_KEY_REFUSED)
        library = await load()
        facts = await self._learn(library)
        if request.tools and not facts.has_tools and "tools" not in self._accepted:
            raise self._takes_no_tools()
        return library, facts

    def _takes_no_tools(self) -> Invalid:
        return Invalid(f"{self.name}, or its server, takes no tools", code=MODEL_TAKES_NO_TOOLS)

    def _other_way(self, error: PartRefused, request: ModelRequest, refused: frozenset[str]) -> Capability | None:
        """Return the part of a request that may be sent another way after its refusal; None for none."""
        spec = self._spec
        has_temperature = spec.temperature is not None or spec.top_p is not None
        for part in error.capabilities:
            if part in refused or part in self._accepted:
                continue
            if is_used(part, request, has_temperature=has_temperature, has_effort=bool(spec.reasoning_effort)):
                return part
        return None

    async def refused(self, facts: "_Facts | None" = None) -> frozenset[str]:
        """Return the parts of requests that the settings or earlier refusals say its server refuses."""
        server = self._server(facts or await self._learn(await load()))
        return (await self._capabilities.refused(server) | self._refused) - self._accepted

    def _server(self, facts: "_Facts") -> str:
        """Return an id for the address and the model, and for the settings that are part of requests."""
        if self._server_id is None:
            spec = replace(self._spec, alias="", fallback="", connect_timeout_seconds=0.0, **_WITHOUT)
            self._server_id = hashlib.sha256(msgspec.json.encode((facts.provider, spec))).hexdigest()[:24]
        return self._server_id

    def _place(self) -> dict[str, str]:
        base = self._spec.api_base
        return {"model": self._spec.model, "address": address_of(base) if base else ""}

    async def _source(
        self,
        library: Library,
        facts: "_Facts",
        request: ModelRequest,
        exchange: Exchange,
        refused: frozenset[str],
    ) -> Source:
        request = replace(request, messages=arranged(request.messages, refused))
        if await self._send_at_once(library, facts, request, exchange, refused):
            assert exchange.response is not None
            return self._read_here(exchange.response, exchange)
        stream = await self._ask(library, facts, request, exchange, refused)
        self._used_own_clients |= exchange.response is None
        if exchange.taken is not None and exchange.response is not None:
            return self._read_here(exchange.response, exchange)
        return LitellmSource(stream, exchange, self._spec, self._secrets())

    def _read_here(self, response: aiohttp.ClientResponse, exchange: Exchange) -> Source:
        assert exchange.taken is not None
        return ProviderSource(response, _READERS[exchange.taken](), self._spec)

    async def _send_at_once(
        self,
        library: Library,
        facts: "_Facts",
        request: ModelRequest,
        exchange: Exchange,
        refused: frozenset[str],
    ) -> bool:
        """Send a request that needs no building; return whether its answer is a stream that is read here.

        Any other answer stays on the exchange, for litellm to read.
        """
        pattern = await self._pattern(library, facts, request, refused) if facts.speaks_through_us else None
        if pattern is None:
            return False
        try:
            outgoing = pattern.filled([message.text for message in request.messages])
        except UnicodeEncodeError:  # half of a surrogate pair, which litellm escapes for some providers
            return False
        await library.transport.send(outgoing, exchange)
        if exchange.failure is not None:
            raise exchange.failure
        response = exchange.response
        exchange.is_sent = True
        if response is None or response.status != 200 or not wants_stream(outgoing.body):
            return False
        exchange.taken = protocol_of(urlsplit(outgoing.url).path)
        return True

    async def _pattern(
        self, library: Library, facts: "_Facts", request: ModelRequest, refused: frozenset[str]
    ) -> RequestPattern | None:
        kind = kind_of(request, self._key(), *sorted(refused))
        if kind is None or self._patterns.is_first(kind):
            return None
        if not self._patterns.knows(kind):
            rehearsed: list[Outgoing | None] = []
            for rehearsal in rehearsals_of(request):
                exchange = Exchange(None, first_token_timeout_seconds=self._spec.first_token_timeout_seconds)
                stream = await self._ask(library, facts, rehearsal, exchange, refused)
                await stream.aclose()
                rehearsed.append(exchange.rehearsed if exchange.taken is not None else None)
            keys = self._secrets()
            self._patterns.add(kind, pattern_of(*rehearsed, texts=len(request.messages), keys=keys))
        return self._patterns.find(kind)

    async def _ask(
        self,
        library: Library,
        facts: "_Facts",
        request: ModelRequest,
        exchange: Exchange,
        refused: frozenset[str] = frozenset(),
        **more: str,
    ) -> Any:
        """Have litellm make the request; what it returns is its own reading of the answer."""
        token = EXCHANGE.set(exchange)
        try:
            return await library.module.acompletion(**self._arguments(facts, request, refused), **more)
        except Exception as error:  # noqa: BLE001  litellm raises of all kinds; error_of says which
            # Not "from error": its frames and request hold the prompt and the key.
            raise failure_of(error, exchange, self._spec, self._secrets()) from None
        finally:
            exchange.is_asked = True
            EXCHANGE.reset(token)

    def _arguments(self, facts: "_Facts", request: ModelRequest, refused: frozenset[str]) -> dict[str, Any]:
        spec, owner = self._spec, self._owner(facts)
        most = min(request.max_output_tokens, facts.max_output_tokens or request.max_output_tokens)
        arguments: dict[str, Any] = {
            **chosen_parameters(spec, request, facts.provider, is_known=facts.is_known, owner=owner, refused=refused),
            "model": spec.model,
            "messages": [in_openai_form(message, owner=owner, refused=refused) for message in request.messages],
            "stream": True,
            "timeout": spec.first_token_timeout_seconds,
            "max_retries": 0,
            "drop_params": True,  # what is not known there: stream_options, response_format; not tools
            "no-log": True,
            "_skip_mcp_handler": True,  # else a request with tools imports mcp, which litellm does not install
        }
        _limit(arguments, most, refused)
        if "stream_options" not in refused:
            arguments["stream_options"] = {"include_usage": True}
        if request.tools and "parallel_calls" in refused:
            arguments["parallel_tool_calls"] = False
            _allow(arguments, "parallel_tool_calls")
        if request.continuation is not None:
            takes_prefill = facts.takes_prefill and not self._refuses_prefill
            arguments["messages"] += continued(request.continuation, takes_prefill=takes_prefill)
        if spec.api_base:
            arguments["api_base"] = spec.api_base
        if self._key():
            arguments["api_key"] = self._key()
        if request.tools:
            # Copies, since litellm changes a schema for some providers.
            arguments["tools"] = [{"type": "function", "function": to_builtins(tool)} for tool in request.tools]
            if facts.provider == "anthropic":
                mark_for_cache(arguments["messages"])
        if request.output_schema is not None and "output_schema" not in refused:
            form = {"name": request.output_schema.name, "schema": request.output_schema.schema, "strict": True}
            arguments["response_format"] = {"type": "json_schema", "json_schema": form}
        if facts.provider in _OLLAMA:
            arguments["num_ctx"] = spec.context_tokens or facts.window_tokens
        if facts.client is not None:
            arguments["client"] = facts.client
        return arguments

    def _key(self) -> str:
        if self._spec.api_key_env:
            return self._env.get(self._spec.api_key_env, "")
        return _NO_KEY if self._spec.api_base else ""

    def _secrets(self) -> Collection[str]:
        """Return the secrets that a provider might quote; litellm reads keys from the environment, too."""
        return {self._key(), *secrets_of(self._env)}

    async def _learn(self, library: Library) -> "_Facts":
        if self._facts is None:  # in a thread: it imports, and for models of Ollama litellm asks its server and waits
            self._facts = await asyncio.to_thread(_learn, library, self._spec, self._secrets())
        return self._facts

    def _open_session(self, library: Library) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = open_session(
                connect_timeout_seconds=self._spec.connect_timeout_seconds, certificates=library.certificates
            )
        return self._session

    async def _end(self, library: Library, facts: "_Facts", ending: Ending, estimate: Tokens) -> ModelEnd:
        usage = self._usage(library, facts, ending.tokens or estimate)
        model = f"{facts.provider}/{ending.model}" if ending.model else self._spec.model
        memory = await packed(ending.memory, self._owner(facts)) if ending.memory is not None else None
        return ModelEnd(ending.reason, ending.tool_calls, usage, model, memory, ending.said)

    def _owner(self, facts: "_Facts") -> str:
        """Return the owner of this model's memory of its replies: another address or another model has none of it."""
        place = "\n".join((facts.provider, self._spec.api_base, self._spec.model))
        return hashlib.sha256(place.encode()).hexdigest()[:16]

    def _report_usage(self, library: Library, facts: "_Facts", request: ModelRequest, tokens: Tokens) -> None:
        if request.on_usage is not None:
            request.on_usage(self._usage(library, facts, tokens))

    def _usage(self, library: Library, facts: "_Facts", tokens: Tokens) -> Usage:
        return Usage(tokens.input, tokens.output, self._cost(library, facts, tokens))

    def _cost(self, library: Library, facts: "_Facts", tokens: Tokens) -> float | None:
        per_input, per_output = self._spec.input_usd_per_million_tokens, self._spec.output_usd_per_million_tokens
        if per_input is not None and per_output is not None:
            return (tokens.input * per_input + tokens.output * per_output) / 1_000_000
        if facts.price is None:
            return None
        if facts.by_token is not None and tokens.cache_read + tokens.cache_written <= tokens.input:
            return facts.by_token.cost(tokens)
        return _cost(library.module, facts.model, facts.provider, tokens)


_READERS: Mapping[Protocol, Callable[[], StreamReader]] = {
    "chat_completions": ChatCompletionsReader,
    "messages": MessagesReader,
    "responses": ResponsesReader,
}

_WITHOUT: dict[str, Any] = {
    "input_usd_per_million_tokens": None,
    "output_usd_per_million_tokens": None,
    "first_token_timeout_seconds": 0.0,
    "idle_timeout_seconds": 0.0,
}
"""Settings that are no part of requests."""


def _limit(arguments: dict[str, Any], tokens: int, refused: frozenset[str]) -> None:
    """Set the limit of a reply, by the name that the server accepts."""
    if "max_completion_tokens" in refused:
        arguments["extra_body"] = {**arguments.get("extra_body", {}), "max_tokens": tokens}
    elif "max_tokens" in refused:
        arguments["max_completion_tokens"] = tokens
        _allow(arguments, "max_completion_tokens")
    else:
        arguments["max_tokens"] = tokens


def _allow(arguments: dict[str, Any], name: str) -> None:
    """Have litellm pass a parameter on, whatever its table says of the model."""
    arguments["allowed_openai_params"] = [*arguments.get("allowed_openai_params", ()), name]


class _Facts(Struct, frozen=True):
    """The facts that litellm knows about a model."""

    provider: str
    model: str
    """Without the provider."""
    is_known: bool
    """Whether litellm's table has it."""
    has_tools: bool
    price: Price | None
    takes_prefill: bool
    """Whether it goes on with an assistant message that is given as its own beginning."""
    max_output_tokens: int | None
    window_tokens: int
    speaks_through_us: bool
    """Whether its requests go through our transport."""
    client: Any
    """The client to pass for that; None where none is needed."""
    by_token: "_TokenPrices | None"
    """None where the price is not known, or where one token costs more in a long prompt."""


class _TokenPrices(Struct, frozen=True):
    """Prices in US dollars. litellm takes 0.1 to 0.4 ms to work out what a reply costs, as long as reading it takes."""

    input: float
    output: float
    cache_read: float
    cache_written: float

    def cost(self, tokens: Tokens) -> float:
        plain = tokens.input - tokens.cache_read - tokens.cache_written
        cached = tokens.cache_read * self.cache_read + tokens.cache_written * self.cache_written
        return plain * self.input + cached + tokens.output * self.output


_BY_LENGTH = re.compile(r"_above_\d+k?_tokens")
"""In names of litellm's prices: of long prompts."""


def _prices_by_token(litellm: Any, model: str, provider: str, entry: Mapping[str, Any]) -> _TokenPrices | None:
    """Return the prices of tokens by which litellm counts; None where it counts otherwise."""
    if any(map(_BY_LENGTH.search, entry)):
        return None
    asked = (Tokens(1000, 0), Tokens(0, 1000), Tokens(1000, 0, cache_read=1000), Tokens(1000, 0, cache_written=1000))
    mixed = Tokens(1000, 200, cache_read=300, cache_written=100)
    try:
        found = _TokenPrices(*(_cost(litellm, model, provider, tokens) / 1000 for tokens in asked))
        is_so = math.isclose(found.cost(mixed), _cost(litellm, model, provider, mixed), rel_tol=1e-9)
    except Exception:  # noqa: BLE001  it then raises for each reply, too
        return None
    return found if is_so else None


def _cost(litellm: Any, model: str, provider: str, tokens: Tokens) -> float:
    """Return the cost by litellm's table, in US dollars."""
    usage = litellm.Usage(
        prompt_tokens=tokens.input,
        completion_tokens=tokens.output,
        total_tokens=tokens.input + tokens.output,
        prompt_tokens_details={"cached_tokens": tokens.cache_read},
        cache_read_input_tokens=tokens.cache_read,
        cache_creation_input_tokens=tokens.cache_written,
    )
    prices: tuple[float, float] = litellm.cost_per_token(model=model, custom_llm_provider=provider, usage_object=usage)
    return sum(prices)


def _learn(library: Library, spec: ModelSettings, secrets: Collection[str]) -> _Facts:
    litellm = library.module
    try:
        model, provider, _, _ = litellm.get_llm_provider(model=spec.model, api_base=spec.api_base or None)
    except Exception as error:  # noqa: BLE001  as in _ask
        raise error_of(error, model=spec.model, status=0, headers={}, secrets=secrets) from None
    try:
        info: dict[str, Any] = litellm.get_model_info(
            model=model, custom_llm_provider=provider, api_base=spec.api_base or None
        )
    except Exception:  # noqa: BLE001  a bare Exception is what it raises for a model that is not in its table
        info = {}
    window_tokens = info.get("max_input_tokens") or info.get("max_tokens") or USUAL_WINDOW_TOKENS
    supported = litellm.get_supported_openai_params(model=model, custom_llm_provider=provider)
    client = library.client if provider in _TAKE_A_CLIENT else None
    import_for_calls(of_openai=client is None)
    entry = litellm.model_cost.get(info.get("key"), {})
    price = _price(info if provider in _OLLAMA else entry)
    has_own = spec.input_usd_per_million_tokens is not None and spec.output_usd_per_million_tokens is not None
    return _Facts(
        provider=provider,
        model=model,
        is_known=bool(info),
        has_tools=supported is None or "tools" in supported,
        price=price,
        takes_prefill=bool(info.get("supports_assistant_prefill")),
        max_output_tokens=spec.max_output_tokens or info.get("max_output_tokens"),
        window_tokens=min(window_tokens, _OLLAMA_WINDOW_TOKENS) if provider in _OLLAMA else window_tokens,
        speaks_through_us=client is not None
        or (provider in ("openai", "custom_openai", "azure") or provider in litellm.openai_compatible_providers),
        client=client,
        by_token=None if price is None or has_own else _prices_by_token(litellm, model, provider, entry),
    )


def _document_of(ending: Ending) -> str:
    """Return the document of a reply with a schema that came as a call: so litellm asks models for it that know tools
    and no schemas.
    """
    return next((call.arguments for call in ending.tool_calls if call.name == _SCHEMA_TOOL), "")


def _price(entry: Mapping[str, Any]) -> Price | None:
    """Return the price of an entry of litellm's table. None where it has none (172 models), and where litellm makes an
    entry up (models of OpenRouter): ``get_model_info`` reports a price of 0 for these.
    """
    per_input, per_output = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    return None if per_input is None or per_output is None else Price(1_000_000 * per_input, 1_000_000 * per_output)


def _cut(tokens: Tokens | None, prompt: int, output: float) -> Ending:
    """Return the end of a reply that was ended: what it costs is not less than what has come."""
    tokens = tokens or Tokens(prompt, 0)
    tokens = replace(tokens, output=max(tokens.output, int(output) + 1))
    return Ending("length", (), tokens, "")


def _estimate(prompt: int, written: int) -> Tokens:
    """Return the tokens of a prompt and a reply of these lengths, in characters."""
    return Tokens(prompt // CHARACTERS_PER_TOKEN, written // CHARACTERS_PER_TOKEN)
