# ruff: noqa: RUF001  (DeepSeek's tokens have that letter)
"""Reasoning, channels, control tokens and calls as text are removed from a model's text, wherever it is cut."""

import itertools
import json
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.markup.streaming.model_text import ModelTextFilter, WordFilter
from service.markup.streaming.written_calls import written_calls

TOOLS = ("search", "read")


MARK = "0d0b9a95"


def filtered(text, piece=1 << 20, tools=TOOLS):
    """The text for readers, the reasoning, and the calls."""
    reader = ModelTextFilter(tools, MARK)
    shown = "".join(reader.feed(text[at : at + piece]) for at in range(0, len(text), piece)) + reader.finish()
    return shown, reader.take_thoughts(), reader.take_calls()


CALL = '{"name": "search", "arguments": {"query": "size"}}'
INVOKE = '<invoke name="search"><parameter name="query">size</parameter></invoke>'
CALLS = {
    "Hermes, Qwen": f"<tool_call>\n{CALL}\n</tool_call>",
    "several": f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>",
    "not closed": f"<tool_call>\n{CALL}",
    "with an end token": f"<tool_call>\n{CALL}\n</tool_call><|im_end|>",
    "Llama, tagged": '<function=search>{"query": "size"}</function>',
    "Qwen coder": "<tool_call>\n<function=search>\n<parameter=query>\nsize\n</parameter>\n</function>\n</tool_call>",
    "Claude's form": f"<function_calls>\n{INVOKE}\n</function_calls>",
    "invoke alone": INVOKE,
    "DeepSeek's form": f"<｜DSML｜function_calls>{INVOKE}</｜DSML｜function_calls>",
    "MiniMax": f"<minimax:tool_call>{INVOKE}</minimax:tool_call>",
    "GLM": "<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>size</arg_value>\n</tool_call>",
    "Mistral": f"[TOOL_CALLS][{CALL}]",
    "Mistral, newer": '[TOOL_CALLS]search[ARGS]{"query": "size"}',
    "DeepSeek V3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n"
    '{"query": "size"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>',
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>"
    '{"query": "size"}<|tool_call_end|><|tool_calls_section_end|>',
    "Llama 3.1": '<|python_tag|>{"name": "search", "parameters": {"query": "size"}}<|eom_id|>',
    "gpt-oss": "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.search"
    ' <|constrain|>json<|message|>{"query": "size"}<|call|>',
    "bare": CALL,
    "bare, by another name": '{"name": "search", "parameters": {"query": "size"}}',
    "a list": f"[{CALL}]",
    "fenced": f"```json\n{CALL}\n```",
    "OpenAI's form": json.dumps(
        [{"type": "function", "function": {"name": "search", "arguments": '{"query": "size"}'}}]
    ),
}


@pytest.mark.parametrize("form", CALLS)
def test_calls_as_text_are_removed_and_read(form):
    for piece in (1, 2, 3, 7, 1 << 20):
        shown, _, calls = filtered(CALLS[form], piece)
        assert shown.strip() == ""
        read = [call for text in calls for call in written_calls(text, TOOLS)]
        assert len(read) == (2 if form == "several" else 1), calls
        assert all((name, json.loads(arguments)) == ("search", {"query": "size"}) for name, arguments in read)


@pytest.mark.parametrize("form", list(CALLS)[:17])
def test_text_around_calls_stays(form):
    shown, _, calls = filtered(f"I look.\n\n{CALLS[form]}")
    assert (shown.strip(), bool(calls)) == ("I look.", True)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "kite", "arguments": {"query": "size"}}',  # no tool of ours
        '{"name": "search"}',
        '{"name": "search", "arguments": {"query": "size"}} is what a call looks like.',
        '```json\n{"name": "kite", "version": 2}\n```\n\nThat is the file.',
        "[1] says so.",
        "[Install](/install) it, then <b>run</b> `x < y`.",
        "Use a < b and [A] or [THIN] with <thin> paths: <https://example.org/a/long/address>.",
        "as it is, analysis of it shows; commentary follows.",
        "Write `<|im_end|>` behind each turn, and `<tool_call>` before a call.",
        "```xml\n<tool_call>{}</tool_call>\n<|im_end|></s>\n```\n",
        "It was <s>old</s> new.",
        "a",
        "analysis",
        "",
    ],
)
def test_other_text_is_left_as_it_is(text):
    for piece in (1, 3, 1 << 20):
        assert filtered(text, piece) == (text, "", ())


TOKENS = {
    "<think>Hm.</think>Run it.": ("Run it.", "Hm."),
    "<reasoning>Hm.</reasoning>Run it.": ("Run it.", "Hm."),
    "<thought>Hm.</thought>Run it.": ("Run it.", "Hm."),
    "[THINK]Hm.[/THINK]Run it.": ("Run it.", "Hm."),
    "◁think▷Hm.◁/think▷Run it.": ("Run it.", "Hm."),
    "<|START_THINKING|>Hm.<|END_THINKING|>Run it.": ("Run it.", "Hm."),
    "<|begin_of_thought|>Hm.<|end_of_thought|>Run it.": ("Run it.", "Hm."),
    "<seed:think>Hm.</seed:think>Run it.": ("Run it.", "Hm."),
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Run it.<|return|>": (
        "Run it.",
        "Hm.",
    ),
    "<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>Run it.": ("Run it.", "Hm."),
    "<|channel>thought\nHm.<channel|>Run it.": ("Run it.", "Hm."),
    "analysisWe look.assistantfinalRun it.": ("Run it.", "We look."),
    "Run it.<|im_end|>\n<|im_start|>user\nAnd then?": ("Run it.", ""),
    "<|im_start|>assistant\nRun it.<|im_end|>": ("Run it.", ""),
    "<|start_header_id|>assistant<|end_header_id|>\n\nRun it.<|eot_id|>": ("\n\nRun it.", ""),
    "<start_of_turn>model\nRun it.<end_of_turn>\n<start_of_turn>user\nThanks": ("Run it.", ""),
    "<s> Run it.</s>[INST] And then? [/INST]": (" Run it.", ""),
    "Run it.</s>": ("Run it.", ""),
    "Run it.<|endoftext|>Another document": ("Run it.", ""),
    "Run it.<｜end▁of▁sentence｜><｜User｜>And then?": ("Run it.", ""),
    "Run it.\n<|user|>\nAnd then?": ("Run it.\n", ""),
    "Run <|reserved_special_token_5|>it.": ("Run it.", ""),
    "<bos>Run it.<eos>": ("Run it.", ""),
    "Run it.[INST]And then?": ("Run it.", ""),
    "<think>Hm. `</think>` is said.</think>Run it.": ("Run it.", "Hm. `</think>` is said."),
    "<|start|>user<|message|>And then?": ("", ""),
}


@pytest.mark.parametrize("text", TOKENS)
def test_control_tokens_and_reasoning_are_removed(text):
    for piece in (1, 2, 5, 1 << 20):
        assert filtered(text, piece)[:2] == TOKENS[text]


def test_text_behind_a_call_that_was_cut_goes_on():
    reader = ModelTextFilter(TOOLS)
    assert reader.feed("Run ") + reader.pause() + reader.feed('{"name": ') + reader.finish() == 'Run {"name": '


def test_a_call_of_any_length_takes_no_more_than_it_needs():
    reader = ModelTextFilter(TOOLS)
    assert reader.feed("<tool_call>") == ""
    assert not any(reader.feed("x" * 10_000) for _ in range(300))
    reader.finish()
    assert sum(map(len, reader.take_calls())) < 1_100_000


PROMPT_TAGS = {
    f'<passage-{MARK} number="1" heading="Models › cost [of] `x`">It costs.</passage-{MARK}>': "It costs.",
    f"[question-{MARK}] It costs.": " It costs.",
    f"It reads `<documentation-{MARK}>`.": "It reads ``.",
    f"```\n</answer-{MARK}>\nx\n```\n": "```\n\nx\n```\n",
    f"It costs. <page-{MARK}": "It costs. ",
    f"<page-{MARK} a < b": " a < b",
    "<data 3aedc591>\nagent.md\n</data 3aedc591>": "\nagent.md\n",
    "See [data 3aedc591].": "See .",
    'It is in mcp.md <documentation-467774ab url="/mcp">, 2.': "It is in mcp.md , 2.",  # as a small model copied it
    "</site-owner-12345678>It costs.": "It costs.",
}


@pytest.mark.parametrize("text", PROMPT_TAGS)
def test_tags_of_the_prompt_are_removed_also_in_code(text):
    for piece in (1, 2, 5, 1 << 20):
        assert filtered(text, piece)[0] == PROMPT_TAGS[text]


@pytest.mark.parametrize(
    "text",
    [
        "<pod-7f9c4d5b> is of another prompt, and so is `<passage-12345678>`.",
        "```\n<passage-12345678>\n```",
        "[data 20261129] is a day, [data abc] is none.",
        "Open [the-page](/the-page-7f9c4d5b).",
        '<data value="12345678">',
        "<my-element-",
        "[my-element-1234567",
    ],
)
def test_words_like_tags_of_the_prompt_stay(text):
    for piece in (1, 2, 5, 1 << 20):
        assert filtered(text, piece) == (text, "", ())


@given(st.lists(st.sampled_from([MARK, f"-{MARK}", "-", "0d", "0d0b9a9", " page", "x"]), max_size=8), st.integers(1, 9))
def test_word_is_removed_wherever_the_text_is_cut(parts, piece):
    text = "x".join(parts)
    words = WordFilter(MARK)
    shown = "".join(words.feed(text[at : at + piece]) for at in range(0, len(text), piece)) + words.finish()
    assert shown == text.replace(f"-{MARK}", "").replace(MARK, "")


PARTS = st.sampled_from(
    [
        *TOKENS,
        *CALLS.values(),
        *PROMPT_TAGS,
        f"<page-{MARK}",
        f"[page-{MARK[:7]}",
        ' heading="x',
        "<data 3aed",
        "`",
        "```\n",
        "<",
        "[",
        "◁",
        "<|",
        "|>",
        "<think",
        "</",
        "Run it. ",
        "\n",
        "[1]",
        "{",
        '"name"',
    ]
)


@given(st.lists(PARTS, max_size=6).map("".join), st.integers(1, 30), st.randoms(use_true_random=False))
@example("<think>a`", 1, Random(1))
def test_result_does_not_depend_on_where_chunks_are_cut(text, piece, random):
    whole = filtered(text)
    assert filtered(text, piece) == whole
    reader, cuts = ModelTextFilter(TOOLS, MARK), sorted(random.choices(range(len(text) + 1), k=5))
    pieces = [text[begin:end] for begin, end in itertools.pairwise([0, *cuts, len(text)])]
    assert "".join(map(reader.feed, pieces)) + reader.finish() == whole[0]
    assert f"<page-{MARK}>" not in whole[0]
    assert "<|im_end|>" not in whole[0] or "`" in text
