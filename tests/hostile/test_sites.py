"""What a site is laid out by, and where its links lead, is found out in time proportional to the site."""

import json

import pytest

from service.agent.checks import navigation
from service.retrieval.site.links import resolve_link
from service.retrieval.site.navigation import detect_layout
from tests.fakes.sites import read_site
from tests.hostile.growth import assert_linear, seconds

pytestmark = pytest.mark.slow

PAGE = {"a.md": "# A\n\n[b](b.md)", "docs/a.md": "x", "index.rst": "A\n=\n", "content/_index.md": "x"}
UNITS = [
    "[",
    "{",
    '"',
    '\\"',
    " ",
    "\n",
    "a: b\n",
    "- a\n",
    "a",
    "'",
    "# ",
    "//",
    "a.",
    "base_path: ",
    "slugify:!!python/",
]
FILES = {
    "docs.json": ['{"navigation": ', '["a", ', '{"pages": '],
    "mkdocs.yml": ["site_name: a\nnav:\n", "- a.md\n", "- a: b.md\n", "base_path: ", "slugify:!!python/", "[", "{a: "],
    "docusaurus.config.js": ["", "routeBasePath: 'a', path: 'b',\n", "// a", "'a' ", "path: '", "routeBasePath: "],
    "sidebars.js": ["", "'a', ", "'", "//"],
    "hugo.toml": ["", "[a]\n", "a.", "a = [", "autoHeadingIDType = ", "[[a]]\n", 'a = "'],
    "conf.py": ["project = 'a'\n", "exclude_patterns = [", "extensions = []\n", "'a', "],
    "versions.json": ["", "[", '"a", '],
    "openapi.yaml": ["openapi: 3.0.0\n", "a: b\n", "[", "{a: "],
    ".mintignore": ["", "*a", "**/", "a\n", "?"],
}
"""By name: how it begins, and what follows again and again."""


@pytest.mark.parametrize("name", FILES)
def test_configuration_is_read_in_linear_time(name):
    begins, *units = FILES[name]
    others = {**PAGE, **({"docs.json": '{"navigation": []}'} if name == ".mintignore" else {})}

    def detect(text):
        files = {**{path: page.encode() for path, page in others.items()}, name: text.encode()}
        layout = detect_layout(files, files.get)
        for path in files:
            layout.is_page(path)

    for unit in [*units, *UNITS]:
        assert_linear(
            detect, lambda size, unit=unit: begins + unit * (size // len(unit)), f"{name} {unit!r}", largest=1 << 13
        )


def test_toctree_is_read_in_linear_time():
    for unit in (" ", "<", "a <", "   a\n", "a <b> ", ".. toctree::\n\n   "):
        files = {"conf.py": b"project = 'a'\n"}

        def detect(text, files=files):
            files["index.rst"] = text.encode()
            assert detect_layout(files, files.get).kind == "sphinx"

        assert_linear(
            detect,
            lambda size, unit=unit: ".. toctree::\n\n   " + unit * (size // len(unit)),
            repr(unit),
            largest=1 << 13,
        )


def test_paths_are_matched_in_linear_time():
    for part in ("content/", "files/en/", "_index", "index.md/", "a/", "docs/", "i18n/"):

        def detect(path):
            detect_layout({path: b"", "a.md": b"x"}, lambda _: b"")

        assert_linear(detect, lambda size, part=part: part * (size // len(part)) + "x", part, largest=1 << 13)


def test_many_configurations_and_pages_are_read_in_linear_time():
    def detect(size):
        files = {
            f"d{number}/{name}": b"{}" for number in range(size // 10) for name in ("docs.json", "a.md", "conf.py")
        }
        detect_layout(files, files.get)

    assert_linear(detect, lambda size: size, "configurations", largest=1 << 13)


def test_cascades_of_hugo_reach_pages_in_linear_time():
    glob = "{" + ",".join("abcdefghij") + "}" + "*a" * 60

    def detect(size):
        many = range(size // 40)
        cascades = "".join(f'[[cascade]]\nurl = "/x"\n[cascade.target]\npath = "{glob}{number}"\n' for number in many)
        files = {"hugo.toml": cascades.encode()}
        for number in many:
            files[f"content/s{number}/_index.md"] = b"---\ntitle: x\ncascade:\n  draft: false\n---\n"
            files[f"content/s{number}/{'a' * 60}.md"] = b"x"
        detect_layout(files, files.get)

    assert_linear(detect, lambda size: size, "cascades", largest=1 << 13)


def test_links_are_resolved_in_linear_time():
    site = read_site({"a.md": b"# A", "b/c.md": b"# C"})
    for unit in ("../", "./", "a/", "%2e", "?", "#", ".md", "index/", " "):
        assert_linear(
            lambda href: resolve_link("b/c.md", href, site),
            lambda size, unit=unit: unit * (size // len(unit)) + "x",
            repr(unit),
            largest=1 << 15,
        )


@pytest.mark.parametrize("name", ["docs.json", "mkdocs.yml", "sidebars.json"])
def test_navigation_entries_are_found_in_linear_time(name):
    def text(size):
        names = [f"p{number}" for number in range(size // 20)]
        if name == "mkdocs.yml":
            return "nav:\n" + "".join(f"- a: {one}.md\n" for one in [*names, *reversed(names)])
        return json.dumps({"navigation": [*names, *reversed(names)], "a": [*names, *reversed(names)]}, indent=1)

    assert_linear(lambda size: navigation.entries(name, text(size)), lambda size: size, name, largest=1 << 14)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs.json", '{"navigation": ' + "[" * 100_000 + "]" * 100_000 + "}"),
        ("docs.json", '{"navigation": ' + '{"pages": [' * 50_000),
        ("mkdocs.yml", "nav: " + "[" * 100_000),
        ("mkdocs.yml", "nav: &a [x]\n" + "".join(f"a{n}: &b{n} [*a, *a]\n" for n in range(9))),
        ("hugo.toml", "a = " + "[" * 100_000 + "]" * 100_000),
        ("hugo.toml", ".".join("a" * 100_000) + " = 1"),
        ("versions.json", "[" * 100_000),
        (".docsmith/website.json", '{"a": ' * 100_000),
    ],
)
def test_deep_configuration_is_read_or_passed_over(name, text):
    files = {**{path: page.encode() for path, page in PAGE.items()}, name: text.encode()}
    assert seconds(lambda files: detect_layout(files, files.get), files) < 4
    assert seconds(lambda text: navigation.entries(name, text), text) < 4
