"""The texts that a model is sent: files of Markdown beside the code that sends them, read once.

A folder of prompts is a package with one file for each text.

- A comment, ``<!-- … -->``, says why the text above it is there. It is for people; no model is sent it.
- ``{name}`` is the place of a value. Braces that stand for no value stay what they are.
- ``tools.md`` describes the tools: a heading for each, the description below it, then an item for each argument that
  needs one, as ``- `name`: description``; one of the items of an array is ``name.name``.
"""

from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import msgspec
from msgspec import Struct

from service.domain.prompts import KeptTool, PromptSet
from service.ports.model import Tool

_TOOLS = "tools"
_BEGIN, _END = "<!--", "-->"


class Rule(Struct, frozen=True):
    """A part of a prompt, with the reason for it."""

    text: str
    reason: str
    """Empty where the text has none of its own."""


class Prompts:
    """The prompts of one folder. ``package``: its name."""

    def __init__(self, package: str) -> None:
        self._package = package

    def text(self, name: str, /, **values: str) -> str:
        """Return a prompt with its values, filled in in one pass: what a value holds is never filled in again.

        Raises KeyError: there is no prompt of that name, or it has no place for one of the values.
        """
        text = self.texts[name]
        for key in values:
            if f"{{{key}}}" not in text:
                raise KeyError(key)
        parts = text.split("{")
        filled = [parts[0]]
        for part in parts[1:]:
            key, closed, rest = part.partition("}")
            filled.append(values[key] + rest if closed and key in values else "{" + part)
        return "".join(filled).strip()

    def tool(self, name: str, parameters: dict[str, Any]) -> Tool:
        """Return a tool with the descriptions that ``tools.md`` has. ``parameters``: its JSON Schema without them.

        Raises KeyError: the tool is not described, or an argument is that it does not have.
        """
        text, arguments = self._described[name]
        for argument, words in arguments.items():
            parameters = _with_description(parameters, argument.split("."), words)
        return Tool(name, text, parameters)

    def kept(self, used_by: str, *tools: Tool) -> PromptSet:
        """Return all of the folder's texts and the tools beside them, as the log keeps them."""
        kept = (
            KeptTool(tool.name, tool.description, msgspec.json.encode(tool.parameters, order="sorted").decode())
            for tool in tools
        )
        return PromptSet(used_by, {name: text for name, text in self.texts.items() if name != _TOOLS}, tuple(kept))

    @cached_property
    def texts(self) -> dict[str, str]:
        """All texts as a model is sent them, by name: the path of the file without its ending."""
        return {name: "".join(text for text, _ in _parts(whole)).strip() for name, whole in self._files.items()}

    def rules(self, name: str) -> list[Rule]:
        """Return a prompt's parts in order, each with its reason: for people."""
        return [Rule(text.strip("\n"), reason) for text, reason in _parts(self._files[name])]

    @cached_property
    def _files(self) -> dict[str, str]:
        return dict(sorted(_files(resources.files(self._package), "")))

    @cached_property
    def _described(self) -> dict[str, tuple[str, dict[str, str]]]:
        found = {}
        for section in f"\n{self.texts[_TOOLS]}".split("\n# ")[1:]:
            name, _, rest = section.partition("\n")
            text, *items = f"\n{rest}".split("\n- `")
            named = (item.partition("`: ") for item in items)
            found[name] = " ".join(text.split()), {argument: " ".join(words.split()) for argument, _, words in named}
        return found


def _with_description(schema: dict[str, Any], path: list[str], words: str) -> dict[str, Any]:
    """Return a schema of type object with a description of one of its fields, or of one of an array's items."""
    name, *rest = path
    field = schema["properties"][name]
    told = {"items": _with_description(field["items"], rest, words)} if rest else {"description": words}
    return {**schema, "properties": {**schema["properties"], name: {**field, **told}}}


def _files(folder: Traversable, path: str) -> list[tuple[str, str]]:
    found = []
    for one in folder.iterdir():
        if one.is_dir():
            found += _files(one, f"{path}{one.name}/")
        elif one.name.endswith(".md"):
            found.append((path + one.name.removesuffix(".md"), one.read_text(encoding="utf-8")))
    return found


def _parts(whole: str) -> list[tuple[str, str]]:
    """Return the text before each comment, with the comment's words; and the text behind the last one, with none."""
    parts = []
    while _BEGIN in whole:
        text, _, rest = whole.partition(_BEGIN)
        reason, _, whole = rest.partition(_END)
        whole = whole.removeprefix("\n")
        parts.append((text.rstrip(" "), " ".join(reason.split())))
    return [*parts, (whole, "")] if whole.strip() else parts
