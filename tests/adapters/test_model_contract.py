"""The one contract of models, on the builtin one that answers and on litellm with both protocols."""

import pytest

from service.adapters.builtin.answer import BuiltinAnswer
from service.adapters.models.fallback import FallbackModel
from service.adapters.models.litellm_model import LitellmModel
from service.adapters.models.model_settings import ModelSettings
from service.domain.errors import Unavailable
from service.ports.model import Grounding, ModelRequest, Passage, Tool, UserMessage
from tests.contracts.model import ModelContract, ToolModelContract
from tests.fakes.model import FakeModel, Says, call
from tests.fakes.provider import Asked, Call, Reply, ScriptedProvider

PASSAGE = Passage(1, "Install", "", "/install", "To install Kite, run the installer. It needs 20 MB of disk.", 1.0)
TOOL = Tool("search", "Search.", {"type": "object", "properties": {"query": {"type": "string"}}})


class TestBuiltinAnswer(ModelContract):
    @pytest.fixture
    def model(self):
        return BuiltinAnswer()

    @pytest.fixture
    def request_for_text(self):
        question = "How do I install Kite?"
        return ModelRequest((UserMessage(question),), grounding=Grounding(question, (PASSAGE,)))


def plays(asked: Asked) -> Reply:
    if asked.body.get("tools"):
        return Reply(("Let me look.",), (Call("search", ('{"query": ', '"install"}')),))
    return Reply(("To install ", "Kite, run ", "the installer."))


class TestFallbackModel(ToolModelContract):
    """The first of two is down all the time."""

    @pytest.fixture
    def model(self):
        down = FakeModel([Unavailable("down")] * 9, name="down/model")
        say = Says("Let me look.", (call("search", query="install"),))
        return FallbackModel([down, FakeModel([say] * 9, name="up/model", window_tokens=32_000)])

    @pytest.fixture
    def request_for_text(self):
        return ModelRequest((UserMessage("How do I install Kite?"),))

    @pytest.fixture
    def request_for_tool(self):
        return ModelRequest((UserMessage("How do I install Kite?"),), tools=(TOOL,))


@pytest.mark.filterwarnings("ignore:Item .* on TypedDict class .* `ReadOnly`:UserWarning")
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
class TestLitellmModel(ToolModelContract):
    @pytest.fixture(params=["openai", "anthropic"])
    async def model(self, request):
        async with ScriptedProvider(plays) as provider:
            base = provider.openai_base if request.param == "openai" else provider.anthropic_base
            name = {"openai": "openai/gpt-5.2", "anthropic": "anthropic/claude-sonnet-5-5"}[request.param]
            settings = ModelSettings(alias="scripted", model=name, api_base=base, api_key_env="SCRIPTED_KEY")
            model = LitellmModel(settings, env={"SCRIPTED_KEY": "sk-scripted"})
            yield model
            await model.close()

    @pytest.fixture
    def request_for_text(self):
        return ModelRequest((UserMessage("How do I install Kite?"),))

    @pytest.fixture
    def request_for_tool(self):
        return ModelRequest((UserMessage("How do I install Kite?"),), tools=(TOOL,))
