import time

import pytest

from tests.retrieval.formats import page_of, places, reason

PAGE = """\
<!doctype html>
<html lang="en"><head><title>Title | Site</title>
<meta name="description" content="About x">
<script>var x = "<p>no</p>"</script></head>
<body><nav>Home Docs</nav><div class="sidebar">Side</div>
<main><header><h1 id="top">Title<a class="headerlink" href="#top">¶</a></h1></header>
<p>Some <b>bold</b> and <code>code()</code>, <a href="../x.html#y">a link</a>.</p>
<ul><li>one<li><p>two</p><ul><li>deep</ul></ul>
<section id="part"><h2>Part two</h2>
<div class="highlight-python notranslate"><pre><span>def</span> f():
    return 1
</pre></div>
<aside>Aside</aside><form>Search <input></form><p hidden>Hidden</p>
<table><tr><th>A<th>B<tr><td>1<td>x|y</table>
</section></main><footer>Foot</footer></body></html>
"""


def test_the_main_content_is_kept_and_nothing_around_it():
    page = page_of(PAGE, "x.html")
    assert (page.title, page.description) == ("Title", "About x")
    assert page.content == (
        "Some **bold** and `code()`, a link.\n\n- one\n\n- two\n\n- deep\n\n## Part two\n\n"
        "```python\ndef f():\n    return 1\n```\n\n| A | B |\n| --- | --- |\n| 1 | x\\|y |"
    )


def test_sections_have_the_ids_that_are_there_and_their_lines():
    page = page_of(PAGE, "x.html")
    assert places(page) == [("", "", 1, 8), ("Part two", "part", 9, 16)]
    assert page.anchors == {"top", "part"}
    assert [(link.href, link.text, link.line) for link in page.links] == [("../x.html#y", "a link", 7)]


def test_without_main_the_body_is_read():
    page = page_of("<body><div class=navbar>Bar</div><h1>T</h1><p>Text.<script>x</script></p></body>", "x.html")
    assert (page.title, page.content) == ("T", "Text.")


@pytest.mark.parametrize(
    ("html", "anchor"),
    [
        ("<h2 id=a>H</h2>", "a"),
        ("<section id=b><h2>H</h2></section>", "b"),
        ("<h2><a id=c></a>H</h2>", "c"),
        ("<h2><a name=d>H</a></h2>", "d"),
        ("<div><p>x</p><h2>H</h2></div>", ""),
    ],
)
def test_a_headings_anchor_is_its_own_or_that_of_what_it_opens(html, anchor):
    page = page_of(f"<main><p>Before.</p>{html}<p>Text.</p></main>", "x.html")
    assert page.sections[-1].heading == "H"
    assert page.sections[-1].anchor == anchor


def test_a_page_that_wants_to_stay_unseen_does():
    assert page_of("<meta name=robots content=noindex><p>x", "x.html").front_matter["searchable"] == "false"


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 50_000 + "x",
        "<b><i>" * 20_000 + "x",
        "<script>" * 1000 + "hello",
        "<p>" + "a " * 500_000,
        "<table>" * 3000 + "<tr><td>x",
        "<ul><li>" * 2000 + "x",
        "<p>&#0;&#xD800;&nosuch;\u202e</p>",
        "<!--" * 1000 + "--><p>x",
        "<h1>" * 500,
        "<a href='" + "x" * 100_000,
    ],
)
def test_hostile_pages_end_soon(html):
    began = time.process_time()
    page_of(html, "x.html")
    assert time.process_time() - began < 5


def test_pages_beyond_any_real_size_are_skipped_with_a_reason():
    assert "too many parts" in reason("<h2>x</h2>" * 10_100, "a.html")
    assert "not UTF-8" in reason(b"<p>caf\xe9", "a.html")
    assert "larger" in reason("<p>" + "x" * (4 << 20), "a.html")
    assert "no text" in reason("  \n", "a.html")
