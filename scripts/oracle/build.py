"""Installs real generators and reads the pages that they make."""

import os
import subprocess
import sys
from pathlib import Path

from lxml import html

_APART = frozenset(("p", "li", "div", "pre", "td", "th", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "summary",
                    "br", "tr", "button", "section", "blockquote", "ul", "ol", "figcaption"))  # fmt: skip
_FOR_MACHINES = frozenset(("sr-only", "visually-hidden"))
"""Classes of words for those who hear a page."""
_UNSEEN = frozenset(("script", "style", "button", "svg"))


def npm_packages(work: Path, packages: tuple[str, ...]) -> Path:
    """Return the folder of these packages, installed if they are not there yet."""
    folder = (work / "packages").resolve()
    wanted = folder / "installed"
    if not wanted.exists() or wanted.read_text() != " ".join(packages):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"name": "generator", "private": true}')
        run(["npm", "install", "--no-audit", "--no-fund", *packages], folder)
        wanted.write_text(" ".join(packages))
    return folder / "node_modules"


def python_packages(work: Path, packages: tuple[str, ...]) -> Path:
    """Return the Python of a virtual environment with these packages, made if it is not there yet."""
    folder = (work / "packages").resolve()
    python, wanted = folder / "bin" / "python", folder / "installed"
    if not wanted.exists() or wanted.read_text() != " ".join(packages):
        run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder], work)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
        run([*pip, "install", "--quiet", "--no-compile", *packages], work)
        wanted.write_text(" ".join(packages))
    return python


def run(command: list[str | Path], folder: Path) -> None:
    """Run a generator; raise SystemExit with its last words where it fails."""
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | {"CI": "1"})
    if ended.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}")


def visible_text(file: Path, part: str) -> str:
    """Return the words of the first element that the XPath expression finds."""
    elements = html.fromstring(file.read_bytes()).xpath(part)
    words: list[str] = []
    if elements:
        _collect(elements[0], words)
    return " ".join("".join(words).replace("\u200b", "").split())


def _collect(element: html.HtmlElement, words: list[str]) -> None:
    hidden = not _FOR_MACHINES.isdisjoint(element.get("class", "").split()) if isinstance(element.tag, str) else True
    if hidden or element.tag in _UNSEEN:
        words.append(element.tail or "")
        return
    if element.tag in _APART:
        words.append(" ")
    words.append(element.text or "")
    for child in element:
        _collect(child, words)
    if element.tag in _APART:
        words.append(" ")
    words.append(element.tail or "")
