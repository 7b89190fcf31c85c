"""A live site as documentation, from the command line to an answer."""

import json

from tests.fakes.live_website import live_website
from tests.service_process import service_in


def test_a_website_can_be_asked_and_not_changed(tmp_path):
    with live_website(tmp_path / "www") as website, service_in(tmp_path / "service") as service:
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
