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
_PARAMETER = re.compile(r"<parameter(?:=| name=\")([\w.-]{1,64})\"?[^<>]{0,40}>\n?(.*?)\n?</parameter>", re.DOTALL)
_TAGGED = re.compile(
    r"<(?:function=|invoke name=\")([\w.:-]{1,64})\"?\s*>(.*?)(?:</(?:function|invoke)>|\Z)", re.DOTALL
)
_KEYS = re.compile(r"<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>\n?(.*?)\n?</arg_value>", re.DOTALL)
_NAME_BEFORE = re.compile(
    r"(?:to=|function<\uff5ctool▁sep\uff5c>|<\uff5ctool▁call▁begin\uff5c>)?(?:functions\.)?([A-Za-z_][\w-]{0,63})(?::\d+)?"
    r"[^{\w]*(?:<\|[\w]+\|>|\[ARGS\]|<\uff5ctool▁sep\uff5c>|```json|json|<\|constrain\|>json<\|message\|>|\s)*(?=\{)"
)


def written_calls(text: str, tools: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return the name and the arguments, as JSON text, of each call that a text is; empty where it is anything else.

    ``tools``: the names that may be called. One call that is not of these makes the whole text no calls.
    """
    if len(text) > MAX_CHARACTERS:
        return ()
    for form in (_in_tags, _in_json, _behind_names, _in_keys):
        found = list(form(text))
        if found:
            calls = [(_plain_name(name), arguments) for name, arguments in found]
            return tuple(calls) if all(name in tools for name, _ in calls) else ()
    return ()


def _plain_name(name: str) -> str:
    return name.strip().removeprefix("functions.").removeprefix("default_api.")


def _in_tags(text: str) -> Iterator[tuple[str, str]]:
    for name, inner in _TAGGED.findall(text):
        values = {key: _value(value) for key, value in _PARAMETER.findall(inner)}
        if not values and inner.strip().startswith("{"):
            values = _object(inner.strip()) or {}
        yield name, json.dumps(values, ensure_ascii=False)


def _in_keys(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"</?tool_call>", text):
        name, mark, _ = part.strip().partition("<arg_key>")
        if mark and name.strip():
            values = {key: _value(value) for key, value in _KEYS.findall(part)}
            yield name.strip().partition("\n")[0], json.dumps(values, ensure_ascii=False)


def _in_json(text: str) -> Iterator[tuple[str, str]]:
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


def _behind_names(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while (found := _NAME_BEFORE.search(text, at)) is not None:
        try:
            value, at = _DECODER.raw_decode(text, found.end())
        except (ValueError, RecursionError):
            return
        yield found[1], json.dumps(value, ensure_ascii=False)


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
