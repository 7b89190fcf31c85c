"""Every citation leads to a page, an anchor and lines that exist, whatever a model writes.

A small share of ``scripts/bench answers``; DOCSMITH_ANSWERS says how many answers to make.
"""

import os
import random

from scripts.answers.citations import CitesAtRandom, read
from service.adapters.builtin.answer import BuiltinAnswer
from service.assistant.answer import answer
from service.assistant.question import Question
from service.domain.threads.replies import ReplyDone, SearchFinished
from service.retrieval.readers.markdown import parse_page
from tests.retrieval.conftest import indexed  # noqa: F401  (a fixture)
from tests.retrieval.sites import COMMIT, DOMAIN

ANSWERS = int(os.environ.get("DOCSMITH_ANSWERS", "60"))
WORDS = ["queue", "worker", "retry", "delay", "token", "region", "volume", "policy", "secret", "rollback", "shard"]


def some(chance, count):
    return " ".join(chance.choices(WORDS, k=count))


def site(chance):
    pages = {}
    for number in range(30):
        page = f"---\ntitle: {chance.choice(WORDS).title()} {number}\n---\n\nAbout {some(chance, 8)}.\n"
        for _ in range(chance.randint(0, 4)):
            name = some(chance, 2)
            page += f"\n## {name.title()} (v{number}) [{number}]\n\nThe {name} is {some(chance, 20)}.\n"
            page += f"\n```sh\nrun --{name.replace(' ', '-')} [{number}]\n```\n"
        pages[f"guide/{number}.md"] = page
    return pages


async def test_every_citation_leads_to_a_place_that_exists(indexed):  # noqa: F811
    chance = random.Random(11)
    files = site(chance)
    await indexed.fill(files)
    models = [BuiltinAnswer(), CitesAtRandom()]
    checked = 0
    for number in range(ANSWERS):
        asked = f"How do I {some(chance, 3)}?"
        text, sources = "", {}
        question = Question(DOMAIN, f"reply-{number}", asked, page_size=chance.randint(1, 12))
        async for event in answer(question, index=indexed.index, model=models[number % 2]):
            if isinstance(event, SearchFinished):
                sources |= {str(source.number): source for source in event.sources}
            elif isinstance(event, ReplyDone):
                text, cited = event.text, event.cited
        links, left = read(text)
        assert left == []
        assert {str(one) for one in cited} >= {told for told, _ in links}
        for told, url in links:
            source, (path, _, anchor) = sources[told], url.partition("#")
            page = await indexed.index.read_page(DOMAIN, path)
            assert page is not None
            assert (page.path, source.commit) == (source.path, COMMIT)
            assert not anchor or anchor in parse_page(files[page.path].encode(), page.path).anchors
            lines = files[page.path].split("\n")[source.start_line - 1 : source.end_line]
            assert not source.heading or f"## {source.heading}" in lines
            checked += 1
    assert checked > ANSWERS
