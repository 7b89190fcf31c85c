"""The links of a page, for an agent that goes from page to page: those within the site lead to Markdown."""

from collections.abc import Iterator, Sequence
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urljoin

from service.markup.links import is_external
from service.ports.search_index import Page, SiteLinks
from service.web.http.site_addresses import markdown_path

MAX_CHARACTERS = 200_000
"""Characters of a page; the links of a longer one stay as they are."""
MAX_LINKS = 2_000
"""Links of a page that are changed; those after them stay as they are."""
_OF_FILES = (".md", ".mdx", ".markdown", ".rst", ".ipynb")


def with_markdown_links(page: Page, site: SiteLinks, base: str) -> str:
    """Return a page's content with the addresses of other pages' Markdown in its links. ``base``: their beginning.

    A link that leads to no page of the site, such as one to a picture, stays as it is.
    """
    if len(page.content) > MAX_CHARACTERS:
        return page.content
    from service.markup.markdown import Markdown  # late: 20 ms, on the caller's thread

    markdown = Markdown(page.content)
    kept: list[str] = []
    at = 0
    links = (link for link in markdown.links if link.kind != "reference" and not link.is_image)
    for _, link in zip(range(MAX_LINKS), sorted(links, key=lambda link: link.start), strict=False):
        address = _address(link.target.strip(), page, site, base)
        if address is not None and link.start >= at:
            kept += [markdown.text[at : link.start], address]
            at = link.start + len(link.target)
    return "".join([*kept, markdown.text[at:]])


def _address(target: str, page: Page, site: SiteLinks, base: str) -> str | None:
    """Return the address of the Markdown of the page that a link means; None where it means none."""
    url = url_of_link(target, page, site)
    return None if url is None else f"{base}{markdown_path(url)}" + (f"#{url.partition('#')[2]}" if "#" in url else "")


def url_of_link(target: str, page: Page, site: SiteLinks, readers: Sequence[str] = ()) -> str | None:
    """Return the URL, with its anchor, of the page that a link within the site means; None where it means none."""
    path, mark, anchor = target.partition("#")
    if not path or path.startswith("{") or is_external(target):
        return None
    addresses = (site.resolve(f"{meant}{mark}{anchor}", readers=readers) for meant in _meant(path, page))
    return next((url for url in addresses if url is not None), None)


def _meant(path: str, page: Page) -> Iterator[str]:
    """Yield the addresses that a link may mean, the likeliest first: a file is named from that of the page, an address
    from the page's own.
    """
    if path.startswith("/"):
        yield path
        return
    of_file, of_url = normpath(join("/", dirname(page.path), unquote(path))), urljoin(page.url, path)
    yield from (of_file, of_url) if path.partition("?")[0].lower().endswith(_OF_FILES) else (of_url, of_file)
