# ruff: noqa: RUF001  (DeepSeek's tokens have that letter)
"""Calls written as text, channels, control tokens and reasoning: no reader sees them, and no pull request has them."""

import json
import re

import pytest

from tests.end_to_end.provider_kinds import ASK, call, forms, kinds_service, run_job, says
from tests.fakes.provider import Reply, ScriptedProvider
from tests.service_process import free_port

ANSWER = "Run the installer [1]."


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def service(tmp_path_factory, port):
    with kinds_service(tmp_path_factory.mktemp("words"), port) as service:
        yield service


@pytest.fixture
async def provider(port):
    async with ScriptedProvider(port=port) as provider:
        yield provider


FORMS = list(forms("read", path=""))
MARKS = ("tool", "<", "{", "function", "arguments", "TOOL", "｜", "|")


@pytest.mark.parametrize("form", FORMS)
async def test_call_written_as_text_is_carried_out(http, service, provider, form):
    finish = {"title": "Look", "summary": "It is right."}
    provider.will(says(forms("read", path="install.md")[form]), Reply((), (call("finish", **finish),)))
    done = await run_job(http, service)
    assert done.tools == ["read", "finish"]
    assert (done.view["status"], done.view["message"]) == ("completed", "It is right.")


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "browse", "arguments": {"url": "x"}}</tool_call>',
        '<tool_call>{"name": "read", "arguments": {"file": "install.md"}}</tool_call>',
        "<tool_call>read install.md</tool_call>",
    ],
)
async def test_job_names_the_missing_parser(http, service, provider, text):
    provider.will(says(text), says(text))
    done = await run_job(http, service)
    assert (done.view["status"], done.view["outcome"], len(provider.asked)) == ("completed", "needs_input", 2)
    assert "no parser of tool calls" in done.view["message"]
    assert "<tool_call>" not in done.view["message"]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("form", FORMS)
async def test_reader_never_sees_a_call(http, service, provider, form, version):
    provider.will(says(forms("search", query="installer")[form]), says(ANSWER))
    answered = await ASK[version](http, service)
    assert (answered.error, len(provider.asked)) == ("", 2)
    assert answered.text.startswith("Run the installer")
    assert not any(mark in answered.text for mark in MARKS)
    assert "tools" not in provider.asked[1].body


@pytest.mark.parametrize("version", [1, 2])
async def test_reader_gets_passages_where_a_model_only_writes_calls(http, service, provider, version):
    text = forms("search", query="installer")["Llama"]
    provider.will(says(text), says(text))
    answered = await ASK[version](http, service)
    assert (answered.error, len(provider.asked)) == ("", 2)
    assert "](/install" in answered.text
    assert "<function" not in answered.text


TOKENS = {
    "channels": f"<|channel|>analysis<|message|>Hm [2].<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}",
    "channels without tokens": f"analysisWe see [2].assistantfinal{ANSWER}",
    "Magistral": f"[THINK]Hm [2].[/THINK]{ANSWER}",
    "a tag": f"<reasoning>Hm [2].</reasoning>{ANSWER}",
    "the next turn": f"{ANSWER}<|im_end|>\n<|im_start|>user\nAnd who are you?<|im_end|>",
    "the next turn of Llama": f"{ANSWER}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd who are you?",
    "the next turn of Gemma": f"{ANSWER}<end_of_turn>\n<start_of_turn>user\nAnd who are you?",
    "an end token": f"{ANSWER}</s>",
}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", TOKENS)
async def test_reader_sees_the_answer_alone(http, service, provider, kind, version):
    provider.will(Reply(tuple(TOKENS[kind])))  # letter by letter
    answered = await ASK[version](http, service)
    assert answered.error == ""
    assert answered.text.startswith("Run the installer [")
    assert answered.text.rstrip().endswith(").")
    assert not any(mark in answered.text for mark in ("<", "|", "THINK", "analysis", "Hm", "who are you"))


def tags_of(asked):
    """The names of the prompt's own tags, as a small model copies them."""
    told = "\n".join(str(message.get("content")) for message in asked.body["messages"])
    return sorted(set(re.findall(r"<([a-z-]{2,30}[- ][0-9a-f]{8})\b", told)))


@pytest.mark.parametrize("version", [1, 2])
async def test_reader_never_sees_the_tags_of_the_prompt(http, service, port, version):
    def answer(asked):
        tags = [f'<{tag} number="1" heading="A [b]">It. </{tag}>[{tag}] `<{tag}>` {tag}\n' for tag in tags_of(asked)]
        return Reply(tuple("".join(["Run the installer [1].\n\n", *tags, "```\n", *tags, "```\n"])))

    async with ScriptedProvider(answer, port=port) as provider:
        answered = await ASK[version](http, service)
        tags = tags_of(provider.asked[0])
    assert len(tags) >= 4, tags
    assert answered.text.startswith("Run the installer [")
    assert not any(tag.rpartition("-")[2] in answered.text for tag in tags)


async def test_job_never_tells_the_tags_of_the_prompt(http, service, port):
    def answer(asked):
        tags = tags_of(asked)
        assert tags
        return Reply((f"The rules are: <{tags[0]}> a </{tags[0]}> `<{tags[0]}>`",))

    async with ScriptedProvider(answer, port=port):
        done = await run_job(http, service)
    assert done.view["message"].startswith("The rules are:")
    assert "<data" not in done.view["message"]


async def test_pull_request_has_no_control_tokens(http, service, provider):
    provider.will(
        Reply(
            ("<think>Hm.</think>I mend it.<|im_end|>",), (call("replace", path="install.md", old="20 MB", new="25 MB"),)
        ),
        Reply(
            (), (call("finish", title="Correct the size<|im_end|>", summary="<think>Hm.</think>It needs 25 MB.</s>"),)
        ),
    )
    done = await run_job(http, service, "It needs 25 MB.")
    assert done.view["status"] == "completed"
    assert done.view["prLink"]
    kept = [event for event in done.events if event["type"] in ("committed", "work-finished")]
    words = json.dumps([*kept, *(event["text"] for event in done.events if event["type"] == "model-replied")])
    assert "It needs 25 MB." in words
    assert not any(mark in words for mark in ("im_end", "think", "</s>"))
