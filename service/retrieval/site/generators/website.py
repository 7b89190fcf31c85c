"""A live site's pages as they were fetched: a file says the address and title of each."""

import json

from service.markup.dialects.dialect import Dialect
from service.retrieval.site.layout import MAX_FACT, Layout, NavEntry, Read, clean_url, read_text

WEBSITE = ".docsmith/website.json"
"""The file with the addresses and titles of a live site's pages: ``{path: {url, title}}``."""


def website(files: frozenset[str], read: Read) -> Layout:
    try:
        told = json.loads(read_text(read, WEBSITE))
    except (ValueError, RecursionError):
        told = {}
    addresses: dict[str, str] = {}
    entries: dict[str, NavEntry] = {}
    for path, page in told.items() if isinstance(told, dict) else ():
        if path in files and isinstance(page, dict) and isinstance(page.get("url"), str):
            addresses[path] = clean_url(page["url"])
            entries[path] = NavEntry(len(entries), str(page.get("title") or "")[:MAX_FACT])
    return Layout("plain", "", "", Dialect(), ("",), entries, addresses=addresses)
