"""Which files are pages of documentation, by their names."""

MARKDOWN_SUFFIXES = (".md", ".mdx", ".markdown")
INDEXED_SUFFIXES = (*MARKDOWN_SUFFIXES, ".rst", ".html", ".htm", ".ipynb")
"""Pages that search has a reader for."""
PAGE_SUFFIXES = (*INDEXED_SUFFIXES, ".adoc")
INDEX_NAMES = frozenset({"index", "_index", "readme"})
"""Names, in lower case and without a suffix, of the page that stands for its folder."""


def is_markdown(path: str) -> bool:
    return path.lower().endswith(MARKDOWN_SUFFIXES)


def is_page(path: str) -> bool:
    return path.lower().endswith(PAGE_SUFFIXES)


def without_suffix(path: str) -> str:
    """Return the path of a page without its suffix; other paths as they are."""
    lowered = path.lower()
    return next((path[: -len(suffix)] for suffix in PAGE_SUFFIXES if lowered.endswith(suffix)), path)
