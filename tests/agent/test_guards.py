"""The configuration of a site generator: its navigation can be written, what it runs cannot."""

import pytest

from service.agent.guards.configurations import check_of
from service.agent.guards.refused import Refused

MKDOCS = """site_name: Guide
theme:
  name: material
plugins: &all
  - search
markdown_extensions:
  - toc:
      slugify: !!python/name:pymdownx.slugs.uslugify
nav:
  - Home: index.md
  - Guide:
      - a.md
"""
SIDEBARS = """// Docs
const more = require('./more');

module.exports = {
  docs: [
    'index',
    {type: 'category', label: 'Guide', link: {type: 'doc', id: 'guide'}, items: ['a', 'b', ...more]},
    {Reference: ['c', 'd']},
    ...more.map((one) => `${one}/x`),
    ['sh', 'not a page'].join('/'),
  ],
};
"""
VITEPRESS = """import { defineConfig } from 'vitepress'

export default defineConfig({
  title: 'Guide',
  head: [['script', { src: '/x.js' }]],
  themeConfig: {
    nav: [{ text: 'Guide', link: '/guide/' }],
    sidebar: { '/guide/': sidebarGuide() },
  },
})

function sidebarGuide(): DefaultTheme.SidebarItem[] {
  return [
    {
      text: 'Start',
      items: [
        { text: 'Why', link: 'why' },
        { text: `Version ${1 + 1}`, link: 'two' },
      ],
    },
  ]
}
"""
HUGO = 'baseURL = "https://x.example"\n[menus]\n[[menus.main]]\nname = "Home"\npageRef = "/"\n[module]\n'
DOCS_JSON = '{"name": "X", "navigation": {"pages": ["a"]}, "integrations": {"gtm": {"tagId": "1"}}}\n'


def refusal(path, before, after, there=()):
    check = check_of(path, lambda name: name in there)
    if check is None:
        return None
    try:
        check(before, after)
    except Refused as refused:
        return str(refused)
    return None


@pytest.mark.parametrize(
    ("path", "before", "old", "new"),
    [
        ("mkdocs.yml", MKDOCS, "      - a.md", "      - a.md\n      - New page: b.md"),
        ("mkdocs.yml", MKDOCS, "Home", "Start"),
        ("mkdocs.yml", MKDOCS, "Home", '"Note: at home"'),
        ("mkdocs.yml", MKDOCS, "site_name: Guide", "site_name: Handbook # renamed"),
        ("site/sidebars.js", SIDEBARS, "'index',", "'index', 'new/page',"),
        ("site/sidebars.js", SIDEBARS, "'a', 'b'", "'a', {type: 'doc', id: 'new', label: \"It's new\"}, 'b'"),
        ("site/sidebars.js", SIDEBARS, "['c', 'd']", "['c', 'd', 'e'] /* more */"),
        ("sidebars.ts", SIDEBARS, "{Reference: ['c', 'd']},", ""),
        ("docs/.vitepress/config.mts", VITEPRESS, "link: 'why' },", "link: 'why' },\n{ text: 'New', link: 'new' },"),
        ("docs/.vitepress/config.ts", VITEPRESS, "'/guide/': sidebarGuide()",
         "'/guide/': sidebarGuide(), '/api/': [{ text: 'API', items: [{ text: 'A', link: '/api/a' }] }]"),
        ("docs/.vitepress/config.ts", VITEPRESS, "nav: [", "nav: [{ text: 'API', link: '/api/' }, "),
        ("hugo.toml", HUGO, 'name = "Home"', 'name = "Start"'),
        ("docs.json", DOCS_JSON, '["a"]', '["a", "b"]'),
        ("config/_default/menus.en.yaml", "main:\n- name: A\n", "name: A", "name: B"),
    ],
)  # fmt: skip
def test_navigation_can_be_changed(path, before, old, new):
    assert old in before
    assert refusal(path, before, before.replace(old, new)) is None


@pytest.mark.parametrize(
    ("path", "before", "old", "new"),
    [
        ("mkdocs.yml", MKDOCS, "  - search", "  - search\n  - exec"),
        ("mkdocs.yml", MKDOCS, "site_name: Guide", "site_name: Guide\nhooks: [x.py]"),
        ("mkdocs.yml", MKDOCS, "name:pymdownx", "name:os"),
        ("mkdocs.yml", MKDOCS, "!!python/name:pymdownx.slugs.uslugify", "pymdownx.slugs.uslugify"),
        ("mkdocs.yml", MKDOCS, "a.md", "!!python/object/apply:os.system [x]"),
        ("mkdocs.yml", MKDOCS, "a.md", "*all"),
        ("mkdocs.yml", MKDOCS, "Home: index.md", "Home: javascript:alert(1)"),
        ("mkdocs.yml", MKDOCS, "Home:", "<img src=x onerror=alert(1)>:"),
        ("mkdocs.yml", MKDOCS, "nav:", "---\nnav:"),
        ("mkdocs.yml", MKDOCS, "nav:", "!!python/name:os.system nav:"),
        ("mkdocs.yml", MKDOCS, "nav:", "nav: [\n"),
        ("mkdocs.yml", MKDOCS, MKDOCS, "- a\n"),
        ("sidebars.js", SIDEBARS, "./more", "./evil"),
        ("sidebars.js", SIDEBARS, "'index',", "'index', steal(),"),
        ("sidebars.js", SIDEBARS, "'index',", "'index', `${steal()}`,"),
        ("sidebars.js", SIDEBARS, "'index',", "{type: 'html', value: 'x'},"),
        ("sidebars.js", SIDEBARS, "'index',", "{type: 'link', label: 'x', href: 'javascript:alert(1)'},"),
        ("sidebars.js", SIDEBARS, "'index',", "{type: 'link', label: 'x', href: 'java script:alert( 1)'},"),
        ("sidebars.js", SIDEBARS, "'index',", "{type: 'doc', id: 'x', label: '<b>'},"),
        ("sidebars.js", SIDEBARS, "'index',", "{type: 'doc', id: 'x', label: '\\x3cb>'},"),
        ("sidebars.js", SIDEBARS, "// Docs\n", "// Docs\u2028steal()\n"),
        ("sidebars.js", SIDEBARS, "'not a page'", "'-c'"),
        ("sidebars.js", SIDEBARS, "'index',", "'index', {__proto__: ['x']},"),
        ("sidebars.js", SIDEBARS, "};\n", "};\nsteal();\n"),
        ("sidebars.js", SIDEBARS, "'index',", "'index', ['x'][0],"),
        ("docs/.vitepress/config.ts", VITEPRESS, "'/x.js'", "'/y.js'"),
        ("docs/.vitepress/config.ts", VITEPRESS, "title: 'Guide'", "title: 'Handbook'"),
        ("docs/.vitepress/config.ts", VITEPRESS, "1 + 1", "steal()"),
        ("docs/.vitepress/config.ts", VITEPRESS, "text: 'Why'", "text: '<img src=x onerror=y>'"),
        ("docs/.vitepress/config.ts", VITEPRESS, "link: 'why'", "link: 'why', get x() { steal() }"),
        ("docs/.vitepress/config.ts", VITEPRESS, "head: [", "head: [['script', {}, 'x'], "),
        ("hugo.toml", HUGO, "[module]\n", '[module]\n[[module.imports]]\npath = "x"\n'),
        ("config/_default/module.toml", "", "", 'imports = ["x"]\n'),
        ("docs.json", DOCS_JSON, '"1"', '"2"'),
        ("MkDocs.yml", MKDOCS, "- search", "- exec"),
        ("_config.yml", "title: X\nplugins: []\n", "[]", "[x]"),
        ("book.toml", "[book]\n", "[book]\n", '[book]\n[preprocessor.x]\ncommand = "x"\n'),
    ],
)  # fmt: skip
def test_what_a_generator_runs_is_refused(path, before, old, new):
    assert old in before
    assert refusal(path, before, before.replace(old, new, 1) if old else new, there=("content",))


def test_configuration_is_neither_made_nor_removed():
    assert refusal("sidebars.js", None, "module.exports = {}\n")
    assert refusal("sidebars.js", SIDEBARS, None)
    assert refusal("mkdocs.yml", MKDOCS, None)
    assert refusal("mkdocs.yml", None, MKDOCS)
    assert refusal("mkdocs.yml", None, "nav:\n  - index.md\n") is None


@pytest.mark.parametrize(
    "text",
    [
        "x = a++ / b /'/",
        "f(x) /'/ 2",
        "const a = 'x\ny'",
        "const a = `${'",
        "const a = [(])",
        "const a = /[/",
        "[" * 500,
        "`${" * 500,
        "\\u0061",
    ],
)
def test_program_that_cannot_be_read_surely_is_refused(text):
    assert "it is a program, and it" in (refusal("sidebars.js", text, text + "\n") or "")


def test_config_of_another_program_is_not_guarded():
    assert check_of("docs/config.toml", lambda name: False) is None
    assert check_of("docs/config.toml", lambda name: name == "docs/layouts") is not None
