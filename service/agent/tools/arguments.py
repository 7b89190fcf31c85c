"""The tools of a job's model: their names, and the arguments that each takes. ``prompts/tools.md`` describes them.

The JSON Schemas that a model is shown come from the same structs that decode its arguments, so they cannot drift.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from service.agent.prompts import PROMPTS
from service.domain.jobs.decider import TodoStatus
from service.ports.model import Tool


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Strict: a misspelt option that is ignored would do something else than the model meant."""


class ListFiles(Arguments, frozen=True, tag_field="tool", tag="list"):
    folder: str = ""
    name: Annotated[str, Meta(max_length=400)] = ""


class Search(Arguments, frozen=True, tag_field="tool", tag="search"):
    query: Annotated[str, Meta(min_length=1, max_length=2000)]
    exact: bool = False
    regex: bool = False
    folder: str = ""


class Read(Arguments, frozen=True, tag_field="tool", tag="read"):
    path: str
    start_line: Annotated[int, Meta(ge=1)] = 1
    end_line: int | None = None


class Replace(Arguments, frozen=True, tag_field="tool", tag="replace"):
    path: str
    old: str
    new: str
    all: bool = False
    line: int | None = None


class Edit(Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    old: str
    new: str
    all: bool = False
    line: int | None = None


class EditFiles(Arguments, frozen=True, tag_field="tool", tag="edit"):
    edits: Annotated[tuple[Edit, ...], Meta(min_length=1, max_length=100)]


class Insert(Arguments, frozen=True, tag_field="tool", tag="insert"):
    path: str
    text: str
    after_line: Annotated[int, Meta(ge=0)] | None = None


class Write(Arguments, frozen=True, tag_field="tool", tag="write"):
    path: str
    text: str


class Move(Arguments, frozen=True, tag_field="tool", tag="move"):
    path: str
    to: str


class Delete(Arguments, frozen=True, tag_field="tool", tag="delete"):
    path: str


class Revert(Arguments, frozen=True, tag_field="tool", tag="revert"):
    path: Annotated[str, Meta(min_length=1)]
    commit: str = ""


class CheckLinks(Arguments, frozen=True, tag_field="tool", tag="check_links"):
    changed: bool = False
    folder: str = ""


class Check(Arguments, frozen=True, tag_field="tool", tag="check"):
    pass


class CheckExternal(Arguments, frozen=True, tag_field="tool", tag="check_external"):
    all: bool = False
    folder: str = ""


class Diff(Arguments, frozen=True, tag_field="tool", tag="diff"):
    path: str = ""
    paths: Annotated[tuple[str, ...], Meta(max_length=50)] = ()
    commit: str = ""
    since: str = msgspec.field(default="", name="from")
    to: str = ""
    start_line: Annotated[int, Meta(ge=1)] = 1


class History(Arguments, frozen=True, tag_field="tool", tag="history"):
    path: str = ""
    limit: Annotated[int, Meta(ge=1, le=50)] = 10
    skip: Annotated[int, Meta(ge=0, le=1000)] = 0


class PlanItem(Struct, frozen=True, forbid_unknown_fields=True):
    content: Annotated[str, Meta(min_length=1, max_length=500)]
    status: TodoStatus = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class Plan(Arguments, frozen=True, tag_field="tool", tag="plan"):
    todos: Annotated[tuple[PlanItem, ...], Meta(max_length=50)]


class Ask(Arguments, frozen=True, tag_field="tool", tag="ask"):
    question: Annotated[str, Meta(min_length=1, max_length=2000)]


class Finish(Arguments, frozen=True, tag_field="tool", tag="finish"):
    title: Annotated[str, Meta(min_length=1, max_length=200)]
    summary: Annotated[str, Meta(min_length=1, max_length=8000)]
    change: Annotated[str, Meta(max_length=200)] = ""
    answer: Annotated[str, Meta(max_length=8000)] = ""


Looking: TypeAlias = ListFiles | Search | Read | Diff | History
Changing: TypeAlias = Replace | EditFiles | Insert | Write | Move | Delete | Revert
Checking: TypeAlias = CheckLinks | CheckExternal | Check
Reporting: TypeAlias = Plan | Ask | Finish
ToolArguments: TypeAlias = Looking | Changing | Checking | Reporting

WRITING = frozenset({"write", "replace", "edit", "insert", "move", "delete", "revert"})
"""Tools that change files."""
KINDS: dict[str, type[ToolArguments]] = {
    "list": ListFiles,
    "search": Search,
    "read": Read,
    "replace": Replace,
    "edit": EditFiles,
    "insert": Insert,
    "write": Write,
    "move": Move,
    "delete": Delete,
    "revert": Revert,
    "check_links": CheckLinks,
    "check_external": CheckExternal,
    "check": Check,
    "diff": Diff,
    "history": History,
    "plan": Plan,
    "ask": Ask,
    "finish": Finish,
}


def written_paths(arguments: ToolArguments) -> tuple[str, ...]:
    """Return the paths that a call would write."""
    match arguments:
        case Move(path=path, to=to):
            return path, to
        case EditFiles(edits=edits):
            return tuple(edit.path for edit in edits)
        case Replace(path=path) | Insert(path=path) | Write(path=path) | Delete(path=path) | Revert(path=path):
            return (path,)
        case _:
            return ()


@cache
def descriptions() -> tuple[Tool, ...]:
    """Return the tools as a model sees them: made once, since it takes 2 ms and each call of a model needs them."""
    return tuple(PROMPTS.tool(name, _schema(kind)) for name, kind in KINDS.items())


def shown_fields(name: str) -> str:
    """Return a tool's fields in words, for a model that gave others."""
    return _shown_fields(next(tool.parameters for tool in descriptions() if tool.name == name))


def _shown_fields(schema: Mapping[str, Any]) -> str:
    shown = []
    for field, value in schema["properties"].items():
        notes = ["required"] if field in schema.get("required", ()) else []
        if "enum" in value:
            notes.append(" or ".join(map(str, value["enum"])))
        if "properties" in value.get("items", ()):
            notes.append(f"each with {_shown_fields(value['items'])}")
        shown.append(f"{field} ({'; '.join(notes)})" if notes else field)
    return ", ".join(shown) or "none"


def _schema(kind: type[ToolArguments]) -> dict[str, Any]:
    """The parameters' JSON Schema in one piece: some providers follow no ``$ref``."""
    _, definitions = msgspec.json.schema_components([kind], ref_template="{name}")

    def inline(node: Any) -> Any:
        if isinstance(node, dict):
            if "$ref" in node:
                return inline(definitions[node["$ref"]])
            return {key: inline(value) for key, value in node.items() if key != "title" or not isinstance(value, str)}
        return [inline(item) for item in node] if isinstance(node, list) else node

    schema: dict[str, Any] = inline(definitions[kind.__name__])
    properties = {name: value for name, value in schema["properties"].items() if name != "tool"}
    required = [name for name in schema.get("required", []) if name != "tool"]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
