"""Play the first hour of a new user: from an empty home to an answer that a merged pull request has changed.

The one command in the terminal, after the install, is ``docsmith serve``; all else is in the browser, without a model.
Each step is a numbered picture. The terminal is drawn from what the commands print.
"""

import argparse
import html
import io
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parent.parent
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
SIZE = {"width": 1080, "height": 900}
STEP_MS = 120_000
"""The longest wait for a step; the machine may be busy."""
MOST_SECONDS = 60.0
"""Processor time of the service and all that it starts, at most."""

QUESTION = "How long are backups kept?"
BEFORE, AFTER = "14 days", "30 days"
INSTRUCTION = f'replace "{BEFORE}" with "{AFTER}" in backups.md'
PAGES = {
    "index.md": "# Tern\n\nTern copies the photos of a camera to your own server. Begin with [Install](install.md).\n",
    "install.md": """# Install

Download the package for your system and open it. Tern needs 40 MB of disk and no root rights.

## Connect a camera

Switch the camera on and choose **Pair** in its menu. Tern shows it within a minute.
""",
    "backups.md": f"""# Backups

Tern makes a backup each night at two o'clock. Backups are kept for {BEFORE}; older ones are removed.

## Restore a photo

Open the day in the calendar, choose the photo and press **Restore**.
""",
    "limits.md": "# Limits\n\nA photo may have up to 200 MB, a video up to 20 GB. Three cameras can be paired.\n",
}
TERMINAL = """
<style>
  body { margin: 0; padding: 18px 22px; background: #1b1d23; color: #dcdad5; font: 14px/1.5 "DejaVu Sans Mono" }
  pre { margin: 0; white-space: pre-wrap; font: inherit } b { color: #f0a45d; font-weight: 600 }
</style>
"""


class Film:
    """Numbered pictures of one page."""

    def __init__(self, folder: Path, page: Page) -> None:
        self.page, self._folder, self._number = page, folder, 0

    def take(self, name: str) -> None:
        self._number += 1
        file = self._folder / f"{self._number:02d}-{name}.png"
        self.page.screenshot(path=file)
        print(f"{file.name}: {self.page.title() or name}")

    def terminal(self, name: str, lines: list[tuple[str, str]]) -> None:
        """Take a picture of commands and what they printed."""
        shown = "".join(f"$ <b>{html.escape(command)}</b>\n{html.escape(said)}\n" for command, said in lines)
        self.page.set_content(f"{TERMINAL}<title>Terminal</title><pre>{shown}</pre>")
        self.take(name)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/first-hour", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--wheel", type=Path, help="the wheel to install (default: the one in dist)")
    parser.add_argument("--bin", type=Path, help="the folder of a docsmith that is installed, in place of an install")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(STEP_MS)
        film = Film(arguments.folder, page)
        wheel = arguments.wheel or next((ROOT / "dist").glob("docsmith-*.whl"))
        if arguments.bin is None:
            install(home, wheel)
        else:
            (home / "docsmith").mkdir()
            (home / "docsmith" / "bin").symlink_to(arguments.bin.resolve())
        installed = [
            ("python3 -m venv docsmith && . docsmith/bin/activate", ""),
            (f"pip install --quiet {wheel.name}", ""),
        ]
        film.terminal("install", installed)
        with serving(home) as (process, said):
            film.terminal("serve", [*installed, ("docsmith serve", said)])
            play(film, said, archive(home))
            seconds = processor_seconds(process.pid)
            process.send_signal(signal.SIGTERM)
            process.wait()
        browser.close()
    print(f"processor time of the service: {seconds:.1f} s (at most {MOST_SECONDS:.0f})")
    if seconds > MOST_SECONDS:
        sys.exit("That is too much.")


def processor_seconds(session: int) -> float:
    """Return the processor time of a session's processes, and of those that have ended in it (proc_pid_stat(5))."""
    ticks = 0
    for process in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            fields = process.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def environment(home: Path) -> dict[str, str]:
    return {"PATH": f"{home}/docsmith/bin:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", **of_network()}


def of_network() -> dict[str, str]:
    """Return what this machine sets for pip and for certificates; no setting of ours is among it."""
    return {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_")) or "proxy" in name}


def install(home: Path, wheel: Path) -> None:
    """Install the wheel as the README says, in a virtual environment."""
    venv.create(home / "docsmith", with_pip=True)
    done = subprocess.run(
        ["pip", "install", "--quiet", wheel],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"processor time of the install: {used.ru_utime + used.ru_stime:.1f} s")


@contextmanager
def serving(home: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run ``docsmith serve`` in a terminal of its own; yield the process, and what it prints until it listens."""
    terminal, of_service = os.openpty()
    command = ["docsmith", "serve"]
    with subprocess.Popen(
        command, env=environment(home), cwd=home, stdin=of_service, stdout=of_service, stderr=of_service, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        os.close(of_service)
        said = ""
        try:
            while not re.search(r"listening on \S+\s", said) or not re.search(r"/sign-in#\S+\s", said):
                said += re.sub(r"\x1b\[[0-9;]*m", "", os.read(terminal, 10_000).decode()).replace("\r\n", "\n")
            yield process, said
        finally:
            process.kill()
            os.close(terminal)


def archive(home: Path) -> Path:
    """Return a zip archive of a small documentation."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for name, text in PAGES.items():
            packed.writestr(f"tern-docs/{name}", text)
    file = home / "tern-docs.zip"
    file.write_bytes(content.getvalue())
    return file


def play(film: Film, said: str, documentation: Path) -> None:
    """Do in the browser what a new user does, and check what comes."""
    page = film.page
    page.goto(re.findall(r"http://\S+/sign-in#\S+", said)[0])
    film.take("sign-in")
    page.get_by_role("button", name="Sign in").first.click()
    page.get_by_role("heading", name="Begin with your documentation").wait_for()
    film.take("begin")
    page.get_by_label("Your organization").fill("Tern")
    page.get_by_label("Zip archive").set_input_files(documentation)
    film.take("upload")
    page.get_by_role("button", name="Create the project").click()
    page.get_by_text("files not used").first.wait_for()  # its pages were read
    film.take("site")
    site = page.url
    ask(film, BEFORE, "answer")
    page.goto(site)
    page.get_by_role("link", name="Jobs").first.click()
    page.get_by_role("link", name="New job").first.click()
    page.get_by_role("textbox", name="Instruction").fill(INSTRUCTION)
    film.take("job")
    page.get_by_role("button", name="Create the job").click()
    page.get_by_text("Ready for review").first.wait_for()
    film.take("job-ready")
    page.get_by_role("link", name="pull request").first.click()
    page.get_by_role("button", name="Merge").first.wait_for()
    film.take("pull-request")
    page.get_by_role("button", name="Merge").first.click()
    page.get_by_text("Merged").first.wait_for()
    film.take("merged")
    commit = re.search(r"as commit ([0-9a-f]{8,})", page.locator("main").inner_text())[1]
    page.goto(site)
    page.get_by_text(f"Commit {commit}").wait_for()  # the merged pages were read
    film.take("site-again")
    ask(film, AFTER, "new-answer")


def ask(film: Film, expected: str, name: str) -> None:
    """Follow the link to the ask page from the page of the site, ask, and require the expected words."""
    page = film.page
    page.get_by_role("link", name="Ask").first.click()
    page.get_by_label("Your question").fill(QUESTION)
    film.take(f"question-before-{name}")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Sources").last.wait_for()
    film.take(name)
    text = page.locator(".reply .prose").last.inner_text()
    if expected not in text:
        sys.exit(f"The answer does not say {expected}: {text}")


if __name__ == "__main__":
    main()
