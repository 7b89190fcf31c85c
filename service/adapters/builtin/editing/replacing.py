"""Replace a text in a page, in the pages of a folder, or in all."""

from collections.abc import Sequence

from service.adapters.builtin.editing.forms import Replace, short
from service.adapters.builtin.editing.pages import is_page
from service.adapters.builtin.editing.steps import MAX_EDITS, Editing, Step, Steps, counted, named
from service.adapters.builtin.editing.tool_results import found_in, times_replaced


def replace_text(editing: Editing, asked: Replace) -> Steps:
    name = f"Replaced {short(asked.old)} with {short(asked.new)}"
    scope = (yield from editing.scope(asked.path)) if asked.path else ""
    if asked.path and not scope:
        return
    if is_page(scope):
        yield from _replace_in(editing, name, asked, [scope], more=0)
        return
    found = yield from editing.one(
        "Searching the pages. ", "search", query=asked.old, exact=True, **({"folder": scope} if scope else {})
    )
    paths, count = found_in(found)
    pages = [path for path in paths if is_page(path)]
    left_alone = [path for path in paths if path not in pages]
    if left_alone:
        editing.say(f"Left alone, because they are not pages: {named(left_alone)}.")
    if not pages:
        where = f" in {scope}" if scope else ""
        editing.say(f"No page{where} contains {short(asked.old)}.")
        return
    yield from _replace_in(editing, name, asked, pages[:MAX_EDITS], more=count - len(paths))


def _replace_in(editing: Editing, name: str, asked: Replace, pages: Sequence[str], *, more: int) -> Steps:
    calls = [("replace", {"path": page, "old": asked.old, "new": asked.new, "all": True}) for page in pages]
    results = yield from editing.ask(Step(f"Replacing in {counted(len(pages), 'page')}. ", tuple(calls)))
    times = sum(map(times_replaced, results))
    done = [page for page, result in zip(pages, results, strict=True) if not result.is_error]
    if done:
        editing.say(f"{name}: {counted(times, 'time')} in {counted(len(done), 'page')}.")
    editing.report_errors(results)
    if more > 0:
        editing.say(f"{counted(more, 'more page')} contain it: ask again for the rest.")
