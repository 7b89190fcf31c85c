"""Readers of Markdown that several threads may use at once."""

from markdown_it import MarkdownIt
from markdown_it.common.normalize_url import normalizeLink, normalizeLinkText

# mdurl's two tables of characters are put in place before they are filled, too: a second thread that comes at that
# moment reads a wrong address, or fails. They are made while this module is imported, which other threads wait for.
for make_table in (normalizeLink, normalizeLinkText):
    make_table("/")


def prepared(parser: MarkdownIt) -> MarkdownIt:
    """Return the parser, with the tables of its rules made.

    markdown-it makes each table at its first use, and puts it in place before it is filled: a second thread that comes
    at that moment finds no rules, and fails with "none of the block rules matched". Call this once all rules are added.
    """
    for ruler in (parser.core.ruler, parser.block.ruler, parser.inline.ruler, parser.inline.ruler2):
        ruler.getRules("")
    return parser
