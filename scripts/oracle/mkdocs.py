"""Samples built by MkDocs: a plugin writes down each page's source, address and title, and the order of pages."""

import json
import shutil
from pathlib import Path
from typing import Any

from scripts.oracle.build import python_packages, run, visible_text
from scripts.oracle.compare import BuiltPage, BuiltSite

PACKAGES = (
    "mkdocs==1.6.1", "mkdocs-material==9.5.49", "pymdown-extensions==10.14", "mkdocs-awesome-pages-plugin==2.10.1",
    "mkdocs-literate-nav==0.6.1", "mkdocs-static-i18n==1.2.3", "mkdocs-macros-plugin==1.3.7", "mdx-include==1.4.2",
    "markdown-include-variants==0.0.8", "mkdocs-awesome-nav==3.1.2", "mkdocs-include-markdown-plugin==7.1.5",
)  # fmt: skip
_PAGE = "//article | //*[@role='main']"
_BUILD = """
import json, sys
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.plugins import BasePlugin, event_priority

found = []

class Facts(BasePlugin):
    @event_priority(-200)
    def on_nav(self, nav, config, files):
        self.order = [page.file.abs_src_path for page in nav.pages]

    @event_priority(-200)
    def on_env(self, env, config, files):
        pages = [(one.abs_src_path, one.url, one.page.title, one.abs_dest_path)
                 for one in files.documentation_pages() if one.page is not None and not one.inclusion.is_excluded()]
        found.append({"pages": pages, "order": self.order})

config = load_config(sys.argv[1])
config.plugins["facts"] = Facts()
build(config)
json.dump(found, open(sys.argv[2], "w"))
"""


def build(sample: Path, work: Path) -> BuiltSite:
    python = python_packages(work, PACKAGES)
    copy = (work / "sites" / sample.name).resolve()
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(sample, copy)
    found = BuiltSite({})
    configs = sorted(copy.rglob("mkdocs.yml"), key=lambda one: (one.parent.name != "en", one))
    for config in configs:
        run([python, "-c", _BUILD, config.name, "facts.json"], config.parent)
        prefix = "" if config is configs[0] else f"/{config.parent.name}"
        for site in json.loads((config.parent / "facts.json").read_text()):
            _gather(site, prefix, copy, found)
    return found


def _gather(site: dict[str, Any], prefix: str, root: Path, found: BuiltSite) -> None:
    """Add the pages of one language; those that it has from another one are that one's."""
    order = []
    for source, url, title, built in site["pages"]:
        path = str(Path(source).relative_to(root))
        if path not in found.pages:
            text = visible_text(Path(built), _PAGE) if Path(built).is_file() else ""
            address = f"{prefix}/{url}".replace("./", "")
            found.pages[path] = BuiltPage("/" if address == "/index.html" else address, title, text)
            order.append(source)
    listed = [str(Path(source).relative_to(root)) for source in site["order"] if source in order]
    found.navigation.append(listed)
