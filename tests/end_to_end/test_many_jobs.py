"""Ten jobs at once, on one repository and on ten: no edit is lost, and none gets into another's commit."""

import asyncio
from contextlib import contextmanager

import pytest
from dulwich.object_store import iter_tree_contents
from dulwich.repo import Repo

from tests.end_to_end.talk import create_job, get_job, job_events
from tests.service_process import service_in, write_docs

pytestmark = pytest.mark.slow

JOBS = 10
PLANETS = ("Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune", "Pluto", "Ceres")


def docs(name):
    """One page that all jobs change, each in a section of its own, far enough apart for git to merge them."""
    sections = "\n".join(f"## {planet}\n\nThe mass of {planet} is unknown.\n\n" + "Text.\n\n" * 4 for planet in PLANETS)
    return {"index.md": f"# {name}\n\n[Planets](planets.md)\n", "planets.md": f"# Planets of {name}\n\n{sections}"}


def instruction(number):
    planet = PLANETS[number]
    return (
        f'Replace "mass of {planet} is unknown" with "mass of {planet} is {number} kg" in planets.md; '
        f'create page moons-{number}.md with title "Moons of {planet}" and text "{planet} has {number} moons."'
    )


@contextmanager
def hosted(service, project_id):
    with Repo(str(service.data / "hosted" / f"{project_id}.git")) as repository:
        yield repository


def files(repository, commit):
    store = repository.object_store
    tree = iter_tree_contents(store, repository[commit].tree)
    return {entry.path.decode(): store[entry.sha].data.decode() for entry in tree}


def expected(name, *numbers):
    """The documentation with the edits of these jobs."""
    made = docs(name)
    for number in numbers:
        planet = PLANETS[number]
        made["planets.md"] = made["planets.md"].replace(
            f"mass of {planet} is unknown", f"mass of {planet} is {number} kg"
        )  # fmt: skip
    return made, {f"moons-{number}.md" for number in numbers}


def check_holds(found, name, *numbers):
    texts, pages = expected(name, *numbers)
    assert found.keys() == texts.keys() | pages
    assert {path: found[path] for path in texts} == texts
    for number in numbers:
        assert f"{PLANETS[number]} has {number} moons." in found[f"moons-{number}.md"]


async def finished(http, service, project_id, number):
    one = _Project(service, project_id)
    job = await create_job(http, one, instruction(number))
    await job_events(http, one, job["id"])
    return await get_job(http, one, job["id"])


class _Project:
    """The service as ``talk`` sees it, for another project than its first."""

    def __init__(self, service, project_id):
        self.url, self.admin, self.project_id = service.url, service.admin, project_id


def check_merges(git, service, clone, jobs):
    """All ten branches merged by git itself: the page that each of them changed has every edit."""
    git("clone", "-q", str(service.data / "hosted" / f"{service.project_id}.git"), str(clone))
    for job in jobs:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.com")
        git("-C", str(clone), *who, "merge", "-q", "--no-edit", f"origin/{job['branch']}")
    check_holds({file.name: file.read_text() for file in clone.glob("*.md")}, "Sol", *range(len(jobs)))


async def test_ten_jobs_on_one_repository(http, tmp_path, git):
    with service_in(tmp_path, {"DOCSMITH_AGENT__CONCURRENT_JOBS": str(JOBS)}) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs", docs("Sol")), index=False)
        await asyncio.to_thread(service.start)
        project_id = service.project_id
        jobs = await asyncio.gather(*(finished(http, service, project_id, number) for number in range(JOBS)))
        assert [(job["status"], job["failure"]) for job in jobs] == [("completed", None)] * JOBS
        with hosted(service, project_id) as repository:
            base = repository.refs[b"refs/heads/main"]
            for number, job in enumerate(jobs):
                head = repository.refs[f"refs/heads/{job['branch']}".encode()]
                assert repository[head].parents == [base]
                check_holds(files(repository, head), "Sol", number)
        check_merges(git, service, tmp_path / "clone", jobs)
        found = await asyncio.to_thread(service.cli, "audit", "reproduce", *(job["id"] for job in jobs))
        assert found["same"] is True


async def test_ten_jobs_on_ten_repositories(http, tmp_path):
    with service_in(tmp_path, {"DOCSMITH_AGENT__CONCURRENT_JOBS": str(JOBS)}) as service:
        await asyncio.to_thread(service.set_up, write_docs(tmp_path / "docs-0", docs("Star 0")), index=False)
        await asyncio.to_thread(service.start)
        projects = [service.project_id]
        for number in range(1, JOBS):
            folder = str(write_docs(tmp_path / f"docs-{number}", docs(f"Star {number}")))
            named = ("--name", "Star", "--repository", folder, "--domain", f"star-{number}")
            projects.append((await asyncio.to_thread(service.cli, "project", "create", *named))["id"])
        asked = [finished(http, service, project_id, number) for number, project_id in enumerate(projects)]
        jobs = await asyncio.gather(*asked[::-1])  # first the project that is not a moment old
        assert [(job["status"], job["failure"]) for job in jobs] == [("completed", None)] * JOBS
        for number, (job, project_id) in enumerate(zip(jobs[::-1], projects, strict=True)):
            with hosted(service, project_id) as repository:
                heads = repository.refs.as_dict(b"refs/heads")
                assert heads.keys() == {b"main", job["branch"].encode()}
                check_holds(files(repository, heads[job["branch"].encode()]), f"Star {number}", number)
