"""A page that was written, read again by the reader that the index has: where its title is not the one that was meant,
what it was before is put back.
"""

from collections.abc import Generator, Sequence

from service.adapters.builtin.editing.forms import short
from service.adapters.builtin.editing.steps import Editing, Step, Turn, rewrites
from service.adapters.builtin.editing.tool_results import lines_in, title_read
from service.markup.front_matter import block_of, split_front_matter
from service.markup.prose import plain


def reads_as_meant(
    editing: Editing, page: str, title: str, before: Sequence[str] | None
) -> Generator[Step, Turn, bool]:
    """Return whether the title of a page is read as it was meant; where it is not, undo the edit and report it.
    ``before``: the lines that it had; None for a new page.
    """
    first = yield from editing.one("", "read", path=page, start_line=1)
    begun, goes_on = lines_in(first)
    after = (yield from editing.lines(page, begun)) if goes_on else begun
    found = _problem(title_read(first), after, title, before)
    if not found:
        return True
    if before is None:
        yield from editing.one("", "delete", path=page)
    else:
        yield from editing.ask(Step("", tuple(rewrites(page, after, before))))
    editing.say(f"{page} was left as it was: {found}" if before is not None else f"{page} was not created: {found}")
    return False


def _problem(shown: str | None, after: Sequence[str], title: str, before: Sequence[str] | None) -> str:
    text = "\n".join(after)
    if before is not None:
        if before and after and before[0].startswith("\ufeff") != after[0].startswith("\ufeff"):
            return "its byte order mark would be lost."
        was, now = block_of("\n".join(before)), block_of(text)
        if (was is None) != (now is None) or (was is not None and now is not None and was.is_toml != now.is_toml):
            return "its front matter would be lost."
    has_fields = split_front_matter(text.removeprefix("\ufeff"))[1] > 0
    meant = [title] if not has_fields else [title, plain(title)]  # the index reads marks in front matter, too
    if shown is None or _words(shown) in map(_words, meant):
        return ""
    return f"with this title it would read {short(shown)}."


def _words(title: str) -> str:
    return " ".join(title.replace("`", "").casefold().split())
