"""The language of a page, and the pages that are copies of one another: in several languages, or of several versions.

A page has two languages. That of its place is what the site says: front matter, navigation, the folder of a language.
That of its text is mostly the same, but an untranslated page in a language's folder is English text at another address.

Copies have the same path below the folder of their language and version (``copy_key``), as every generator wants it;
an address would be no better, for translators translate slugs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct

from service.markup.languages.detection import known_language
from service.retrieval.site.layout import LANGUAGE, LANGUAGES, VERSION, Layout

_UNVERSIONED = frozenset(("next", "current", "latest", "stable"))
"""Names of a folder, or a part of an address, that stands for a version."""
LEADING = 2
"""Folders that a page's path may begin with: its language and its version."""


def is_language(tag: str) -> bool:
    """Return whether the name of a folder is that of a language, such as ``pt-BR``."""
    return tag[:2].lower() in LANGUAGES and LANGUAGE.fullmatch(tag) is not None


def text_language(found: str, told: str, default: str) -> str:
    """Return the language that a page's text is in. ``found``: by the text alone; ``told``: of its place; ``default``:
    of the site.

    What the site says holds, but for a text that is plainly in the language that it was translated from: lists of words
    take kindred languages for each other, and do not have all of them.
    """
    base = known_language(told)
    default = known_language(default) or "en"
    if not base:
        return found or default
    return found if found in ("en", default) else base


def copy_key(layout: Layout, path: str, language: str, version: str, base: str) -> str:
    """Return what the copies of a page share. ``base``: the prefix of addresses that the site has by default."""
    mount, inside = layout.below_mount(path)
    prefix = base if mount == "\0" else mount
    told = {tag.casefold() for tag in (language, version) if tag}
    lead = [part for part in prefix.split("/") if part and not _is_told(part, told)]
    folders = inside.casefold().split("/")
    name = folders.pop().rpartition(".")[0]
    stem, _, suffix = name.rpartition(".")
    if stem and is_language(suffix):
        name = stem
    for _ in range(LEADING):
        if folders and _is_told(folders[0], told):
            del folders[0]
    return "/".join((*lead, "", *folders, name))


def _is_told(part: str, told: Iterable[str]) -> bool:
    return part.casefold() in told or _is_tag(part)


@lru_cache(maxsize=4096)
def _is_tag(part: str) -> bool:
    """Return whether a folder may be that of a language or a version: few names are those of most pages."""
    return part in _UNVERSIONED or is_language(part) or VERSION.fullmatch(part) is not None


class Copy(Struct, frozen=True, gc=False):
    """A page, as it may be a copy of others."""

    key: str
    language: str
    version: str
    text_language: str
    content: bytes
    """A name of its content: equal where the text is."""


def groups_of(pages: Mapping[int, Copy]) -> dict[int, int]:
    """Return, for the pages that have copies, the number of their group, the lowest of their ids.

    Two pages of one language and version are no copies. A folder may have a language's code for a name and be none
    (``id``): without a page in that language, only pages that say the same as another are copies.
    """
    real = {page.language for page in pages.values() if page.text_language == known_language(page.language)}
    found: dict[str, dict[tuple[str, str], int]] = {}
    for number, page in sorted(pages.items()):
        if page.key:
            found.setdefault(page.key, {}).setdefault((page.language, page.version), number)
    groups = {}
    for same in found.values():
        if len(same) < 2:
            continue
        contents = Counter(pages[number].content for number in same.values())
        kept = [n for (language, _), n in same.items() if language in {"", *real} or contents[pages[n].content] > 1]
        if len(kept) > 1:
            groups.update(dict.fromkeys(kept, min(kept)))
    return groups
