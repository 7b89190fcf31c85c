"""The tools that change files of the documentation."""

from typing import assert_never

from service.agent.tools.arguments import Changing, Delete, Insert, Move, Replace, Write
from service.agent.tools.results import Outcome, number_of, times
from service.agent.workspace import Workspace
from service.domain.tool_values import Replaced


async def change(workspace: Workspace, asked: Changing) -> Outcome:
    """Change the files as a call says. Raise Refused."""
    match asked:
        case Replace(path=path, old=old, new=new):
            changed, count = await workspace.replace(path, old, new, everywhere=asked.all, line=asked.line)
            return Outcome(f"Replaced {times(count)} in {changed.path}.", changes=(changed,), value=Replaced(count))
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
        case _:
            assert_never(asked)


def _lines(text: str) -> str:
    return number_of(len(text.splitlines()), "line")
