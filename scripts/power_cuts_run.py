"""Strict power cuts: of what a working service has written, only what was flushed survives. What was lost of what it
had acknowledged?

The data folder is on a disk of ``outages/flushed_disk.py``. While jobs, merges, uploads, projects from folders, pushes,
questions, erasures, backups and indexing go on, images of the disk are taken as it would be after a cut. On each a
service is started again: everything that was acknowledged before the cut must be there, each job must end with one pull
request, and each repository must pass ``git fsck --strict``. It takes Linux and root's rights.
"""

import argparse
import hashlib
import io
import itertools
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scripts.bench_table import report
from scripts.outages.flushed_disk import FlushedDisk, flushed_disk, mounted, unusable
from scripts.outages.site import Lost, Site
from tests.service_process import DOCS, write_docs

CUTS_EACH = 10
"""Cuts of one disk, which is as old as they are; then there is a new one."""
PAUSE_SECONDS = (0.2, 3.0)
JOBS_MEASURED = 10


@dataclass
class Ledger:
    """Kind, id and what to know of each thing that was acknowledged, in order."""

    entries: list[tuple[str, str, str]] = field(default_factory=list)

    def note(self, kind: str, name: str, known: str = "") -> None:
        self.entries.append((kind, name, known))

    def of(self, kind: str) -> list[tuple[str, str]]:
        return [(name, known) for one, name, known in self.entries if one == kind]


class Work:
    """Things to do, each noted once the service has acknowledged it."""

    def __init__(self, site: Site, root: Path, ledger: Ledger) -> None:
        self._site, self._root, self._ledger = site, root, ledger
        self._numbers = itertools.count(1)
        self.stopped = threading.Event()

    def begin(self, rng: random.Random) -> list[threading.Thread]:
        """Work in several threads, until stopped."""
        shares: list[list[Callable[[], None]]] = [
            [self.job, self.job, self.merge, self.ask, self.erase], [self.upload, self.push, self.index],
            [self.folder, self.backup],
        ]  # fmt: skip
        threads = [threading.Thread(target=self._go_on, args=(kinds, rng.random()), daemon=True) for kinds in shares]
        for thread in threads:
            thread.start()
        return threads

    def _go_on(self, kinds: list[Callable[[], None]], seed: float) -> None:
        rng = random.Random(seed)
        while not self.stopped.is_set():
            rng.shuffle(kinds)
            for act in kinds:
                if not self.stopped.is_set():
                    act()

    def job(self) -> None:
        if (made := self._site.job()) is not None:
            self._ledger.note("job", made)

    def merge(self) -> None:
        """Merge one while no job is under way: else that one would meet the other's change, and end with it."""
        paths = {name: f"/v2/agent/{self._site.service.project_id}/job/{name}" for name, _ in self._ledger.of("job")}
        jobs = {name: _asked(self._site, "GET", f"{path}?wait=20")[1] for name, path in paths.items()}
        left = [name for name, job in jobs.items() if job.get("pullRequestState") == "open"]
        if not left or any(job.get("status") != "completed" for job in jobs.values()):
            return
        if _asked(self._site, "POST", f"{paths[left[-1]]}/merge", b"{}")[0] == 200:
            self._ledger.note("merge", left[-1])

    def upload(self) -> None:
        number = next(self._numbers)
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as written:
            for name, text in DOCS.items():
                written.writestr(name, f"{text}\nUpload {number}.\n" if name.endswith(".md") else text)
        path = f"/v2/uploads?name=upload-{number}"
        status, made = _asked(self._site, "POST", path, archive.getvalue(), "application/zip")
        if status == 201:
            self._ledger.note("project", made["project"]["id"])

    def folder(self) -> None:
        number = next(self._numbers)
        docs = write_docs(self._root / f"docs-{number}", DOCS)
        (docs / "more.md").write_text(f"# More\n\nFolder {number}.\n")
        name = f"folder-{number}"
        done = self._site.service.run(
            "project", "create", "--name", name, "--repository", str(docs), "--domain", name, "--json"
        )
        if done.returncode == 0:
            self._ledger.note("project", json.loads(done.stdout)["id"])

    def push(self) -> None:
        number = next(self._numbers)
        service, clone = self._site.service, self._root / f"clone-{number}"
        url = f"{service.url}/hosted/{service.project_id}.git".replace("://", f"://x:{service.admin_key}@")
        try:
            _git("clone", "-q", url, str(clone), cwd=self._root)
            (clone / "pushed.md").write_text(f"# Pushed\n\nPush {number}.\n")
            _git("add", ".", cwd=clone)
            _git("-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "Push", cwd=clone)
            _git("push", "-q", "origin", f"HEAD:refs/heads/pushed-{number}", cwd=clone)
        except subprocess.CalledProcessError:
            return
        self._ledger.note("push", f"pushed-{number}", _git("rev-parse", "HEAD", cwd=clone))

    def ask(self) -> None:
        if (thread := self._site.question()) is not None:
            self._ledger.note("thread", thread)

    def erase(self) -> None:
        erased = {name for name, _ in self._ledger.of("erased")}
        left = [name for name, _ in self._ledger.of("thread") if name not in erased]
        if left and self._site.service.run("audit", "erase", f"thread-{left[0]}", "--yes").returncode == 0:
            self._ledger.note("erased", left[0])

    def backup(self) -> None:
        number = next(self._numbers)
        file = self._site.service.data.parent / f"backup-{number}.tar"
        if self._site.service.run("backup", str(file)).returncode == 0:
            self._ledger.note("backup", file.name, _sum(file))

    def index(self) -> None:
        self._site.service.run("index", self._site.service.domain)


def check(folder: Path, before: Site, ledger: Ledger) -> None:
    """Raise Lost unless a service on the image has all of the ledger."""
    service = replace(before.service, data=folder / "data", process=None, url="", log_file=folder.parent / "check.log")
    site = object.__new__(Site)
    site.root, site.service, site.jobs, site.threads = folder, service, [name for name, _ in ledger.of("job")], {}
    for name, known in ledger.of("backup"):
        if not (folder / name).exists() or _sum(folder / name) != known:
            raise Lost(f"{name} is not what was written")
    service.start()
    try:
        jobs = {job_id: site._ended(job_id) for job_id in site.jobs}
        for job_id, job in jobs.items():
            if job["status"] != "completed" or not job.get("prLink"):
                raise Lost(f"job {job_id} ended as {job['status']}: {json.dumps(job.get('failure'))}")
            if (count := site._pull_requests().count(job["branch"])) != 1:
                raise Lost(f"job {job_id} has {count} pull requests")
        for job_id, _ in ledger.of("merge"):
            if jobs[job_id]["pullRequestState"] != "merged":
                raise Lost(f"the merge of job {job_id} is lost: {jobs[job_id]['pullRequestState']}")
        for thread, _ in ledger.of("thread"):
            shown = service.cli("audit", "show", "--stream", f"thread-{thread}")["events"]
            if not any(event["type"] == "reply-completed" for event in shown):
                raise Lost(f"the answer of thread {thread} is lost")
            if ("erased", thread, "") in ledger.entries and not any(event["erased"] for event in shown):
                raise Lost(f"thread {thread} is not erased any more")
        service.cli("audit", "verify")
    finally:
        service.kill()
    hosted = folder / "data" / "hosted"
    for name, _ in ledger.of("project"):
        if not _holds(hosted / f"{name}.git", "refs/heads/main"):
            raise Lost(f"the project {name} has no repository")
    for branch, commit in ledger.of("push"):
        if not _holds(hosted / f"{service.project_id}.git", f"refs/heads/{branch}", commit):
            raise Lost(f"the push of {branch} is lost")
    for repository in sorted(hosted.glob("*.git")):
        found = subprocess.run(["git", "fsck", "--strict"], cwd=repository, capture_output=True, text=True, check=False)
        if found.returncode:
            raise Lost(f"git fsck of {repository.name}: {found.stderr.strip()[:300]}")


def _holds(repository: Path, ref: str, commit: str = "") -> bool:
    try:
        found = _git("rev-parse", "--verify", f"{ref}^{{commit}}", cwd=repository)
    except (subprocess.CalledProcessError, OSError):
        return False
    return commit in ("", found)


def _git(*arguments: str, cwd: Path) -> str:
    return subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


def _sum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _asked(
    site: Site, method: str, path: str, body: bytes | None = None, kind: str = "application/json"
) -> tuple[int, Mapping[str, Any]]:
    headers = {**site.service.admin, "Content-Type": kind}
    request = urllib.request.Request(site.service.url + path, data=body, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, {}
    except OSError:
        return 0, {}


def _site_on(disk: FlushedDisk, root: Path) -> Site:
    """Start a site whose data folder is on the disk, and flushed as it is now."""
    site = Site(root, {})
    shutil.move(site.service.data, disk.folder / "data")
    subprocess.run(["sync", "-f", disk.folder], check=True)
    site.service = replace(site.service, data=disk.folder / "data", log_file=root / "server.log")
    site.service.start()
    return site


def cuts_of_one_disk(root: Path, cuts: int, rng: random.Random, problems: list[str]) -> dict[str, int]:
    """Take and check that many cuts; how many things of each kind were acknowledged before the last one."""
    images: list[tuple[Path, Ledger]] = []
    with flushed_disk(root, 512) as disk:
        site, ledger = _site_on(disk, root), Ledger()
        work = Work(site, root, ledger)
        workers = work.begin(rng)
        for number in range(cuts):
            time.sleep(rng.uniform(*PAUSE_SECONDS))
            known = Ledger(list(ledger.entries))
            disk.cut(root / f"cut-{number}.img")
            images.append((root / f"cut-{number}.img", known))
        work.stopped.set()
        for worker in workers:
            worker.join(120)
        site.service.kill()
        for image, known in images:
            try:
                with mounted(image, root / "after") as folder:
                    check(folder, site, known)
            except (Lost, AssertionError, OSError, subprocess.SubprocessError) as error:
                problems.append(f"{image.name}, seed of the disk {root.name}: {error}")
                print(problems[-1], file=sys.stderr, flush=True)
            image.unlink()
    return {kind: len(known.of(kind)) for kind in ("job", "merge", "project", "push", "thread", "erased", "backup")}


def cost_of_jobs(root: Path) -> tuple[float, float]:
    """Return the flushes of the disk, and the milliseconds, of a job with one page, one after the other."""
    with flushed_disk(root, 512) as disk:
        site = _site_on(disk, root)
        try:
            site._ended(site.job() or "")
            time.sleep(3)  # what was begun with it has ended
            before, began = disk.count()[0], time.monotonic()
            for _ in range(JOBS_MEASURED):
                site._ended(site.job() or "")
            return (disk.count()[0] - before) / JOBS_MEASURED, (time.monotonic() - began) * 1000 / JOBS_MEASURED
        finally:
            site.service.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=20, help="in all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cost", action="store_true", help="only measure the flushes of a job")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if (why := unusable()) is not None:
        print(f"There is no such disk here: {why}.", file=sys.stderr)
        return 1
    if options.cost:
        with tempfile.TemporaryDirectory(prefix="docsmith-cuts-") as folder:
            flushes, milliseconds = cost_of_jobs(Path(folder))
        print(f"{flushes:.1f} flushes and {milliseconds:.0f} ms a job")
        return 0
    problems: list[str] = []
    rows, done = [], 0
    while done < options.cuts:
        count = min(CUTS_EACH, options.cuts - done)
        with tempfile.TemporaryDirectory(prefix="docsmith-cuts-") as folder:
            found = cuts_of_one_disk(Path(folder), count, random.Random(f"{options.seed} {done}"), problems)
        done += count
        rows.append({"cuts": done, **found, "problems": len(problems)})
        print(rows[-1], file=sys.stderr, flush=True)
    goal = {"name": "cuts", "goal": "nothing lost", "measured": "; ".join(problems) or "nothing", "met": not problems}
    report("power-cuts", rows, [goal], as_json=options.json)
    return 0 if not problems else 1


if __name__ == "__main__":
    sys.exit(main())
