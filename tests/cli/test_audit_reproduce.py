"""A job's commits, made again from nothing but the log and the commit that it began from."""

import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing

import pytest
from dulwich.objects import ObjectID
from dulwich.repo import Repo

from eventstore import SQLiteEventStore
from service.adapters.git.dulwich_docs import DulwichDocs
from service.agent.workspace import Workspace
from service.cli.output import NEEDS_INPUT
from service.domain.errors import NotFound
from service.domain.jobs.decider import Committed
from service.ports.docs_source import NewCommit, Source
from service.workers.reproduction import History, Recorded, history_of, rebuilt
from tests.adapters.test_dulwich_docs import commit_to
from tests.contracts.docs_source import AT, AUTHOR
from tests.service_process import service_in, write_docs


def finished_job(service, instruction):
    job = service.cli("job", "create", instruction)
    service.run("job", "watch", job["id"])
    return json.loads(service.run("job", "show", job["id"], "--json").stdout)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A running service with two finished jobs, one of which changed nothing."""
    folder = tmp_path_factory.mktemp("reproduce")
    with service_in(folder) as service:
        service.set_up(write_docs(folder / "docs"), index=False)
        service.start()
        service.jobs = [
            finished_job(service, 'Replace "20 MB" with "25 MB" in install.md; rename page retry.md to tries.md'),
            finished_job(service, "Make it sing"),
        ]
        yield service


@pytest.fixture
def copy(served, tmp_path):
    """The data folder of a service that is not running, for tests that harm it."""
    with service_in(tmp_path) as service:
        shutil.copytree(served.data, service.data, ignore=shutil.ignore_patterns("views.db*"))
        service.jobs = served.jobs
        yield service


def everything_in(folder):
    return {(str(path), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def branch_of(service, job):
    with Repo(str(service.data / "hosted" / f"{service.project_id}.git")) as repository:
        return repository.refs[f"refs/heads/{job['branch']}".encode()].decode()


def test_log_gives_the_pushed_commit_while_the_server_runs(served):
    done, unchanged = served.jobs
    repositories = everything_in(served.data / "repos") | everything_in(served.data / "hosted")
    found = served.cli("audit", "reproduce", done["id"][-8:], f"job-{unchanged['id']}")
    assert found["same"] is True
    changed, nothing = found["jobs"]
    (commit,) = changed["commits"]
    assert commit["rebuilt"] == commit["commit"] == branch_of(served, done)
    assert (commit["pushed"], commit["files"], commit["problem"]) == (True, 4, None)
    assert (nothing["same"], nothing["commits"]) == (True, [])
    assert everything_in(served.data / "repos") | everything_in(served.data / "hosted") == repositories
    *_, read = served.cli("audit", "show", "--category", "audit")["events"]
    assert read["data"]["command"] == "audit reproduce"
    assert read["data"]["filters"] == {"jobs": f"{done['id']} {unchanged['id']}"}


def test_each_round_of_a_job_is_made_again(served):
    job = finished_job(served, 'Replace "30" with "40" in retry.md')
    assert served.run("job", "message", job["id"], 'Replace "40" with "50" in tries.md').returncode == 0
    assert served.run("job", "watch", job["id"]).returncode == NEEDS_INPUT
    served.cli("job", "message", job["id"], 'Add "Last." to index.md; replace "40" with "60" in retry.md')
    served.cli("job", "watch", job["id"])
    (found,) = served.cli("audit", "reproduce", job["id"])["jobs"]
    assert found["same"] is True
    first, second = found["commits"]
    assert (second["parent"], second["files"]) == (first["commit"], 2)
    assert second["rebuilt"] == branch_of(served, job)


def test_job_without_a_commit_and_missing_job_are_reported(served):
    done = served.run("audit", "reproduce", served.jobs[1]["id"])
    assert (done.returncode, "made no commit" in done.stdout) == (0, True)
    done = served.run("audit", "reproduce", "nothing")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Job not found: nothing." in done.stderr


def test_our_clone_may_be_gone_and_the_job_erased(copy):
    shutil.rmtree(copy.data / "repos")
    (job, _) = copy.jobs
    copy.cli("audit", "erase", f"job-{job['id']}", "--yes")
    (found,) = copy.cli("audit", "reproduce", job["id"])["jobs"]
    assert (found["same"], found["erased"]) == (True, True)
    assert not (copy.data / "repos").exists()


def change(service, sql):
    with closing(sqlite3.connect(service.data / "events.db")) as db, db:
        assert db.execute(sql).rowcount


async def reproduced(service, job_id):
    (project,) = service.cli("project", "list")["projects"]
    source = Source(project["id"], "", "main", "", "local")
    docs = DulwichDocs(service.data, env={}, scratch=service.data.parent / "scratch")
    log, vault = service.data / "events.db", service.data / "keys.db"
    async with await SQLiteEventStore.open(log, vault_path=vault, read_only=True) as store:
        return await rebuilt(await history_of(store, job_id, await store.head()), docs, source)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE events SET data = replace(data, '25 MB', '26 MB') WHERE type = 'file-changed'", "the files give"),
        ("UPDATE events SET data = replace(data, 'Docsmith <', 'Somebody <') WHERE type = 'committed'", "author, time"),
        ("DELETE FROM events WHERE type = 'file-changed' AND data LIKE '%tries.md%'", "the files give"),
        ("DELETE FROM events WHERE type = 'committed'", "does not say what is in it"),
        ("UPDATE events SET data = replace(data, 'tries.md', '.git/x.md') WHERE type = 'file-changed'", "be committed"),
    ],
)
async def test_a_log_that_somebody_wrote_into_gives_another_commit(copy, sql, said):
    change(copy, sql)
    found = await reproduced(copy, copy.jobs[0]["id"])
    assert found.same is False
    assert said in f"{found.problem} {[commit.problem for commit in found.commits]}"


def test_exit_status_shows_scripts_how_it_went(copy):
    job = copy.jobs[0]["id"]
    change(copy, "UPDATE events SET data = replace(data, '25 MB', '26 MB') WHERE type = 'file-changed'")
    done = copy.run("audit", "reproduce", job)
    assert (done.returncode, "NOT the same" in done.stdout) == (3, True)
    for name in ("repos", "hosted"):
        shutil.rmtree(copy.data / name)
    found = copy.cli("audit", "reproduce", job, status=1)
    assert (found["same"], found["jobs"][0]["same"]) == (None, None)
    assert "not available any more" in found["jobs"][0]["commits"][0]["problem"]


# Several commits, and a repository elsewhere


@pytest.fixture
def elsewhere(tmp_path):
    """A source whose repository is not ours, as those on other code hosts are."""
    folder = write_docs(tmp_path / "docs", {"index.md": "# Home\n", "other.md": "One\n"})
    run = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", "-C", str(folder)]
    if shutil.which("git") is None:
        pytest.skip("makes a repository with git; install git to run it")
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "One"]):
        subprocess.run([*run, *words], check=True, env=environment, timeout=300)
    return Source("p1", str(folder), "main", "", "github")


async def recorded(docs, source, parent, changes):
    """What a job records when it commits."""
    workspace = await Workspace.open(docs, source, parent, changes)
    new = NewCommit(parent, await workspace.effective_changes(), AUTHOR, "docs: change it\n", AT)
    written = await docs.write_commit(source, new)
    return Recorded(Committed(written.commit, written.tree, parent, AUTHOR, new.message, AT), changes)


async def test_stacked_commits_are_reproduced_in_turn_without_a_clone(tmp_path, elsewhere):
    docs = DulwichDocs(tmp_path / "data", env={})
    base = (await docs.fetch(elsewhere)).base_commit
    one = await recorded(docs, elsewhere, base, {"index.md": "# One\n", "other.md": "One\n", "gone.md": None})
    two = await recorded(docs, elsewhere, one.committed.commit, {"index.md": "# One\n", "new.md": "New\n"})
    history = History("job1", "p1", (one, two), (two.committed.commit,), False)
    for clone_is_there in (True, False):
        if not clone_is_there:
            shutil.rmtree(tmp_path / "data" / "repos")
        scratch = tmp_path / f"scratch-{clone_is_there}"
        found = await rebuilt(history, DulwichDocs(tmp_path / "data", env={}, scratch=scratch), elsewhere)
        assert found.same is True
        assert [(commit.files, commit.pushed) for commit in found.commits] == [(1, False), (1, True)]
    assert not (tmp_path / "data" / "repos").exists()


async def test_writes_to_a_scratch_folder_are_not_in_our_clone(tmp_path, elsewhere):
    docs = DulwichDocs(tmp_path / "data", env={})
    base = (await docs.fetch(elsewhere)).base_commit
    before = everything_in(tmp_path / "data")
    scratch = DulwichDocs(tmp_path / "data", env={}, scratch=tmp_path / "scratch")
    made = (await recorded(scratch, elsewhere, base, {"index.md": "# One\n"})).committed
    assert everything_in(tmp_path / "data") == before
    with pytest.raises(NotFound):
        await docs.list_files(elsewhere, made.commit)


async def test_commit_the_server_no_longer_serves_is_reported(tmp_path, elsewhere):
    docs = DulwichDocs(tmp_path / "data", env={})
    base = (await docs.fetch(elsewhere)).base_commit
    one = await recorded(docs, elsewhere, base, {"index.md": "# One\n"})
    history = History("job1", "p1", (one,), (), False)
    shutil.rmtree(elsewhere.repository)
    kept = await rebuilt(history, DulwichDocs(tmp_path / "data", env={}, scratch=tmp_path / "one"), elsewhere)
    assert kept.same is True  # our clone has what it takes
    shutil.rmtree(tmp_path / "data" / "repos")
    lost = await rebuilt(history, DulwichDocs(tmp_path / "data", env={}, scratch=tmp_path / "two"), elsewhere)
    assert lost.same is None
    assert "not available any more" in lost.commits[0].problem


async def test_a_branch_that_others_moved_since_does_not_matter(tmp_path, elsewhere):
    docs = DulwichDocs(tmp_path / "data", env={})
    base = (await docs.fetch(elsewhere)).base_commit
    one = await recorded(docs, elsewhere, base, {"index.md": "# One\n"})
    moved = commit_to(tmp_path / "docs" / ".git", "main", "other.md", "Theirs\n")
    assert ObjectID(moved.encode()) != base
    shutil.rmtree(tmp_path / "data" / "repos")
    history = History("job1", "p1", (one,), (), False)
    found = await rebuilt(history, DulwichDocs(tmp_path / "data", env={}, scratch=tmp_path / "one"), elsewhere)
    assert found.same is True
