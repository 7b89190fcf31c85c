import signal
import threading
from contextlib import suppress

import pytest

from service.retrieval.readers.markdown import ParsedPage
from service.retrieval.site.pages import OutOfTime, within
from tests.retrieval.formats import read, reason
from tests.retrieval.sites import build


def test_too_slow_page_is_skipped_and_the_next_one_read():
    slow = {"a.md": "\n".join(f"# {n} `" + "[" * 40 for n in range(20_000)), "b.md": "Text."}
    assert reason(slow, "a.md", seconds=0.000001) == "Reading it took longer than 1e-06 seconds."
    assert isinstance(read(slow, "b.md", seconds=5), ParsedPage)


def wait_for_ever():
    while True:
        pass


def test_deadline_holds_where_its_first_alarm_is_lost():
    def deaf_once():
        with suppress(OutOfTime):  # as Python does in a finalizer and in callbacks of its garbage collector
            wait_for_ever()
        wait_for_ever()

    with pytest.raises(OutOfTime):
        within(0.02, deaf_once)


def test_deadline_rings_no_more_when_it_is_over():
    with pytest.raises(OutOfTime):
        within(0.000001, wait_for_ever)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_pages_are_read_in_any_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(read({"a.md": "Text."}, "a.md")))
    thread.start()
    thread.join()
    assert isinstance(found[0], ParsedPage)


async def test_every_format_is_found_by_its_words(indexed):
    report = await indexed.fill(
        {
            "a.md": "# A\n\nzebra",
            "b.rst": "B\n=\n\nzebra",
            "c.html": "<h1>C</h1><p>zebra",
            "d.ipynb": '{"cells": [{"cell_type": "markdown", "source": "zebra"}]}',
            "e/openapi.yaml": "openapi: 3.0.0\npaths: {/e: {get: {summary: zebra}}}",
            "f.rst": b"caf\xe9",
            "g.html": " ",
            "h.ipynb": "{",
            "openapi.json": '{"openapi": "3.0.0",',
        }
    )
    assert set(await indexed.paths("zebra")) == {"a.md", "b.rst", "c.html", "d.ipynb", "e/openapi.yaml"}
    assert {one.path for one in report.skipped} == {"f.rst", "g.html", "h.ipynb", "openapi.json"}


def test_hostile_page_of_each_format_stops_nothing(tmp_path):
    hostile = {
        "line.md": "x " * 500_000,
        "headings.md": "".join(f"# {n}\n" for n in range(10_000)),
        "deep.md": ">" * 5000 + "- " * 5000,
        "front.md": "---\n" + "a: &a [" * 100 + "\n---\nText.",
        "script.html": "<script>" * 5000,
        "rtl.md": "# \u202eabc\u202c\n\n\u200f\u202eText",
        "good.md": "# Good\n\nText.",
    }
    report = build(hostile, tmp_path / "index.db")
    assert report.pages + len(report.skipped) == len(hostile)
    assert report.pages >= 5
