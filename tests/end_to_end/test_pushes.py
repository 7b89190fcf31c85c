"""Pushing to the embedded code host with plain git."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.conftest import GIT_ENVIRONMENT
from tests.end_to_end.talk import head, recorded, trace
from tests.service_process import service_in, write_docs

IDENTITY = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """One that nobody else has left something to do: what is refused here is to leave its log as it is."""
    folder = tmp_path_factory.mktemp("pushes")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        yield service


@pytest.fixture
def clone(service, tmp_path, git):
    """A clone that may push."""
    url = service.url.replace("http://", f"http://docsmith:{service.admin_key}@")
    folder = tmp_path / "clone"
    git("clone", "-q", f"{url}/hosted/{service.project_id}.git", str(folder))
    return folder


def commit(git, clone, message="Change"):
    git("-C", str(clone), "add", "-A")
    (clone.parent / "message").write_text(message)
    git("-C", str(clone), *IDENTITY, "commit", "-qF", str(clone.parent / "message"))


def refused(clone, *arguments):
    """What git says when a push is refused."""
    command = ["git", "-C", str(clone), "push", "-q", "origin", *arguments]
    done = subprocess.run(command, env=GIT_ENVIRONMENT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode != 0
    return done.stderr


def peak_megabytes(service):
    """Of all its processes."""
    status = [Path(f"/proc/{one.process.pid}/status").read_text() for one in service.each]
    return sum(int(re.search(r"VmHWM:\s+(\d+) kB", each)[1]) for each in status) // 1024


async def test_pages_pushed_to_the_hosted_repository_are_found(service, clone, git):
    (clone / "quagga.md").write_text("# Quagga\n\nQuaggas were half striped.\n")
    commit(git, clone)
    before = head(service)
    git("-C", str(clone), "push", "-q", "origin", "main")
    await recorded(service, f"site-{service.domain}", until="site-indexed", after=before)
    found = service.cli("search", service.domain, "quagga stripes")["results"]
    assert found[0]["path"] == "quagga"


@pytest.mark.slow
async def test_small_push_of_a_huge_object_is_refused_without_memory(service, clone, git):
    with (clone / "zeros.md").open("wb") as file:
        file.truncate(300 * 1024 * 1024)
    commit(git, clone)
    events, before = trace(service), peak_megabytes(service)
    assert "larger than 100 MB" in refused(clone, "HEAD:refs/heads/huge")
    assert peak_megabytes(service) - before < 50
    assert trace(service) == events


async def test_a_commit_message_that_no_page_can_show_is_refused(service, clone, git):
    (clone / "one.md").write_text("One.\n")
    commit(git, clone, "Long\n\n" + "word " * 400_000)
    events = trace(service)
    assert "message is larger than 1 MB" in refused(clone, "HEAD:refs/heads/talkative")
    assert trace(service) == events


async def test_a_push_that_is_refused_leaves_no_trace(service, clone, git):
    (clone / "two.md").write_text("Two.\n")
    commit(git, clone)
    events = trace(service)
    assert "hidden ref" in refused(clone, "HEAD:refs/pull/4711/head")
    assert trace(service) == events
