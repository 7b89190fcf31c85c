"""Readers of Markdown that several threads share."""

import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import Barrier

import pytest
from markdown_it import MarkdownIt

from service.markup.parsers import prepared

THREADS, PARSERS = 6, 150
TEXT = "Run the *installer*.\n\n- one\n- two\n"


LINKS = "[a](b~c.md?d=e#f) <https://example.com/~g>"
FIRST_TIMES = 60
LIBRARY = ("mdurl", "markdown_it", "service.markup.parsers")


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


@pytest.fixture
def import_again():
    """Imports the library and our readers as if for the first time: the library makes its tables for links once."""
    kept = {name: module for name, module in sys.modules.items() if name.startswith(LIBRARY)}

    def again():
        for name in [name for name in sys.modules if name.startswith(LIBRARY)]:
            del sys.modules[name]
        return import_module("markdown_it"), import_module("service.markup.parsers")

    yield again
    sys.modules.update(kept)


@pytest.mark.usefixtures("hasty_threads")
def test_first_links_by_several_threads_are_read_alike(import_again):
    begin = Barrier(THREADS)

    def read(parser: MarkdownIt) -> str:
        begin.wait()
        return str(parser.render(LINKS))

    with ThreadPoolExecutor(THREADS) as threads:
        for _ in range(FIRST_TIMES):
            library, ours = import_again()
            parser = ours.prepared(library.MarkdownIt("commonmark"))
            found = set(threads.map(read, [parser] * THREADS))
            link = '<a href="https://example.com/~g">https://example.com/~g</a>'
            assert found == {f'<p><a href="b~c.md?d=e#f">a</a> {link}</p>\n'}
