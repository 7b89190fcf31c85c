"""Samples built by Docusaurus: it writes down for each page its source, address, title and the sidebars."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.oracle.build import npm_packages, run, visible_text
from scripts.oracle.compare import BuiltPage, BuiltSite

PACKAGES = (
    "@docusaurus/core@3.10.2", "@docusaurus/preset-classic@3.10.2", "raw-loader@4.0.2", "react@19.2.0",
    "react-dom@19.2.0",
)  # fmt: skip
LOCALES = {"versions": ("en", "fr", "pt-BR")}
"""Languages of the samples that have several, the default first."""


def build(sample: Path, work: Path) -> BuiltSite:
    packages = npm_packages(work, PACKAGES)
    copy = work / "sites" / sample.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(sample, copy)
    link = copy.parent / "node_modules"
    if not link.exists():
        link.symlink_to(packages)
    site = next(copy.rglob("docusaurus.config.*")).parent
    (site / "package.json").write_text('{"name": "sample", "private": true}')
    found = BuiltSite({})
    locales = LOCALES.get(sample.name, ("en",))
    for locale in locales:  # built alone, a language has the addresses of the default one
        shutil.rmtree(site / ".docusaurus", ignore_errors=True)
        shutil.rmtree(site / "build", ignore_errors=True)
        wanted = [word for each in dict.fromkeys((locales[0], locale)) for word in ("--locale", each)]
        run([packages / ".bin" / "docusaurus", "build", *wanted], site)
        built = site / "build" / locale
        _gather(site, built if built.is_dir() else site / "build", copy, found)
    return found


def _gather(site: Path, built: Path, root: Path, found: BuiltSite) -> None:
    """Add the pages of one language. Pages that are not translated are there in each, and belong to the first."""
    paths: dict[str, str] = {}
    sidebars: dict[str, str] = {}
    facts = site / ".docusaurus"
    for file in sorted(facts.glob("docusaurus-plugin-content-*/*/*.json")):
        page = json.loads(file.read_text())
        if not isinstance(page, dict) or "permalink" not in page or page.get("unlisted"):
            continue
        source = os.path.normpath(site / page["source"].removeprefix("@site/"))
        path = str(Path(source).relative_to(root))
        if "content-blog" not in str(file) and path not in found.pages:
            paths[page["permalink"]] = path
            sidebars[page["permalink"]] = page.get("sidebar", "")
            found.pages[path] = BuiltPage(page["permalink"], page["title"], _text(built, page["permalink"]))
    for file in sorted(facts.glob("docusaurus-plugin-content-docs/*/p/*.json")):
        version = json.loads(file.read_text()).get("version", {})
        for name, sidebar in version.get("docsSidebars", {}).items():
            urls = dict.fromkeys(_addresses(sidebar))
            listed = [paths[url] for url in urls if sidebars.get(url) == name]
            if listed:
                found.navigation.append(listed)


def _addresses(items: list[dict[str, Any]]) -> Iterator[str]:
    for item in items:
        if "href" in item:
            yield item["href"]
        yield from _addresses(item.get("items", []))


def _text(build: Path, url: str) -> str:
    """Return the words of the page's own part, with the address below the site's as the name of its file."""
    parts = url.strip("/").split("/")
    for start in range(len(parts) + 1):
        name = "/".join(parts[start:])
        for file in (build / name / "index.html", build / f"{name}.html"):
            if file.is_file():
                return visible_text(file, "//*[contains(@class, 'markdown')]")
    raise SystemExit(f"Docusaurus made no file for {url}")
