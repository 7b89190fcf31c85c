import json
import tarfile
from collections import Counter

import pytest
from aiohttp import web

from service.adapters.website.site import MANIFEST, Limits, WebsiteDocs
from service.domain.errors import Conflict, Forbidden, Invalid, ServiceError, Unavailable
from service.ports.docs_source import Source
from service.retrieval.index.build import build_index
from tests.fakes.docs_source import FakeDocsSource

LIMITS = Limits(pause_seconds=0, request_seconds=5, seconds=20, page_bytes=10_000)


class Site:
    """A website, told what it has."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[str, str]] = {}  # content type and text by path
        self.status: dict[str, int] = {}
        self.moved: dict[str, str] = {}
        self.asked: Counter[str] = Counter()
        self.agents: set[str] = set()

    async def answer(self, request: web.Request) -> web.Response:
        path = request.path
        self.asked[path] += 1
        self.agents.add(request.headers["User-Agent"])
        if path in self.moved:
            return web.Response(status=302, headers={"Location": self.moved[path]})
        if path in self.status:
            return web.Response(status=self.status[path])
        if path not in self.files:
            return web.Response(status=404)
        kind, text = self.files[path]
        tag = f'"{hash(text)}"'
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304)
        return web.Response(body=text.encode(), content_type=kind, headers={"ETag": tag})


@pytest.fixture
async def site(aiohttp_server):
    made = Site()
    app = web.Application()
    app.router.add_get("/{path:.*}", made.answer)
    made.server = await aiohttp_server(app)
    made.url = str(made.server.make_url("/"))
    return made


def source(site) -> Source:
    return Source("p1", site.url, "main", "", "website")


def docs(tmp_path, *, allow_private: bool = True, limits: Limits = LIMITS) -> WebsiteDocs:
    return WebsiteDocs(FakeDocsSource(), tmp_path, allow_private=allow_private, limits=limits)


async def exported(reader: WebsiteDocs, where: Source, tmp_path) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    commit = (await reader.fetch(where)).base_commit
    await reader.export(where, commit, tmp_path / "site.tar")
    with tarfile.open(tmp_path / "site.tar") as archive:
        files = {one.name: archive.extractfile(one).read().decode() for one in archive}
    return files, json.loads(files.pop(MANIFEST))


async def test_pages_of_llms_txt_have_the_addresses_people_read(site, tmp_path):
    site.files = {
        "/llms.txt": ("text/plain", "# S\n- [Start](/start.md)\n- [Deep](/a/deep.md)\n- [Gone](/gone.md)"),
        "/start.md": ("text/markdown", "# Start\n\nSee [deep](/a/deep)."),
        "/a/deep.md": ("text/markdown", "# Deep\n\nZebra."),
    }
    files, told = await exported(docs(tmp_path), source(site), tmp_path)
    assert set(files) == {"start.md", "a/deep.md"}
    assert told["a/deep.md"] == {"url": "/a/deep", "title": "Deep"}
    assert site.agents == {"Docsmith"}
    report = build_index(
        tmp_path / "site.tar", tmp_path / "index" / "one", docs_folder="", commit="0" * 40, progress=lambda *_: None
    )
    assert report.pages == 2


async def test_without_llms_txt_the_sitemap_is_read_and_its_html(site, tmp_path):
    urls = "".join(f"<url><loc>{site.url}{name}</loc></url>" for name in ("docs/a/", "docs/b.html", "blog/c"))
    site.files = {
        "/robots.txt": ("text/plain", f"User-agent: *\nDisallow: /docs/private\nSitemap: {site.url}maps/all.xml\n"),
        "/maps/all.xml": (
            "text/xml",
            f"<sitemapindex><sitemap><loc>{site.url}maps/one.xml</loc></sitemap></sitemapindex>",
        ),
        "/maps/one.xml": ("text/xml", f"<urlset>{urls}<url><loc>{site.url}docs/private/x</loc></url></urlset>"),
        "/docs/a/": ("text/html", "<main><h1>A</h1><p>Text."),
        "/docs/b.html": ("text/html", "<main><h1>B</h1><p>Text."),
        "/docs/private/x": ("text/html", "secret"),
        "/blog/c": ("text/html", "<p>News"),
    }
    where = Source("p1", f"{site.url}docs/", "main", "", "website")
    files, told = await exported(docs(tmp_path), where, tmp_path)
    assert {path: page["url"] for path, page in told.items()} == {
        "docs/a.html": "/docs/a/",
        "docs/b.html": "/docs/b.html",
    }
    assert site.asked["/docs/private/x"] == 0
    assert "secret" not in str(files)


async def test_a_page_with_several_addresses_is_read_once(site, tmp_path):
    page = "<head><link href='{}' rel=canonical></head><main><h1>A</h1><p>Text."
    names = ("a", "a/", "a/index.html", "b", "print/a", "c")
    urls = "".join(f"<url><loc>{site.url}{name}</loc></url>" for name in names)
    site.files = {
        "/sitemap.xml": ("text/xml", f"<urlset>{urls}</urlset>"),
        "/a": ("text/html", page.format("/a/")),
        "/b": ("text/html", page.format("/b")),
        "/print/a": ("text/html", page.format(f"{site.url}a")),
        "/c": ("text/html", page.format("/elsewhere")),  # which the site does not list
    }
    reader = docs(tmp_path)
    for _ in range(2):
        _, told = await exported(reader, source(site), tmp_path)
        assert {page["url"] for page in told.values()} == {"/a", "/b", "/c"}
    assert site.asked["/a/"] == site.asked["/a/index.html"] == 0


async def test_pages_that_name_one_another_or_one_that_is_gone_are_all_read(site, tmp_path):
    page = '<link rel="canonical" href="/{}"><main><h1>A</h1><p>Text.'
    urls = "".join(f"<url><loc>{site.url}{name}</loc></url>" for name in ("a", "b", "c", "gone"))
    site.files = {
        "/sitemap.xml": ("text/xml", f"<urlset>{urls}</urlset>"),
        "/a": ("text/html", page.format("b")),
        "/b": ("text/html", page.format("a")),
        "/c": ("text/html", page.format("gone")),
    }
    _, told = await exported(docs(tmp_path), source(site), tmp_path)
    assert {page["url"] for page in told.values()} == {"/a", "/b", "/c"}


async def test_without_either_the_one_file_is_parted_into_pages(site, tmp_path):
    text = f"# A\nSource: {site.url}a\n\nText a.\n\n# B\nSource: {site.url}b\n\nText b.\n"
    site.files = {"/llms-full.txt": ("text/plain", text)}
    files, told = await exported(docs(tmp_path), source(site), tmp_path)
    assert {path: page["url"] for path, page in told.items()} == {"a.md": "/a", "b.md": "/b"}
    assert "Text a." in files["a.md"]


async def test_second_visit_fetches_only_changes_or_keeps_the_commit(site, tmp_path):
    site.files = {
        "/llms.txt": ("text/plain", "[A](/a.md) [B](/b.md)"),
        "/a.md": ("text/markdown", "# A"),
        "/b.md": ("text/markdown", "# B"),
    }
    reader = docs(tmp_path)
    first = (await reader.fetch(source(site))).base_commit
    assert (await reader.fetch(source(site))).base_commit == first
    assert len(first) == 40
    site.files["/a.md"] = ("text/markdown", "# A changed")
    site.status["/b.md"] = 500  # it stays as it was
    files, _ = await exported(reader, source(site), tmp_path)
    assert files == {"a.md": "# A changed", "b.md": "# B"}
    del site.status["/b.md"]
    del site.files["/b.md"]
    files, _ = await exported(reader, source(site), tmp_path)
    assert set(files) == {"a.md"}
    with pytest.raises(ServiceError):
        await reader.export(source(site), first, tmp_path / "old.tar")


async def test_redirects_stay_on_the_site(site, tmp_path):
    site.files = {
        "/llms.txt": ("text/plain", "[A](/old.md) [B](/out.md) [C](/round.md)"),
        "/new.md": ("text/markdown", "N"),
    }
    site.moved = {"/old.md": "/new.md", "/out.md": "http://169.254.169.254/latest", "/round.md": "/round.md"}
    files, _ = await exported(docs(tmp_path), source(site), tmp_path)
    assert files == {"old.md": "N"}


async def test_too_large_and_binary_pages_are_left_out(site, tmp_path):
    site.files = {
        "/llms.txt": ("text/plain", "[A](/a.md) [B](/b.md) [C](/c)"),
        "/a.md": ("text/markdown", "A"),
        "/b.md": ("text/markdown", "B" * 20_000),
        "/c": ("application/octet-stream", "C"),
    }
    files, _ = await exported(docs(tmp_path), source(site), tmp_path)
    assert set(files) == {"a.md"}
    site.files["/llms.txt"] = ("text/plain", " ".join(f"[P](/p{n}.md)" for n in range(20)))
    site.files |= {f"/p{n}.md": ("text/markdown", "P") for n in range(20)}
    files, _ = await exported(docs(tmp_path, limits=LIMITS._replace(pages=5)), source(site), tmp_path)
    assert len(files) == 5


async def test_private_addresses_are_refused_unless_allowed(site, tmp_path):
    site.files = {"/llms.txt": ("text/plain", "[A](/a.md)")}
    with pytest.raises(Forbidden):
        await docs(tmp_path, allow_private=False).register(source(site))
    assert not site.asked


async def test_site_that_lists_nothing_or_is_down_is_reported(site, tmp_path):
    with pytest.raises(Invalid, match=r"llms\.txt, sitemap\.xml or llms-full\.txt"):
        await docs(tmp_path).register(source(site))
    site.status["/robots.txt"] = 503
    with pytest.raises(Unavailable):
        await docs(tmp_path).register(source(site))
    await site.server.close()
    with pytest.raises(Unavailable):
        await docs(tmp_path).register(source(site))


async def test_a_website_cannot_be_changed(site, tmp_path):
    reader = docs(tmp_path)
    for call in (
        reader.push(source(site), branch="b", commit="0" * 40),
        reader.list_files(source(site), "0" * 40),
        reader.read_file(source(site), "0" * 40),
        reader.read_files(source(site), ["0" * 40]),
    ):
        with pytest.raises(Conflict, match="read, not changed"):
            await call


async def test_site_that_is_slow_to_list_its_pages_is_given_up(site, tmp_path):
    """As ``fetch`` is; each request has a limit of its own, but a site may ask for many."""
    site.files = {"/llms.txt": ("text/plain", "[A](/a.md)"), "/a.md": ("text/markdown", "A")}
    with pytest.raises(Unavailable) as given_up:
        await docs(tmp_path, limits=LIMITS._replace(seconds=0.0)).register(source(site))
    assert given_up.value.code == "timed_out"


async def test_pages_that_may_not_be_fetched_take_no_place(site, tmp_path):
    site.files = {
        "/robots.txt": ("text/plain", "User-agent: *\nDisallow: /no/\n"),
        "/llms.txt": ("text/plain", " ".join(f"[P](/no/{n}.md)" for n in range(9)) + " [A](/a.md)"),
        "/a.md": ("text/markdown", "A"),
    }
    files, _ = await exported(docs(tmp_path, limits=LIMITS._replace(pages=5)), source(site), tmp_path)
    assert files == {"a.md": "A"}
