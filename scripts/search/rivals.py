"""Other search engines, asked the same questions about the same sections: what ``bench search`` compares with."""

import json
import re
import shutil
import sqlite3
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import tantivy

LOOKED_AT = 300
"""Sections of each question."""
NPM_PACKAGES = ("minisearch@7.2.0", "lunr@2.3.9")
NPM_SECONDS = 600


class Section(NamedTuple):
    path: str
    title: str
    heading: str
    text: str


class Ranked(NamedTuple):
    engine: str
    pages: list[list[str]]
    build_seconds: float
    milliseconds: list[float]
    """Milliseconds of each question."""


def sections_of(index: Path) -> list[Section]:
    with closing(sqlite3.connect(index / "pages.db")) as db:
        rows = db.execute(
            "SELECT pages.path, pages.title, sections.heading, sections.text FROM sections"
            " JOIN pages ON pages.id = sections.id >> 16 ORDER BY sections.id"
        )
        return [Section(path, title, heading, zlib.decompress(text).decode()) for path, title, heading, text in rows]


def ranked_by_rivals(sections: Sequence[Section], questions: Sequence[str], scratch: Path) -> Iterator[Ranked]:
    """Those of npm are left out where npm is missing or cannot reach its registry."""
    yield _fts5(sections, questions, "FTS5, one table, OR", " OR ")
    yield _fts5(sections, questions, "FTS5, one table, AND", " ")
    yield _tantivy(sections, questions, scratch)
    folder = _npm(scratch)
    if folder is not None:
        for name in ("minisearch", "lunr"):
            yield _javascript(name, sections, questions, folder)


def _asked(engine: str, build_seconds: float, questions: Sequence[str], ask: Callable[[str], Sequence[str]]) -> Ranked:
    pages, milliseconds = [], []
    for question in questions:
        began = time.perf_counter()
        found = ask(question)
        milliseconds.append(1000 * (time.perf_counter() - began))
        pages.append(list(dict.fromkeys(found)))
    return Ranked(engine, pages, build_seconds, milliseconds)


def _fts5(sections: Sequence[Section], questions: Sequence[str], engine: str, joint: str) -> Ranked:
    """As usually written."""
    with closing(sqlite3.connect(":memory:")) as db:
        began = time.perf_counter()
        db.execute("CREATE VIRTUAL TABLE usual USING fts5(path UNINDEXED, title, heading, body)")
        db.executemany("INSERT INTO usual VALUES (?, ?, ?, ?)", sections)
        built = time.perf_counter() - began

        def ask(question: str) -> list[str]:
            words = joint.join(f'"{word}"' for word in re.findall(r"\w+", question))
            sql = "SELECT path FROM usual WHERE usual MATCH ? ORDER BY rank LIMIT ?"
            return [path for (path,) in db.execute(sql, (words, LOOKED_AT))] if words else []

        return _asked(engine, built, questions, ask)


def _tantivy(sections: Sequence[Section], questions: Sequence[str], scratch: Path) -> Ranked:
    """As its own tutorial does: one index, its query parser, stemmed English."""
    fields = ["title", "heading", "text"]
    builder = tantivy.SchemaBuilder()
    for field in fields:
        builder.add_text_field(field, tokenizer_name="en_stem")
    builder.add_unsigned_field("id", fast=True)
    folder = scratch / "plain-tantivy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    began = time.perf_counter()
    index = tantivy.Index(builder.build(), str(folder))
    writer = index.writer(64_000_000, 1)
    for number, section in enumerate(sections):
        document = tantivy.Document(title=section.title, heading=section.heading, text=section.text)
        document.add_unsigned("id", number)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    built = time.perf_counter() - began

    def ask(question: str) -> list[str]:
        query, _ = index.parse_query_lenient(question, fields)
        hits = searcher.search(query, LOOKED_AT, count=False).hits
        return [
            sections[int(id_)].path
            for id_ in searcher.fast_field_values("id", [at for _, at in hits])
            if id_ is not None
        ]

    return _asked("tantivy, as usually written", built, questions, ask)


def _npm(scratch: Path) -> Path | None:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return None
    folder = scratch / "npm"
    if not folder.exists():
        folder.mkdir()
        (folder / "package.json").write_text("{}", encoding="utf-8")
        command = [npm, "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", *NPM_PACKAGES]
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, timeout=NPM_SECONDS)
        if done.returncode != 0:
            return None
    return folder


def _javascript(name: str, sections: Sequence[Section], questions: Sequence[str], folder: Path) -> Ranked:
    asked = [{"id": number, **section._asdict()} for number, section in enumerate(sections)]
    script = Path(__file__).with_suffix(".mjs")
    done = subprocess.run(
        [str(shutil.which("node")), "--max-old-space-size=4096", str(script), name],
        input=json.dumps({"sections": asked, "questions": list(questions)}),
        cwd=folder, check=True, capture_output=True, text=True, timeout=NPM_SECONDS,
    )  # fmt: skip
    told = json.loads(done.stdout)
    return Ranked(name, told["ranked"], told["build_seconds"], told["milliseconds"])
