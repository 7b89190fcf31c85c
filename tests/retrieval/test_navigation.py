import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.retrieval.site.links import link_answer, resolve_link
from service.retrieval.site.navigation import Site
from tests.fakes.sites import read_site


def site_of(files: dict[str, str], docs_folder: str = "") -> Site:
    return read_site({path: text.encode() for path, text in files.items()}, docs_folder=docs_folder)


def urls(files: dict[str, str], docs_folder: str = "") -> dict[str, str]:
    return {path: page.url for path, page in site_of(files, docs_folder).pages.items()}


PAGE = "Some text.\n"


# Where pages are


def test_plain_files_are_where_they_lie():
    assert urls({"README.md": PAGE, "guide/index.md": PAGE, "guide/a b.markdown": PAGE, "guide/x.mdx": PAGE}) == {
        "README.md": "/",
        "guide/index.md": "/guide",
        "guide/a b.markdown": "/guide/a b",
        "guide/x.mdx": "/guide/x",
    }


def test_a_folder_of_documentation_is_the_root():
    assert urls({"docs/index.md": PAGE, "docs/a.md": PAGE, "src/README.md": PAGE}, "docs") == {
        "docs/index.md": "/",
        "docs/a.md": "/a",
    }


def test_links_show_that_pages_are_served_under_their_folder():
    files = {"docs/index.md": "See [a](/docs/a) and [b](/docs/b/c).", "docs/a.md": PAGE, "docs/b/c.md": PAGE}
    assert urls(files, "docs") == {"docs/index.md": "/docs", "docs/a.md": "/docs/a", "docs/b/c.md": "/docs/b/c"}


def test_absolute_slug_is_the_address():
    assert urls({"content/a/file.md": "---\nslug: /some/where\n---\nText."}) == {"content/a/file.md": "/some/where"}


def test_files_that_readers_never_see_are_no_pages():
    files = dict.fromkeys(
        [
            "a.md",
            ".github/x.md",
            "node_modules/p/README.md",
            ".vale/y.md",
            "AGENTS.md",
            "LICENSE.md",
            "main.py",
            "x.md.txt",
        ],
        PAGE,
    )
    files |= {"draft.md": "---\ndraft: true\n---\nText.", "hidden.md": "---\nhidden: true\n---\nText."}
    assert set(urls(files)) == {"a.md"}


def test_mintlify():
    docs = {
        "navigation": {
            "languages": [
                {
                    "language": "en",
                    "tabs": [{"tab": "Docs", "groups": [{"group": "Start", "pages": ["index", "guide/quick"]}]}],
                },
                {"language": "fr", "groups": [{"group": "Départ", "pages": ["fr/index"]}]},
            ]
        },
        "redirects": [{"source": "/old", "destination": "/guide/quick"}],
    }
    site = site_of(
        {
            "docs.json": json.dumps(docs),
            "index.mdx": PAGE,
            "guide/quick.mdx": "---\ntitle: Quick\n---\n\nText.",
            "fr/index.mdx": PAGE,
            "snippets/part.mdx": PAGE,
            "README.md": PAGE,
            "drafts/a.mdx": PAGE,
            "guide/notes.draft.mdx": PAGE,
            ".mintignore": "# ours\n/drafts/\n*.draft.mdx\n",
        }
    )
    assert site.kind == "mintlify"
    assert {path: page.url for path, page in site.pages.items()} == {
        "index.mdx": "/",
        "guide/quick.mdx": "/guide/quick",
        "fr/index.mdx": "/fr",
    }
    assert [site.pages[path].language for path in ("index.mdx", "guide/quick.mdx", "fr/index.mdx")] == [
        "en",
        "en",
        "fr",
    ]
    assert [site.pages[path].order for path in ("index.mdx", "guide/quick.mdx", "fr/index.mdx")] == [0, 1, 2]
    assert site.path_of("/old") == "guide/quick.mdx"


def test_a_changelog_that_the_navigation_shows_is_a_page():
    docs = {"navigation": {"pages": ["index", "changelog"]}}
    files = {"docs.json": json.dumps(docs), "index.mdx": PAGE, "changelog.mdx": PAGE, "CONTRIBUTING.md": PAGE}
    assert set(site_of(files).pages) == {"index.mdx", "changelog.mdx"}


def test_versions_of_mintlify():
    docs = {"navigation": {"versions": [{"version": "v2", "pages": ["a"]}, {"version": "v1", "pages": ["v1/a"]}]}}
    pages = site_of({"docs/docs.json": json.dumps(docs), "docs/a.mdx": PAGE, "docs/v1/a.mdx": PAGE}, "docs").pages
    assert {page.url: (page.version, page.is_default) for page in pages.values()} == {
        "/a": ("v2", True),
        "/v1/a": ("v1", False),
    }


def test_mintlify_navigation_is_split_into_files_and_hides_parts():
    docs = {
        "navigation": {
            "languages": [
                {
                    "language": "en",
                    "tabs": [
                        {"tab": "Guide", "groups": [{"group": "A", "root": "a/index", "pages": ["a/b", "gone"]}]},
                        {"tab": "Old", "hidden": True, "pages": ["old"]},
                        {"tab": "Help", "hidden": True, "searchable": True, "pages": ["help"]},
                        {"tab": "API", "openapi": "openapi.json", "pages": ["GET /users"]},
                    ],
                },
                {"$ref": "./nav/de.json"},
            ]
        },
        "redirects": {"$ref": "./redirects.json"},
    }
    site = site_of(
        {
            "docs.json": json.dumps(docs),
            "nav/de.json": json.dumps({"language": "de", "pages": [{"$ref": "./more.json"}]}),
            "nav/more.json": json.dumps({"group": "M", "pages": ["de/a"]}),
            "redirects.json": json.dumps([{"source": "/before", "destination": "/a/b"}]),
            **dict.fromkeys(["a/index.mdx", "a/b.mdx", "old.mdx", "help.mdx", "de/a.mdx"], PAGE),
        }
    )
    assert {path: (page.order, page.language, page.is_default) for path, page in site.pages.items()} == {
        "a/index.mdx": (0, "en", True),
        "a/b.mdx": (1, "en", True),
        "help.mdx": (-1, "", True),
        "de/a.mdx": (2, "de", False),
    }
    assert site.missing == ("gone",)
    assert site.path_of("/before") == "a/b.mdx"


def test_docusaurus():
    config = "export default { presets: [['classic', { docs: { routeBasePath: 'manual' } }]] };"
    site = site_of(
        {
            "website/docusaurus.config.ts": config,
            "website/docs/intro.md": "---\nsidebar_label: Hello\n---\n\nText.",
            "website/docs/01-guide/02-first-steps.md": PAGE,
            "website/docs/01-guide/index.md": PAGE,
            "website/docs/api/api.md": PAGE,
            "website/docs/x.md": "---\nid: other\n---\n\nText.",
            "website/docs/y.md": "---\nslug: /top\n---\n\nText.",
            "website/docs/deep/z.md": "---\nslug: beside\n---\n\nText.",
            "website/docs/_part.mdx": PAGE,
            "README.md": PAGE,
        }
    )
    assert site.kind == "docusaurus"
    assert {path.removeprefix("website/docs/"): page.url for path, page in site.pages.items()} == {
        "intro.md": "/manual/intro",
        "01-guide/02-first-steps.md": "/manual/guide/first-steps",
        "01-guide/index.md": "/manual/guide",
        "api/api.md": "/manual/api",
        "x.md": "/manual/other",
        "y.md": "/manual/top",
        "deep/z.md": "/manual/deep/beside",
    }
    assert site.pages["website/docs/intro.md"].title == "Hello"
    assert site.pages["website/docs/01-guide/02-first-steps.md"].title == "First steps"


def test_versions_and_languages_of_docusaurus():
    site = site_of(
        {
            "docusaurus.config.js": "module.exports = {}",
            "versions.json": '["2.0", "1.0"]',
            "docs/a.md": PAGE,
            "versioned_docs/version-2.0/a.md": PAGE,
            "versioned_docs/version-1.0/a.md": PAGE,
            "i18n/fr/docusaurus-plugin-content-docs/version-2.0/a.md": PAGE,
        }
    )
    assert {page.url: (page.version, page.language, page.is_default) for page in site.pages.values()} == {
        "/docs/next/a": ("next", "", False),
        "/docs/a": ("2.0", "", True),
        "/docs/1.0/a": ("1.0", "", False),
        "/fr/docs/a": ("2.0", "fr", True),
    }


def test_mkdocs():
    config = (
        "site_name: X\ntheme: !ENV [THEME, material]\nplugins:\n  - x: !!python/name:a.b\n"
        "nav:\n  - Home: index.md\n  - Guide:\n      - First steps: guide/first.md\n      - guide/second.md\n"
    )
    site = site_of(
        {
            "mkdocs.yml": config,
            "docs/index.md": PAGE,
            "docs/guide/first.md": PAGE,
            "docs/guide/second.md": PAGE,
            "README.md": PAGE,
        }
    )
    assert site.kind == "mkdocs"
    assert {page.url: (page.title, page.order) for page in site.pages.values()} == {
        "/": ("Home", 0),
        "/guide/first": ("First steps", 1),
        "/guide/second": ("Second", 2),
    }


def test_hugo():
    site = site_of(
        {
            "hugo.toml": "defaultContentLanguage = 'en'\n",
            "content/en/_index.md": PAGE,
            "content/en/docs/_index.md": PAGE,
            "content/en/docs/Some Page.md": PAGE,
            "content/en/docs/leaf/index.md": "---\naliases: [/old/leaf/]\n---\nText.",
            "content/en/docs/a.md": "---\nslug: b\n---\nText.",
            "content/en/docs/c.md": "---\nurl: /elsewhere/\n---\nText.",
            "content/de/docs/_index.md": PAGE,
            "content/en/docs/gone.md": "---\n_build:\n  render: never\n---\nText.",
            "layouts/x.md": PAGE,
        }
    )
    assert site.kind == "hugo"
    assert {path.removeprefix("content/"): page.url for path, page in site.pages.items()} == {
        "en/_index.md": "/",
        "en/docs/_index.md": "/docs",
        "en/docs/Some Page.md": "/docs/some-page",
        "en/docs/leaf/index.md": "/docs/leaf",
        "en/docs/a.md": "/docs/b",
        "en/docs/c.md": "/elsewhere",
        "de/docs/_index.md": "/de/docs",
    }
    assert site.path_of("/old/leaf") == "content/en/docs/leaf/index.md"


def test_mdn():
    files = {
        "files/en-us/web/api/index.md": "---\ntitle: Web APIs\nslug: Web/API\n---\n\nText.",
        "files/en-us/web/api/fetch/index.md": "---\ntitle: Fetch\nslug: Web/API/Fetch\n---\n\nText.",
    }
    assert list(urls(files).values()) == ["/en-US/docs/Web/API", "/en-US/docs/Web/API/Fetch"]


@pytest.mark.parametrize(
    "broken", ["{", "[]", "\x00", '{"navigation": 7, "redirects": 7, "name": "x"}', "[" * 100_000, "a: [b"]
)
@pytest.mark.parametrize(
    "name", ["docs.json", "mkdocs.yml", "docusaurus.config.js", "hugo.toml", "sidebars.js", "mint.json"]
)
def test_a_broken_configuration_loses_no_page(name, broken):
    site = site_of({name: broken, "docs/a.md": PAGE, "docs/b.md": PAGE, "content/c.md": PAGE})
    assert site.pages


# What links lead to


@pytest.fixture(scope="module")
def site() -> Site:
    return site_of(
        {
            "docs.json": json.dumps({"navigation": {"pages": ["index", "guide/a"]}}),
            "index.mdx": "## Top\n\nText.",
            "guide/index.mdx": PAGE,
            "guide/a.mdx": "## What's *new*?\n\nText.\n\n## Custom {#mine}\n\nText.",
            "guide/b.mdx": PAGE,
            "api/get thing.mdx": PAGE,
            "images/x.png": "",
        }
    )


@pytest.mark.parametrize(
    ("href", "target"),
    [
        ("/guide/a", "guide/a.mdx"),
        ("/guide/a/", "guide/a.mdx"),
        ("/Guide/A", "guide/a.mdx"),
        ("/guide/a.mdx", "guide/a.mdx"),
        ("/guide/a.html", "guide/a.mdx"),
        ("/guide/a?x=1#whats-new", "guide/a.mdx"),
        ("/guide", "guide/index.mdx"),
        ("/guide/index", "guide/index.mdx"),
        ("/", "index.mdx"),
        ("a", "guide/a.mdx"),
        ("a.mdx", "guide/a.mdx"),
        ("./a", "guide/a.mdx"),
        ("../index", "index.mdx"),
        ("..", "index.mdx"),
        ("#here", "guide/b.mdx"),
        ("../api/get%20thing", "api/get thing.mdx"),
        ("../guide/../guide/a", "guide/a.mdx"),
        ("nowhere", None),
        ("/guide/nowhere.mdx", None),
        ("../../../../etc/passwd", None),
        ("https://example.com/guide/a", None),
        ("//example.com/guide/a", None),
        ("mailto:a@example.com", None),
        ("../images/x.png", None),
    ],
)
def test_a_link_leads_to_a_page(site, href, target):
    assert resolve_link("guide/b.mdx", href, site) == target


def test_a_link_without_a_suffix_is_read_from_the_url_too():
    site = site_of({"a/index.md": "[b](b)\n", "a/b.md": PAGE, "c.md": "[a](a/b)"})
    assert resolve_link("a/index.md", "b", site) == "a/b.md"
    assert resolve_link("c.md", "a/b", site) == "a/b.md"
    assert resolve_link("a/b.md", "../../c", site) == "c.md"  # as from /a/b/


@pytest.mark.parametrize(
    ("href", "state", "reason"),
    [
        ("a", "sound", ""),
        ("https://example.com#x", "sound", ""),
        ("../images/x.png", "sound", ""),
        ("/static/elsewhere.pdf", "unknown", "the repository does not have the file"),
        ("{{< ref x >}}", "unknown", "a program makes its target"),
        ("gone", "unknown", "how the site reads links without a suffix is not known"),
        ("gone.mdx#x", "broken", "no page is at gone.mdx"),
        ("/guide/gone", "broken", "no page is at /guide/gone"),
        ("/guide/gone.mdx", "broken", "no page is at /guide/gone.mdx"),
    ],
)
def test_link_is_sound_broken_or_unknown(site, href, state, reason):
    answer = link_answer("guide/b.mdx", href, site)
    assert (answer.state, answer.reason) == (state, reason)


SEGMENT = st.text(alphabet="ab.-_ %#?/é\\", max_size=12)


@given(SEGMENT, SEGMENT)
def test_no_link_raises(site, one, other):
    for href in (one, f"{one}/{other}", f"/{one}", f"../{one}#{other}"):
        target = resolve_link("guide/b.mdx", href, site)
        assert target is None or target in site.pages
        assert link_answer("guide/b.mdx", href, site).page == target


NAMES = st.lists(
    st.sampled_from(["a", "b", "docs", "content", "en", "index", "README", "_index", "1-x", "v1.0"]),
    min_size=1,
    max_size=4,
)


@given(st.lists(NAMES.map(lambda parts: "/".join(parts) + ".md"), min_size=1, max_size=6, unique=True),
       st.sampled_from(["", "mkdocs.yml", "hugo.toml", "docs.json", "docusaurus.config.js"]))  # fmt: skip
def test_every_page_has_a_url_that_leads_to_a_page(paths, config):
    files = {path: f"# {path}\n\nText.\n".encode() for path in paths} | ({config: b"{}"} if config else {})
    site = read_site(files)
    for path, page in site.pages.items():
        assert page.url.startswith("/")
        assert page.url == "/" or not page.url.endswith(("/", ".md"))
        found = site.path_of(page.url)
        assert found is not None
        assert site.pages[found].url.casefold() == page.url.casefold()
        assert page.title, path
