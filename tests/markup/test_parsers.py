"""Readers of Markdown that several threads share."""

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from markdown_it import MarkdownIt

from service.markup.parsers import prepared

THREADS, PARSERS = 6, 150
TEXT = "Run the *installer*.\n\n- one\n- two\n"


@pytest.fixture
def hasty_threads():
    """Threads that give way to each other all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_first_use_by_several_threads_reads_alike():
    begin = Barrier(THREADS)

    def read(parser: MarkdownIt) -> str:
        begin.wait()
        return str(parser.render(TEXT))

    with ThreadPoolExecutor(THREADS) as threads:
        for _ in range(PARSERS):
            parser = prepared(MarkdownIt("commonmark"))
            found = set(threads.map(read, [parser] * THREADS))
            assert found == {"<p>Run the <em>installer</em>.</p>\n<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n"}
