"""Make the manual's pictures: the demo's pages, the widget, and the first hour in a browser."""

import http.server
import re
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parent.parent
MANUAL = ROOT / "service" / "manual"
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
PROGRAM = [sys.executable, "-m", "service"]
WIDTH, HEIGHT = 1080, 720
SCALE = 0.65
MAX_BYTES = 100_000
"""Most bytes of a picture: code hosts load them with the README."""

LANTERN = ROOT / "tests" / "samples" / "site"
"""The documentation of the first hour."""
QUESTION = "How long is the delay before attempt 3?"
INSTRUCTION = 'replace "30 s" with "20 s" in concepts/retries'

SITE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
  body {{ margin: 0; font: 16px/1.6 "Noto Sans", "DejaVu Sans", sans-serif; color: #22303c }}
  header {{ background: #14532d; color: #fff; padding: 14px 32px; font-weight: 600 }}
  main {{ max-width: 680px; padding: 12px 32px }}
  a {{ color: #14532d }} pre {{ background: #f1f5f2; padding: 10px 14px; border-radius: 6px }}
  main button {{ display: none }}
</style>
<header>{title}</header><main>{html}</main>
<script src="{service}/widget.js" data-site="docsmith" data-key="{key}" async></script></html>"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        data = Path(folder) / "data"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        with demo_in(data) as pull_request:
            question = msgspec.json.decode((MANUAL / "demo.json").read_bytes())["questions"][0]
            context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE)
            page = context.new_page()
            page.goto(docsmith(data, "login")["link"])
            page.get_by_role("button", name="Sign in").first.click()
            page.wait_for_url("**/dashboard**")
            take(page, "dashboard")
            service = "/".join(page.url.split("/")[:3])
            page.goto(f"{service}/{pull_request.split('/', 3)[3]}")
            take(page, "pull-request")
            page.goto(f"{service}/manual/start")
            html = page.locator("article.prose").inner_html()
            page.goto(f"{service}/ask/docsmith")
            page.get_by_label("Your question").fill(question)
            page.keyboard.press("Enter")
            page.get_by_role("heading", name="Sources").wait_for()
            take(page, "ask")
            show_widget(page, data, service, html, question)
            take(page, "widget")
        with served_in(Path(folder) / "first"):
            first_hour(browser, Path(folder))
        browser.close()
    for picture in sorted((MANUAL / "images").iterdir()):
        size = picture.stat().st_size
        print(f"{picture.relative_to(ROOT)}: {size:,} bytes")
        if size > MAX_BYTES:
            sys.exit(f"{picture.name} has more than {MAX_BYTES:,} bytes; make it smaller.")


def take(page: Page, name: str, *, height: int = HEIGHT) -> None:
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.screenshot(path=MANUAL / "images" / f"{name}.png")


def first_hour(browser: Browser, folder: Path) -> None:
    """Do what the page "First hour in the browser" says, and take its pictures."""
    page = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE).new_page()
    page.goto(docsmith(folder / "first", "login")["link"])
    page.get_by_role("button", name="Sign in").first.click()
    page.wait_for_url("**/begin")
    page.get_by_label("Your organization").fill("Lantern")
    take(page, "first-begin", height=860)
    page.get_by_label("Zip archive").set_input_files(zipped(LANTERN, folder / "lantern-docs.zip"))
    page.get_by_role("button", name="Create the project").click()
    page.get_by_text("Every file was read").wait_for()
    site = page.url
    take(page, "first-site", height=840)
    ask(page, "first-answer")
    page.goto(site)
    page.get_by_role("link", name="Give a job").click()
    page.get_by_role("textbox", name="Instruction").fill(INSTRUCTION)
    page.get_by_role("button", name="Create the job").click()
    page.get_by_text("Ready for review").wait_for()
    take(page, "first-job", height=940)
    page.get_by_role("link", name="Pull request 1", exact=True).first.click()
    page.get_by_text("As readers see it").wait_for()
    take(page, "first-pull-request", height=1560)
    page.get_by_role("button", name="Merge into main").click()
    page.get_by_text("is indexed again from there").wait_for()


def ask(page: Page, picture: str) -> None:
    page.get_by_role("link", name="Ask it").click()
    page.get_by_label("Your question").fill(QUESTION)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Helpful", exact=True).wait_for(state="attached")
    take(page, picture, height=900)


def zipped(documentation: Path, archive: Path) -> Path:
    """Return an archive of a folder, with the folder around everything."""
    with zipfile.ZipFile(archive, "w") as packed:
        for file in sorted(documentation.rglob("*")):
            packed.write(file, Path(archive.stem) / file.relative_to(documentation))
    return archive


def show_widget(page: Page, data: Path, service: str, html: str, question: str) -> None:
    """Ask by the widget on a page of another origin, whose text is a page of the manual."""
    with socketserver.TCPServer(("127.0.0.1", 0), Site) as site:
        origin = f"http://127.0.0.1:{site.server_address[1]}"
        key = docsmith(data, "key", "create", "--kind", "assistant", "--domain", "docsmith", "--origin", origin)[
            "token"
        ]
        Site.text = SITE.format(title="Your documentation", html=html, service=service, key=key).encode()
        threading.Thread(target=site.serve_forever, daemon=True).start()
        page.goto(origin)
        page.get_by_role("button", name="Ask", exact=True).click()
        page.get_by_role("textbox", name="Your question").fill(question)
        page.keyboard.press("Enter")
        answer = page.get_by_role("article", name="Answer")
        answer.get_by_role("button", name="Helpful", exact=True).wait_for(state="attached")
        answer.evaluate("answer => answer.previousElementSibling.scrollIntoView()")
        site.shutdown()


class Site(http.server.BaseHTTPRequestHandler):
    """A documentation site of one page, whatever its address."""

    text = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.text)

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""


def docsmith(data: Path, *arguments: str) -> dict[str, Any]:
    """Return the JSON that a command prints."""
    command = [*PROGRAM, *arguments, "--data", str(data), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return msgspec.json.decode(done.stdout)


@contextmanager
def served_in(data: Path) -> Iterator[None]:
    """Serve an empty data folder."""
    command = [*PROGRAM, "serve", "--port", "0", "--data", str(data)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("listening on"):
                break
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)


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


if __name__ == "__main__":
    main()
