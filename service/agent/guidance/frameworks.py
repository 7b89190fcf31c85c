"""The rules of the generator that makes the site: front matter, callouts, links, navigation.

The rules are ours, in the folder of the prompts; which generator it is, and which extensions it has, the site's own
configuration says. It is searched, never run.
"""

import asyncio
import re
from collections.abc import Sequence

from service.agent.checks.links.links import CONFIGURATIONS, MAX_CONFIGURATIONS
from service.agent.prompts import prompt
from service.agent.tree import is_within
from service.agent.workspace import Workspace
from service.retrieval.site.navigation import detect_layout

BY_FILE = (
    ("vitepress", re.compile(r"(?:^|/)\.vitepress/config\.\w+$")),
    ("starlight", re.compile(r"(?:^|/)astro\.config\.\w+$")),
    ("jekyll", re.compile(r"(?:^|/)_config\.ya?ml$")),
)
"""Generators that need no reading of pages of their own, by their configuration."""
DOCUSAURUS = re.compile(r"(?:^|/)docusaurus\.config\.\w+$")
EXTENSIONS = re.compile(
    r"\b(?:pymdownx\.\w+|admonition|attr_list|md_in_html|footnotes|def_list|tables|toc|myst_parser)\b"
)
"""Extensions of Markdown, as MkDocs and Sphinx name them."""
MAX_CONFIGURATION = 200_000
"""Characters of a configuration that are searched."""


async def framework_rules(workspace: Workspace) -> str:
    """Return the rules, from the base commit."""
    paths = workspace.base_paths()
    names = await asyncio.to_thread(_configurations, paths)
    texts: dict[str, str] = {}
    async for some in workspace.base_texts(names):
        texts |= some
    kind = await asyncio.to_thread(_kind, paths, texts, workspace.docs_folder)
    rules = prompt(f"frameworks/{kind}")
    if kind in ("mkdocs", "sphinx"):
        name = re.compile(r"(?:^|/)(?:mkdocs\.ya?ml|conf\.py)$")
        found = {one for path, text in texts.items() if name.search(path)
                 for one in EXTENSIONS.findall(text[:MAX_CONFIGURATION])}  # fmt: skip
        if found:
            rules += f"\n- Extensions that the configuration names: {', '.join(sorted(found))}. Others are not there."
    return prompt("framework", rules=rules)


def _configurations(paths: Sequence[str]) -> list[str]:
    found = [path for path in paths if CONFIGURATIONS.search(path) or path.endswith("conf.py")]
    return sorted(found, key=lambda path: (path.count("/"), path))[:MAX_CONFIGURATIONS]


def _shows_folder(configuration: str, folder: str) -> bool:
    """Return whether a configuration names this folder as the place of its pages, from a folder of its own."""
    named = re.escape(folder)
    return re.search(rf"path\s*:\s*[\"'](?:\.\./)+{named}/?[\"']", configuration[:MAX_CONFIGURATION]) is not None


def _kind(paths: Sequence[str], texts: dict[str, str], docs_folder: str) -> str:
    """Return the name of the generator; a configuration in or above the documentation counts."""
    layout = detect_layout(paths, lambda name: texts[name].encode() if name in texts else None, docs_folder=docs_folder)
    if layout.kind != "plain":
        return layout.kind
    if docs_folder and any(_shows_folder(text, docs_folder) for path, text in texts.items() if DOCUSAURUS.search(path)):
        return "docusaurus"
    for kind, pattern in BY_FILE:
        for path in paths:
            if (match := pattern.search(path)) is None:
                continue
            folder = path[: match.start()]
            if is_within(folder, docs_folder) or is_within(docs_folder, folder):
                return kind
    return "plain"
