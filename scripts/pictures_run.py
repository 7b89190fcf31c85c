"""Make the manual's pictures: the demo's pull request page and an answer in a terminal, as they are right now."""

import html
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
MANUAL = ROOT / "service" / "manual"
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
PROGRAM = [sys.executable, "-m", "service"]
WIDTH = 860
MAX_BYTES = 100_000
"""Most bytes of a picture: code hosts load them with the README."""

TERMINAL = """
<style>
  body { margin: 0; padding: 18px 22px; background: #1b1d23; color: #dcdad5; font: 14px/1.5 "DejaVu Sans Mono" }
  pre { margin: 0; white-space: pre-wrap; font: inherit }
  b { color: #f0a45d; font-weight: 600 }
</style>
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        data = Path(folder) / "data"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        with demo_in(data) as pull_request:
            page = browser.new_page(viewport={"width": WIDTH, "height": 1412}, device_scale_factor=0.75)
            page.goto(pull_request)
            page.screenshot(path=MANUAL / "images" / "pull-request.png")
            question = msgspec.json.decode((MANUAL / "demo.json").read_bytes())["questions"][0]
            page = browser.new_page(viewport={"width": WIDTH, "height": 300})
            page.set_content(terminal_of(data, question))
            page.screenshot(path=MANUAL / "images" / "answer.png", full_page=True)
        browser.close()
    for picture in (MANUAL / "images").iterdir():
        size = picture.stat().st_size
        print(f"{picture.relative_to(ROOT)}: {size:,} bytes")
        if size > MAX_BYTES:
            sys.exit(f"{picture.name} has more than {MAX_BYTES:,} bytes; make it smaller.")


@contextmanager
def demo_in(data: Path) -> Iterator[str]:
    """Yield the address of the demo's pull request while its service runs."""
    command = [*PROGRAM, "demo", "--port", "0", "--data", str(data)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        shown = ""
        for line in process.stdout:
            shown += line
            if line.startswith("Serving until"):
                break
        try:
            yield re.findall(r"http://\S+/pulls/\S+", shown)[0]
        finally:
            process.send_signal(signal.SIGINT)


def terminal_of(data: Path, question: str) -> str:
    """Return a page that looks as a terminal does after the question was asked there."""
    command = ["ask", "docsmith", question, "--data", str(data)]
    done = subprocess.run([*PROGRAM, *command], cwd=ROOT, capture_output=True, text=True, check=True)
    answer = done.stdout.partition("\nTo go on:")[0].rstrip()
    asked = f'docsmith ask docsmith "{question}"'
    return f"{TERMINAL}<pre>$ <b>{html.escape(asked)}</b>\n\n{html.escape(answer)}</pre>"


if __name__ == "__main__":
    main()
