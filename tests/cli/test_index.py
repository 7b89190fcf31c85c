"""``docsmith index``: once, again, and as it comes."""

import json
import signal
import subprocess

from service.cli.sites import told
from service.domain.sites import Skipped
from service.retrieval.index import IndexReport
from tests.service_process import begun, service_in, write_docs


def test_a_report_tells_how_much_was_read_and_the_first_files_of_each_reason():
    skipped = [*(Skipped(f"{number}.md", "It is a draft.") for number in range(5)), Skipped("x.md", "It is not text.")]
    assert told(IndexReport(1200, 3400, tuple(skipped), 1.26, 1), "kites") == (
        "1,200 pages, 3,400 sections, 6 skipped in 1.3 s; 1 file was read anew\n"
        "  skipped 0.md, 1.md, 2.md and 2 more: It is a draft.\n"
        "  skipped x.md: It is not text.\n"
        "  all of them: docsmith index kites --skipped"
    )
    assert told(IndexReport(2, 3, (), 0.04, 2), "kites") == "2 pages, 3 sections in 0.0 s"
    assert told(IndexReport(2, 3, (), 0.04, 0), "kites") == "2 pages, 3 sections in 0.0 s; 0 files were read anew"


def test_a_folder_is_indexed_as_far_as_it_changed_and_as_it_changes(tmp_path):
    docs = {f"k{number}.md": f"# Kite {number}\n\nFly it.\n" for number in range(12)}
    docs |= {f"draft{number}.md": "---\ndraft: true\n---\nText.\n" for number in range(5)}
    folder = write_docs(tmp_path / "kites", docs)
    with service_in(tmp_path / "service") as service:
        service.run("organization", "create", "--name", "Acme")
        service.cli("project", "create", "--name", "Kites", "--repository", str(folder), "--domain", "kites")
        first = service.run("index", "kites")
        assert first.stdout.startswith("12 pages, 12 sections, 5 skipped in "), first.stderr
        assert "read anew" not in first.stdout
        assert "  skipped draft0.md, draft1.md, draft2.md and 2 more: It is a draft, or hidden." in first.stdout
        assert [one["path"] for one in service.cli("index", "kites", "--skipped")["skipped"]] == [
            f"draft{number}.md" for number in range(5)
        ]
        service.start()
        (folder / "k8.md").write_text("# Kite 8\n\nMade of silk.\n")
        command = ["index", "kites", "--watch", "--data", str(service.data), "--json"]
        with (tmp_path / "stderr").open("w") as errors:
            watching = begun(command, environment=service.environment, stdout=subprocess.PIPE, stderr=errors)
        with watching.stdout:
            assert json.loads(watching.stdout.readline())["read"] == 1
            (folder / "k9.md").write_text("# Kite 9\n\nMade of paper.\n")
            seen = json.loads(watching.stdout.readline())
            watching.send_signal(signal.SIGINT)
            assert watching.wait(timeout=60) == 0
        found = service.cli("search", "kites", "paper")
        assert (found["commit"], found["results"][0]["path"]) == (seen["commit"], "k9.md")
        folder.rename(folder.with_name("moved"))
        gone = service.cli("index", "kites", "--all")
        assert (gone["read"], gone["pages"], len(gone["skipped"])) == (17, 12, 5)
