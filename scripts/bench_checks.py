"""Sentences held against passages: how many planted slips are found, and how many true sentences are marked.

    scripts/bench checks --corpora FOLDER [--set FILE] [--orders N] [--prose] [--show] [--json]

FOLDER as for ``bench_search``, unpacked or packed. The set (``answers/checked_answers.txt``, or FILE of the same form)
has answers that were written from pages of the corpora, and slips: each is put into its answer alone. The passages of
an answer are the lines that it cites, and all other lines of their pages. Every second answer was looked at when the
checks were made; the others were held back, and have rows of their own. ``answers/strong_answers.txt`` has answers as a
strong model writes them; those whose names begin with "held out:" were looked at after their first run: see its top.
``answers/kinds_answers.txt`` has slips of each kind, found by hand, that the other sets have few of.
"""

import argparse
import os
import random
import re
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts.bench_search import at_least, at_most
from scripts.bench_table import report
from service.domain.threads.checks import SentenceCheck
from service.sentences.checker import SentenceChecker
from service.sentences.passages import GivenPassage
from service.sentences.statements import unsourced_statements
from service.sentences.units import Unit, UnitReader

SET = Path(__file__).parent / "answers" / "checked_answers.txt"
FOUND, MARKED = 90.0, 3.0
"""Percent of the slips, at least, and of the true sentences, at most."""
HELD_OUT = "held out:"
OTHER = 50
"""The number of the first passage that no answer cites."""
PIECE_CHARACTERS = 6_000
_BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"(?P<marks>#{1,6})\s+(?P<text>.+)")
_PAGE = re.compile(r"(?P<path>\S+)(?: (?P<first>\d+)-(?P<last>\d+))?")


class Slip(Struct, frozen=True):
    kind: str
    right: str
    wrong: str


class Answer(Struct, frozen=True):
    name: str
    pages: tuple[str, ...]
    """Each a path, and lines."""
    question: str
    text: str
    slips: tuple[Slip, ...]


def answers_in(text: str) -> list[Answer]:
    """Read a set."""
    found: list[Answer] = []
    for part in text.split("\n=== ")[1:]:
        head, body, slips = re.split(r"^---$", part, flags=re.MULTILINE)
        name, *lines = head.strip().split("\n")
        facts = [line.partition(": ")[::2] for line in lines]
        found.append(
            Answer(
                name,
                tuple(value for key, value in facts if key == "page"),
                next((value for key, value in facts if key == "question"), ""),
                body.strip("\n"),
                tuple(_slip(line) for line in slips.strip().split("\n") if line.strip()),
            )
        )
    return found


def _slip(line: str) -> Slip:
    kind, _, rest = line.partition(": ")
    right, _, wrong = rest.partition(" -> ")
    return Slip(kind, right.replace("\\n", "\n"), wrong.replace("\\n", "\n"))


def passages_of(answer: Answer, corpora: Path) -> list[GivenPassage]:
    """Return the lines that the answer cites, then the rest of their pages."""
    found: list[GivenPassage] = []
    used: dict[str, set[int]] = {}
    for number, page in enumerate(answer.pages, start=1):
        match = _PAGE.fullmatch(page)
        assert match is not None, page
        lines = _lines(corpora, match["path"])
        first, last = int(match["first"] or 1), int(match["last"] or len(lines))
        found.append(GivenPassage(number, "\n".join(lines[first - 1 : last]), first, heading_above(lines, first)))
        used.setdefault(match["path"], set()).update(range(first, last + 1))
    number = OTHER
    for path, taken in used.items():
        piece: list[str] = []
        for at, line in enumerate([*_lines(corpora, path), ""], start=1):
            if piece and (at in taken or sum(map(len, piece)) > PIECE_CHARACTERS):
                found.append(GivenPassage(number, "\n".join(piece), at - len(piece)))
                number += 1
                piece = []
            if at not in taken:
                piece.append(line)
        found.append(GivenPassage(number, "\n".join(piece)))
    return found


def heading_above(lines: list[str], first: int) -> str:
    """Return the headings that a line stands under, counted from 1, as passages name theirs."""
    above: dict[int, str] = {}
    in_code = False
    for line in lines[: first - 1]:
        in_code ^= line.lstrip().startswith(("```", "~~~"))
        if (mark := _HEADING.match(line)) and not in_code:
            level = len(mark["marks"])
            above = {at: text for at, text in above.items() if at < level} | {level: mark["text"]}
    return " ".join(above.values())


def _lines(corpora: Path, path: str) -> list[str]:
    return (corpora / path).read_text(encoding="utf-8").splitlines()


def checked(answer: Answer, passages: list[GivenPassage], text: str) -> list[SentenceCheck]:
    checker = SentenceChecker([answer.question])
    checker.add_passages(passages)
    shown = re.sub(r" ?\[(\d{1,3})\](?!\()", r" [\1](/p\1)", text)
    checker.judge([*checker.feed(shown), *checker.finish()])
    return list(checker.checks)


def in_orders(answer: Answer, passages: list[GivenPassage], orders: int) -> int:
    """Return in how many random orders of the passages, which get other numbers in each, a verdict differs."""
    first = [(one.text, one.status, one.missing) for one in checked(answer, passages, answer.text)]
    differ, chance = 0, random.Random(answer.name)
    for _ in range(orders):
        order = chance.sample(passages, len(passages))
        numbers = {one.number: number for number, one in enumerate(order, start=1)}
        text = re.sub(r"\[(\d)\](?!\()", lambda cited: f"[{numbers[int(cited[1])]}]", answer.text)  # noqa: B023
        again = checked(answer, [replace(one, number=numbers[one.number]) for one in order], text)
        differ += [(one.text, one.status, one.missing) for one in again] != first
    return differ


def measured(answers: list[Answer], corpora: Path, orders: int = 0) -> dict[str, Any]:
    """Count, and gather what was missed or marked by mistake."""
    sentences, marked, slips, missed = 0, [], 0, []
    unknown = differ = 0
    for answer in answers:
        passages = passages_of(answer, corpora)
        true = checked(answer, passages, answer.text)
        sentences += len(true)
        differ += in_orders(answer, passages, orders)
        unknown += sum(one.status == "partly" for one in true)
        marked += [(answer.name, one.text, one.missing) for one in true if one.status == "unsupported"]
        known = {(one.text, one.missing) for one in true}
        for slip in answer.slips:
            assert answer.text.count(slip.right) >= 1, (answer.name, slip.right)
            slips += 1
            wrong = checked(answer, passages, answer.text.replace(slip.right, slip.wrong, 1))
            if not any(one.status == "unsupported" and (one.text, one.missing) not in known for one in wrong):
                missed.append((answer.name, slip.kind, slip.right.strip(), slip.wrong.strip()))
    return {
        "sentences": sentences,
        "unknown": unknown,
        "differ": differ,
        "marked": marked,
        "slips": slips,
        "missed": missed,
    }


def measured_as_prose(answers: list[Answer], corpora: Path) -> dict[str, Any]:
    """Count the same where the answers, without their citations, are new pages, and the passages what was read for
    them. Slips in blocks of code are left out: they are none of prose.
    """
    statements, marked, slips, missed = 0, [], 0, []
    for answer in answers:
        sources = [f"{one.heading}\n\n{one.text}" for one in passages_of(answer, corpora)]
        true = _stated(answer.text, sources, answer)
        statements += sum(one.kind != "code" for one in _units(_uncited(answer.text)))
        marked += [(answer.name, *one) for one in true]
        blocks = [match.span() for match in _BLOCK.finditer(answer.text)]
        for slip in answer.slips:
            at = answer.text.index(slip.right)
            if any(start <= at < end for start, end in blocks):
                continue
            slips += 1
            if not set(_stated(answer.text.replace(slip.right, slip.wrong, 1), sources, answer)) - set(true):
                missed.append((answer.name, slip.kind, slip.right.strip(), slip.wrong.strip()))
    return {"sentences": statements, "unknown": 0, "differ": 0, "marked": marked, "slips": slips, "missed": missed}


def _uncited(text: str) -> str:
    return re.sub(r" ?\[\d\](?!\()", "", text)


def _units(text: str) -> list[Unit]:
    reader = UnitReader()
    return [*reader.feed(text), *reader.finish()]


def _stated(text: str, sources: list[str], answer: Answer) -> list[tuple[str, tuple[str, ...]]]:
    """Return the beginning of each statement without a source, and what it lacks."""
    bare = _uncited(text)
    found = unsourced_statements(bare, "", sources, [answer.question])
    return [(bare[one.start :][:60], (*one.missing, *one.names)) for one in found]


def main() -> None:
    arguments = argparse.ArgumentParser(description="Hold answers with known slips against their passages.")
    arguments.add_argument("--corpora", type=Path, default=os.environ.get("DOCSMITH_CORPORA"), help="folder of corpora")
    arguments.add_argument("--set", type=Path, default=SET, help="file of answers (default: %(default)s)")
    arguments.add_argument(
        "--orders", type=int, default=20, help="random orders of the passages (default: %(default)s)"
    )
    arguments.add_argument("--prose", action="store_true", help="measure the answers as new pages of a pull request")
    arguments.add_argument("--show", action="store_true", help="also print each slip missed and sentence marked")
    arguments.add_argument("--json", action="store_true", help="one JSON document on standard output")
    given = arguments.parse_args()
    if given.corpora is None or not Path(given.corpora).is_dir():
        arguments.error("--corpora (or DOCSMITH_CORPORA) names no folder; see the top of this script")
    answers = answers_in(given.set.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="docsmith-bench-") as scratch:
        corpora = unpacked(Path(given.corpora), {page.split(" ")[0] for one in answers for page in one.pages}, scratch)
        held = [one for one in answers if one.name.startswith(HELD_OUT)]
        built = [one for one in answers if not one.name.startswith(HELD_OUT)]
        halves = (
            {"looked at": built[::2], "held back": built[1::2]} if not held else {"built with": built, "held out": held}
        )
        halves["all"] = answers
        found = {
            name: measured_as_prose(half, corpora) if given.prose else measured(half, corpora, given.orders)
            for name, half in halves.items()
        }
    rows: list[dict[str, Any]] = []
    goals: list[dict[str, Any]] = []
    for name, one in found.items():
        rows.append(
            {
                "answers": name,
                "sentences": one["sentences"],
                "marked": len(one["marked"]),
                "unknown": one["unknown"],
                "orders that differ": one["differ"],
                "slips": one["slips"],
                "found": one["slips"] - len(one["missed"]),
            }
        )
        if one["slips"] and one["sentences"]:
            share = 100 * (1 - len(one["missed"]) / one["slips"])
            goals.append(at_least(f"slips found, {name}, %", FOUND, round(share, 1)))
            wrong = 100 * len(one["marked"]) / one["sentences"]
            goals.append(at_most(f"true sentences marked, {name}, %", MARKED, round(wrong, 1)))
            goals.append(at_most(f"orders that differ, {name}", 0, one["differ"]))
    if given.show:
        for name in [name for name in found if name != "all"]:
            for kind in ("missed", "marked"):
                for one in found[name][kind]:
                    print(f"{name}, {kind}:", *one, sep="  |  ", file=sys.stderr)
    report("checks", rows, goals, as_json=given.json)


def unpacked(corpora: Path, pages: set[str], scratch: str) -> Path:
    """Return a folder with the pages, unpacked where they are not."""
    if all((corpora / page).is_file() for page in pages):
        return corpora
    for name in {page.split("/")[0] for page in pages}:
        with tarfile.open(corpora / f"{name}.tar.xz", "r:xz") as packed:
            packed.extractall(scratch, filter="data")
    return Path(scratch)


if __name__ == "__main__":
    main()
