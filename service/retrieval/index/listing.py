"""The pages of an index, listed: all of them in the order of the site, and those besides others."""

import json
import sqlite3
from collections.abc import Sequence

from service.markup.addresses import encoded_address
from service.markup.languages.detection import known_language
from service.ports.search_index import ListedPage, OtherPages, PageList, PageName
from service.retrieval.index.stored import CHANGELOG

MAX_GROUPS = 100


def list_pages(db: sqlite3.Connection, readers: Sequence[str] | None) -> PageList:
    """Return all pages for these readers: those of the navigation first, in its order, then the others by path."""
    facts = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('commit', 'language')"))
    own = ("", str(facts.get("language") or "en"))
    rows = db.execute(
        "SELECT path, url, title, description, language, is_default AND is_history != ?, groups FROM pages"
        " ORDER BY position < 0, position, path",
        (CHANGELOG,),
    )
    return PageList(
        str(facts["commit"]),
        tuple(
            ListedPage(
                path,
                encoded_address(url),
                title,
                description,
                is_main=bool(is_main) and known_language(language) in own,
            )
            for path, url, title, description, language, is_main, groups in rows
            if is_for(groups, readers)
        ),
    )


def pages_besides(db: sqlite3.Connection, paths: Sequence[str], limit: int) -> OtherPages:
    """Return the number of the pages whose files are not among the paths, and the first of them."""
    others, given = "FROM pages WHERE path NOT IN (SELECT value FROM json_each(?))", json.dumps(list(paths))
    (count,) = db.execute(f"SELECT count(*) {others}", (given,)).fetchone()
    rows = db.execute(f"SELECT path, url, title {others} ORDER BY id LIMIT ?", (given, limit))
    return OtherPages(count, tuple(PageName(path, encoded_address(url), title) for path, url, title in rows))


def reader_groups(db: sqlite3.Connection) -> list[str]:
    """Return the groups of readers that pages are restricted to, sorted: the first hundred."""
    rows = db.execute("SELECT DISTINCT groups FROM pages WHERE groups != '' LIMIT ?", (MAX_GROUPS * 10,))
    return sorted({group for (groups,) in rows for group in groups.split("\n")} - {""})[:MAX_GROUPS]


def is_for(groups: str, readers: Sequence[str] | None) -> bool:
    """Return whether a page with this column of groups is for these readers; None: for the service's own use."""
    return readers is None or not groups or any(f"\n{group.casefold()}\n" in groups for group in readers)
