"""The addresses of a site's pages: on the site itself, for people, and as Markdown on this service, for agents."""

from collections.abc import Sequence
from urllib.parse import quote, urljoin, urlsplit

from aiohttp import web

from service.domain.access.names import is_local
from service.views.projects import ProjectView
from service.web.http.access.access import PUBLIC_SITES
from service.web.http.access.hosts import service_address

MARKDOWN = ".md"
ROOT_NAME = "index"
"""The name of the page at the site's root, whose address has none."""
SAFE = "/:@!$&'*+,;=~-._%"
"""Characters of a path that stay as they are: an address may be encoded already."""


def site_address(request: web.Request, project: ProjectView) -> str:
    """Return where people read the site; empty where that is not known.

    It is the address that the project names, or that a live site is read from; else the first of the websites that may
    ask a public site, without those on the reader's own machine.
    """
    if known := published_address(project):
        return known
    public = request.app[PUBLIC_SITES].find(project.domain)
    return next((origin for origin in (public.origins if public is not None else ()) if _is_website(origin)), "")


def published_address(project: ProjectView) -> str:
    """Return the address that the pages' addresses are below; empty where the project does not say it."""
    if project.code_host != "website":
        return project.site_url
    parts = urlsplit(project.repository)  # addresses of its pages begin at the root, wherever it is read from
    return f"{parts.scheme}://{parts.netloc}"


def _is_website(origin: str) -> bool:
    return "*" not in origin and not is_local(urlsplit(origin).hostname or "")


def page_address(site: str, url: str) -> str:
    """Return the address of a page on its site; ``url``: its address there, from the root of the site or its host."""
    folder = urlsplit(site).path.rstrip("/")
    if folder and not f"{url}/".startswith(f"{folder}/"):
        url = folder + url
    if url.startswith("//"):  # a path of the site, not the host that a link like this means
        url = f"/.{url}"
    return urljoin(site, quote(url, safe=f"{SAFE}#?"))


def markdown_path(url: str) -> str:
    """Return the path of a page as Markdown, below the site's own on this service."""
    path = url.partition("#")[0].partition("?")[0].strip("/")
    return quote(path or ROOT_NAME, safe=SAFE) + MARKDOWN


def markdown_base(request: web.Request, domain: str) -> str:
    """Return the address on this service below which a site's Markdown is, with a slash at its end."""
    return f"{service_address(request)}/sites/{quote(domain)}/"


def reading_address(request: web.Request, project: ProjectView, url: str) -> str:
    """Return the address at which a page can be opened: on its site, or as Markdown where that is not known."""
    site = site_address(request, project)
    return page_address(site, url) if site else markdown_base(request, project.domain) + markdown_path(url)


def urls_of(path: str) -> Sequence[str]:
    """Return the URLs of the pages that a path may mean, the likeliest first. ``path``: decoded; the pages of a live
    site have their URLs as they are sent.
    """
    stem = path.removesuffix(MARKDOWN)
    root = ("/",) if path == ROOT_NAME + MARKDOWN else ()
    return tuple(dict.fromkeys((f"/{stem}", quote(f"/{stem}"), *root, f"/{path}")))
