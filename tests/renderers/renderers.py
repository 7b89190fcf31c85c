"""What browsers make of an answer in three renderers of Markdown, as sites use them: raw HTML is let through.

markdown-it runs here; ``marked`` and ``remark`` run in node, which also reads the HTML of all three as a browser does.
"""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from markdown_it import MarkdownIt
from msgspec import Struct

HERE = Path(__file__).parent
BASE = "https://docs.kite.example/guides/start"
"""The address of the page that shows the answer."""
NAMES = ("markdown-it", "marked", "remark")


class Seen(Struct, frozen=True):
    """A rendered text, as a browser has it."""

    elements: list[tuple[str, list[tuple[str, str, str | None]]]]
    """Name, and attributes: name, value, and the address that the browser makes of the value."""
    code: list[str]
    """The text of each code element."""


class _Batch(Struct, frozen=True):
    marked: list[Seen]
    remark: list[Seen]
    pages: list[Seen]


class Renderers:
    def __init__(self, node: "subprocess.Popen[bytes]") -> None:
        self._node = node
        self._markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

    def render(self, texts: Sequence[str]) -> list[tuple[Seen, Seen, Seen]]:
        """For each text, what each of ``NAMES`` makes of it."""
        pages = [self._markdown.render(text) for text in texts]
        stdin, stdout = self._node.stdin, self._node.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"base": BASE, "texts": texts, "pages": pages}).encode() + b"\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"node ended with {self._node.wait()}")
        batch = msgspec.json.decode(line, type=_Batch)
        return list(zip(batch.pages, batch.marked, batch.remark, strict=True))


@contextmanager
def renderers() -> Iterator[Renderers]:
    """With node running; its packages are to be installed before (``tests.node_packages``)."""
    node = subprocess.Popen(["node", str(HERE / "render.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Renderers(node)
    finally:
        node.kill()
        node.wait()
        for pipe in (node.stdin, node.stdout):
            assert pipe is not None
            pipe.close()
