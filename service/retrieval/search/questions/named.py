"""Pages that a question names: by a title that is one side of a comparison, or by signs such as ``===``.

A bare noun as a side ("ConfigMap or Secret?") is on hundreds of pages; the one that is about it has it as its title.
Signs are no words: the index of words has none of them, but titles do, "Strict equality (===)".
"""

import re
from collections.abc import Mapping

from service.markup.languages.stop_words import stop_words

MAX_SIGNS = 4
MAX_TITLE = 100
"""Characters of a question that may be a title."""
_USE = re.compile(r"\s(?:for|when|in|if|to|with|on|at)\s.*", re.IGNORECASE | re.DOTALL)
"""The purpose that a side is wanted for."""
_COMPARING = frozenset(
    [
        "between",
        "explain",
        "difference",
        "differences",
        "vs",
        "versus",
        "compare",
        "compared",
        "mean",
        "means",
        "operator",
        "operators",
    ]
)
_SIGN = re.compile(r"(?<!\S)[`'\"(]{0,2}([!#$%&*+./:<=>?@^|~-]{1,4})[`'\")]{0,2}[?.,;]?(?!\S)")


def titles_of(side: str) -> tuple[str, ...]:
    """Return the titles that a page about one side of a comparison may have."""
    return tuple(dict.fromkeys((side, _USE.sub("", side))))


def signs_of(question: str) -> tuple[str, ...]:
    """Return the signs that a question is about; none where it has other words to search for."""
    words = re.findall(r"[^\W_]+", question[:300].casefold())
    if any(word not in stop_words("en") and word not in _COMPARING for word in words):
        return ()
    typed = question[:300].rstrip()
    if typed.endswith("?") and typed[-2:-1].strip() and re.search(r"\w", typed[:-2]):
        typed = typed[:-1]
    signs = (match[1] for match in _SIGN.finditer(typed))
    return tuple(dict.fromkeys(sign for sign in signs if sign not in ("?", ".", "-")))[:MAX_SIGNS]


def has_sign(title: str, sign: str) -> bool:
    """Return whether a title has a sign by itself: ``==`` is no part of ``===``."""
    return re.search(rf"(?<![^\w\s(`'\"]){re.escape(sign)}(?![^\w\s)`'\"])", title) is not None


def may_be_title(query: str) -> bool:
    """Return whether a question is short enough to be a title."""
    return len(_typed(query)) <= MAX_TITLE


def _typed(query: str) -> str:
    return " ".join(query[: 2 * MAX_TITLE].split())


def _bare(title: str) -> str:
    """Return a title without capitals, and without the mark that makes a question of it: "Why Ships" is so asked."""
    return title.casefold().rstrip(" ?？") or title.casefold()  # noqa: RUF001


def page_titled(query: str, titles: Mapping[int, str]) -> int | None:
    """Return the first page whose title is the query letter for letter, or else but for capitals and a question
    mark. ``titles``: by page.

    Terms know neither accents nor capitals, so pages named ``É`` and ``È`` rank alike.
    """
    if not may_be_title(query):
        return None
    typed = _typed(query)
    begun = typed[:1].casefold()  # few do, and the others cannot be it
    shown = {page: " ".join(title.split()) for page, title in titles.items() if title.lstrip()[:1].casefold() == begun}
    same = [page for page, title in shown.items() if title == typed]
    bare = _bare(typed)
    same = same or [page for page, title in shown.items() if _bare(title) == bare]
    return same[0] if same else None
