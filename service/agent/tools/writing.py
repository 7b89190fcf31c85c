"""The tools that change files of the documentation."""

from collections.abc import Sequence
from typing import assert_never

from service.agent.guards.refused import Refused
from service.agent.tools.arguments import Changing, Delete, Edit, EditFiles, Insert, Move, Replace, Revert, Write
from service.agent.tools.results import Outcome, named, number_of, times
from service.agent.workspace import Workspace
from service.domain.jobs.decider import FileChange
from service.domain.tool_values import Replaced


async def change(workspace: Workspace, asked: Changing) -> Outcome:
    """Change the files as a call says. Raise Refused."""
    match asked:
        case Replace(path=path, old=old, new=new):
            changed, count = await workspace.replace(path, old, new, everywhere=asked.all, line=asked.line)
            return Outcome(f"Replaced {times(count)} in {changed.path}.", changes=(changed,), value=Replaced(count))
        case EditFiles(edits=edits):
            return await _edited(workspace, edits)
        case Insert(path=path, text=text, after_line=after_line):
            (changed,) = await workspace.insert(path, text, after_line)
            return Outcome(f"Inserted {_lines(text)} in {changed.path}.", changes=(changed,))
        case Write(path=path, text=text):
            (changed,) = await workspace.write(path, text)
            return Outcome(f"Wrote {changed.path}, {_lines(text)}.", changes=(changed,))
        case Move(path=path, to=to):
            changes = await workspace.move(path, to)
            said = f"Moved {changes[0].path} to {changes[1].path}. Links to it are as they were: see check_links."
            return Outcome(said, changes=changes)
        case Delete(path=path):
            (changed,) = await workspace.delete(path)
            return Outcome(f"Deleted {changed.path}.", changes=(changed,))
        case Revert(path=path, commit=commit):
            changes = await workspace.revert(path, commit)
            return Outcome(f"As before: {named([change.path for change in changes])}.", changes=changes)
        case _:
            assert_never(asked)


async def _edited(workspace: Workspace, edits: Sequence[Edit]) -> Outcome:
    """Do all edits, or none: each on what those before it made of the files."""
    copy = workspace.copy()
    made: dict[str, FileChange] = {}
    counts: dict[str, int] = {}
    for number, edit in enumerate(edits, 1):
        try:
            change, count = await copy.replace(edit.path, edit.old, edit.new, everywhere=edit.all, line=edit.line)
        except Refused as refused:
            if len(edits) == 1:
                raise
            reason = f"Nothing was changed, because of edit {number} of {len(edits)}: {refused.reason}"
            raise Refused(reason, refused.advice, docs_folder=refused.docs_folder) from None
        copy.apply((change,))
        made[change.path] = change
        counts[change.path] = counts.get(change.path, 0) + count
    said = "\n".join(f"Replaced {times(count)} in {path}." for path, count in counts.items())
    return Outcome(said, changes=tuple(made.values()), value=Replaced(sum(counts.values())))


def _lines(text: str) -> str:
    return number_of(len(text.splitlines()), "line")
