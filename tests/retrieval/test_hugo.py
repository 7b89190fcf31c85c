"""Forms of Hugo's configuration that Debian's version, which builds the samples, does not know, and broken ones."""

import pytest

from service.retrieval.site.detection import detect_layout
from service.retrieval.site.generators.hugo.addresses import fits
from service.retrieval.site.left_out import excluded
from service.retrieval.site.navigation import make_site
from service.retrieval.site.pages import PageReader

PAGE = "Text."


def site_of(files):
    data = {path: text.encode() for path, text in files.items()}
    layout = detect_layout(data, data.get)
    reader = PageReader(layout, lambda path, limit: data[path][:limit] if path in data else None)
    pages = [reader.page(path) for path in sorted(data) if layout.is_page(path)]
    return make_site(layout, pages, data), {one.path: one.reason for one in excluded(layout, data)}


def test_mounts_by_language_give_addresses():
    config = """{"baseURL": "https://x.example/a/", "languages": {"en": {}, "de": {}}, "module": {"mounts": [
    {"source": "texts/en", "target": "content", "sites": {"matrix": {"languages": ["en"]}}},
    {"source": "texts/de", "target": "content", "sites": {"matrix": {"languages": ["de"]}}}]}}"""
    site, _ = site_of({"hugo.json": config, "texts/en/docs/b.md": PAGE, "texts/de/docs/b.md": PAGE})
    assert {path: (page.url, page.language) for path, page in site.pages.items()} == {
        "texts/en/docs/b.md": ("/a/docs/b", "en"),
        "texts/de/docs/b.md": ("/a/de/docs/b", "de"),
    }


@pytest.mark.parametrize("target", ["target", "_target"])
def test_cascade_applies_to_the_pages_that_its_target_fits(target):
    section = f"---\ncascade:\n- {target}:\n    path: '/docs/{{{{a,b}}}}*'\n  build:\n    render: never\n"
    files = {
        "hugo.toml": "",
        "content/docs/_index.md": section.replace("{{", "{").replace("}}", "}") + "- url: /:sections/x-:slug\n---\n",
        "content/docs/a1.md": PAGE,
        "content/docs/b.md": "---\nbuild: {render: always}\n---\nText.",
        "content/docs/c.md": "---\nslug: d\n---\nText.",
    }
    site, listed = site_of(files)
    assert listed == {"content/docs/a1.md": "Shown on content/docs/_index.md."}
    assert site.pages["content/docs/c.md"].url == "/docs/x-d"
    assert site.pages["content/docs/b.md"].url == "/docs/x-b"


def test_slugs_that_are_whole_addresses_are_not_of_hugo():
    files = {"content/_index.md": "---\nslug: /\n---\nHome.", "content/a/b.md": "---\nslug: /c/d\n---\nText."}
    site, _ = site_of(files)
    assert (site.kind, site.pages["content/a/b.md"].url) == ("plain", "/c/d")


def test_menu_entries_without_a_page_are_missing():
    config = "".join(f"[[menus.main]]\npageRef = '{path}'\n" for path in ("/docs/gone", "/docs", "/tags"))
    files = {"hugo.toml": config, "content/docs/a.md": PAGE}
    layout = detect_layout(files, lambda name: files[name].encode() if name in files else None)
    assert layout.missing_entries == ("/docs/gone",)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("/docs/**", "/docs/a/b", True),
        ("/docs/*", "/docs/a/b", False),
        ("/docs/*", "/docs/a", True),
        ("{/news,/blog/**}", "/blog/a", True),
        ("{page,section}", "home", False),
        ("**", "", True),
        ("/d?cs", "/docs", True),
        ("*a" * 100, "a" * 300, True),
        ("{a,b}" * 60, "a" * 60, False),
    ],
)
def test_page_matcher_reads_globs_in_linear_time(pattern, text, expected):
    assert fits(pattern, text) is expected


@pytest.mark.parametrize(
    "config",
    [
        "cascade = 7\nlanguages = [1]\nmodule = 'x'\npermalinks = 3\nmenus = [1]\nparams = 'x'\nbaseURL = 9\n",
        "[languages.en]\ncontentDir = '../../etc'\n",
        "[[module.mounts]]\nsource = '/etc'\ntarget = 'content'\n",
        "[permalinks]\ndocs = '/:sections[x]/:year/:nothing'\n",
        "baseURL = 'https://[::1'\n",
    ],
)
def test_odd_configuration_loses_no_page(config):
    site, _ = site_of({"hugo.toml": config, "content/docs/a.md": PAGE, "content/docs/b.md": "{\n"})
    assert "content/docs/a.md" in site.pages
