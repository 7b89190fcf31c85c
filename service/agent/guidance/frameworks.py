"""The rules of the generator that makes the site: front matter, callouts, links, navigation.

The rules are ours, in the folder of the prompts; which generator it is, and which extensions it has, the site's own
configuration says. It is searched, never run.
"""

import re
from collections.abc import Sequence

from service.agent.checks.links.workspace_layout import base_layout
from service.agent.prompts import prompt
from service.agent.tree import is_within
from service.agent.workspace import Workspace
from service.retrieval.site.navigation import Layout

BY_FILE = (
    ("starlight", re.compile(r"(?:^|/)astro\.config\.\w+$")),
    ("jekyll", re.compile(r"(?:^|/)_config\.ya?ml$")),
)
"""Generators that need no reading of pages of their own, by their configuration."""
_EXTENDED = re.compile(r"(?:^|/)(?:mkdocs\.ya?ml|conf\.py)$")
EXTENSIONS = re.compile(
    r"\b(?:pymdownx\.\w+|admonition|attr_list|md_in_html|footnotes|def_list|tables|toc|myst_parser)\b"
)
"""Extensions of Markdown, as MkDocs and Sphinx name them."""
MAX_CONFIGURATIONS = 60
MAX_CONFIGURATION = 200_000
"""Characters of a configuration that are searched."""


async def framework_rules(workspace: Workspace) -> str:
    """Return the rules, from the base commit."""
    paths = workspace.base_paths()
    layout, _ = await base_layout(workspace)
    kind = _kind(layout, paths, workspace.docs_folder)
    rules = prompt(f"frameworks/{kind}")
    if kind in ("mkdocs", "sphinx"):
        found: set[str] = set()
        names = [path for path in paths if _EXTENDED.search(path)]
        nearest = sorted(names, key=lambda path: (path.count("/"), path))[:MAX_CONFIGURATIONS]
        async for texts in workspace.base_texts(nearest):
            found.update(one for text in texts.values() for one in EXTENSIONS.findall(text[:MAX_CONFIGURATION]))
        if found:
            rules += f"\n- Extensions that the configuration names: {', '.join(sorted(found))}. Others are not there."
    return prompt("framework", rules=rules)


def _kind(layout: Layout, paths: Sequence[str], docs_folder: str) -> str:
    """Return the name of the generator; a configuration in or above the documentation counts."""
    if layout.kind != "plain":
        return layout.kind
    for kind, pattern in BY_FILE:
        for path in paths:
            if (match := pattern.search(path)) is None:
                continue
            folder = path[: match.start()]
            if is_within(folder, docs_folder) or is_within(docs_folder, folder):
                return kind
    return "plain"
