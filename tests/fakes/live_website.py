"""A live website of one page, on this machine."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Quiet(SimpleHTTPRequestHandler):
    extensions_map = {".md": "text/markdown", ".txt": "text/plain", ".html": "text/html", "": "text/plain"}  # noqa: RUF012

    def log_message(self, *_):
        pass


@contextmanager
def live_website(folder: Path) -> Iterator[str]:
    """Yield its address. The folder is made."""
    folder.mkdir()
    (folder / "llms.txt").write_text("# Kites\n\n- [Strings](/strings.md): which string to take\n")
    (folder / "strings.md").write_text("# Strings\n\nTake zylon in a storm.\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()
