"""ConfiguredModels: which model is used for what."""

import subprocess
import sys
import textwrap

import msgspec
import pytest

from service.adapters.models.configured import ALWAYS, ConfiguredModels, LitellmModel, ModelSettings
from service.domain.errors import Invalid, NotFound
from service.domain.model import Usage
from service.ports.model import ModelEnd

# pydantic on litellm's types; as model_library has it.
pytestmark = pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class .* `ReadOnly`:UserWarning")


class Named:
    def __init__(self, name):
        self.name = name

    async def reply(self, request):
        yield ModelEnd("stop", (), Usage(cost_usd=0.0), self.name)


EDITOR, QUOTER = Named("builtin/editor"), Named("builtin/quoter")
LOCAL = ModelSettings(alias="local", model="ollama_chat/qwen3", api_base="http://127.0.0.1:11434")
SONNET = ModelSettings(alias="sonnet", model="openrouter/anthropic/claude-sonnet-4.5", api_key_env="ROUTER_KEY")


def models(*settings, env=None, **defaults):
    return ConfiguredModels(settings, builtin_agent=EDITOR, builtin_assistant=QUOTER, env=env or {}, **defaults)


def test_with_nothing_at_all_everything_is_builtin():
    chosen = models()
    assert chosen.for_agent("") is EDITOR
    assert chosen.for_assistant() is QUOTER
    assert all(chosen.for_agent(alias) is EDITOR for alias in ("sonnet", "opus", "builtin"))
    assert chosen.describe() == "agent builtin/editor, assistant builtin/quoter"


@pytest.mark.parametrize(
    ("env", "provider"),
    [
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic/"),
        ({"OPENAI_API_KEY": "k"}, "openai/"),
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, "anthropic/"),
    ],
)
def test_a_key_in_the_environment_is_used(env, provider):
    chosen = models(env=env)
    for alias in ("", "sonnet", "opus"):
        assert chosen.for_agent(alias).name.startswith(provider)
    assert chosen.for_assistant().name == chosen.for_agent("sonnet").name
    assert chosen.for_agent("builtin") is EDITOR


def test_empty_key_counts_as_missing():
    assert models(env={"ANTHROPIC_API_KEY": ""}).for_agent("") is EDITOR


def test_settings_win_over_keys_in_the_environment():
    chosen = models(SONNET, env={"ANTHROPIC_API_KEY": "k", "ROUTER_KEY": "k"})
    assert chosen.for_agent("").name == chosen.for_agent("sonnet").name == SONNET.model
    assert chosen.for_agent("opus").name.startswith("anthropic/")


def test_single_model_is_the_default_of_agent_and_assistant():
    chosen = models(LOCAL)
    assert chosen.for_agent("").name == chosen.for_assistant().name == LOCAL.model
    assert chosen.for_agent("sonnet").name == chosen.for_agent("opus").name == LOCAL.model


def test_defaults_are_aliases_builtin_or_whole_names():
    chosen = models(LOCAL, SONNET, agent="local", assistant="builtin")
    assert (chosen.for_agent("").name, chosen.for_assistant()) == (LOCAL.model, QUOTER)
    assert models(agent="mistral/mistral-large-latest").for_agent("").name == "mistral/mistral-large-latest"


def test_nothing_plans_unless_a_model_is_named_for_it():
    assert models(LOCAL, SONNET, assistant="local").for_planning() is None
    assert models(LOCAL, assistant="local", planner="local").for_planning().name == LOCAL.model
    assert models(LOCAL, SONNET, assistant="sonnet", planner="local").for_planning().name == LOCAL.model
    planned = models(LOCAL, assistant="local", planner="mistral/mistral-small-latest")
    assert planned.describe().endswith(f", assistant {LOCAL.model}, planner mistral/mistral-small-latest")
    assert models(SONNET, planner="mistral/mistral-small-latest").for_planning().name == "mistral/mistral-small-latest"


def test_nothing_plans_when_switched_off_or_for_the_builtin_model():
    assert models(SONNET, planner="off").for_planning() is None
    assert models().for_planning() is None
    assert models(SONNET, assistant="builtin", planner="sonnet").for_planning() is None


def test_planner_that_cannot_plan_is_reported_at_the_start():
    with pytest.raises(Invalid, match="plans nothing"):
        models(SONNET, planner="builtin")
    with pytest.raises(NotFound):
        models(SONNET, planner="haiku")


def test_an_alias_may_be_builtin_by_another_name():
    chosen = models(ModelSettings(alias="opus", model="builtin/editor"), env={"ANTHROPIC_API_KEY": "k"})
    assert chosen.for_agent("opus") is EDITOR


@pytest.mark.parametrize("alias", ["haiku", "mistral/mistral-large-latest", "builtin/editor"])
def test_callers_name_aliases_and_nothing_else(alias):
    with pytest.raises(NotFound) as caught:
        models(LOCAL).for_agent(alias)
    assert caught.value.code == "unknown_model"


@pytest.mark.parametrize("role", ["agent", "assistant"])
def test_default_that_is_no_alias_is_reported_at_the_start(role):
    with pytest.raises(NotFound):
        models(LOCAL, **{role: "lokal"})


def test_missing_key_is_reported_at_the_start():
    assert models(SONNET).describe().endswith("; not set: ROUTER_KEY")


def test_the_same_alias_is_the_same_model():
    chosen = models(LOCAL)
    assert chosen.for_agent("local") is chosen.for_assistant()


def test_fallback_follows_its_model():
    near = ModelSettings(alias="near", model="ollama_chat/qwen3", fallback="sonnet")
    chosen = models(near, SONNET, agent="near", assistant="sonnet", env={"ROUTER_KEY": "k"})
    assert chosen.for_agent("").name == near.model
    assert chosen.for_agent("") is chosen.for_agent("near")
    assert chosen.for_assistant().name == SONNET.model
    assert chosen.describe() == f"agent {near.model} (else {SONNET.model}), assistant {SONNET.model}"


@pytest.mark.parametrize(
    ("fallbacks", "error", "said"),
    [
        ({"a": "a"}, Invalid, "circle: a to a"),
        ({"a": "b", "b": "c", "c": "a"}, Invalid, "circle: a to b to c to a"),
        ({"a": "b", "b": "c", "c": "b"}, Invalid, "circle: b to c to b"),
        ({"a": "nobody"}, NotFound, "'nobody'"),
        ({"a": "builtin"}, Invalid, "cannot be 'builtin'"),
        ({"a": "opus"}, Invalid, "cannot be 'opus'"),
    ],
)
def test_fallbacks_that_cannot_be_are_refused_at_the_start(fallbacks, error, said):
    settings = [ModelSettings(alias=alias, model="x/y", fallback=other) for alias, other in fallbacks.items()]
    with pytest.raises(error, match=said):
        models(*settings)


def test_a_builtin_model_needs_no_fallback():
    with pytest.raises(Invalid, match="needs no fallback"):
        models(LOCAL, ModelSettings(alias="mine", model="builtin/editor", fallback="local"))


@pytest.mark.parametrize("tokens", [0, 2_047])
def test_a_window_that_our_own_words_would_fill_is_refused(tokens):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"alias": "a", "model": "b", "context_tokens": tokens}, ModelSettings)


async def test_window_is_from_settings_else_table_else_a_usual_one():
    chosen = models(
        ModelSettings(alias="set", model="openai/gpt-4.1", context_tokens=50_000),
        ModelSettings(alias="known", model="anthropic/claude-opus-4-1"),
        ModelSettings(alias="unknown", model="openai/our-own", api_base="http://127.0.0.1:9"),
    )
    windows = [await chosen.for_agent(alias).window_tokens() for alias in ("set", "known", "unknown")]
    assert windows == [50_000, 200_000, 100_000]


def test_aliases_are_listed_once():
    assert models(SONNET).aliases == ("sonnet", "opus", "builtin")


def test_half_a_price_is_refused():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"alias": "a", "model": "b", "input_usd_per_million_tokens": 1}, ModelSettings)


def test_unknown_settings_are_refused():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"alias": "a", "model": "b", "api_key": "sk-1"}, ModelSettings)


async def test_preparing_without_any_real_model_needs_nothing():
    chosen = models()
    await chosen.prepare()
    await chosen.close()


async def test_wrong_model_name_is_reported_and_others_are_prepared():
    wrong = ModelSettings(alias="wrong", model="nobody/knows-it")
    chosen = models(wrong, LOCAL)
    with pytest.raises(NotFound, match="nobody/knows-it"):
        await chosen.prepare()
    await chosen.close()


async def test_the_usual_models_are_in_litellms_price_table():
    from service.adapters.models.library import load

    library = await load()
    for env in ({"ANTHROPIC_API_KEY": "k"}, {"OPENAI_API_KEY": "k"}):
        chosen = models(env=env)
        await chosen.prepare()
        for alias in ALWAYS:
            model = chosen.for_agent(alias)
            assert isinstance(model, LitellmModel)
            assert model.name.split("/")[1] in library.module.model_cost
        await chosen.close()


def test_importing_us_imports_neither_litellm_nor_httpx():
    code = (
        "import sys, service.adapters.models.configured; "
        "print({'litellm', 'httpx', 'openai', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


async def test_llama_tokens_are_counted_without_the_network():
    from service.adapters.models.library import load

    library = await load()
    chosen = library.module.utils._select_tokenizer(model="groq/llama-3.3-70b-versatile")
    assert chosen["type"] == "openai_tokenizer"
    assert library.module.disable_hf_tokenizer_download


@pytest.mark.slow
def test_event_loop_does_not_import_a_providers_client():
    code = textwrap.dedent("""
        import asyncio, sys, threading
        from service.adapters.models.configured import ConfiguredModels, ModelSettings

        class OnTheLoop:
            found = set()

            def find_spec(self, name, path=None, target=None):
                if threading.current_thread() is threading.main_thread():
                    self.found.add(name)

        async def prepare():
            given = ModelSettings(alias="given", model="openai/any", api_base="http://127.0.0.1:9")
            chosen = ConfiguredModels((given,), builtin_agent=None, builtin_assistant=None, env={})
            sys.meta_path.insert(0, OnTheLoop())
            await chosen.prepare()
            print(sorted(OnTheLoop.found & {"openai.resources", "tiktoken.load", "anyio._backends._asyncio"}))
            print("openai.resources" in sys.modules)
            await chosen.close()

        asyncio.run(prepare())
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "True"]


COUNTING = """
import asyncio
from tiktoken.registry import ENCODINGS
from service.adapters.models.library import load
from service.adapters.models.litellm_model import LitellmModel
from service.adapters.models.model_settings import ModelSettings
from service.ports.model import ModelRequest, UserMessage
from tests.fakes.provider import ScriptedProvider

async def count():
    async with ScriptedProvider() as provider:
        provider.will_reply("Hello.")
        model = LitellmModel(ModelSettings(alias="a", model="openai/gpt-5.2", api_base=f"{provider.url}/v1"), env={})
        assert [chunk async for chunk in model.reply(ModelRequest((UserMessage("Hello"),), max_output_tokens=9))]
        await model.close()
    print(len(ENCODINGS), (await load()).module.token_counter("gpt-4", text="Hello, world"), len(ENCODINGS))

asyncio.run(count())
"""


def test_table_of_tokens_is_loaded_when_some_are_counted():
    done = subprocess.run([sys.executable, "-c", COUNTING], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0", "3", "1"], done.stderr
