"""The files of each generator, by name: its configuration, and those in which a site's navigation names the pages.

A name may have folders; it fits a path that ends with it.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import product


def _names(stems: Iterable[str], suffixes: str) -> tuple[str, ...]:
    return tuple(f"{stem}.{suffix}" for stem, suffix in product(stems, suffixes.split()))


_PROGRAM, _DATA = "js mjs cjs ts mts cts", "toml yaml yml json"
_SIDEBARS = _names(["sidebars"], _PROGRAM)

CONFIGURATIONS: Mapping[str, tuple[str, ...]] = {
    "mintlify": ("docs.json", "mint.json"),
    "docusaurus": (*_names(["docusaurus.config"], _PROGRAM), *_SIDEBARS, "sidebars.json"),
    "vitepress": _names([".vitepress/config", ".vitepress/config/index"], "js mjs ts mts"),
    "mdbook": ("book.toml",),
    "gitbook": (".gitbook.yaml", ".gitbook.yml", "book.json"),
    "antora": ("antora.yml",),
    "starlight": _names(["astro.config"], _PROGRAM),
    "fumadocs": _names(["source.config"], _PROGRAM),
    "nextra": _names(["next.config"], _PROGRAM),
    "mkdocs": ("mkdocs.yml", "mkdocs.yaml"),
    "sphinx": ("conf.py",),
    "jekyll": ("_config.yml", "_config.yaml"),
    "hugo": _names(["hugo", "config/_default/hugo", "config/_default/config", "config"], _DATA),
}
"""By generator, in the order in which they are looked for: names that other programs use, too, are last."""
NAVIGATION: Mapping[str, tuple[str, ...]] = {
    **{kind: CONFIGURATIONS[kind] for kind in ("mintlify", "mkdocs", "vitepress", "starlight")},
    "docusaurus": (*_SIDEBARS, "sidebars.json"),
    "gitbook": ("SUMMARY.md",),
    "mdbook": ("SUMMARY.md",),
    "plain": ("SUMMARY.md", "_sidebar.md"),
    "sphinx": ("index.rst", "index.md", "index.txt"),
}
"""The file that names the pages, of generators that have one; others find most pages in folders."""
NAVIGATION_PARTS: Mapping[str, tuple[str, ...]] = {
    "sphinx": (*NAVIGATION["sphinx"], "_toc.yml"),
    "nextra": _names(["_meta"], f"{_PROGRAM} jsx tsx json"),
    "fumadocs": ("meta.json",),
    "antora": ("nav.adoc",),
    "jekyll": _names(["_data/navigation", "_data/nav", "_data/sidebar", "_data/docs", "_data/toc"], "yml yaml"),
    "hugo": _names(["config/_default/menu", "config/_default/menus", "config/_default/menus.en"], _DATA),
}
"""Files of which each names some of the pages, of generators that have several."""
NAVIGATION_DATA = (*CONFIGURATIONS["mintlify"], *CONFIGURATIONS["mkdocs"], "sidebars.json")
"""Data in which pages are named; a job may change them above the folder of the documentation, too."""


def matcher(names: Iterable[str]) -> re.Pattern[str]:
    """Return the expression that finds these names at the end of a path."""
    return re.compile(rf"(?:^|/)(?:{'|'.join(map(re.escape, names))})$")


SIDEBARS_PROGRAM = matcher(_SIDEBARS)
VITEPRESS_PROGRAM = re.compile(r"(?:^|/)\.vitepress/(?:config|sidebars?|nav)(?:/[\w-]{1,100}){0,2}\.[cm]?[jt]s$")
"""Programs that name pages: of VitePress, also those that its configuration may import."""
