"""Files that look like pages and are none are listed with their reason, and folders of documentation are read."""

import pytest

from service.retrieval.site.detection import detect_layout
from service.retrieval.site.left_out import MAX_EXCLUDED, excluded
from tests.retrieval.sites import build

HUGO = {
    "hugo.toml": "",
    "layouts/shortcodes/note.html": "",
    "content/_index.md": "",
    "content/vendor/a.md": "",
    "content/build/dist/b.md": "",
}


def laid_out(names, *, docs_folder=""):
    files = dict.fromkeys(names, "") if not isinstance(names, dict) else names
    layout = detect_layout(files, lambda name: files[name].encode() if name in files else None, docs_folder=docs_folder)
    return layout, {one.path: one.reason for one in excluded(layout, files)}


@pytest.mark.parametrize(
    ("files", "docs_folder", "page"),
    [
        (HUGO, "", "content/vendor/a.md"),
        (HUGO, "", "content/build/dist/b.md"),
        (["docs/a.md", "docs/vendor/b.md"], "docs", "docs/vendor/b.md"),
        (["files/en-us/a/index.md", "files/en-us/vendor/index.md"], "", "files/en-us/vendor/index.md"),
    ],
)
def test_folder_of_any_name_among_pages_holds_pages(files, docs_folder, page):
    layout, listed = laid_out(files, docs_folder=docs_folder)
    assert layout.is_page(page)
    assert listed == {}


def test_left_out_folders_take_a_line_each():
    names = ["vendor/x/a.md", "vendor/b.md", "guide/node_modules/y/README.md", "guide/node_modules/z/README.md"]
    names += [".github/a.md", ".github/b.md", "guide/a.md", "LICENSE.md", "logo.svg", ".docsmith/assistant.md"]
    layout, listed = laid_out(names)
    assert layout.kind == "plain"
    assert listed == {
        "vendor/": "Folders of this name hold packages of others.",
        "guide/node_modules/": "Folders of this name hold packages of others.",
        ".github/": "Folders whose names begin with a dot are not read.",
        "LICENSE.md": "Files of this name are for those who work on the repository.",
    }


def test_files_outside_the_pages_folder_are_listed():
    files = {"mkdocs.yml": "exclude_docs: drafts/", "docs/index.md": "", "docs/drafts/a.md": "", "README.md": ""}
    files |= {"src/a/README.md": "", "src/b/README.md": "", "docs/old.rst": "", "theme/page.html": ""}
    _, listed = laid_out(files)
    assert listed == {
        "README.md": "Outside docs, where the site has its pages.",
        "src/": "Outside docs, where the site has its pages.",
        "docs/drafts/a.md": "Excluded by mkdocs.yml.",
        "docs/old.rst": "The site's generator makes no pages of .rst files.",
    }


def test_list_of_left_out_files_is_bounded():
    _, listed = laid_out(
        {**dict.fromkeys((f"docs/{number}.rst" for number in range(520)), ""), "mkdocs.yml": "{}", "docs/a.md": ""}
    )
    assert len(listed) == MAX_EXCLUDED + 1
    assert listed["…/"] == "20 more files and folders are not pages of the site."


def test_index_report_lists_files_that_are_no_pages(tmp_path):
    report = build({"mkdocs.yml": "{}", "docs/a.md": "Text.", "README.md": "Text."}, tmp_path / "index")
    assert [(one.path, one.reason) for one in report.skipped] == [
        ("README.md", "Outside docs, where the site has its pages.")
    ]
