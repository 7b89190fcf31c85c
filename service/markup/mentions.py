"""Whether a comment addresses somebody: ``@name`` in its own words, not in code or in what it quotes."""

import re

MAX_CHARACTERS = 65_536
"""Limit for the part of a comment that is looked through."""


def names(text: str, name: str) -> bool:
    """Return whether ``@name`` stands anywhere, which is quick to see."""
    return _pattern(name).search(text[:MAX_CHARACTERS]) is not None


def mentions(text: str, name: str) -> bool:
    """Return whether a comment in Markdown addresses the name."""
    if not names(text, name):
        return False
    from service.markup.markdown import Markdown  # late: a start does not wait for what few comments need

    prose = Markdown(text[:MAX_CHARACTERS]).prose
    return names("\n".join(line for line in prose.split("\n") if not line.lstrip().startswith(">")), name)


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w@/.`-])@{re.escape(name)}(?![\w-])", re.IGNORECASE)
