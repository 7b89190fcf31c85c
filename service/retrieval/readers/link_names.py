"""The names that pages give each other, and the page that a link leads to."""

import re
from collections.abc import Iterable, Mapping

from service.markup.pages import INDEX_NAMES, without_suffix
from service.retrieval.site.links import link_answer
from service.retrieval.site.navigation import Site

MAX_LINK_WORDS = 2000
"""Characters of what other pages call one."""


class Links:
    """Which page a link leads to."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._tails: Mapping[str, str] | None = None
        self._known: dict[tuple[str, str], str | None] = {}

    def target(self, path: str, href: str) -> str | None:
        """Return the page that a link leads to; None when it is none, or the same page."""
        place = "" if href.startswith("/") else path
        if (place, href) not in self._known:
            answer = link_answer(path, href, self._site)
            self._known[place, href] = answer.page or answer.meant or self._by_tail(href)
        found = self._known[place, href]
        return found if found != path else None

    def _by_tail(self, href: str) -> str | None:
        if self._tails is None:
            self._tails = _unique_tails(self._site.pages)
        return self._tails.get(_tail_key(href))


def called(counts: Mapping[str, int]) -> str:
    """Each name once however often it is used, the commonest first."""
    words, size = [], 0
    for text, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        size += len(text) + 3
        if size > MAX_LINK_WORDS:
            break
        words.append(text)
    return " / ".join(words)


def _unique_tails(paths: Iterable[str]) -> dict[str, str]:
    """Pages by the end of their path, where that end is one page's only: some sites link by no more than that."""
    found: dict[str, str | None] = {}
    for path in paths:
        parts = path.rpartition(".")[0].casefold().split("/")
        if parts[-1] in INDEX_NAMES:
            parts.pop()
        for length in (1, 2, 3):
            if length <= len(parts):
                tail = "/".join(parts[-length:])
                found[tail] = path if tail not in found else None
    return {tail: path for tail, path in found.items() if path is not None}


def _tail_key(href: str) -> str:
    target = href.partition("#")[0].partition("?")[0].strip("/").casefold()
    return re.sub(r"^(?:\.\./|\./)+|/(?:_?index|readme)$", "", without_suffix(target))
