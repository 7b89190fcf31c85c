"""Questions about a site, for ``bench search``: written ones, and ones that a rule takes from the site itself.

Written ones are lines of JSON (``query``, ``relevant``, ``kind``, perhaps ``source``): beside the corpora in
``queries/NAME.jsonl``, and ours in ``scripts/search/questions/NAME.jsonl``. The rules:

- ``heading``: a heading or title that is a question, of at least ``FEWEST_WORDS`` words that mean something. The page
  that has it is right. Such questions are asked of an index that is made without these headings and titles
  (``without_questions``), or each would find its own words.
- ``changelog``: an item of a change log with links to pages of the site. They are right.
- ``pointer``: a sentence that sends the reader to one page of the site ("To mount it read-only, see …"), or an item
  below "See also" or "Next steps" that says why. The linked words are left out of the question.

The page that a question was taken from is left out of its ranking. A text that is on several pages is no question.

Labels name files. Where a file is no page of the site, and the index says which page shows it (``pages_showing``), that
page is the right one.
"""

import hashlib
import io
import json
import re
import sqlite3
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from service.markup.languages.stop_words import stop_words
from service.retrieval.index.build import PAGES_FILE
from service.retrieval.material.boilerplate import says_history
from service.retrieval.site.page_addresses import AddressedPage, PageAddresses

MOST_OF_A_KIND = 60
"""Questions of one rule and site: those with the smallest hashes, so a changed site keeps most of them."""
FEWEST_WORDS, MOST_CHARACTERS = 3, 300
MOST_PAGES_RIGHT, FEWEST_OF_A_KIND = 3, 5
OURS = Path(__file__).parent / "questions"

_LINK = re.compile(r"\[([^\]\n]{1,200})\]\(([^)\s]{1,300})\)")
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z*\[`])|\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)")
_POINTS = re.compile(r"\b(?:see|refer|read|check|visit|learn|consult|find|follow|described|explained|covered)\b", re.I)
_FURTHER = re.compile(r"(?:see also|related.*|next steps?|what.?s next|further reading|learn more|where to go.*)", re.I)
_ASKS = re.compile(r"(?:how|what|why|when|where|which|who|can|could|do|does|is|are|should|will|may|must)\b", re.I)
_SAYS_NOTHING = frozenset(
    """
    see also learn more information info about details detailed documentation docs refer read check section page guide
    guides following visit full complete list please find explained described further next step steps
    """.split()  # noqa: SIM905  (a list would be a line for each)
)


class _Section(NamedTuple):
    path: str
    title: str
    heading: str
    text: str


def written_questions(corpora: Path, name: str) -> list[dict[str, Any]]:
    """Return the questions of ``queries/NAME.jsonl`` and ours, which are of the kind ``ours``."""
    return [*_lines(corpora / "queries" / f"{name}.jsonl"), *({**one, "kind": "ours"} for one in _ours(name))]


def _ours(name: str) -> list[dict[str, Any]]:
    return _lines(OURS / f"{name}.jsonl")


def _lines(file: Path) -> list[dict[str, Any]]:
    if not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


@cache
def pages_showing(index: Path) -> dict[str, str]:
    """Return the pages that show files which are none, by the paths of those files."""
    with closing(sqlite3.connect(index / PAGES_FILE)) as db:
        return dict(
            db.execute(
                "SELECT DISTINCT sections.path, pages.path FROM sections"
                " JOIN pages ON pages.id = sections.id >> 16 WHERE sections.path != ''"
            )
        )


def at_pages(asked: Sequence[dict[str, Any]], showing: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the questions with the pages that show what their labels name."""
    return [
        {**one, "relevant": list(dict.fromkeys(showing.get(path, path) for path in one["relevant"]))} for one in asked
    ]


def derived_questions(index: Path) -> list[dict[str, Any]]:
    """Return the questions that the rules take from an index."""
    with closing(sqlite3.connect(index / PAGES_FILE)) as db:
        pages = list(db.execute("SELECT url, path, title FROM pages ORDER BY id"))
        sections = [
            _Section(path, title, heading, zlib.decompress(text).decode())
            for path, title, heading, text in db.execute(
                "SELECT pages.path, pages.title, sections.heading, sections.text FROM sections"
                " JOIN pages ON pages.id = sections.id >> 16 ORDER BY sections.id"
            )
        ]
    paths = {url: path for url, path, _ in pages}
    addresses = PageAddresses(AddressedPage(url, path, "[]") for url, path, _ in pages)
    found = [*_headings(sections, pages)]
    for section in sections:
        found += _linked(section, addresses, paths)
    times = Counter(one["query"] for one in found)
    seen: dict[str, list[dict[str, Any]]] = {}
    for one in sorted(found, key=lambda one: hashlib.sha256(one["query"].encode()).digest()):
        if times[one["query"]] == 1 and len(of_kind := seen.setdefault(one["kind"], [])) < MOST_OF_A_KIND:
            of_kind.append(one)
    return [one for kind in sorted(seen) if len(seen[kind]) >= FEWEST_OF_A_KIND for one in seen[kind]]


def _headings(sections: Iterable[_Section], pages: Iterable[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
    asked = {(section.path, section.heading) for section in sections} | {(path, title) for _, path, title in pages}
    for path, heading in sorted(asked):
        if heading.rstrip().endswith("?") and _ASKS.match(heading) and _says_enough(heading):
            yield {"query": heading, "relevant": [path], "kind": "heading"}


def _linked(section: _Section, addresses: PageAddresses, paths: dict[str, str]) -> Iterator[dict[str, Any]]:
    is_history = says_history(section.path, (section.title, section.heading))
    leads_on = _FURTHER.fullmatch(section.heading.strip(" :")) is not None
    for sentence in _SENTENCE.split(section.text):
        links = _LINK.findall(sentence)
        if not links or len(sentence) > 4 * MOST_CHARACTERS or "```" in sentence:
            continue
        targets = dict.fromkeys(_target(href, addresses, paths) for _, href in links)
        right = [path for path in targets if path is not None and path != section.path]
        if not right or len(right) != len(targets) or len(right) > MOST_PAGES_RIGHT:
            continue
        if is_history:
            query = _plain(_LINK.sub(r"\1", sentence))
        elif (leads_on or _POINTS.search(sentence)) and len(right) == 1:
            query = _plain(_LINK.sub(" ", sentence))
        else:
            continue
        if _says_enough(query):
            kind = "changelog" if is_history else "pointer"
            yield {"query": query, "relevant": right, "kind": kind, "leaves_out": section.path}


def _target(href: str, addresses: PageAddresses, paths: dict[str, str]) -> str | None:
    if "://" in href or href.startswith(("#", "mailto:")):
        return None
    url = addresses.resolve(href)
    return paths.get(url.partition("#")[0]) if url is not None else None


def _plain(text: str) -> str:
    text = re.sub(r"^\s*(?:[-*+>]|\d+\.|\|)\s*|[*|]+|(?<!\w)_|_(?!\w)|<[^>]{0,100}>", " ", text.replace("`", ""))
    return " ".join(re.sub(r"\(\s*\)", " ", text).split()).lstrip("- ")[:MOST_CHARACTERS]


def _says_enough(text: str) -> bool:
    words = {word.casefold() for word in re.findall(r"[^\W_]{2,}", text)}
    return len(words - stop_words("en") - _SAYS_NOTHING) >= FEWEST_WORDS


def without_questions(archive: Path, target: Path, asked: Sequence[dict[str, Any]]) -> None:
    """Write the archive without these headings and titles, and without links of the same words."""
    by_path: dict[str, set[str]] = {}
    everywhere = {_letters(one["query"]) for one in asked}
    for one in asked:
        by_path.setdefault(one["relevant"][0], set()).add(_letters(one["query"]))
    with tarfile.open(archive) as read, tarfile.open(target, "w") as written:
        for member in read:
            content = read.extractfile(member)
            if content is None:
                continue
            data = content.read()
            if member.name.endswith((".md", ".mdx", ".rst", ".markdown")):
                text = data.decode("utf-8", "replace")
                if member.name in by_path:
                    text = _without_lines(text, by_path[member.name])
                text = _LINK.sub(
                    lambda link: f"[here]({link[2]})" if _letters(link[1]) in everywhere else link[0], text
                )
                data = text.encode()
            entry = tarfile.TarInfo(member.name)
            entry.size = len(data)
            written.addfile(entry, io.BytesIO(data))


def _without_lines(text: str, asked: set[str]) -> str:
    lines = text.split("\n")
    for number, line in enumerate(lines):
        words = re.sub(r"\{#[^}]*\}|^\s*(?:title|description|sidebar_label|linkTitle)\s*:", "", line)
        if line[:1] not in ("-", "*", "|") and _letters(words) in asked:
            sign = re.match(r"#{1,6} |\w+:", line)
            lines[number] = f"{sign[0].strip()} Question" if sign is not None else "Question"
            if number + 1 < len(lines) and re.fullmatch(r"([=~^\"'#*+-])\1{2,}\s*", lines[number + 1]):
                lines[number + 1] = lines[number + 1][0] * len(lines[number])
    return "\n".join(lines)


def _letters(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())
