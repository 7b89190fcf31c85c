"""Sphinx sites: which files are pages, in which order, and where."""

from service.retrieval.site.navigation import detect_layout, make_site, resolve_link
from service.retrieval.site.pages import PageReader

CONF = """\
import os; os.abort()
project = "P"
exclude_patterns = ["drafts/*", "README.md"]
"""
INDEX = """\
Home
====

.. toctree::
   :maxdepth: 2

   guide/start
   Named <api>
   https://x.y
   gone

End.
"""
START = """\
.. _begin:

Start
=====

.. toctree::

   more

See :doc:`/api` and :doc:`more`.
"""
FILES = {
    "docs/conf.py": CONF,
    "docs/index.rst": INDEX,
    "docs/guide/start.rst": START,
    "docs/guide/more.md": "# More\n\nText.\n\n## A & B\n\nText.\n",
    "docs/api.rst": "API\n===\n\n.. toctree::\n\n   index\n\nText.\n",
    "docs/drafts/x.rst": "X\n=\n\nText.",
    "docs/README.md": "# Readme",
    "docs/_build/html/api.rst": "API\n===\n",
    "setup.py": "",
}


def site_of(files):
    data = {name: text.encode() for name, text in files.items()}
    layout = detect_layout(data, data.get)
    reader = PageReader(layout, lambda name, limit: data[name][:limit] if name in data else None)
    return layout, make_site(layout, [reader.page(name) for name in sorted(data) if layout.is_page(name)], data)


def test_pages_have_toctree_order_and_sphinx_addresses():
    layout, site = site_of(FILES)
    assert layout.kind == "sphinx"
    pages = sorted(site.pages.values(), key=lambda page: page.order)
    assert [(page.path, page.url, page.title) for page in pages] == [
        ("docs/index.rst", "/", "Home"),
        ("docs/guide/start.rst", "/guide/start.html", "Start"),
        ("docs/guide/more.md", "/guide/more.html", "More"),
        ("docs/api.rst", "/api.html", "API"),
    ]
    assert site.pages["docs/guide/more.md"].anchors == {"more", "a-b"}
    assert "begin" in site.pages["docs/guide/start.rst"].anchors


def test_links_lead_to_pages():
    _, site = site_of(FILES)
    start = "docs/guide/start.rst"
    assert resolve_link(start, "/api.rst", site) == "docs/api.rst"
    assert resolve_link(start, "more.rst", site) == "docs/guide/more.md"
    assert resolve_link(start, "../api.html", site) == "docs/api.rst"
    assert resolve_link(start, "/guide/more", site) == "docs/guide/more.md"


def test_a_conf_py_of_something_else_makes_no_sphinx_site():
    layout, _ = site_of({"conf.py": "x = 1\n", "index.md": "Text."})
    assert layout.kind == "plain"
    layout, _ = site_of({"conf.py": "project = 'x'\n", "guide.md": "Text."})
    assert layout.kind == "plain"
