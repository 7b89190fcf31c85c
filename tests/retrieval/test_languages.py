"""Pages in sixteen languages, and questions as people type them: inflected, without accents, with particles."""

import json
from pathlib import Path

from tests.retrieval.sites import Indexed


async def test_question_as_typed_finds_its_page_first(indexed: Indexed) -> None:
    samples = json.loads(Path(__file__).with_name("languages.json").read_text(encoding="utf-8"))
    await indexed.fill(samples["site"])
    found = {question: (await indexed.paths(question))[0] for question in samples["questions"]}
    assert found == samples["questions"]
