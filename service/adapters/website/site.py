"""Documentation that is only available as a live site: its pages, fetched politely, as one commit.

What is asked is what the site itself lists: ``llms.txt``, else ``sitemap.xml``, else ``llms-full.txt``. robots.txt is
honoured, its crawl delay too; few requests at a time, each conditional on what is here already. Only the site's own
origin is asked, and only addresses of the public internet unless the operator allows others (``outbound``).

A site's pages are kept in one SQLite file, changed in one transaction after everything was fetched: a crash leaves the
pages as they were. A page that cannot be fetched just now stays as it was.
"""

import asyncio
import hashlib
import io
import json
import sqlite3
import tarfile
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import aiohttp
from yarl import URL

from service.adapters.outbound import guarded_connector, is_refusal
from service.adapters.website.parts import (
    AGENT,
    MAX_FULL_BYTES,
    MAX_HEAD,
    MAX_LIST_BYTES,
    MAX_ROBOTS_BYTES,
    Listed,
    Robots,
    absolute,
    address_of,
    canonical_url,
    file_of,
    full_pages,
    llms_pages,
    origin_of,
    page_key,
    sitemap_urls,
)
from service.domain.errors import Conflict, Forbidden, Invalid, NotFound, ServiceError, Unavailable
from service.ports.docs_source import (
    Changes,
    CommitChanges,
    DocsSource,
    Fetched,
    LeftOut,
    NewCommit,
    Past,
    Source,
    TreeFile,
    WrittenCommit,
)

MANIFEST = ".docsmith/website.json"
"""In the archive: the site's URL of each page, and its title where it is known."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS pages(
    url TEXT PRIMARY KEY, path TEXT NOT NULL UNIQUE, title TEXT NOT NULL, etag TEXT NOT NULL, modified TEXT NOT NULL,
    body BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


MAX_LISTED = 20_000
"""The pages of a site's list that are held against its robots.txt."""


class Limits(NamedTuple):
    pages: int = 5_000
    page_bytes: int = 2 * 1024 * 1024
    all_bytes: int = 500 * 1024 * 1024
    seconds: float = 1_800.0
    request_seconds: float = 30.0
    at_a_time: int = 4
    pause_seconds: float = 0.1
    """Between requests, where robots.txt asks for no more."""
    redirects: int = 5
    sitemaps: int = 50


LIMITS = Limits()


class _Answer(NamedTuple):
    status: int
    body: bytes
    kind: str
    etag: str
    modified: str


class _Page(NamedTuple):
    listed: Listed
    suffix: str
    etag: str
    modified: str
    body: bytes


class WebsiteDocs(DocsSource):
    """Sources of the kind ``website`` are read from the web, all others from ``repositories``."""

    def __init__(self, repositories: DocsSource, data: Path, *, allow_private: bool, limits: Limits = LIMITS) -> None:
        self._repositories, self._data = repositories, data
        self._allow_private, self._limits = allow_private, limits
        self._locks: dict[str, asyncio.Lock] = {}

    async def default_branch(self, source: Source) -> str:
        return "main" if source.code_host == "website" else await self._repositories.default_branch(source)

    async def register(self, source: Source) -> None:
        if source.code_host != "website":
            await self._repositories.register(source)
            return
        async with self._in_time(source), self._crawl(source) as crawl:
            await crawl.lists()

    async def forget(self, source: Source) -> None:
        if source.code_host != "website":
            await self._repositories.forget(source)

    async def fetch(self, source: Source, *, branch: str = "") -> Fetched:
        if source.code_host != "website":
            return await self._repositories.fetch(source, branch=branch)
        file = self._file(source)
        async with self._locks.setdefault(source.project_id, asyncio.Lock()):
            known = await asyncio.to_thread(_known, file)
            async with self._in_time(source), self._crawl(source) as crawl:
                pages, gone = await crawl.pages(known)
            return Fetched(await asyncio.to_thread(_keep, file, pages, gone), None)

    async def keep_contexts(self, source: Source, contexts: Sequence[Source]) -> None:
        await self._repositories.keep_contexts(source, contexts)

    async def refresh(self, source: Source) -> bool:
        return source.code_host != "website" and await self._repositories.refresh(source)

    async def list_files(self, source: Source, commit: str) -> Sequence[TreeFile]:
        self._refuse(source)
        return await self._repositories.list_files(source, commit)

    async def left_out(self, source: Source, commit: str, paths: Collection[str]) -> Mapping[str, LeftOut]:
        self._refuse(source)
        return await self._repositories.left_out(source, commit, paths)

    async def read_file(self, source: Source, blob: str) -> bytes:
        self._refuse(source)
        return await self._repositories.read_file(source, blob)

    async def read_files(self, source: Source, blobs: Sequence[str]) -> Mapping[str, bytes]:
        self._refuse(source)
        return await self._repositories.read_files(source, blobs)

    async def export(self, source: Source, commit: str, archive: Path) -> None:
        if source.code_host != "website":
            await self._repositories.export(source, commit, archive)
            return
        await asyncio.to_thread(_export, self._file(source), commit, archive)

    async def changes(self, source: Source, before: str, commit: str) -> Changes | None:
        if source.code_host == "website":
            return None
        return await self._repositories.changes(source, before, commit)

    async def history(self, source: Source, commit: str, path: str, *, limit: int) -> Past:
        self._refuse(source)
        return await self._repositories.history(source, commit, path, limit=limit)

    async def changed_by(self, source: Source, commit: str, name: str, paths: Sequence[str]) -> CommitChanges:
        self._refuse(source)
        return await self._repositories.changed_by(source, commit, name, paths)

    async def compared(
        self, source: Source, commit: str, before: str, after: str, paths: Sequence[str]
    ) -> CommitChanges:
        self._refuse(source)
        return await self._repositories.compared(source, commit, before, after, paths)

    async def merge_base(self, source: Source, *, branch: str, commit: str, base_commit: str) -> str | None:
        self._refuse(source)
        return await self._repositories.merge_base(source, branch=branch, commit=commit, base_commit=base_commit)

    async def write_commit(self, source: Source, new: NewCommit) -> WrittenCommit:
        self._refuse(source)
        return await self._repositories.write_commit(source, new)

    async def push(self, source: Source, *, branch: str, commit: str) -> None:
        self._refuse(source)
        await self._repositories.push(source, branch=branch, commit=commit)

    def _refuse(self, source: Source) -> None:
        if source.code_host == "website":
            raise Conflict("A website can be read, not changed.", code="read_only")

    def _file(self, source: Source) -> Path:
        if not source.project_id.replace("-", "").isalnum():
            raise NotFound(f"Project not found: {source.project_id!r} is not a project's id.")
        return self._data / "websites" / f"{source.project_id}.db"

    @asynccontextmanager
    async def _in_time(self, source: Source) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._limits.seconds):
                yield
        except TimeoutError:
            raise Unavailable(f"{source.repository} took longer than allowed.", code="timed_out") from None

    @asynccontextmanager
    async def _crawl(self, source: Source) -> "AsyncIterator[_Crawl]":
        connector = guarded_connector(allow_private=self._allow_private, limit=self._limits.at_a_time)
        async with aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._limits.request_seconds),
            headers={"User-Agent": AGENT, "Accept-Encoding": "identity"},
            auto_decompress=False,
            trust_env=False,
        ) as session:
            yield _Crawl(session, source.repository, self._limits)


class _Crawl:
    """One visit to a site."""

    def __init__(self, session: aiohttp.ClientSession, url: str, limits: Limits) -> None:
        self._session, self._limits = session, limits
        name = url.rpartition("/")[2]
        self._named = name if name.endswith((".txt", ".xml", ".xml.gz")) else ""
        self._base = url if self._named else url.rstrip("/") + "/"
        self._robots = Robots()
        self._slots = asyncio.Semaphore(limits.at_a_time)
        self._turn = asyncio.Lock()
        self._bytes = 0

    async def lists(self) -> tuple[list[Listed], list[_Page]]:
        """The pages that the site lists, or those that its one file has in it."""
        await self._read_robots()
        tries = [self._named] if self._named else ["llms.txt", "sitemap.xml", "llms-full.txt"]
        for name in tries:
            url = self._base if self._named else self._base + name
            listed: list[Listed] = []
            if name.endswith("llms-full.txt"):
                within = await asyncio.to_thread(self._within, await self._text(url, MAX_FULL_BYTES))
                if within:
                    return [], within
            elif name.endswith(".txt"):
                listed = await asyncio.to_thread(self._listed, await self._text(url, MAX_LIST_BYTES))
            else:
                listed = await self._sitemaps([url] if self._named else [*self._robots.sitemaps, url])
            allowed = await asyncio.to_thread(self._allowed, listed)
            if allowed:
                return allowed, []
        raise Invalid(
            f"{self._base} lists no pages: it has no llms.txt, sitemap.xml or llms-full.txt.", code="no_pages"
        )

    def _within(self, text: str) -> list[_Page]:
        found = islice(full_pages(text, self._base), self._limits.pages) if text.strip() else ()
        return [_Page(one, ".md", "", "", body.encode()) for one, body in found]

    def _listed(self, text: str) -> list[Listed]:
        return list(llms_pages(text, self._base))

    def _allowed(self, listed: Sequence[Listed]) -> list[Listed]:
        """Return those that may be fetched, up to the limit: seconds of work, with thousands of pages and of rules."""
        pages: dict[str, Listed] = {}
        for one in listed[:MAX_LISTED]:
            pages.setdefault(page_key(one.url), one)
        return list(islice((one for one in pages.values() if self._robots.allows(one.url)), self._limits.pages))

    async def pages(self, known: Mapping[str, tuple[str, str]]) -> tuple[list[_Page], set[str]]:
        """The pages that are new or changed, and which of those that are known the site has no more."""
        listed, within = await self.lists()
        urls = {one.url for one in listed} | {page.listed.url for page in within}
        gone = known.keys() - urls
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._page(one, known.get(one.url))) for one in listed]
        pages = [*within]
        for task in asked:
            page = task.result()
            if isinstance(page, _Page):
                pages.append(page)
            elif page is not None:
                gone.add(page)
        if not pages and not known.keys() - gone:
            raise Unavailable(f"{self._base}: none of its pages could be read.", code="no_pages")
        copies = await asyncio.to_thread(_copies, pages, known.keys() - gone)
        return [page for page in pages if page.listed.url not in copies], gone | (copies & known.keys())

    async def _page(self, listed: Listed, known: tuple[str, str] | None) -> _Page | str | None:
        """The page; its URL when it is gone; None when it stays as it is."""
        if self._bytes > self._limits.all_bytes:
            return None
        headers: dict[str, str] = {}
        if known is not None and known[0]:
            headers["If-None-Match"] = known[0]
        if known is not None and known[1]:
            headers["If-Modified-Since"] = known[1]
        try:
            answer = await self._get(listed.url, self._limits.page_bytes, headers)
        except ServiceError:
            return None
        if answer.status in (404, 410):
            return listed.url
        suffix = ".md" if "markdown" in answer.kind or listed.url.endswith((".md", ".mdx", ".txt")) else ".html"
        if answer.status != 200 or not (suffix == ".md" or "html" in answer.kind):
            return None
        self._bytes += len(answer.body)
        return _Page(listed, suffix, answer.etag, answer.modified, answer.body)

    async def _read_robots(self) -> None:
        """A site without one allows everything; one whose server fails allows nothing (RFC 9309, section 2.3.1)."""
        answer = await self._get(origin_of(self._base) + "/robots.txt", MAX_ROBOTS_BYTES, check=False)
        if answer.status >= 500:
            raise Unavailable(f"{origin_of(self._base)}/robots.txt cannot be read just now.", code="unavailable")
        if answer.status == 200:
            self._robots = await asyncio.to_thread(Robots, answer.body.decode("utf-8", "replace"))

    async def _text(self, url: str, limit: int) -> str:
        answer = await self._get(url, limit)
        if answer.status != 200 or "html" in answer.kind:
            return ""
        return answer.body.decode("utf-8", "replace")

    async def _sitemaps(self, urls: Sequence[str]) -> list[Listed]:
        waiting, seen, found = list(dict.fromkeys(urls)), set[str](), dict[str, None]()
        while waiting and len(seen) < self._limits.sitemaps and len(found) < self._limits.pages:
            url = waiting.pop(0)
            if url in seen or origin_of(url) != origin_of(self._base):
                continue
            seen.add(url)
            answer = await self._get(url, MAX_LIST_BYTES)
            if answer.status != 200:
                continue
            try:
                pages, further = await asyncio.to_thread(sitemap_urls, answer.body, self._base)
            except ValueError:
                continue
            folder = self._base.rpartition("/")[0] + "/" if not self._named else origin_of(self._base) + "/"
            found.update(dict.fromkeys(page for page in pages if page.startswith(folder) or page + "/" == folder))
            waiting.extend(further)
        return [Listed(url) for url in found]

    async def _get(
        self, url: str, limit: int, headers: Mapping[str, str] | None = None, *, check: bool = True
    ) -> _Answer:
        """Raises Unavailable, Forbidden (``address_not_allowed``), and Invalid for what is too large or leads away."""
        for _ in range(self._limits.redirects + 1):
            if check and not self._robots.allows(url):
                return _Answer(403, b"", "", "", "")
            answer, location = await self._once(url, limit, headers or {})
            if location is None:
                return answer
            following = absolute(url, location)
            if following is None:
                raise Invalid(f"{url} leads away from the site.", code="redirected")
            url = following
        raise Invalid(f"{url} leads in a circle.", code="redirected")

    async def _once(self, url: str, limit: int, headers: Mapping[str, str]) -> tuple[_Answer, str | None]:
        async with self._slots:
            async with self._turn:  # one begins after the other, however many are under way
                await asyncio.sleep(max(self._robots.delay_seconds, self._limits.pause_seconds))
            try:
                async with self._session.get(
                    URL(url, encoded=True), headers=headers, allow_redirects=False
                ) as response:
                    if response.status in (301, 302, 303, 307, 308):
                        return _Answer(response.status, b"", "", "", ""), response.headers.get("Location", "")
                    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                        raise Invalid(f"{url} is compressed, though the request did not allow it.", code="bad_answer")
                    body = bytearray()
                    async for piece in response.content.iter_chunked(64 * 1024):
                        body += piece
                        if len(body) > limit:
                            raise Invalid(f"{url} is larger than {limit:,} bytes.", code="too_large")
                    head = response.headers
                    tags = (head.get("ETag", "")[:200], head.get("Last-Modified", "")[:100])
                    return _Answer(response.status, bytes(body), head.get("Content-Type", "").lower(), *tags), None
            except (aiohttp.ClientError, OSError, ValueError) as error:
                if is_refusal(error):
                    raise Forbidden(f"{url} is not on the public internet.", code="address_not_allowed") from None
                raise Unavailable(f"{url} cannot be reached.", code="unavailable") from None


def _copies(pages: Sequence[_Page], kept: Collection[str]) -> set[str]:
    """Return the URLs of pages that name another one as their own address, which is here and is no copy itself.
    ``kept``: the pages that are here already.
    """
    own = {page_key(url) for url in (*kept, *(page.listed.url for page in pages))}
    named: dict[str, str] = {}
    for page in pages:
        url = canonical_url(page.body[:MAX_HEAD].decode("utf-8", "replace"), page.listed.url)
        if page.suffix == ".html" and url is not None and page_key(url) in own - {page_key(page.listed.url)}:
            named[page.listed.url] = page_key(url)
    copies = {page_key(url) for url in named}
    return {url for url, key in named.items() if key not in copies}


def _opened(file: Path) -> sqlite3.Connection:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    db = sqlite3.connect(file, isolation_level=None)
    db.executescript(SCHEMA)
    return db


def _known(file: Path) -> dict[str, tuple[str, str]]:
    with closing(_opened(file)) as db:
        return {url: (etag, modified) for url, etag, modified in db.execute("SELECT url, etag, modified FROM pages")}


def _keep(file: Path, pages: Sequence[_Page], gone: set[str]) -> str:
    """All at once; the id of what there is then."""
    with closing(_opened(file)) as db:
        db.execute("BEGIN IMMEDIATE")
        db.executemany(
            "DELETE FROM pages WHERE url = ?", [(url,) for url in (*gone, *(one.listed.url for one in pages))]
        )
        taken = {path for (path,) in db.execute("SELECT path FROM pages")}
        for page in pages:
            path = file_of(page.listed.url, page.suffix)
            if path in taken:
                unlike = hashlib.sha256(page.listed.url.encode()).hexdigest()[:8]
                path = f"{path.removesuffix(page.suffix)}-{unlike}{page.suffix}"
            taken.add(path)
            db.execute(
                "INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?, ?)",
                (page.listed.url, path, page.listed.title, page.etag, page.modified, page.body),
            )
        commit = _id_of(db)
        db.execute("INSERT OR REPLACE INTO state VALUES ('commit', ?)", (commit,))
        db.execute("COMMIT")
        return commit


def _id_of(db: sqlite3.Connection) -> str:
    digest = hashlib.sha1(usedforsecurity=False)  # as long as a commit's
    for path, url, title, body in db.execute("SELECT path, url, title, body FROM pages ORDER BY path"):
        digest.update(json.dumps([path, url, title, hashlib.sha256(body).hexdigest()]).encode())
    return digest.hexdigest()


def _export(file: Path, commit: str, archive: Path) -> None:
    with closing(_opened(file)) as db, tarfile.open(archive, "w") as target:
        db.execute("BEGIN")
        if db.execute("SELECT value FROM state WHERE key = 'commit'").fetchone() != (commit,):
            raise NotFound("The website has changed since.", code="commit_not_found")
        manifest = {}
        for path, url, title, body in _rows(db):
            manifest[path] = {"url": address_of(url), "title": title}
            _add(target, path, body)
        _add(target, MANIFEST, json.dumps(manifest).encode())


def _rows(db: sqlite3.Connection) -> Iterator[tuple[str, str, str, bytes]]:
    yield from db.execute("SELECT path, url, title, body FROM pages ORDER BY path")


def _add(target: tarfile.TarFile, path: str, body: bytes) -> None:
    entry = tarfile.TarInfo(path)
    entry.size = len(body)
    target.addfile(entry, io.BytesIO(body))
