"""mdBook: ``book.toml``, and ``SUMMARY.md`` in the folder of the sources, which names all pages
(rust-lang.github.io/mdBook/format/summary.html). A ``README.md`` is the page of its folder.
"""

from collections.abc import Mapping
from posixpath import dirname, normpath

from msgspec.structs import replace

from service.markup.dialects.dialect import Dialect
from service.markup.front_matter import load_toml
from service.retrieval.site.generators.books.summary import Summary
from service.retrieval.site.layout import Layout, Read, clean_url, join_path, read_text
from service.retrieval.site.link_rules import LinkRules
from service.retrieval.site.settings import text_setting


def mdbook(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    top = dirname(config)
    try:
        settings: Mapping[str, object] = load_toml(read_text(read, config))
    except (ValueError, RecursionError):
        settings = {}
    book = _table(settings, "book")
    source = normpath(join_path(top, normpath(text_setting(book, "src") or "src")))
    root = "" if source == "." else source
    summary = join_path(root, "SUMMARY.md")
    if root.startswith("..") or summary not in files:
        return None
    named = Summary(files, read)
    named.add(summary)
    base = clean_url(text_setting(_table(_table(settings, "output"), "html"), "site-url")).rstrip("/")
    pages = list(named.entries)
    layout = Layout(
        "mdbook", docs_folder, root, Dialect(book=True), (base,), named.entries, html_suffix=True,
        default_language=text_setting(book, "language"), missing_entries=tuple(named.missing), link_prefix=base,
        hidden_pages=named.hidden(root),
        links=LinkRules(slash=False, reads_files=True, list_file=summary),  # src/parse/summary.rs of rust-lang/mdBook
    )  # fmt: skip
    if not pages:
        return layout
    first = layout.resolve_url(pages[0], {}, base)[0]  # it is also written as the book's own page
    return replace(layout, redirects=dict.fromkeys((base, "/", f"{base}/index.html", "/index.html"), first))


def _table(settings: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = settings.get(name)
    return found if isinstance(found, dict) else {}
