"""From the files of a documentation repository to a folder that search reads: pages in SQLite, words in tantivy.

``build_index`` reads everything; ``renew_index`` starts from the index of an earlier commit and reads what changed
since. Both take the same steps, the first one from nothing:

1. Pages are read one by one and written with all that they are made from, so that no more than a page's text is held.
2. When all are known they get their places: URL, title, order, readers.
3. What pages call each other is counted.
4. The words of each page whose text, place or names are new are indexed.

Where renewed pages keep the places that they had, steps 2 and 3 are about those alone.
The files of the older folder are shared or copied, never written to, so its readers are not disturbed.
"""

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from posixpath import dirname

from msgspec import json
from msgspec.structs import replace

from service import __version__
from service.domain.sites import Skipped
from service.markup.languages.detection import page_language
from service.markup.links import is_external
from service.ports.docs_source import LeftOut
from service.retrieval.index.archive import Archive, Files, StoredFiles
from service.retrieval.index.atomic_folder import building, is_whole, seal, share_files, sums_of
from service.retrieval.index.outside import Outside
from service.retrieval.index.report import IndexReport
from service.retrieval.index.stored import FORMAT, MISSING_ENTRIES, PAGES_FILE
from service.retrieval.index.tables import PageTables
from service.retrieval.readers.link_names import Links, called
from service.retrieval.readers.markdown import ParsedPage
from service.retrieval.search.analysis.compounds import LANGUAGES, vocabularies
from service.retrieval.search.words import Audience, WordsWriter
from service.retrieval.site.detection import OWN_INSTRUCTIONS
from service.retrieval.site.ignore_files import IgnoreRules
from service.retrieval.site.layout import decode_layout, encode_layout
from service.retrieval.site.left_out import KEY as LEFT_OUT
from service.retrieval.site.left_out import LeftOutFiles, decode_left_out, excluded
from service.retrieval.site.navigation import (
    MAX_CONFIG_BYTES,
    Layout,
    Placed,
    SiteBuilder,
    detect_layout,
    keeps_place,
    place_pages,
    placed,
)
from service.retrieval.site.pages import PAGE_SECONDS, OutOfTime, PageReader, ReadUpTo, within

__all__ = ["FORMAT", "PAGES_FILE", "IndexReport", "build_index", "is_whole", "renew_from_archive", "renew_index"]

MAX_INSTRUCTIONS = 8_000
"""Characters of the site owner's word to the assistant: they are part of every prompt."""
MAX_RENEWED = 0.2
"""The part of a site's pages that may be renewed before all are read again: until then, words of deleted pages still
count in how rare a word is.
"""

Progress = Callable[[int, int], None]


def build_index(
    archive: Path,
    target: Path,
    *,
    docs_folder: str,
    commit: str,
    progress: Progress,
    page_seconds: float = PAGE_SECONDS,
    outside: ReadUpTo | None = None,
) -> IndexReport:
    """Index the pages in an uncompressed tar archive, whose names are paths in the repository. ``outside`` reads any
    file of the commit: pages may show some that are not in the archive.

    ``target``, a folder, appears whole or not at all. ``progress`` is called now and then with the number of pages that
    are read, and of all. A page that cannot be read, or takes longer than ``page_seconds``, is in the report's
    ``skipped``, and the build goes on. Raises OSError and tarfile.TarError for the archive itself.
    """
    began = time.monotonic()
    with building(target) as folder, Archive(archive) as files:
        with closing(PageTables(folder / PAGES_FILE, new=True)) as tables:
            tables.set_blobs(files.blobs())
            indexing = _Indexing(tables, files, docs_folder.strip("/"), commit, page_seconds)
            indexing.left_out.change((), files.left_out)
            indexing.outside = Outside(docs_folder.strip("/"), outside)
            layout = indexing.detect()
            paths = sorted(name for name in files.names if layout.is_page(name))
            indexing.read(layout, paths, progress)
            indexing.place_all(layout, base=None)
            report = indexing.finish(folder, layout, began, renewed=0)
        seal(folder)
    return report


def renew_index(
    before: Path,
    target: Path,
    read: ReadUpTo,
    changes: Mapping[str, str | None],
    *,
    docs_folder: str,
    commit: str,
    progress: Progress,
    page_seconds: float = PAGE_SECONDS,
    left_out: Sequence[LeftOut] = (),
) -> IndexReport | None:
    """Make the index of a commit from that of an earlier one: as ``build_index`` makes it, except for small details in
    the counts of words (``MAX_RENEWED``).

    ``changes``: path → what git calls its content now, None when it is gone; ``read`` reads any file of the commit;
    ``left_out``: of the changes, what cannot be read.
    None when all pages have to be read: the older index is of another format, or damaged, or too much is different.
    """
    began = time.monotonic()
    try:
        sums = sums_of(before)
    except (OSError, ValueError):
        return None
    with building(target) as folder:
        try:
            shared = share_files(before, folder, sums)
        except (OSError, ValueError):
            report = None  # damaged, or just being removed
        else:
            with closing(PageTables(folder / PAGES_FILE, new=False)) as tables:
                renewal = _Renewal(tables, read, changes, docs_folder.strip("/"), commit, page_seconds)
                report = renewal.carried_out(folder, began, progress, left_out) if renewal.is_possible() else None
        if report is None:
            return None
        seal(folder, {name: sum_ for name, sum_ in shared.items() if (folder / name).exists()})
    return report


def renew_from_archive(
    before: Path, archive: Path, target: Path, *, docs_folder: str, commit: str, progress: Progress,
    outside: ReadUpTo | None = None,
) -> IndexReport | None:  # fmt: skip
    """Renew an index when the changes are not known: compare the contents of all files."""

    def read(name: str, limit: int) -> bytes | None:
        data = files.read(name, limit)
        return data if data is not None or outside is None else outside(name, limit)

    with Archive(archive) as files:
        now = files.blobs()
        try:
            with closing(sqlite3.connect(f"{(before / PAGES_FILE).absolute().as_uri()}?mode=ro", uri=True)) as db:
                known = {path: blob.hex() for path, blob in db.execute("SELECT path, blob FROM files")}
                facts = dict(db.execute("SELECT key, value FROM meta WHERE key = ?", (LEFT_OUT,)))
                known_left = decode_left_out(facts.get(LEFT_OUT, "{}")).found.keys()
        except (sqlite3.Error, ValueError):
            return None
        changes: dict[str, str | None] = {path: blob for path, blob in now.items() if known.get(path) != blob}
        changes |= dict.fromkeys(known.keys() - now.keys())
        changes |= dict.fromkeys(known_left - now.keys() - {one.path for one in files.left_out})
        return renew_index(
            before, target, read, changes, docs_folder=docs_folder, commit=commit, progress=progress,
            left_out=files.left_out,
        )  # fmt: skip


@cache
def _made_by() -> str:
    """Another version may read the same page otherwise: what it made is not built upon."""
    return __version__


class _Indexing:
    """The steps, on tables that may hold an earlier commit's pages."""

    def __init__(self, tables: PageTables, files: Files, docs_folder: str, commit: str, page_seconds: float) -> None:
        self._tables, self._files, self._docs_folder, self._commit = tables, files, docs_folder, commit
        self._page_seconds = page_seconds
        self._base: str | None = None
        self._builder: SiteBuilder | None = None
        self._new: set[int] = set()
        """Pages whose words are to be indexed."""
        self._renamed: set[int] = set()
        """Pages of which only what others call them is another."""
        self._gone: set[int] = set()
        """Pages whose words are not to be found any more, as they were."""
        self.left_out = LeftOutFiles()
        self.outside = Outside(docs_folder, None)
        self._read = 0
        self._late = 0
        self._detected = False
        """Which files are pages was found out again."""

    def detect(self) -> Layout:
        """The site's layout, noting which files say it."""
        asked: set[str] = set()

        def read(name: str) -> bytes | None:
            asked.add(name)
            return self._files.read(name, MAX_CONFIG_BYTES)

        layout = detect_layout(self._files.names, read, docs_folder=self._docs_folder)
        self._tables.set_layout_files(asked)
        self._detected = True
        return layout

    def read(
        self, layout: Layout, paths: Sequence[str], progress: Progress
    ) -> list[tuple[Placed | None, Placed | None]]:
        """Do step 1. Return each page's place before and now; None where the page does not exist."""
        reader = PageReader(layout, self._any_file, page_seconds=self._page_seconds)
        if self._base is None:
            self._builder = SiteBuilder(layout, self._files.names)
        found = []
        for done, path in enumerate(paths):
            if done % 100 == 0:
                progress(done, len(paths))
            found.append(self._read_page(layout, reader, path))
        progress(len(paths), len(paths))
        self._read = len(paths)
        self._late += reader.late
        return found

    def _any_file(self, name: str, limit: int) -> bytes | None:
        data = self._files.read(name, limit)
        return data if data is not None else self.outside.read(name, limit)

    def _read_page(self, layout: Layout, reader: PageReader, path: str) -> tuple[Placed | None, Placed | None]:
        known = self._tables.page_id(path)
        before = self._tables.placed(known) if known is not None else None
        parsed = reader.page(path)
        self._tables.set_used(path, reader.used, reader.missing)
        if not isinstance(parsed, Skipped):
            if layout.is_hidden(parsed.front_matter):
                parsed = Skipped(path, "It is a draft, or hidden.")
            elif not parsed.sections:
                parsed = Skipped(path, "It has no text.")
        if isinstance(parsed, Skipped):
            self.forget(path)
            self._tables.skip(parsed)
            return before, None
        self._tables.unskip(path)
        if known is not None:
            self._gone.add(known)
        self._count_names(known, parsed)
        place = replace(placed(parsed), text_language=page_language(parsed.content))
        page = self._tables.put_page(parsed, place)
        self._new.add(page)
        if self._builder is not None:
            self._builder.vote(parsed)
        return before, place

    def _count_names(self, known: int | None, parsed: ParsedPage) -> None:
        """Told of each page that is read, before it takes the place of the one that it was."""

    def forget(self, path: str) -> None:
        """A file is no page any more."""
        self._tables.unskip(path)
        known = self._tables.page_id(path)
        if known is not None:
            self._gone.add(known)
            self._new.discard(known)
            self._tables.remove_page(known)

    def place_all(self, layout: Layout, base: str | None) -> None:
        """Steps 2 and 3, of the whole site. Without ``base`` the links that were read decide under which prefix the
        site has its pages.
        """
        builder = self._builder or SiteBuilder(layout, self._files.names)
        for each in self._tables.all_placed():
            builder.add_placed(each)
        self._base = builder.base() if base is None else base
        site = builder.site(self._base)
        self._tables.set_meta({MISSING_ENTRIES: json.encode(site.missing).decode()})
        ids = self._tables.page_ids()
        shown = {ids[path]: page for path, page in site.pages.items()}
        moved = set(self._tables.place(shown)) - self._new
        self._tables.set_copies(shown)
        self._new |= moved
        self._gone |= moved
        self._tables.set_addresses(site, ids, layout.shown_on)
        links = Links(site)
        names_now: dict[int, Counter[str]] = {}
        for path, mentions in self._tables.all_mentions():
            for (href, name), times in mentions.items():
                target = links.target(path, href)
                if target is not None:
                    names_now.setdefault(ids[target], Counter())[name] += times
        names_before = self._tables.all_names()
        for page in names_now.keys() | names_before.keys():
            if names_now.get(page, {}) != names_before.get(page, {}):
                self._tables.set_names(page, names_now.get(page, {}))
                self._renamed.add(page)

    def finish(self, folder: Path, layout: Layout, began: float, *, renewed: int) -> IndexReport:
        """Step 4, and what is true of the whole."""
        words = WordsWriter(folder, vocabularies=vocabularies(self._tables.headings_in(LANGUAGES)))
        for page in self._gone:
            words.remove(page)
        for page in sorted(self._new):
            try:
                within(self._page_seconds, partial(self._add_words, words, page))
            except OutOfTime:
                words.remove(page)
                self._leave_out(page)
        for page in sorted(self._renamed - self._new):
            title, audience = self._tables.title_of(page)
            words.remove_names(page)
            words.add_page(page, title, self._names(page, title), audience, self._texts(words, page, audience))
        words.finish()
        instructions = self._instructions()
        self._report_cut_rules(layout.ignored)
        for one in (*(excluded(layout, self._files.names) if self._detected else ()), *self.left_out.skipped(layout)):
            self._tables.skip(one)
        pages, sections = self._tables.counts()
        self._tables.set_meta(
            {
                "format": FORMAT,
                "made_by": _made_by(),
                "commit": self._commit,
                "docs_folder": self._docs_folder,
                "kind": layout.kind,
                "layout": encode_layout(layout),
                "base": self._base or "",
                "language": self._tables.main_language(layout.default_language),
                "pages": str(pages),
                "sections": str(sections),
                "renewed": str(renewed),
                "instructions": instructions,
                LEFT_OUT: self.left_out.encoded(),
            }
        )
        self._tables.set_outside(self.outside.asked)
        skipped = tuple(self._tables.skipped())
        self._tables.finish()
        seconds = round(time.monotonic() - began, 3)
        left_out = len(self.left_out.found) + self.left_out.more
        return IndexReport(pages, sections, skipped, seconds, self._read, self._late, left_out)

    def _names(self, page: int, title: str) -> str:
        """Return what other pages call a page, and its own heading where the navigation gives it another title."""
        own = self._tables.placed(page).title
        return called({**self._tables.names(page), **({own: 1} if own not in ("", title) else {})})

    def _add_words(self, words: WordsWriter, page: int) -> None:
        title, audience = self._tables.title_of(page)
        texts = [
            words.add_section(
                section.id, " / ".join(section.headings), section.text, audience, section.terms, section.keys
            )
            for section in self._tables.sections_of(page)
        ]
        words.add_page(page, title, self._names(page, title), audience, texts)

    def _texts(self, words: WordsWriter, page: int, audience: Audience) -> list[str]:
        return [words.analysed(section.text, audience) for section in self._tables.sections_of(page)]

    def _leave_out(self, page: int) -> None:
        path = self._tables.page_path(page)
        self.forget(path)
        self._tables.skip(Skipped(path, f"Indexing its words took longer than {self._page_seconds:g} seconds."))
        self._late += 1

    def _report_cut_rules(self, ignored: IgnoreRules) -> None:
        if ignored.file:
            self._tables.unskip(ignored.file)
        if ignored.cut:
            reason = f"{ignored.cut:,} of its lines are not applied: there are too many, or they are too long."
            self._tables.skip(Skipped(ignored.file, reason))

    def _instructions(self) -> str:
        """Return the owner's instructions to the assistant, from the docs folder or the nearest folder above."""
        folder = self._docs_folder
        while True:
            path = f"{folder}/{OWN_INSTRUCTIONS}" if folder else OWN_INSTRUCTIONS
            self._tables.unskip(path)
            data = self._files.read(path, 4 * MAX_INSTRUCTIONS)
            if data is not None or not folder:
                break
            folder = folder.rpartition("/")[0]
        text = (data or b"").decode("utf-8", "replace").replace("\x00", "").lstrip("\ufeff").strip()
        if len(text) > MAX_INSTRUCTIONS:
            reason = f"It has more than {MAX_INSTRUCTIONS} characters; the assistant reads only the first ones."
            self._tables.skip(Skipped(path, reason))
        return text[:MAX_INSTRUCTIONS]


class _Renewal(_Indexing):
    """The renewal of an index from the tables of an earlier commit."""

    def __init__(
        self,
        tables: PageTables,
        read: ReadUpTo,
        changes: Mapping[str, str | None],
        docs_folder: str,
        commit: str,
        page_seconds: float,
    ) -> None:
        super().__init__(
            tables, StoredFiles(tables.file_names, tables.is_file, read), docs_folder, commit, page_seconds
        )
        self._changes = changes
        self.outside = Outside(docs_folder, read)
        self._meta = tables.meta()
        self._counts: dict[int, Counter[str]] = {}
        """By how much a page's names are more or fewer than before."""
        self._links: Links | None = None

    def is_possible(self) -> bool:
        made = {"format": FORMAT, "made_by": _made_by(), "docs_folder": self._docs_folder}
        if any(self._meta.get(key) != value for key, value in made.items()) or LEFT_OUT not in self._meta:
            return False
        self.left_out = decode_left_out(self._meta[LEFT_OUT])
        self.outside.remember(self._tables.outside())
        return not self.left_out.more

    def carried_out(
        self, folder: Path, began: float, progress: Progress, left_out: Sequence[LeftOut]
    ) -> IndexReport | None:
        """Renew the index; return None when too much has changed."""
        for path in self.left_out.found:
            self._tables.unskip(path)
        self.left_out.change(self._changes, left_out)
        tables, before = self._tables, decode_layout(self._meta["layout"])
        gone = [path for path, blob in self._changes.items() if blob is None]
        detects = bool(gone) or any(not tables.is_file(path) or tables.is_layout_file(path) for path in self._changes)
        for path in gone:
            self.forget(path)
        tables.set_blobs(self._changes)
        layout = self.detect() if detects else before
        self._base = self._meta["base"]
        if layout.reading != before.reading or self._base not in layout.bases:
            return None
        wanted = self._wanted(layout, before, detects=detects)
        renewed = int(self._meta["renewed"]) + len(wanted) + len(self._gone)
        if renewed > MAX_RENEWED * int(self._meta["pages"]):
            return None
        self._links = None if detects else Links(tables.stored_site(layout))
        found = self.read(layout, sorted(wanted), progress)
        if not detects and all(keeps_place(layout, self._base, *each) for each in found):
            self._place_new(layout)
        else:
            self.place_all(layout, self._base)
        return self.finish(folder, layout, began, renewed=renewed)

    def _wanted(self, layout: Layout, before: Layout, *, detects: bool) -> set[str]:
        """The files to read as pages. Those that are pages no more are forgotten."""
        changed = {path for path, blob in self._changes.items() if blob is not None}
        asked = {*self._changes, *(f"{dirname(path)}/" for path in self._changes), *self.outside.changed()}
        stale = {user for path in asked for user in self._tables.pages_that_use(path)}
        stale |= {page for _, page in layout.shown_on.items() ^ before.shown_on.items()}
        wanted = {path for path in changed | stale if layout.is_page(path) and self._tables.is_file(path)}
        if detects:
            shown = {path for path in self._files.names if layout.is_page(path)}
            known = self._tables.page_ids().keys() | {one.path for one in self._tables.skipped()}
            wanted |= shown - known
            for path in known - shown:
                self.forget(path)
        return wanted

    def _place_new(self, layout: Layout) -> None:
        """Steps 2 and 3 for the pages that were read."""
        pages = map(self._tables.placed, self._new)
        shown = place_pages(layout, self._base or "", pages, self._tables.all_placed)
        self._tables.place(dict(zip(self._new, shown, strict=True)))
        for page, change in self._counts.items():
            names = Counter(self._tables.names(page))
            names.update(change)
            now = {name: times for name, times in names.items() if times > 0}
            if now != self._tables.names(page):
                self._tables.set_names(page, now)
                self._renamed.add(page)

    def _count_names(self, known: int | None, parsed: ParsedPage) -> None:
        if known is None or self._links is None:
            return
        change = Counter((link.href, link.text) for link in parsed.links if link.text and not is_external(link.href))
        change.subtract(self._tables.mentions(known))
        for (href, name), times in change.items():
            target = self._links.target(parsed.path, href) if times else None
            target_id = self._tables.page_id(target) if target is not None else None
            if target_id is not None:
                self._counts.setdefault(target_id, Counter())[name] += times
