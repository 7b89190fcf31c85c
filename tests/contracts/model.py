"""What every Model does. A subclass gives the fixtures ``model``, ``request_for_text`` (answered with the same text
each time) and, for a model that uses tools, ``request_for_tool`` (answered by calling one).
"""

import asyncio
import json
from contextlib import aclosing

import pytest
from msgspec.structs import replace

from service.ports.model import Model, ModelChunk, ModelEnd, ModelRequest, ModelText


async def chunks_of(model: Model, request: ModelRequest) -> list[ModelChunk]:
    return [chunk async for chunk in model.reply(request)]


class ModelContract:
    @pytest.fixture
    def model(self) -> Model:
        raise NotImplementedError

    @pytest.fixture
    def request_for_text(self) -> ModelRequest:
        raise NotImplementedError

    def test_its_name_is_provider_and_model(self, model):
        provider, slash, name = model.name.partition("/")
        assert provider
        assert slash
        assert name

    async def test_its_window_is_known_or_of_no_concern(self, model):
        window_tokens = await model.window_tokens()
        assert window_tokens is None or window_tokens >= 8_000

    async def test_texts_come_first_and_one_end_last(self, model, request_for_text):
        *texts, end = await chunks_of(model, request_for_text)
        assert texts
        assert all(isinstance(chunk, ModelText) and chunk.text for chunk in texts)
        assert isinstance(end, ModelEnd)

    async def test_the_end_says_which_model_it_was_and_what_it_used(self, model, request_for_text):
        end = (await chunks_of(model, request_for_text))[-1]
        assert "/" in end.model
        assert end.usage.input_tokens >= 0
        assert end.usage.output_tokens >= 0
        assert end.usage.cost_usd is None or end.usage.cost_usd >= 0

    async def test_a_reply_may_be_closed_before_its_end(self, model, request_for_text):
        async with aclosing(model.reply(request_for_text)) as chunks:
            assert isinstance(await anext(chunks), ModelText)

    async def test_text_behind_the_first_may_be_taken(self, model, request_for_text):
        alone = await chunks_of(model, request_for_text)
        taken: list[str] = []
        first, *rest, _ = await chunks_of(model, replace(request_for_text, on_text=lambda text: not taken.append(text)))
        assert first == alone[0]
        assert not (taken and rest)
        assert _text([first, *rest]) + "".join(taken) == _text(alone)

    async def test_text_that_is_not_taken_is_a_chunk(self, model, request_for_text):
        alone = await chunks_of(model, request_for_text)
        assert await chunks_of(model, replace(request_for_text, on_text=lambda _: False)) == alone

    async def test_two_replies_at_once_do_not_mix(self, model, request_for_text):
        alone = await chunks_of(model, request_for_text)
        both = await asyncio.gather(chunks_of(model, request_for_text), chunks_of(model, request_for_text))
        assert [_text(chunks) for chunks in both] == [_text(alone)] * 2


class ToolModelContract(ModelContract):
    @pytest.fixture
    def request_for_tool(self) -> ModelRequest:
        raise NotImplementedError

    async def test_a_tool_call_comes_whole_with_the_end(self, model, request_for_tool):
        end = (await chunks_of(model, request_for_tool))[-1]
        assert end.reason == "tool_calls"
        assert end.tool_calls
        offered = {tool.name for tool in request_for_tool.tools}
        for call in end.tool_calls:
            assert call.id
            assert call.name in offered
            assert isinstance(json.loads(call.arguments), dict)
        assert len({call.id for call in end.tool_calls}) == len(end.tool_calls)


def _text(chunks: list[ModelChunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, ModelText))
