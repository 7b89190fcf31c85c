"""Documentation sites with the widget's tag, made by real generators: the tag is put where the manual says.

The generators come from npm, PyPI and Debian, in the versions of ``scripts/generator-oracle``, without its plugins.
"""

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from scripts.oracle import docusaurus, hugo, mkdocs, sphinx, vitepress
from scripts.oracle.build import npm_packages, python_packages, run

SOURCES = Path(__file__).parent / "generators"
MANUAL = Path("service/manual/widget.md")
PACKAGES = Path("build/widget-generators").resolve()
PAGES = ("index", "install", "retry")
Installed = TypeVar("Installed")


class Site:
    """A copy of a generator's sources, with the folder of its packages."""

    def __init__(self, name: str, folder: Path, tag: Callable[[str], str]) -> None:
        self.name, self.folder, self._tag = name, folder, tag
        self.work = PACKAGES / name
        shutil.copytree(SOURCES / name, folder)

    def add_docs(self, to: str, **renamed: str) -> None:
        for page in PAGES:
            file = self.folder / to / f"{renamed.get(page, page)}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes((SOURCES / "docs" / f"{page}.md").read_bytes())

    def put_tag(self, name: str, mark: str) -> None:
        """Put the manual's lines in the place of a comment."""
        file = self.folder / name
        text = file.read_text()
        assert mark in text
        file.write_text(text.replace(mark, self.tag))

    def installed(self, install: Callable[..., Installed], *packages: tuple[str, ...]) -> Installed:
        """Return what an installer returns; skip where it cannot install."""
        self.work.mkdir(parents=True, exist_ok=True)
        try:
            return install(self.work, *packages)
        except (SystemExit, OSError) as error:
            pytest.skip(f"{self.name} cannot be installed: {str(error)[-500:]}")

    @property
    def tag(self) -> str:
        return self._tag(_documented(self.name))


def _documented(name: str) -> str:
    """Return the first code block below the generator's heading in the manual."""
    _, found, section = MANUAL.read_text().partition(f"\n### {HEADINGS[name]}\n")
    assert found, name
    return re.search(r"```\w+\n(.*?)```", section, re.DOTALL)[1]


def _html(site: Site) -> Path:
    for page in ("index", "install"):
        site.put_tag(f"{page}.html", "<!-- TAG -->")
    return site.folder


def _docusaurus(site: Site) -> Path:
    packages = site.installed(npm_packages, docusaurus.PACKAGES)
    site.add_docs("docs")
    index = site.folder / "docs" / "index.md"
    index.write_text(index.read_text().replace("---\n", "---\nslug: /\n", 1))
    site.put_tag("docusaurus.config.js", "// TAG")
    (site.folder / "package.json").write_text('{"name": "sample", "private": true}')
    (site.folder / "node_modules").symlink_to(packages)
    run([packages / ".bin" / "docusaurus", "build", "--no-minify"], site.folder)
    return site.folder / "build"


def _mkdocs(site: Site) -> Path:
    python = site.installed(python_packages, mkdocs.PACKAGES[:2])
    site.add_docs("docs")
    (site.folder / "overrides").mkdir()
    (site.folder / "overrides" / "main.html").write_text(site.tag)
    run([python, "-m", "mkdocs", "build", "--quiet"], site.folder)
    return site.folder / "site"


def _vitepress(site: Site) -> Path:
    packages = site.installed(npm_packages, vitepress.PACKAGES)
    site.add_docs(".")
    site.put_tag(".vitepress/config.mjs", "// TAG")
    (site.folder / "package.json").write_text('{"name": "sample", "private": true, "type": "module"}')
    (site.folder / "node_modules").symlink_to(packages)
    run([packages / ".bin" / "vitepress", "build"], site.folder)
    return site.folder / ".vitepress" / "dist"


def _sphinx(site: Site) -> Path:
    python = site.installed(python_packages, sphinx.PACKAGES[:2])
    site.add_docs(".")
    site.put_tag("conf.py", "# TAG")
    run([python, "-m", "sphinx", "-q", ".", "out"], site.folder)
    return site.folder / "out"


def _hugo(site: Site) -> Path:
    program = site.installed(hugo.program)
    site.add_docs("content", index="_index")
    site.put_tag("layouts/_default/baseof.html", "<!-- TAG -->")
    run([*program, "--source", site.folder, "--baseURL", "/"], site.folder)
    return site.folder / "public"


BUILDERS: Mapping[str, Callable[[Site], Path]] = {
    "html": _html,
    "docusaurus": _docusaurus,
    "mkdocs": _mkdocs,
    "vitepress": _vitepress,
    "sphinx": _sphinx,
    "hugo": _hugo,
}
HEADINGS = {
    "html": "Plain HTML",
    "docusaurus": "Docusaurus",
    "mkdocs": "MkDocs Material",
    "vitepress": "VitePress",
    "sphinx": "Sphinx",
    "hugo": "Hugo",
}


def built_site(name: str, folder: Path, *, server: str, domain: str, key: str) -> Path:
    """Return the folder of a built site's files. Raise AssertionError where the generator fails."""

    def tag(documented: str) -> str:
        values = {"https://docsmith.example.com": server, '"guide"': f'"{domain}"', '"KEY"': f'"{key}"'}
        for sample, value in values.items():
            assert sample in documented, (name, sample)
            documented = documented.replace(sample, value)
        return documented

    try:
        return BUILDERS[name](Site(name, folder / name, tag))
    except SystemExit as error:
        raise AssertionError(str(error)) from None
