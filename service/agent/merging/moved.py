"""Work that is put on another commit, since others pushed to its branch before the job did."""

from service.agent.loop.job_context import JobContext
from service.agent.merging.files import Names, merge_texts
from service.agent.merging.sides import Side, is_writable
from service.agent.workspace import Workspace
from service.domain.errors import Conflict
from service.domain.jobs.decider import FileChange, Rebase

MAX_CHANGED = 1_000
REPEAT = "Send the job a message to repeat the work on the current files."


async def rebased(workspace: Workspace, head: str, names: Names, context: JobContext) -> Rebase:
    """Return the command that puts the work on the head of its branch, with the files that both sides changed merged.

    Raises Conflict (``branch_moved``): one of them cannot be merged by lines.
    """
    before, after = [await Side.read(context.docs, context.source, one) for one in (workspace.commit, head)]
    changed = sorted(path for path in before.files.keys() | after.files.keys() if before.blob(path) != after.blob(path))
    if workspace.merged is None:
        changed = [path for path in changed if path in workspace.changes]
    if len(changed) > MAX_CHANGED:
        raise Conflict(f"More than {MAX_CHANGED} files were changed on {names.theirs}. {REPEAT}", code="branch_moved")
    texts: dict[str, tuple[str | None, str | None, str | None]] = {}
    for side in (before, after):
        await side.load(changed)
    for path in changed:
        is_text = before.is_text_or_absent(path) and after.is_text_or_absent(path)
        if path in workspace.changes and not is_text:
            raise Conflict(
                f"{path} was changed on {names.theirs} while the job worked on it, and cannot be merged. {REPEAT}",
                code="branch_moved",
            )
        if path in workspace.changes or (is_text and is_writable(path, workspace.docs_folder)):
            texts[path] = (before.text(path), await workspace.text(path), after.text(path))
    found = await merge_texts(texts, names)
    changes = tuple(FileChange(path, found.changes[path]) for path in sorted(found.changes))
    return Rebase(head, context.now(), changes=changes, conflicts=found.conflicts)
