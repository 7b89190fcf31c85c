"""mdBook, GitBook and Antora."""

import pytest

from scripts.oracle.compare import differences, read_sample, samples, written
from service.retrieval.site.navigation import detect_layout
from tests.fakes.sites import read_site
from tests.retrieval.formats import page_of

PAGE = b"# A page\n\nText.\n"
BOOK = {
    "book.toml": b'[book]\nsrc = "text"\nlanguage = "en"\n[output.html]\nsite-url = "/book/"\n',
    "text/SUMMARY.md": b"# Summary\n\n[Preface](start.md)\n\n# Part\n\n- [One](one/README.md)\n"
    b"  - [In one](./one/in%20one.md)\n- [Draft]()\n- [Gone](gone.md)\n- [Off](https://x.org)\n",
    **dict.fromkeys(("text/start.md", "text/one/README.md", "text/one/in one.md", "text/loose.md", "README.md"), PAGE),
}
GITBOOK = {
    "docs/README.md": PAGE,
    "docs/SUMMARY.md": b"# Contents\n\n* [Intro](README.md)\n\n## Use\n\n* [First](use/README.md)\n"
    b"  * [Run it](use/run.md)\n",
    **dict.fromkeys(("docs/use/README.md", "docs/use/run.md", "docs/use/loose.md", "README.md"), PAGE),
}
SOURCE = """use a;

// ANCHOR: main
fn main() {
    // ANCHOR: inner
    run();
    // ANCHOR_END: inner
}
// ANCHOR_END: main
"""


@pytest.mark.parametrize("name", samples("gitbook"))
def test_sample_is_read_as_gitbook_built_it(name):
    assert list(differences(written("gitbook", name), read_sample("gitbook", name))) == []


def places(files: dict[str, bytes]) -> dict[str, tuple[int, str, str]]:
    return {path: (page.order, page.url, page.title) for path, page in read_site(files).pages.items()}


def test_mdbook_shows_the_pages_that_its_summary_names():
    site = read_site(BOOK)
    assert site.kind == "mdbook"
    assert places(BOOK) == {
        "text/start.md": (0, "/book/start.html", "Preface"),
        "text/one/README.md": (1, "/book/one/index.html", "One"),
        "text/one/in one.md": (2, "/book/one/in one.html", "In one"),
    }
    assert site.path_of("/book") == site.path_of("/") == "text/start.md"
    layout = detect_layout(BOOK, BOOK.get)
    assert layout.missing_entries == ("gone.md",)
    assert "SUMMARY.md" in (layout.why_excluded("text/loose.md") or "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("```rust,ignore\n{{#include a.rs:main}}\n```", "```rust\nfn main() {\n    run();\n}\n```"),
        ("```rust\n{{#rustdoc_include a.rs:inner}}\n```", "```rust\n    run();\n```"),
        ("```rust\n# use b;\n#\nlet c; # d\n## e\n  # f\n```", "```rust\nlet c; # d\n# e\n```"),
        ("{{#playground a.rs:1 editable}}", "```rust\nuse a;\n```"),
        ("A {{#include b.md:2:3}}{{#title T}}.", "A two\nthree."),
        ("{{#include b.md::1}} \\{{#include b.md}}", "one {{#include b.md}}"),
        ("{{#include sub/c.md}}", "Sub one\ntwo\nthree\nfour."),
        ("A.\n\n{{#include ../../../etc/passwd}}{{#include gone.md}}", "A."),
    ],
)
def test_mdbook_pages_show_the_files_that_they_name(text, shown):
    files = {**BOOK, "text/start.md": text.encode(), "text/a.rs": SOURCE.encode()}
    files |= {"text/b.md": b"one\ntwo\nthree\nfour", "text/sub/c.md": b"Sub {{#include ../b.md}}."}
    assert page_of(files, "text/start.md").content == shown


@pytest.mark.parametrize(
    ("config", "suffix"),
    [
        ({}, ""),
        ({"docs/book.json": b"{}"}, ".html"),
        ({".gitbook.yaml": b"root: ./docs/\nredirects:\n  old: use/run.md\n"}, ""),
    ],
)
def test_gitbook_shows_the_pages_that_its_summary_names(config, suffix):
    files = {**GITBOOK, **config}
    site = read_site(files, docs_folder="" if config else "docs")
    assert site.kind == "gitbook"
    assert {path: (page.order, page.url, page.title) for path, page in site.pages.items()} == {
        "docs/README.md": (0, "/", "Intro"),
        "docs/use/README.md": (1, "/use", "First"),
        "docs/use/run.md": (2, f"/use/run{suffix}", "Run it"),
    }
    assert site.path_of("/old") == ("docs/use/run.md" if ".gitbook.yaml" in config else None)


def test_gitbook_without_a_summary_shows_every_page():
    files = {"README.md": PAGE, ".gitbook.yaml": b"root: ./\n", "use/run.md": PAGE}
    assert {page.url for page in read_site(files).pages.values()} == {"/", "/use/run"}


def test_gitbook_has_a_folder_for_each_language():
    files = {f"{code}/{path[5:]}": data for code in ("en", "fr") for path, data in GITBOOK.items() if "/" in path}
    files |= {"book.json": b"{}", "LANGS.md": b"* [English](en/)\n* [French](fr/)\n"}
    pages = read_site(files).pages
    assert {(page.url, page.language) for page in pages.values()} >= {("/en", "en"), ("/fr/use/run.html", "fr")}
    assert len(pages) == 6


def test_asciidoc_is_left_out_with_the_reason():
    files = {"antora.yml": b"name: kite\nversion: '2.0'\n", "README.md": PAGE}
    files |= {"modules/ROOT/pages/index.adoc": b"= Kite\n", "modules/ROOT/nav.adoc": b"* xref:index.adoc[]\n"}
    assert list(read_site(files).pages) == ["README.md"]
    assert detect_layout(files, files.get).why_excluded("modules/ROOT/pages/index.adoc") == "AsciiDoc is not read."
    files |= {"modules/ROOT/pages/start.md": PAGE, "modules/api/pages/sub/call.md": PAGE, "modules/api/a.md": PAGE}
    site = read_site(files)
    assert site.kind == "antora"
    assert {page.url for page in site.pages.values()} == {"/kite/2.0/start.html", "/kite/2.0/api/sub/call.html"}
