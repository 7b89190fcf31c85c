"""Asking in the terminal."""

import pytest

from tests.service_process import service_in, write_docs


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """It is served, too: the command works beside."""
    folder = tmp_path_factory.mktemp("ask")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        yield service


def test_answer_is_printed_with_sources_and_how_to_continue(service):
    done = service.run("ask", "kite", "How do I install Kite?")
    assert (done.returncode, done.stderr) == (0, "")
    assert "curl -sSf kite.example/install | sh" in done.stdout
    assert "**Install** [1]" in done.stdout
    assert "\nSources:\n  [1] Install  /install  (install.md:" in done.stdout
    assert "](/install)" not in done.stdout
    assert "```suggestions" not in done.stdout
    thread = done.stdout.split("--thread ")[1].strip()
    again = service.run("ask", "kite", "And how much disk does the installer need?", "--thread", thread)
    assert again.returncode == 0
    assert "20 MB" in again.stdout
    assert again.stdout.strip().endswith(thread)


def test_as_one_document_it_has_all_that_is_known_of_the_answer(service):
    found = service.cli("ask", "kite", "How do I install Kite?")
    assert (found["resolution"], found["model"]) == ("answered", "builtin/extractive")
    assert found["usage"] == {"inputTokens": 0, "outputTokens": 0, "costUsd": 0.0}
    assert found["text"].startswith("These passages")
    assert found["sources"][0]["path"] == "install.md"
    assert "```suggestions" not in found["text"]
    assert all(one["label"] and one["path"].startswith("/") for one in found["suggestions"])
    shown = service.cli("audit", "show", "--stream", f"thread-{found['threadId']}")["events"]
    assert [event["type"] for event in shown][-1] == "reply-completed"
    follow_up = service.cli("ask", "kite", "How long is the delay between two tries?", "--thread", found["threadId"])
    assert follow_up["threadId"] == found["threadId"]
    assert follow_up["messageId"] != found["messageId"]


def test_related_pages_are_listed_below_the_answer(service):
    done = service.run("ask", "kite", "What is Kite?")
    assert "```suggestions" not in done.stdout
    _, related = done.stdout.split("\nRelated pages:\n")
    assert "  Install  /install\n" in related


def test_unanswered_question_is_no_failure(service):
    found = service.cli("ask", "kite", "Which SAML providers can rotate certificates?")
    assert (found["resolution"], found["sources"]) == ("unanswered", [])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["kite", "How?", "--thread", "unknown"], "Thread not found. Leave its id out to begin a new one."),
        (["nowhere", "How?"], "Site not found: nowhere. See: docsmith project list"),
        (["kite", " "], "A question has 1 to 32768 characters."),
    ],
)
def test_a_mistake_is_one_sentence(service, arguments, sentence):
    done = service.run("ask", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"docsmith: {sentence}\n")
