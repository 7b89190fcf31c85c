"""Docstrings, errors, help and pages are in plain words: see scripts/phrases.py for what to write instead."""

from pathlib import Path

from scripts.phrases import phrases_in

ROOT = Path(__file__).parent.parent


def test_texts_have_none_of_the_listed_phrases():
    assert [f"{one.place}: {one.found!r} in {one.text!r}" for one in phrases_in(ROOT)] == []


def test_docstrings_errors_and_pages_are_searched(tmp_path):
    page = tmp_path / "service" / "manual" / "page.md"
    page.parent.mkdir(parents=True)
    page.write_text("The job takes no ten seconds.\n")
    (tmp_path / "service" / "jobs.py").write_text(
        'LIMIT = 1\n"""Of a job."""\nlog.info("views are made anew")\nraise NotFound("There is no such job.")\n'
    )
    pages = tmp_path / "service" / "web"
    pages.mkdir()
    (pages / "report.html").write_text("<p>Kind of stream</p>\n<p>The service is running normally.</p>\n")
    assert [(one.place, one.found) for one in phrases_in(tmp_path)] == [
        ("service/jobs.py:2", "Of"),
        ("service/jobs.py:4", "There is no such"),
        ("service/manual/page.md:1", "takes no ten seconds"),
        ("service/web/report.html:1", "Kind of stream"),
    ]
