"""The fake keeps the contract."""

import pytest

from service.agent.tools.arguments import descriptions
from service.ports.model import ModelRequest, UserMessage
from tests.contracts.model import ToolModelContract
from tests.fakes.model import FakeModel, Says, call, calls


class TestFakeModel(ToolModelContract):
    @pytest.fixture
    def model(self):
        return FakeModel([Says("Hello to you.")] * 3)

    @pytest.fixture
    def request_for_text(self):
        return ModelRequest((UserMessage("Hello"),))

    @pytest.fixture
    def request_for_tool(self, model):
        model.script = [calls(call("list", "a"), call("list", "b"))]
        return ModelRequest((UserMessage("List the files"),), descriptions())
