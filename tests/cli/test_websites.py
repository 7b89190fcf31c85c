"""A live site as documentation, from the command line to an answer."""

import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.service_process import service_in


class Quiet(SimpleHTTPRequestHandler):
    extensions_map = {".md": "text/markdown", ".txt": "text/plain", ".html": "text/html", "": "text/plain"}  # noqa: RUF012

    def log_message(self, *_):
        pass


@pytest.fixture
def website(tmp_path):
    folder = tmp_path / "www"
    folder.mkdir()
    (folder / "llms.txt").write_text("# Kites\n\n- [Strings](/strings.md): which string to take\n")
    (folder / "strings.md").write_text("# Strings\n\nTake zylon in a storm.\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_a_website_can_be_asked_and_not_changed(tmp_path, website):
    with service_in(tmp_path / "service") as service:
        service.run("organization", "create", "--name", "Acme")
        create = ("project", "create", "--name", "Kites", "--website", website, "--domain", "kites")
        refused = service.run(*create)
        assert refused.returncode == 1
        assert "not on the public internet" in refused.stderr
        service.environment["DOCSMITH_NETWORK__ALLOW_PRIVATE"] = "true"
        created = service.run(*create, "--json")
        assert created.returncode == 0, created.stderr
        assert json.loads(created.stdout)["codeHost"] == "website"
        done = service.run("index", "kites")
        assert "1 pages" in done.stdout, done.stderr
        found = json.loads(service.run("search", "kites", "which string in a storm", "--json").stdout)
        assert found["results"][0]["metadata"]["url"] == "/strings"
        job = service.run("job", "create", "Replace zylon by silk.", "--project", "kites")
        assert job.returncode == 1
        assert "live website, which can be read but not changed" in job.stderr
