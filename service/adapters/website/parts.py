"""The files in which a site describes its pages: robots.txt (RFC 9309), llms.txt and llms-full.txt (llmstxt.org),
sitemap.xml (sitemaps.org). Nothing here reads from the network; all of it was written by strangers and is bounded.
"""

import re
import zlib
from collections.abc import Iterator
from html import unescape
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit
from urllib.robotparser import RobotFileParser

from msgspec import Struct

from service.markup.markdown import Markdown

AGENT = "Docsmith"
MAX_ROBOTS_BYTES = 500 * 1024
"""The part of a file that a crawler must read at least, by RFC 9309."""
MAX_LIST_BYTES = 10 * 1024 * 1024
"""Limit for a sitemap, uncompressed, or an llms.txt."""
MAX_FULL_BYTES = 20 * 1024 * 1024
MAX_URL = 1000
MAX_SITEMAPS = 20
"""That a robots.txt may name."""
MAX_DELAY_SECONDS = 10.0
MAX_HEAD = 100_000
"""Bytes of a page in which its own address is looked for."""

_SOURCE = re.compile(r"^#\s+([^\n]{1,300})\n+(?:Source|URL|Url):\s*<?(https?://[^\s<>]{1,900})>?[ \t]*$", re.MULTILINE)

_LINK = re.compile(r"<link\b[^>]{1,2000}>", re.IGNORECASE)
_CANONICAL = re.compile(r"""\brel=["']?canonical\b""", re.IGNORECASE)
_HREF = re.compile(r"""\bhref=(?:"([^"]{1,1000})"|'([^']{1,1000})'|([^\s"'>]{1,1000}))""", re.IGNORECASE)


class Listed(Struct, frozen=True):
    """A page that a site names."""

    url: str
    title: str = ""


class Robots:
    """The rules of a site for crawlers."""

    def __init__(self, text: str = "") -> None:
        self._parser = RobotFileParser()
        lines = text[:MAX_ROBOTS_BYTES].splitlines()
        try:
            self._parser.parse(lines)
        except ValueError:
            self._parser = RobotFileParser()
            self._parser.parse([line for line in lines if _is_rule(line)])
        self.sitemaps = [one for one in (self._parser.site_maps() or ())[:MAX_SITEMAPS] if is_address(one)]
        delay = self._parser.crawl_delay(AGENT)
        self.delay_seconds = min(float(delay), MAX_DELAY_SECONDS) if delay is not None else 0.0

    def allows(self, url: str) -> bool:
        return self._parser.can_fetch(AGENT, url)


def _is_rule(line: str) -> bool:
    """Return whether Python's parser can read a line: of ``Crawl-delay: ²`` it takes a number, and finds none."""
    try:
        RobotFileParser().parse(["User-agent: *", line])
    except ValueError:
        return False
    return True


def is_address(text: str) -> bool:
    try:
        return len(text) <= MAX_URL and bool(urlsplit(text).netloc)
    except ValueError:
        return False


def origin_of(url: str) -> str:
    """Raises ValueError for what ``is_address`` does not take."""
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}"


def absolute(base: str, href: str) -> str | None:
    """The URL that a site means, on the same origin, without its fragment and query; None when it leads elsewhere."""
    try:
        url = urljoin(base, href.strip())
        parts = urlsplit(url)
    except ValueError:
        return None
    if (
        len(url) > MAX_URL
        or not url.isprintable()
        or "\\" in url
        or "@" in parts.netloc
        or origin_of(url) != origin_of(base)
    ):
        return None
    return urlunsplit(
        (parts.scheme.lower(), parts.netloc.lower(), quote(parts.path, safe="/%:@!$&'()*+,;=~-._") or "/", "", "")
    )


def llms_pages(text: str, base: str) -> Iterator[Listed]:
    """The links of an llms.txt, each once."""
    seen: set[str] = set()
    for link in Markdown(text[:MAX_LIST_BYTES]).links:
        if link.kind != "inline" or link.is_image:
            continue
        url = absolute(base, link.target)
        name = (url or "").rpartition("/")[2].lower()
        if url is None or url in seen or name in ("llms.txt", "llms-full.txt"):
            continue
        if "." in name and not name.endswith((".md", ".mdx", ".html", ".htm", ".txt")):
            continue  # a picture, a description: no page
        seen.add(url)
        yield Listed(url, " ".join(link.label.split()))


def full_pages(text: str, base: str) -> Iterator[tuple[Listed, str]]:
    """Yield the pages in an llms-full.txt: each begins with its title and, below, its source. A file without sources is
    one page.
    """
    found = list(_SOURCE.finditer(text))
    if not found:
        yield Listed(base), text
        return
    for index, match in enumerate(found):
        end = found[index + 1].start() if index + 1 < len(found) else len(text)
        url = absolute(base, match[2])
        if url is not None:
            yield Listed(url, " ".join(match[1].split())), f"# {match[1]}\n{text[match.end() : end]}"


def sitemap_urls(data: bytes, base: str) -> tuple[list[str], list[str]]:
    """The pages of a sitemap, and the further sitemaps of an index; raises ValueError for what is no sitemap."""
    if data[:2] == b"\x1f\x8b":
        unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            data = unpacking.decompress(data, MAX_LIST_BYTES)
        except zlib.error as error:
            raise ValueError("not gzip") from error
    from lxml import etree  # late: 4 MB that a service without websites does without

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, recover=True, load_dtd=False)
    try:
        root = etree.fromstring(data[:MAX_LIST_BYTES], parser)
    except etree.LxmlError as error:
        raise ValueError("not XML") from error
    if root is None or etree.QName(root).localname not in ("urlset", "sitemapindex"):
        raise ValueError("not a sitemap")
    urls = [absolute(base, one.text or "") for one in root.iter("{*}loc")]
    pages = [url for url in dict.fromkeys(urls) if url is not None]
    return ([], pages) if etree.QName(root).localname == "sitemapindex" else (pages, [])


def address_of(url: str) -> str:
    """Return the page's URL for people, from the site's root: llms.txt names its Markdown (``x.md``, ``x.html.md``)."""
    path = urlsplit(url).path or "/"
    path = re.sub(r"\.mdx?$", "", path)
    return re.sub(r"/index(?:\.html?)?$", "/", path) or "/"


def page_key(url: str) -> str:
    """Return the same for all addresses of one page: ``/x``, ``/x/``, ``/x/index.html`` and ``/x.md``."""
    return unquote(address_of(url)).rstrip("/")


def canonical_url(html: str, url: str) -> str | None:
    """Return the address that a page's beginning says is its own (RFC 6596), on the same origin; None for none."""
    for link in _LINK.finditer(html):
        if _CANONICAL.search(link[0]) and (href := _HREF.search(link[0])):
            return absolute(url, unescape(href[1] or href[2] or href[3]))
    return None


def file_of(url: str, suffix: str) -> str:
    """A file's name for the page, safe anywhere."""
    path = re.sub(r"(?:\.html?)?(?:\.(?:mdx?|txt))?$", "", urlsplit(url).path.strip("/"))
    parts = [re.sub(r"[^\w%~+,=@-]|^\.+", "_", part)[:100] for part in path.split("/") if part not in ("", ".", "..")]
    return "/".join(parts[:20] or ["index"]) + suffix
