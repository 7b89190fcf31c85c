"""The benchmark of answers tells a prompt that has the answering words from one that lacks them."""

import tarfile

import pytest

from scripts.answers import builtin, context, plain
from scripts.answers.questions import AskedQuestion
from service.domain.model import Usage
from service.ports.model import ModelEnd, ModelText
from service.retrieval.index.build import build_index
from service.retrieval.search.query import SiteIndexes

KITES = "# Kites\n\n## Flying a kite\n\nLet out **twelve\nmetres** of line.\n\n## Storing a kite\n\nFold it twice.\n"
FLYING = AskedQuestion(
    "tiny-1", "tiny", "how-to", "How do I fly a kite?", ("twelve metres of line",), ("docs/kites.md",)
)
LACKING = AskedQuestion(
    "tiny-2", "tiny", "how-to", "How do I store a kite?", ("hang it on a hook",), ("docs/kites.md",), held=True
)


@pytest.fixture
async def indexes(tmp_path):
    page = tmp_path / "kites.md"
    page.write_text(KITES, encoding="utf-8")
    with tarfile.open(tmp_path / "tiny.tar", "w") as archive:
        archive.add(page, "docs/kites.md")
    found = SiteIndexes(tmp_path / "index")
    build_index(
        tmp_path / "tiny.tar", found.path_of("tiny", "one"), docs_folder="", commit="0" * 40, progress=lambda *_: None
    )
    await found.use("tiny", "one")
    yield found
    await found.close()


async def test_share_counts_prompts_with_all_answering_words(indexes):
    rows, goals, outcomes = await context.measured(indexes, [FLYING, LACKING], [12_000])
    shares = {row["questions"]: row for row in rows}
    assert (shares["all"]["before"], shares["all"]["12000"]) == (0.5, 0.5)
    assert (shares["for tuning"]["12000"], shares["held back"]["12000"]) == (1.0, 0.0)
    assert shares["words that no page of the index has"]["number"] == 1
    assert [goal["met"] for goal in goals] == [False]
    assert {one.lacks for one in outcomes if one.question is LACKING} == {("hang it on a hook",)}


class SaysTwelve:
    """Cites the first passage for the same words, whatever is asked."""

    name = "scripted/twelve"

    async def window_tokens(self):
        return None

    async def reply(self, request):
        yield ModelText("Let out *twelve metres*  of line [1].")
        yield ModelEnd("stop", (), Usage(), self.name)


async def test_useful_reply_has_the_answering_words(indexes):
    rows, goals = await builtin.measured(indexes, [FLYING, LACKING], model=SaysTwelve())
    assert (rows[0]["number"], rows[0]["useful"], rows[0]["answered"]) == (2, 0.5, 1.0)
    assert goals[0]["met"]


class SaysByQuestion:
    """Says what it was made with, by a word of the question, and is unsure of what begins with ``?``."""

    name = "scripted/by-question"

    def __init__(self, said):
        self.said = said

    async def window_tokens(self):
        return None

    async def reply(self, request):
        said = next(text for word, text in self.said.items() if word in request.grounding.question)
        yield ModelText(said.replace("?", "[0] Perhaps: "))
        yield ModelEnd("stop", (), Usage(), self.name, unsure=said.startswith("?"))


async def test_verdict_on_a_plain_question_is_what_its_reader_sees(indexes):
    section, shows = "docs/kites.md#Flying a kite", ("twelve metres",)
    questions = [
        plain.PlainQuestion("tiny", "How long is the kite line, rightly?", section, shows),
        plain.PlainQuestion("tiny", "How long is the kite line, wrongly?", section, shows),
        plain.PlainQuestion("tiny", "How long is the kite line, nearly?", section, shows),
        plain.PlainQuestion("tiny", "How long is the kite line, far off?", section, shows),
        plain.PlainQuestion("tiny", "How long is the kite line, refused?", section, shows),
        plain.PlainQuestion("tiny", "Is there a zorb?", undocumented=True, invented=("zorb",)),
        plain.PlainQuestion("tiny", "Is there a kite shop?", undocumented=True),
    ]
    model = SaysByQuestion(
        {
            "rightly": "> Let out **twelve\n> metres** [1].",
            "wrongly": "> Fold it [1].",
            "nearly": "?here [1] and here [2].",
            "far off": "?nothing to cite.",
            "refused": "[0] No.",
            "zorb": "[0] No page has “zorb”.",
            "shop": "> Fold it [1].",
        }
    )
    rows, goals, replies = await plain.measured(indexes, questions, model=model)
    assert [one.verdict for one in replies] == [
        "right", "wrong", "near", "refused", "refused", "not answered", "answered",
    ]  # fmt: skip
    row = next(row for row in rows if row["questions"] == "plain, alone: all")
    assert (row["right"], row["wrong"], row["refused"], row["near"], row["undocumented"]) == (0.2, 0.2, 0.4, 0.2, 0.5)
    assert {goal["name"]: goal["met"] for goal in goals}["invented names said to be on no page, of 1"]
