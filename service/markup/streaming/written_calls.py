"""Calls of tools that a model wrote as text, since its server does not know its form: read where they are no prose.

| Form | Seen at |
|---|---|
| JSON with ``name`` and ``arguments`` or ``parameters``, one or a list, bare, fenced or in tags | Hermes, Qwen, Llama |
| ``<function=NAME><parameter=KEY>VALUE</parameter></function>`` | Qwen3-Coder, Llama |
| ``<invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>`` | Claude's form, MiniMax, DeepSeek |
| ``NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>`` | GLM |
| ``NAME[ARGS]{…}`` | Mistral |
| ``functions.NAME:0<|tool_call_argument_begin|>{…}`` | Kimi |
| ``function<…tool▁sep…>NAME`` and JSON behind it | DeepSeek |
| ``to=functions.NAME`` and JSON behind it | gpt-oss |
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

MAX_CHARACTERS = 200_000
"""More is not read as calls."""
_NAMES = ("name", "function", "tool", "tool_name", "recipient_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_DECODER = json.JSONDecoder(strict=False)
_TAG = re.compile(r"<(?:function=|invoke name=\")([\w.:-]{1,64})\"?\s{0,4}>")
_PARAMETER = re.compile(r"<parameter(?:=| name=\")([\w.-]{1,64})\"?[^<>]{0,40}>")
_WORD = re.compile(r"[A-Za-z_][\w.-]{0,80}")
MAX_BEFORE = 300
"""Characters before a document that its name is looked for in."""


def written_calls(text: str, tools: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return the name and the arguments, as JSON text, of each call that a text is; empty where it is anything else.

    ``tools``: the names that may be called. One call that is not of these makes the whole text no calls.
    """
    if len(text) > MAX_CHARACTERS:
        return ()
    for form in (_in_tags, _in_json, _behind_names, _in_keys):
        found = list(form(text, tools))
        if found:
            calls = [(_plain_name(name), arguments) for name, arguments in found]
            return tuple(calls) if all(name in tools for name, _ in calls) else ()
    return ()


def _plain_name(name: str) -> str:
    return name.strip().removeprefix("functions.").removeprefix("default_api.")


def _in_tags(text: str, _tools: Collection[str]) -> Iterator[tuple[str, str]]:
    opened = list(_TAG.finditer(text))
    for found, following in zip(opened, [*opened[1:], None], strict=False):
        inner = text[found.end() : len(text) if following is None else following.start()]
        values = {key: _value(value) for key, value in _parameters(inner)}
        if not values and "{" in inner:
            inner = inner.partition("</")[0].strip()
            values = _object(inner) or {}
        yield found[1], json.dumps(values, ensure_ascii=False)


def _parameters(inner: str) -> Iterator[tuple[str, str]]:
    at = 0
    while (found := _PARAMETER.search(inner, at)) is not None:
        end = inner.find("</parameter>", found.end())
        if end < 0:
            return
        yield found[1], _without_line_ends(inner[found.end() : end])
        at = end


def _without_line_ends(text: str) -> str:
    return text.removeprefix("\n").removesuffix("\n")


def _in_keys(text: str, _tools: Collection[str]) -> Iterator[tuple[str, str]]:
    for part in text.replace("</tool_call>", "<tool_call>").split("<tool_call>"):
        name, mark, _ = part.strip().partition("<arg_key>")
        if mark and name.strip():
            pieces = part.split("<arg_key>")[1:]
            values = {}
            for piece in pieces:
                key, _, value = piece.partition("</arg_key>")
                values[key.strip()] = _value(_without_line_ends(_between(value, "<arg_value>", "</arg_value>")))
            yield name.strip().partition("\n")[0], json.dumps(values, ensure_ascii=False)


def _between(text: str, begin: str, end: str) -> str:
    return text.partition(begin)[2].partition(end)[0]


def _in_json(text: str, _tools: Collection[str]) -> Iterator[tuple[str, str]]:
    """Read a text that has nothing but JSON, tags and fences."""
    found: list[tuple[str, str]] = []
    at = 0
    while (begin := min((i for i in (text.find("{", at), text.find("[{", at)) if i >= 0), default=-1)) >= 0:
        if _outside(text[at:begin]):
            return
        try:
            value, at = _DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return
        for each in value if isinstance(value, list) else [value]:
            call = _call_of(each)
            if call is None:
                return
            found.append(call)
    if not _outside(text[at:]):
        yield from found


_AROUND = re.compile(
    r"\s|```(?:json|tool_call|tool_code|xml)?|</?[\w:\uff5c]+>|<\|/?[\w]+\|?>|\[/?TOOL_CALLS?\]|<\uff5c[\w▁]+\uff5c>|[,;\]]",
    re.UNICODE,
)


def _outside(text: str) -> bool:
    """Return whether a text between documents has words."""
    return bool(_AROUND.sub("", text))


def _call_of(value: object) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    if isinstance(arguments, str):
        arguments = _object(arguments)
    if name is None or not isinstance(arguments, dict):
        return None
    return name, json.dumps(arguments, ensure_ascii=False)


def _behind_names(text: str, tools: Collection[str]) -> Iterator[tuple[str, str]]:
    at = 0
    while (begin := text.find("{", at)) >= 0:
        names = [_plain_name(word) for word in _WORD.findall(text[max(at, begin - MAX_BEFORE) : begin])]
        name = next((name for name in reversed(names) if name in tools), None)
        try:
            value, at = _DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return
        if name is None:
            return
        yield name, json.dumps(value, ensure_ascii=False)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _value(text: str) -> object:
    """Return the value of a parameter: JSON where it is an object, a list, a number or a truth value, else the text."""
    if (
        text.strip()[:1] in "{["
        or text.strip() in ("true", "false", "null")
        or re.fullmatch(r"-?\d{1,15}", text.strip())
    ):
        try:
            return _DECODER.decode(text.strip())
        except (ValueError, RecursionError):
            return text
    return text
