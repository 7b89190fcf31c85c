"""Search by words over texts in memory."""

import pytest

from service.retrieval.search.live import MAX_CANDIDATES, WordSearch

TEXTS = {
    "retry.md": "---\ntitle: Retries\n---\n\nA failed call is tried again.\n\n## Delays\n\nEach delay doubles.\n",
    "keys.md": "# Keys\n\nMake a key. A call needs it.\n",
    "calls.md": "# Calls\n\n" + "A call is made. " * 50,
    "src/client.py": "import time\n\n\ndef retry_delay_seconds(attempt):\n    return 2**attempt\n",
    "日本.md": "# 再試行\n\n失敗した呼び出しは再試行されます。\n",
}


def add(search, texts):
    search.add(texts, {path: text.lower() for path, text in texts.items()})


def found(query, texts=TEXTS, known=(), limit=5):
    search = WordSearch(query)
    search.add(
        dict(list(texts.items())[:2]), {path: text.lower() for path, text in dict(list(texts.items())[:2]).items()}
    )
    search.add(
        dict(list(texts.items())[2:]), {path: text.lower() for path, text in dict(list(texts.items())[2:]).items()}
    )
    candidates = search.candidates(known)
    return search.ranked({path: texts[path] for path in candidates}, known, limit=limit)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("when calls are failing", "retry.md"),
        ("which delays are there", "retry.md"),
        ("the key of a call", "keys.md"),
        ("retryDelaySeconds", "src/client.py"),
        ("retry delay seconds", "src/client.py"),
        ("再試行", "日本.md"),
    ],
)
def test_words_find_the_text_that_is_about_them(query, first):
    assert found(query)[0].path == first


def test_section_has_its_headings_and_lines():
    section = found("delay doubles")[0]
    assert (section.title, section.heading_path, section.text) == ("Retries", ("Delays",), "Each delay doubles.")
    assert (section.start_line, section.end_line) == (7, 9)


def test_rare_word_counts_more_than_a_common_one():
    common = {f"{n:02}.md": f"# {n}\n\nDeploy the service. {'deploy ' * 5}\n" for n in range(60)}
    assert (
        found("deploy rollback", {**common, "99.md": "# Undo\n\nA rollback of what you deploy.\n"})[0].path == "99.md"
    )


def test_order_of_an_index_counts_too():
    assert found("call")[0].path != "retry.md"
    assert found("call", known=["retry.md", "keys.md", "calls.md"])[0].path in ("retry.md", "keys.md")
    assert "日本.md" in [one.path for one in found("call", known=["日本.md"])]


@pytest.mark.parametrize("query", ["", " ", "---", "🙂", "a" * 500, "the of and", "*?[(", "\ud800"])
def test_odd_queries_find_nothing_or_something_in_peace(query):
    found(query)
    assert WordSearch(query).candidates() == []


def test_candidates_are_limited():
    search = WordSearch("word")
    search.add(
        {f"{n}.md": "word\n" for n in range(500)},
        {path: text.lower() for path, text in {f"{n}.md": "word\n" for n in range(500)}.items()},
    )
    assert len(search.candidates()) == MAX_CANDIDATES
