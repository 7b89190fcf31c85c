"""A page's text with the lines of other files where it names them, as generators put them there before they read it.

Each syntax is one ``Expander`` in a module of its own, and one row of the table below: the sign that a page with it has
somewhere, and a function of numbered lines. Lines of other files have the number of the line that names them.
"""

from collections.abc import Callable, Sequence

from service.markup.dialects.dialect import Dialect
from service.markup.front_matter import split_front_matter
from service.retrieval.readers.includes import mdbook, vitepress
from service.retrieval.readers.includes.files import Files
from service.retrieval.readers.includes.mdx_code import code_of_components
from service.retrieval.readers.includes.mkdocs import Lines, code_files, files_in_braces, files_in_calls, snippets
from service.retrieval.readers.sphinx import myst
from service.retrieval.readers.sphinx.myst import SphinxPage

Expander = Callable[[Lines, Files, Dialect], Lines]
_EXPANDERS: Sequence[tuple[str, Expander]] = (
    ("8<-", snippets),
    ("{*", code_files),
    ("{!", files_in_braces),
    ("{%", files_in_calls),
    ("@include:", vitepress.markdown_files),
    ("<<<", vitepress.code_files),
    ("<Code", code_of_components),
    ("export const", code_of_components),
    ("{{#", mdbook.files_in_calls),
)


def expanded(
    text: str, dialect: Dialect, files: Files, page: SphinxPage | None = None
) -> tuple[str, Sequence[int] | None]:
    """Return the text, and the number of each of its lines in the file, from 0; None where that is its own.

    ``page``: of a Sphinx site, whose Markdown is MyST.
    """
    wanted = list(dict.fromkeys(expander for sign, expander in _EXPANDERS if sign in text))
    if not wanted and page is None:
        return text, None
    start = split_front_matter(text)[1]
    first = text.count("\n", 0, start)
    before: Lines = [(number, line) for number, line in enumerate(text[start:].split("\n"), first)]
    lines = before
    for expander in wanted:
        lines = expander(lines, files, dialect)
    if page is not None:
        lines = myst.shown(lines, files, page)
    if lines == before:
        return text, None
    return text[:start] + "\n".join(line for _, line in lines), [*range(first), *(number for number, _ in lines)]
