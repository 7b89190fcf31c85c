from service.domain.sites import Skipped
from service.retrieval.readers.markdown import ParsedPage
from tests.retrieval.formats import page_of, places, read, reason

GUIDE = """\
:orphan:

.. meta::
   :description: About frobs

.. _top-label:

Frob guide
==========

Intro with :ref:`the label <other>`, :py:func:`~pkg.mod.frob`, :doc:`Other page </guide/other>`, |ver|,
`ext <http://x.y>`_.

.. |ver| replace:: 1.2

Using :code:`frob()`
--------------------

.. code-block:: python
   :linenos:

   import frob

   frob.run()

.. note:: Careful **now**.

.. py:function:: run(x, *, y=1)

   Runs it.

   :param x: the x

Using :code:`frob()`
--------------------

* one

  * deep

=====  =====
A      B
=====  =====
1      2|3
=====  =====

.. tab-set::

   .. tab-item:: Linux

      apt it

.. made-up:: argument
   :option: value

   Body kept.
"""


def test_sections_have_docutils_ids_and_their_lines():
    page = page_of(GUIDE, "guide.rst")
    assert (page.title, page.description) == ("Frob guide", "About frobs")
    lines = GUIDE.split("\n")
    first, second = (n for n, line in enumerate(lines, 1) if line.startswith("Using"))
    assert places(page) == [
        ("", "", 1, first - 1),
        ("Using frob()", "using-frob", first, second - 1),
        ("Using frob()", "id1", second, len(lines) - 1),
    ]
    assert {"frob-guide", "top-label", "using-frob", "id1", "run"} <= page.anchors


def test_roles_and_directives_are_read_as_what_they_show():
    content = page_of(GUIDE, "guide.rst").content
    for shown in (
        "Intro with the label, `frob()`, Other page, 1.2,\next.",
        "```python\nimport frob\n\nfrob.run()\n```",
        "**Note**\n\nCareful **now**.",
        "`run(x, *, y=1)`",
        "Runs it.",
        "- one\n\n- deep",
        "| A | B |\n| --- | --- |\n| 1 | 2\\|3 |",
        "**Linux**\n\napt it",
        "Body kept.",
    ):
        assert shown in content
    for unseen in (":option:", "linenos", "orphan", "made-up", "::"):
        assert unseen not in content


def test_links_are_kept_with_their_words():
    links = {(link.href, link.text) for link in page_of(GUIDE, "guide.rst").links}
    assert links == {("/guide/other.rst", "Other page"), ("http://x.y", "ext")}


def test_files_of_the_repository_are_included_and_no_others():
    files = {
        "docs/a.rst": "A\n=\n\n.. include:: part.txt\n\n"
        ".. literalinclude:: /code/x.py\n   :language: python\n   :lines: 2-\n\n.. include:: /etc/hostname\n\n"
        ".. include:: ../../../etc/hostname\n\n"
        ".. raw:: html\n   :file: /etc/hostname\n\n"
        ".. csv-table:: T\n   :file: /etc/hostname\n\nEnd.\n",
        "docs/part.txt": "Part\n----\n\nIncluded words.\n\n.. include:: a.rst\n",
        "code/x.py": "import x\nx.run()\n",
    }
    content = page_of(files, "docs/a.rst").content
    assert "Included words." in content
    assert "```python\nx.run()\n```" in content
    assert "import x" not in content
    assert "End." in content


def test_a_toctree_gives_order_names_and_links():
    page = page_of("T\n=\n\n.. toctree::\n   :maxdepth: 2\n\n   a\n   Named <b/c>\n   https://x.y\n", "index.rst")
    assert [(link.href, link.text) for link in page.links] == [
        ("a.rst", ""),
        ("b/c.rst", "Named"),
        ("https://x.y", ""),
    ]


def test_versions_definitions_and_literal_blocks_are_shown():
    content = page_of(
        "T\n=\n\n.. versionadded:: 2.0\n   The thing.\n\n.. deprecated:: 3\n\n"
        "Term\n    Meaning.\n\nText::\n\n   a\n     b\n",
        "a.rst",
    ).content
    assert "Added in version 2.0: The thing." in content
    assert "Deprecated since version 3" in content
    assert "**Term**\n\n  Meaning." in content
    assert "```\na\n  b\n```" in content


def test_pages_beyond_any_real_size_are_skipped_with_a_reason():
    assert "too many parts" in reason("".join(f"H{n}\n======\n\n" for n in range(10_100)), "a.rst")
    assert "not UTF-8" in reason(b"caf\xe9", "a.rst")
    assert "not text" in reason(b"a\0b", "a.rst")
    assert "larger" in reason("x" * (1 << 20) + "xx", "a.rst")
    assert "lines" in reason("x\n" * 50_002, "a.rst")


def test_deep_and_broken_pages_end_somehow():
    for text in (
        "".join("  " * n + "* x\n\n" for n in range(100)),
        "> " * 500 + "x",
        "`" * 5000,
        ".. include:: a.rst\n",
        ".. |a| replace:: |a|\n\n|a|",
        "x\n===\n\n" + ".. note::\n\n".join("   " * n for n in range(80)),
        "+---+\n|   \n+--",
        "\u202eright to left\u202c\n===\n",
        ":role:`x` :a:b:`c <d>` `x`_ x__ [1]_ |nothing|",
    ):
        assert isinstance(read({"a.rst": text}, "a.rst"), ParsedPage | Skipped)
