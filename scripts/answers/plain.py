"""Outcomes of the builtin model on plain questions about small sites, asked alone and in one conversation.

``small_sites/questions.jsonl`` has them: ``section`` is where the answer stands, ``shows`` the words that a right
answer has, ``undocumented`` a question that no page answers, ``invented`` its names that stand on no page. With
``--plain FILE`` other questions of that form about the same sites are asked. ``small_sites/invented.jsonl`` has
questions with invented names about corpora; they are asked with ``--invented``.

A documented question is *right* (answered, and all words shown), *wrong* (answered, without them), *refused*, *near*
(unsure, and its section is among those shown) or *far* (unsure, and it is not). Of an undocumented one, *answered* is
the only fault.
"""

import json
import re
import tarfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from scripts.answers.questions import normalized
from scripts.bench_search import at_least, at_most
from service.adapters.builtin.answer import BuiltinAnswer
from service.assistant.answer import answer
from service.assistant.question import Exchange, Question
from service.domain.search import Source
from service.domain.threads.recorded_reply import Outcome
from service.domain.threads.replies import ReplyBroken, ReplyDone, SearchFinished, TextDelta
from service.ports.model import Model
from service.ports.search_index import SearchIndex
from service.retrieval.index.build import build_index
from service.retrieval.search.query import SiteIndexes

ROOT = Path(__file__).parents[2]
SITES = Path(__file__).parent / "small_sites"
QUESTIONS_FILE, INVENTED_FILE = SITES / "questions.jsonl", SITES / "invented.jsonl"
MANUAL = "manual"
TURNS = 10
"""Questions of one conversation."""
RIGHT, WRONG, REFUSED, UNDOCUMENTED, CONVERSATION = 0.85, 0.04, 0.03, 0.95, 0.03
NEAR = 1.0
"""Share of the unsure answers to documented questions that show the right section."""
INVENTED_SAID = 0.95
BUILTIN = BuiltinAnswer()

_QUOTE = re.compile(r"^>[ ]?", re.MULTILINE)
Rows = list[dict[str, Any]]


class PlainQuestion(Struct, frozen=True):
    site: str
    question: str
    section: str = ""
    shows: tuple[str, ...] = ()
    undocumented: bool = False
    invented: tuple[str, ...] = ()


class Given(Struct, frozen=True):
    """A reply to a question."""

    asked: PlainQuestion
    text: str
    outcome: Outcome
    cited: tuple[Source, ...]

    @property
    def verdict(self) -> str:
        if self.asked.undocumented:
            return "answered" if self.outcome == "answered" else "not answered"
        match self.outcome:
            case "answered":
                return "right" if _shows(self.text, self.asked.shows) else "wrong"
            case "unsure":
                return "near" if any(_is_section(source, self.asked.section) for source in self.cited) else "far"
            case _:
                return "refused"

    @property
    def says_invented(self) -> bool:
        return self.outcome != "answered" and _shows(self.text, self.asked.invented)


def plain_questions(file: Path = QUESTIONS_FILE) -> list[PlainQuestion]:
    return [msgspec.convert(json.loads(line), PlainQuestion) for line in file.read_text("utf-8").splitlines() if line]


async def small_sites(names: Iterable[str], folder: Path) -> SiteIndexes:
    """Return the indexes of small sites, built there."""
    indexes = SiteIndexes(folder)
    for name in names:
        archive = folder / f"{name}.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(ROOT / "service" / "manual" if name == MANUAL else SITES / name, ".", filter=_without_pictures)
        build_index(archive, indexes.path_of(name, "one"), docs_folder="", commit="0" * 40, progress=lambda *_: None)
        archive.unlink()
        await indexes.use(name, "one")
    return indexes


def _without_pictures(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.name.endswith(".png") else member


async def measured(
    index: SearchIndex, questions: Sequence[PlainQuestion], *, model: Model = BUILTIN
) -> tuple[Rows, Rows, list[Given]]:
    """Return rows and goals for the report, and the replies to questions that were asked alone."""
    alone = [await asked(index, one, (), model) for one in questions]
    together: list[Given] = []
    for site in dict.fromkeys(one.site for one in questions):
        earlier: list[Exchange] = []
        for one in (one for one in questions if one.site == site):
            given = await asked(index, one, earlier, model)
            together.append(given)
            earlier = [*earlier, Exchange(one.question, given.text, given.cited)][-(TURNS - 1) :]
    rows = [
        row for name, replies in (("alone", alone), ("in a conversation", together)) for row in _rows(name, replies)
    ]
    return rows, _goals(alone, together), alone


async def invented_measured(
    index: SearchIndex, questions: Sequence[PlainQuestion], *, model: Model = BUILTIN
) -> tuple[Rows, Rows, list[Given]]:
    """Return rows and goals for the report, and the replies to questions with invented names."""
    replies = [await asked(index, one, (), model) for one in questions]
    rows: Rows = []
    for site in ("all", *dict.fromkeys(one.site for one in questions)):
        some = [one for one in replies if site in ("all", one.asked.site)]
        rows.append({"questions": f"invented: {site}", "number": len(some), "said": _said(some)})
    goal = f"invented names of large sites said to be on no page, of {len(replies)}"
    return rows, [at_least(goal, INVENTED_SAID, _said(replies))], replies


def _said(replies: Sequence[Given]) -> float:
    return _share(sum(one.says_invented for one in replies), len(replies))


async def asked(index: SearchIndex, question: PlainQuestion, earlier: Sequence[Exchange], model: Model) -> Given:
    text, sources = "", dict[int, Source]()
    asking = Question(question.site, "msg_plain", question.question, earlier=tuple(earlier))
    async for event in answer(asking, index=index, model=model):
        match event:
            case SearchFinished(sources=found):
                sources.update((source.number, source) for source in found)
            case TextDelta(text=delta):
                text += delta
            case ReplyDone() as done:
                cited = tuple(sources[number] for number in done.cited)
                return Given(question, text, done.outcome, cited)
            case ReplyBroken(message=message):
                raise SystemExit(f"no answer to {question.question!r}: {message}")
            case _:
                pass
    raise SystemExit(f"the answer to {question.question!r} has no end")


def _shows(text: str, words: Iterable[str]) -> bool:
    shown = _QUOTE.sub("", text)
    forms = (" ".join(shown.split()).casefold(), normalized(shown))
    return all(any(form in whole for form, whole in zip(_forms(one), forms, strict=True)) for one in words)


def _forms(words: str) -> tuple[str, str]:
    return " ".join(words.split()).casefold(), normalized(words)


def _is_section(source: Source, section: str) -> bool:
    path, _, heading = section.partition("#")
    said = _name(heading)
    return source.path == path and (
        _name(source.heading) == said or (not source.heading and _name(source.title) == said)
    )


def _name(heading: str) -> str:
    return normalized(heading).strip("\"' ")


def _rows(name: str, replies: Sequence[Given]) -> Iterable[dict[str, Any]]:
    for site in ("all", *dict.fromkeys(one.asked.site for one in replies)):
        some = [one for one in replies if site in ("all", one.asked.site)]
        documented = [one for one in some if not one.asked.undocumented]
        others = [one for one in some if one.asked.undocumented]
        counts = Counter(one.verdict for one in documented)
        yield {
            "questions": f"plain, {name}: {site}",
            "number": len(some),
            **{kind: _share(counts[kind], len(documented)) for kind in ("right", "wrong", "refused", "near", "far")},
            "undocumented": _share(sum(one.verdict == "not answered" for one in others), len(others)),
        }


def _goals(alone: Sequence[Given], together: Sequence[Given]) -> Rows:
    documented = [one for one in alone if not one.asked.undocumented]
    others = [one for one in alone if one.asked.undocumented]
    invented = [one for one in others if one.asked.invented]
    counts = Counter(one.verdict for one in documented)
    unsure = counts["near"] + counts["far"]
    right = [sum(one.verdict == "right" for one in replies) / max(1, len(documented)) for replies in (alone, together)]
    whole = len(documented)
    return [
        at_least(f"plain questions answered rightly, of {whole}", RIGHT, _share(counts["right"], whole)),
        at_most("plain questions answered wrongly", WRONG, _share(counts["wrong"], whole)),
        at_most("plain questions refused wrongly", REFUSED, _share(counts["refused"], whole)),
        at_least(f"unsure answers that show the section, of {unsure}", NEAR, _share(counts["near"], unsure)),
        at_least(
            f"undocumented questions refused or unsure, of {len(others)}", UNDOCUMENTED,
            _share(sum(one.verdict == "not answered" for one in others), len(others)),
        ),
        at_least(
            f"invented names said to be on no page, of {len(invented)}", INVENTED_SAID,
            _said(invented),
        ),
        at_most("difference in one conversation", CONVERSATION, round(abs(right[0] - right[1]), 3)),
    ]  # fmt: skip


def _share(count: int, whole: int) -> float:
    return round(count / whole, 3) if whole else 1.0


def print_faults(replies: Iterable[Given]) -> None:
    """Print the questions that were not answered rightly, and what was said."""
    for one in replies:
        if not (one.says_invented if one.asked.invented else one.verdict in ("right", "not answered")):
            print(f"\n== {one.asked.site}: {one.asked.question}  [{one.verdict}] {one.asked.section}\n{one.text}")
