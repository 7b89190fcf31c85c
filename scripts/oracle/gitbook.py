"""Samples of GitBook's format, built by HonKit, which goes on with GitBook's program."""

import shutil
from pathlib import Path
from urllib.parse import unquote

from lxml import html

from scripts.oracle.build import npm_packages, run, visible_text
from scripts.oracle.compare import BuiltPage, BuiltSite

PACKAGES = ("honkit@6.1.7",)


def build(sample: Path, work: Path) -> BuiltSite:
    packages = npm_packages(work, PACKAGES)
    copy = work / "sites" / sample.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(sample, copy)
    run([(packages / ".bin" / "honkit").resolve(), "build"], copy)
    built = copy / "_book"
    found = BuiltSite({})
    for file in sorted(built.rglob("*.html")):
        page = str(file.relative_to(built))
        name = "README.md" if file.name == "index.html" else f"{file.stem}.md"
        path = str(file.relative_to(built).parent / name)
        url = f"/{page.removesuffix('index.html')}"
        title = (html.fromstring(file.read_bytes()).findtext(".//title") or "").rpartition(" · ")[0]
        found.pages[path] = BuiltPage(url, title, visible_text(file, "//section[contains(@class, 'markdown-section')]"))
    home = html.fromstring((built / "index.html").read_bytes())
    listed = [unquote(str(each)) for each in home.xpath("//ul[contains(@class, 'summary')]//li/@data-path")]
    paths = {page.url.strip("/"): path for path, page in found.pages.items()}
    wanted = [paths.get(each.removeprefix("./").removesuffix("index.html").strip("/")) for each in listed]
    found.navigation = [list(dict.fromkeys(path for path in wanted if path is not None))]
    return found
