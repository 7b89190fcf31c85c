"""Sphinx sites: which files are pages, in which order, and where."""

from service.retrieval.site.links import resolve_link
from service.retrieval.site.navigation import detect_layout, make_site
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


def addresses(files):
    _, site = site_of({"docs/conf.py": CONF, **files})
    return [page.url for page in sorted(site.pages.values(), key=lambda page: (page.order < 0, page.order, page.path))]


def test_options_of_toctrees_decide_the_order():
    index = "Home\n====\n\n.. toctree::\n   :glob:\n   :reversed:\n   :caption: All\n\n   self\n   guide/*\n   last\n"
    markdown = (
        "# Last\n\n```{toctree}\n---\nhidden: true\n---\nNamed one <one>\n/two.md\n```\n\n:::{toctree}\nthree\n:::\n"
    )
    page = "Page\n====\n\nText.\n"
    files = {f"docs/{name}.rst": page for name in ("guide/a", "guide/b", "one", "three")}
    files |= {
        "docs/index.rst": index,
        "docs/last.md": markdown,
        "docs/two.md": "# Two\n\nText.",
        "docs/orphan.md": "# O\n",
    }
    assert addresses(files) == [
        "/", "/last.html", "/one.html", "/two.html", "/three.html", "/guide/b.html", "/guide/a.html", "/orphan.html",
    ]  # fmt: skip


BUILDERS = [
    ({".readthedocs.yaml": "sphinx:\n  builder: dirhtml\n"}, True),
    (
        {".readthedocs.yaml": "sphinx:\n  builder: html\n", "tox.ini": "commands = sphinx-build -b dirhtml docs x"},
        False,
    ),
    ({"tox.ini": "commands = sphinx-build -E -W -b dirhtml docs docs/_build/dirhtml"}, True),
    ({"noxfile.py": "session.run('sphinx-build', '-b', 'dirhtml', 'docs', 'out')"}, True),
    ({"docs/Makefile": "html:\n\t$(SPHINXBUILD) -b html x\ndirhtml:\n\t$(SPHINXBUILD) -b dirhtml x\n"}, False),
    ({}, False),
]


def test_builder_of_the_project_decides_addresses():
    files = {"docs/index.rst": INDEX, "docs/guide/start.rst": "S\n=\n\nT.", "docs/guide/index.rst": "I\n=\n\nT."}
    for builder, is_dirhtml in BUILDERS:
        expected = ["/", "/guide/start", "/guide"] if is_dirhtml else ["/", "/guide/start.html", "/guide/index.html"]
        assert addresses({**files, **builder}) == expected, builder


def test_root_document_and_excluded_pages_are_as_configured():
    conf = "project = 'P'\nroot_doc = 'contents'\nexclude_patterns = ['skip*', 'sub/**.rst']\nlanguage = 'pt_BR'\n"
    files = {"docs/conf.py": conf, "docs/contents.rst": "C\n=\n\nT.", "docs/skip.rst": "S\n=\n\nT."}
    layout, site = site_of({**files, "docs/sub/a.rst": "A\n=\n\nT.", "docs/sub/skip.rst": "K\n=\n\nT."})
    assert layout.default_language == "pt-BR"
    assert [page.url for page in site.pages.values()] == ["/contents.html"]


TOC = """\
format: jb-book
root: intro
parts:
  - caption: Basics
    chapters:
      - file: guide/start
        title: Begin
        sections:
          - glob: guide/m*
      - url: https://x.y
  - chapters:
      - file: gone
      - file: api.rst
"""


def test_list_of_all_pages_has_their_order():
    files = {name: text for name, text in FILES.items() if name != "docs/index.rst"}
    files |= {
        "docs/conf.py": 'extensions = ["myst_parser", "sphinx_external_toc"]\n',
        "docs/_toc.yml": TOC,
        "docs/intro.md": "# Intro\n\nText.\n",
    }
    layout, site = site_of(files)
    order = sorted(layout.entries, key=lambda path: layout.entries[path].order)
    assert order == ["docs/intro.md", "docs/guide/start.rst", "docs/guide/more.md", "docs/api.rst"]
    assert site.pages["docs/intro.md"].url == "/intro.html"


def test_broken_list_of_all_pages_leaves_the_toctrees():
    for toc in ("root: [", "- a", "root: gone", ""):
        layout, _ = site_of(
            FILES | {"docs/conf.py": f'{CONF}extensions = ["sphinx_external_toc"]\n', "docs/_toc.yml": toc}
        )
        assert next(iter(layout.entries)) == "docs/index.rst"
