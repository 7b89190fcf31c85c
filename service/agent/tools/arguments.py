"""The tools of a job's model: their names, what each is for, and the arguments that it takes.

The JSON Schemas that a model is shown come from the same structs that decode its arguments, so they cannot drift.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from service.domain.jobs.decider import TodoStatus
from service.ports.model import Tool


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Strict: a misspelt option that is ignored would do something else than the model meant."""


Path = Annotated[str, Meta(description="Path of a file from the root of the repository.")]
ReadPath = Annotated[
    str, Meta(description="Path of a file from the root of the repository, or @NAME/… in a context repository.")
]


Folder = Annotated[
    str,
    Meta(
        description='Only in this folder, or this file; none: the documentation; ".": the whole repository; '
        '"@NAME": a context repository.'
    ),
]


class ListFiles(Arguments, frozen=True, tag_field="tool", tag="list"):
    """List the files of the documentation, or of another folder of the repository. Folders with many files are shown as
    one line with their number.
    """

    folder: Folder = ""
    name: Annotated[
        str, Meta(max_length=400, description="Only paths that contain this text, or match a pattern such as *.mdx.")
    ] = ""


class Search(Arguments, frozen=True, tag_field="tool", tag="search"):
    """Search the files as they are now: the sections that best answer the words of the query, then the lines that
    contain the whole query.
    """

    query: Annotated[str, Meta(min_length=1, max_length=2000)]
    exact: Annotated[
        bool, Meta(description="Only lines that contain the query exactly so; upper and lower case differ.")
    ] = False
    regex: Annotated[bool, Meta(description="The query is a regular expression of Python, with ^ and $ for lines.")] = (
        False
    )
    folder: Folder = ""


class Read(Arguments, frozen=True, tag_field="tool", tag="read"):
    """Read a file, whole or a range of its lines. Each line is shown with its number and a tab before it, which are not
    part of the file. Longer texts come in parts; the result says how to go on.
    """

    path: ReadPath
    start_line: Annotated[int, Meta(ge=1)] = 1
    end_line: Annotated[int | None, Meta(description="Inclusive; -1, or none: the end of the file.")] = None


class Replace(Arguments, frozen=True, tag_field="tool", tag="replace"):
    """Replace text in a file. ``old`` must be copied exactly from it, without line numbers, and must be there
    once, unless ``all`` is set.
    """

    path: Path
    old: str
    new: str
    all: Annotated[bool, Meta(description="Replace every occurrence.")] = False
    line: Annotated[int | None, Meta(description="Only what begins on this line.")] = None


class Edit(Struct, frozen=True, forbid_unknown_fields=True):
    path: Path
    old: str
    new: str
    all: bool = False
    line: int | None = None


class EditFiles(Arguments, frozen=True, tag_field="tool", tag="edit"):
    """Replace texts in one file or several, in order, each as replace does. When one cannot be done, none is."""

    edits: Annotated[tuple[Edit, ...], Meta(min_length=1, max_length=100)]


class Insert(Arguments, frozen=True, tag_field="tool", tag="insert"):
    """Insert lines into a file after the given line (0: before the first); at the end if no line is given."""

    path: Path
    text: str
    after_line: Annotated[int, Meta(ge=0)] | None = None


class Write(Arguments, frozen=True, tag_field="tool", tag="write"):
    """Write a whole file: a new one, or in place of what it holds. To change a part use replace."""

    path: Path
    text: str


class Move(Arguments, frozen=True, tag_field="tool", tag="move"):
    """Move or rename a file. Links to it are not changed: check_links lists those to fix."""

    path: Path
    to: Path


class Delete(Arguments, frozen=True, tag_field="tool", tag="delete"):
    """Delete a file."""

    path: Path


class Revert(Arguments, frozen=True, tag_field="tool", tag="revert"):
    """Undo your changes of a file, or of all files in a folder: each is again as you found it, or as a commit had
    it.
    """

    path: Annotated[str, Meta(min_length=1, description='A file or a folder; ".": everything that you changed.')]
    commit: Annotated[
        str, Meta(description="Only for a file: the commit or tag whose text is wanted; none: the one you began with.")
    ] = ""


class CheckLinks(Arguments, frozen=True, tag_field="tool", tag="check_links"):
    """List broken links between pages, and missing pages that the navigation names, with the best replacements.

    Each line has the text in the file and, after the arrow, its replacement; "clear" if only one page fits.
    """

    changed: Annotated[bool, Meta(description="Only links that your changes broke.")] = False
    folder: Annotated[str, Meta(description="Only links in this folder, or this file.")] = ""


class Check(Arguments, frozen=True, tag_field="tool", tag="check"):
    """Run the checks that your changes have to pass before the pull request, and list the problems that they find."""


class CheckExternal(Arguments, frozen=True, tag_field="tool", tag="check_external"):
    """Ask other sites whether the links to them work. Use it when the task asks for it, or when you add such links."""

    all: Annotated[bool, Meta(description="Also links that were there before your changes.")] = False
    folder: Annotated[str, Meta(description="Only links in this folder, or this file.")] = ""


class Diff(Arguments, frozen=True, tag_field="tool", tag="diff"):
    """Show your own changes so far as a diff against the files as you found them, what an earlier commit changed, or
    what lies between two commits; in a context repository, what its last commit changed.
    """

    path: Annotated[
        str, Meta(description="Only this file, or the files in this folder; @NAME/… in a context repository.")
    ] = ""
    paths: Annotated[
        tuple[str, ...], Meta(max_length=50, description="Several files or folders, instead of path.")
    ] = ()
    commit: Annotated[
        str, Meta(description="Id of a commit that history lists; none: your own changes, or the last of the context.")
    ] = ""
    since: Annotated[str, Meta(description="Instead of commit: the older one, by its id, or a tag or branch.")] = (
        msgspec.field(default="", name="from")
    )
    to: Annotated[str, Meta(description="With from: the newer one; none: the files as you found them.")] = ""
    start_line: Annotated[int, Meta(ge=1, description="Of the diff, to go on with a long one.")] = 1


class History(Arguments, frozen=True, tag_field="tool", tag="history"):
    """List the last commits that changed a file or a folder: id, date, author and subject. Use diff to see one."""

    path: Annotated[str, Meta(description="A file or folder; none: every commit; @NAME/… in a context repository.")] = (
        ""
    )
    limit: Annotated[int, Meta(ge=1, le=50)] = 10
    skip: Annotated[
        int, Meta(ge=0, le=1000, description="Leave out the newest, this number of them, to see those before.")
    ] = 0


class PlanItem(Struct, frozen=True, forbid_unknown_fields=True):
    content: Annotated[str, Meta(min_length=1, max_length=500)]
    status: TodoStatus = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class Plan(Arguments, frozen=True, tag_field="tool", tag="plan"):
    """Show people your to-do list, always the whole list. Update it as you go; keep it short."""

    todos: Annotated[tuple[PlanItem, ...], Meta(max_length=50)]


class Ask(Arguments, frozen=True, tag_field="tool", tag="ask"):
    """Ask the people who gave the task, when you cannot go on without their answer. It ends your work for now: what you
    changed is kept, and you go on from it when they reply.
    """

    question: Annotated[str, Meta(min_length=1, max_length=2000, description="What you need to know, and why.")]


class Finish(Arguments, frozen=True, tag_field="tool", tag="finish"):
    """End the work. What you changed is checked, and opened as a pull request under this title and summary."""

    title: Annotated[
        str, Meta(min_length=1, max_length=200, description="What the pull request changes, such as: Document retries")
    ]
    summary: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=8000,
            description="What the whole pull request changes and why, in Markdown, for a maintainer who has read "
            "nothing of this conversation.",
        ),
    ]
    change: Annotated[
        str,
        Meta(
            max_length=200,
            description="Only in a further request of the same pull request: what this request alone changes, as the "
            "title of its commit.",
        ),
    ] = ""
    answer: Annotated[
        str,
        Meta(
            max_length=8000,
            description="Only in a further request of the same pull request: your answer to it, in a few sentences. "
            "The person who asked reads it, and it is a note below the summary.",
        ),
    ] = ""


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
    return tuple(
        Tool(name, " ".join((kind.__doc__ or "").replace("``", "").split()), _schema(kind))
        for name, kind in KINDS.items()
    )


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
