"""Samples built by Astro with Starlight: pages by their addresses, which show the word of their source."""

import re
import shutil
from pathlib import Path

from lxml import html

from scripts.oracle.build import npm_packages, run, visible_text
from scripts.oracle.compare import BuiltPage, BuiltSite

PACKAGES = ("astro@5.16.0", "@astrojs/starlight@0.37.6", "sharp@0.34.5")
_OWN = re.compile(r"This is page (\w+)")


def build(sample: Path, work: Path) -> BuiltSite:
    packages = npm_packages(work, PACKAGES)
    copy = work / "sites" / sample.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(sample, copy)
    (copy / "package.json").write_text('{"name": "sample", "private": true, "type": "module"}')
    (copy / "node_modules").symlink_to(packages)
    run([packages / ".bin" / "astro", "build"], copy)
    return built_site(
        sample,
        copy / "dist",
        "//*[contains(@class, 'sl-markdown-content')]",
        "//nav[contains(@class, 'sidebar')]//ul//a/@href",
    )


def built_site(sample: Path, built: Path, part: str, links: str, title: str = "//h1") -> BuiltSite:
    """Return the pages of a folder that was built. Each source has a sentence with a word of its own."""
    texts = {path: path.read_text() for path in sample.rglob("*.md*") if path.is_file()}
    sources = {match[1]: path for path, text in texts.items() if (match := _OWN.search(text)) is not None}
    config = "".join(path.read_text() for path in sample.glob("*.config.*"))
    base = match[1] if (match := re.search(r"(?:base|basePath): '([^']*)'", config)) is not None else ""
    found = BuiltSite({})
    by_url: dict[str, str] = {}
    navigation: dict[tuple[str, ...], None] = {}
    for file in sorted(built.rglob("*.html")):
        text = visible_text(file, part)
        own = _OWN.search(text)
        source = sources.get(own[1]) if own is not None else None
        name = str(file.relative_to(built)).removesuffix(".html")
        url = f"{base}/{name.removesuffix('index').rstrip('/') if name.endswith(('/index', 'index')) else name}"
        tree = html.fromstring(file.read_bytes())
        navigation.setdefault(tuple(link.partition("#")[0].rstrip("/") for link in tree.xpath(links)))
        if source is None:
            continue
        path = str(source.relative_to(sample))
        before = found.pages.get(path)
        if before is not None and _nearness(before.url, path, base) >= _nearness(url, path, base):
            continue  # shown in place of a translation
        heading = tree.xpath(title)
        shown = " ".join(heading[0].text_content().split()) if heading else ""
        found.pages[path] = BuiltPage(url.rstrip("/") or "/", shown, text)
    by_url = {page.url.rstrip("/"): path for path, page in found.pages.items()}
    for listed in navigation:
        paths = list(dict.fromkeys(by_url[url] for url in listed if url in by_url))
        if paths and paths not in found.navigation:
            found.navigation.append(paths)
    return found


def _nearness(url: str, path: str, base: str) -> tuple[bool, int]:
    """Return how likely an address is a page's own, and not that of a translation that does not exist."""
    first = url.removeprefix(base).strip("/").partition("/")[0]
    return f"/{first}/" in f"/{path}", -len(url)
