"""A site as text for agents: a page, the list of its pages (llms.txt), and all of them one behind another.

The texts hold the site's own pages and the addresses of its files. Nothing in them speaks to the agent: an instruction
that people do not see on the page would be one that its owner did not write.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from service.ports.search_index import ListedPage, Page
from service.web.http.site_addresses import markdown_path

FULL = "llms-full.txt"
MAX_DESCRIPTION = 300
"""Characters of a page's description in the list."""
MAIN = "Docs"
"""The section of the pages that are in no folder of their own."""
OTHERS = "Optional"
"""The section of what a reader in a hurry may leave out, by the format's own rule."""
_Parts: TypeAlias = tuple[str, ...]


def page_text(page: Page, source: str = "") -> str:
    """Return a page as Markdown that begins with its title; ``source``: the address to name below that."""
    content = page.content.strip()
    head, _, rest = content.partition("\n")
    if not head.startswith("# "):
        head, rest = f"# {plain(page.title)}", content
    parts = (head.rstrip(), f"Source: {source}" if source else "", rest.strip())
    return "\n\n".join(part for part in parts if part) + "\n"


def list_text(name: str, base: str, pages: Sequence[ListedPage]) -> str:
    """Return the llms.txt of a site. ``base``: the address of its Markdown."""
    root = next((page for page in pages if not page.url.strip("/")), None)
    summary = plain(root.description) if root is not None else ""
    head = [f"# {plain(name)}", *([f"> {summary}"] if summary else []), f"- [All pages in one file]({base}{FULL})"]
    return "\n\n".join([*head, *_sections(base, pages)]) + "\n"


def _sections(base: str, pages: Sequence[ListedPage]) -> Iterator[str]:
    main = [page for page in pages if page.is_main]
    for title, members in _by_folder(main).items():
        yield "\n\n".join([f"## {title}", _links(base, members)])
    others = [page for page in pages if not page.is_main]
    if others:
        yield "\n\n".join([f"## {OTHERS}", _links(base, others)])


def _links(base: str, pages: Sequence[ListedPage]) -> str:
    return "\n".join(f"- [{_label(page)}]({base}{markdown_path(page.url)}){_described(page)}" for page in pages)


def _label(page: ListedPage) -> str:
    title = plain(page.title) or plain(page.url)
    return title.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _described(page: ListedPage) -> str:
    description = plain(page.description)
    if len(description) > MAX_DESCRIPTION:
        description = f"{description[:MAX_DESCRIPTION].rsplit(' ', 1)[0]} …"
    return f": {description}" if description else ""


def _by_folder(pages: Sequence[ListedPage]) -> dict[str, list[ListedPage]]:
    """Return the pages by the name of the first folder in which their addresses differ, in the order of the first."""
    shared = _shared_folders(pages)
    folders: dict[str, list[ListedPage]] = {"": []}
    for page in pages:
        below = _parts(page.url)[shared:]
        folders.setdefault(below[0] if len(below) > 1 else "", []).append(page)
    for folder, members in list(folders.items()):
        if folder and len(members) == 1:
            folders[""] += folders.pop(folder)
    titles = {parts[shared]: page.title for page in pages if len(parts := _parts(page.url)) == shared + 1}
    named: dict[str, list[ListedPage]] = {}
    for folder, members in folders.items():
        if members:
            named.setdefault(_titled(folder, titles), []).extend(members)
    return named


def _shared_folders(pages: Sequence[ListedPage]) -> int:
    """Return the number of folders that all pages are below; the page at the root is in none, and counts for none."""
    folders: set[_Parts] = {_parts(page.url)[:-1] for page in pages if page.url.strip("/")}
    first = min(folders, default=())
    last = max(folders, default=())
    return next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))


def _parts(url: str) -> _Parts:
    return tuple(url.partition("#")[0].strip("/").split("/"))


def _titled(folder: str, titles: dict[str, str]) -> str:
    if not folder:
        return MAIN
    return plain(titles.get(folder, "")) or plain(folder.replace("-", " ").replace("_", " ")).capitalize()


def plain(text: str) -> str:
    """Return a text on one line, without control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
