"""``docsmith index``: once, again, and as it comes."""

import asyncio
import json
import re
import shutil
import signal
import subprocess

from service.cli.sites import report_text
from service.domain.sites import Skipped
from service.retrieval.index.build import IndexReport
from tests.service_process import begun, service_in, write_docs


def test_report_counts_what_was_read_and_samples_each_reason():
    skipped = [*(Skipped(f"{number}.md", "It is a draft.") for number in range(5)), Skipped("x.md", "It is not text.")]
    assert report_text(IndexReport(1200, 3400, tuple(skipped), 1.26, 1), "kites") == (
        "1,200 pages, 3,400 sections, 6 skipped in 1.3 s; 1 file was read again\n"
        "  skipped 0.md, 1.md, 2.md and 2 more: It is a draft.\n"
        "  skipped x.md: It is not text.\n"
        "  all of them: docsmith index kites --skipped"
    )
    assert report_text(IndexReport(2, 3, (), 0.04, 2), "kites") == "2 pages, 3 sections in 0.0 s"
    unchanged = IndexReport(2, 3, (), 0.04, 0)
    assert report_text(unchanged, "kites") == "2 pages, 3 sections in 0.0 s; 0 files were read again"


def test_folder_index_reads_only_changes_and_follows_them(tmp_path):
    docs = {f"k{number}.md": f"# Kite {number}\n\nFly it.\n" for number in range(12)}
    docs |= {f"draft{number}.md": "---\ndraft: true\n---\nText.\n" for number in range(5)}
    folder = write_docs(tmp_path / "kites", docs)
    with service_in(tmp_path / "service") as service:
        service.run("organization", "create", "--name", "Acme")
        service.cli("project", "create", "--name", "Kites", "--repository", str(folder), "--domain", "kites")
        command = ["index", "kites", "--watch", "--data", str(service.data), "--json"]
        with (tmp_path / "stderr").open("w") as errors:
            watching = begun(command, environment=service.environment, stdout=subprocess.PIPE, stderr=errors)
        with watching.stdout:
            first = json.loads(watching.stdout.readline())
            assert (first["pages"], first["read"], len(first["skipped"])) == (12, 17, 5)
            service.start()
            (tmp_path / "new.md").write_text("# Kite 9\n\nMade of paper.\n")
            (tmp_path / "new.md").replace(folder / "k9.md")  # at once: half of it would be a change of its own
            seen = json.loads(watching.stdout.readline())
            assert (seen["pages"], seen["read"], len(seen["skipped"])) == (12, 1, 5)
            watching.send_signal(signal.SIGINT)
            assert watching.wait(timeout=60) == 0
        assert [one["path"] for one in service.cli("index", "kites", "--skipped")["skipped"]] == [
            f"draft{number}.md" for number in range(5)
        ]
        check = service.run("index", "kites", "--check")
        assert check.returncode == 0
        assert check.stdout.startswith(
            "No site generator: 12 pages, 12 sections, no navigation was found\n5 files and folders are not used\n"
        )
        found = service.cli("search", "kites", "paper")
        assert (found["commit"], found["results"][0]["path"]) == (seen["commit"], "k9")
        folder.rename(folder.with_name("moved"))
        gone = service.run("index", "kites", "--all")
        assert gone.stdout.startswith("12 pages, 12 sections, 5 skipped in ")
        assert "read again" not in gone.stdout
        assert "is not a folder" in gone.stderr


def health(service):
    return json.loads(service.run("health", "--json").stdout)


async def test_site_that_is_behind_is_shown_with_the_reason(tmp_path):
    with service_in(tmp_path / "service") as service:
        docs = write_docs(tmp_path / "kites", {"a.md": "# Behind\n\nText.\n"})
        await asyncio.to_thread(service.set_up, docs, changes=True)
        assert "\nbehind" not in service.run("project", "show", service.domain).stdout
        (tmp_path / "kites").rename(tmp_path / "moved")
        shutil.rmtree(service.data / "hosted")
        shutil.rmtree(service.data / "repos")
        for _ in range(2):
            assert service.run("index", service.domain, "--all").returncode == 1
        shown = service.run("project", "show", service.domain).stdout
        assert re.search(r"\nbehind .* failed 2 times in a row, .* \(damaged\): .* its folder is gone", shown)
        state = service.cli("project", "show", service.domain)["index"]
        assert (state["failure"]["code"], state["failure"]["times"]) == ("damaged", 2)
        await asyncio.to_thread(service.start)
        async with asyncio.timeout(60):
            while not (found := await asyncio.to_thread(health, service))["behind"]:  # noqa: ASYNC110  (nothing tells when)
                await asyncio.sleep(0.02)
        assert list(found["reasons"]) == ["hosted repositories"]
        assert "damaged" in found["behind"][service.domain]
