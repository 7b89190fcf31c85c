import pytest

from scripts.oracle.compare import differences, read_sample, samples, written
from service.retrieval.site.navigation import detect_layout
from tests.fakes.sites import read_site
from tests.retrieval.formats import page_of


@pytest.mark.parametrize("name", samples("vitepress"))
def test_sample_is_read_as_vitepress_built_it(name):
    assert list(differences(written("vitepress", name), read_sample("vitepress", name))) == []


PAGE = b"# A page\n\nText.\n"
CONFIG = """
import { defineConfig } from 'vitepress'
import { guide } from './sidebar'

export default defineConfig({
  title: 'Site', base: '/docs/', srcDir: './pages',
  srcExclude: ['**/README.md', 'parts/**', '{draft,old}.md'],
  rewrites: { 'start/first.md': 'welcome.md', 'packages/:pkg/src/:name.md': ':pkg/:name.md' },
  locales: { root: { label: 'English', lang: 'en-US' }, zh: { label: 'C', lang: 'zh-CN', themeConfig: {
    sidebar: [{ text: 'Z', link: '/zh/guide' }] } } },
  themeConfig: {
    nav: [{ text: 'Team', link: '/team' }, { text: 'More', items: [{ text: 'Off', link: 'https://x.org/' }] }],
    sidebar: {
      '/guide/': { base: '/guide/', items: guide() },
      '/': [{ text: 'Start', items: [{ text: 'Hi', link: '/welcome' }, { text: 'Core', link: '/core/api.html' }] }],
    },
  },
})
"""
SIDEBAR = """
import type { DefaultTheme } from 'vitepress'
export function guide(): DefaultTheme.SidebarItem[] {
  return [{ text: 'Guide', collapsed: false, items: [{ text: 'Deep', link: 'deep/' }, { text: 'One', link: 'one' }] }]
}
"""
SITE = {
    "w/.vitepress/config.ts": CONFIG.encode(),
    "w/.vitepress/sidebar.ts": SIDEBAR.encode(),
    **{
        f"w/pages/{name}.md": PAGE
        for name in (
            "index", "team", "guide/index", "guide/one", "guide/deep/index", "start/first", "packages/core/src/api",
            "zh/index", "zh/guide", "parts/a", "README", "guide/README", "draft", "blog/[slug]", "dist/x",
        )
    },
    "README.md": PAGE,
    "w/tests/a.md": PAGE,
}  # fmt: skip


def site(**changes: str):
    files = dict(SITE)
    for old, new in changes.items():
        files["w/.vitepress/config.ts"] = files["w/.vitepress/config.ts"].replace(old.encode(), new.encode())
    return read_site(files)


def test_vitepress_pages_are_where_its_configuration_says():
    found = site()
    assert found.kind == "vitepress"
    assert {path.removeprefix("w/pages/"): page.url for path, page in found.pages.items()} == {
        "index.md": "/docs",
        "team.md": "/docs/team.html",
        "guide/index.md": "/docs/guide",
        "guide/one.md": "/docs/guide/one.html",
        "guide/deep/index.md": "/docs/guide/deep",
        "start/first.md": "/docs/welcome.html",
        "packages/core/src/api.md": "/docs/core/api.html",
        "zh/index.md": "/docs/zh",
        "zh/guide.md": "/docs/zh/guide.html",
    }
    assert [page.language for page in found.pages.values() if page.url.startswith("/docs/zh")] == ["zh-CN", "zh-CN"]


def test_vitepress_sidebars_give_the_order():
    pages = site().pages.values()
    ordered = sorted((page for page in pages if page.order >= 0), key=lambda page: page.order)
    assert [page.url.removeprefix("/docs") for page in ordered] == [
        "", "/guide/deep", "/guide/one.html", "/welcome.html", "/core/api.html", "/team.html", "/zh/guide.html",
    ]  # fmt: skip


def test_vitepress_addresses_may_have_no_suffix():
    files = {**SITE, "w/.vitepress/config.ts": CONFIG.replace("srcDir:", "cleanUrls: true, srcDir:").encode()}
    found = read_site(files)
    assert found.pages["w/pages/guide/one.md"].url == "/docs/guide/one"
    assert found.path_of("/guide/one") == found.path_of("/docs/guide/one") == "w/pages/guide/one.md"


def test_vitepress_menus_may_name_pages_that_are_not_there():
    config = b"""
const base = { cleanUrls: true, themeConfig: { nav: [{ text: 'N', link: '/n' }] } }
const more = ['/gone#x', '/b/any', '/a.pdf', '/demo/', 'https://x.org/y'].map((link) => ({ text: 'T', link }))
export default { extends: base, themeConfig: { nav: more } }
"""
    files = {".vitepress/config.ts": config, "n.md": PAGE, "b/[id].md": PAGE, "public/demo/index.html": PAGE}
    layout = detect_layout(files, files.get)
    assert (layout.html_suffix, list(layout.entries), layout.missing_entries) == (False, ["n.md"], ("/gone#x",))


def test_examples_beside_the_documentation_are_not_the_site():
    files = {"README.md": PAGE, "guide.md": PAGE, "examples/a/.vitepress/config.ts": b"export default {}"}
    files |= {"examples/a/x.md": PAGE, "playground/mkdocs.yml": b"nav:", "playground/docs/y.md": PAGE}
    assert read_site(files).kind == "plain"
    assert read_site(files, docs_folder="examples/a").kind == "vitepress"
    assert read_site({**files, "examples/a/b/z.md": PAGE}, docs_folder="examples/a/b").kind == "vitepress"


def test_vitepress_may_have_its_configuration_in_a_folder():
    files = {
        "docs/.vitepress/config/index.mts": b"import { en } from './en.js'\nexport default { locales: { root: en } }",
        "docs/.vitepress/config/en.mts": b"export const en = { themeConfig: { sidebar: [{ text: 'B', link: '/b' }] } }",
        "docs/.vitepress/config.js": b"export default { srcDir: 'gone' }",
        "docs/a.md": PAGE,
        "docs/b.md": PAGE,
        "docs/c.mdx": PAGE,
    }
    pages = read_site(files, docs_folder="docs").pages
    assert {page.url: page.order for page in pages.values()} == {"/a.html": -1, "/b.html": 0}


PARTS = {
    "docs/.vitepress/config.js": "export default {}",
    "docs/parts/a.md": "---\ntitle: P\n---\nFirst.\n\n## Second\n\nThird.\n\n<!-- @include: ./sub/b.md -->",
    "docs/parts/sub/b.md": "Deep.\n<!-- #region one -->\nOnly one.\n<!-- #endregion one -->",
    "docs/parts/c.md": "## One\n\nNo.\n\n## Two `x`\n\nUnder two.\n\n### Deeper\n\nMore.\n\n# Three {#own}\n"
    "\nUnder three.\n",
    "src/run.ts": "import a\n\n  // #region main\n  run(`a`)\n    deep() // [!code focus]\n  // #endregion main\n",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A.\n\n<!--@include: ../parts/a.md-->\n", "A.\n\nFirst.\n\n## Second\n\nThird.\n\nDeep.\n\nOnly one."),
        ("<!-- @include: @/parts/a.md{4,6} -->", "First.\n\n## Second"),
        ("A.\n<!--@include: ../parts/sub/b.md#one-->", "A.\nOnly one."),
        ("<!--@include: ../parts/c.md#two-x-->", "Under two.\n\n### Deeper\n\nMore."),
        ("<!--@include: ../parts/c.md#own-->", "Under three."),
        ("A.\n<!--@include: ./gone.md-->", "A."),
        ("<<< @/../src/run.ts#main{1 ts:line-numbers} [Run it]", "**Run it**\n```ts\nrun(`a`)\n  deep()\n```"),
        ("- a\n  <<< ../../src/run.ts#main", "- a\n\n```ts\nrun(`a`)\n  deep()\n```"),
        ("A.\n\n<<< @/gone.ts\n", "A."),
        ("A.\n\n<<< @/../../../etc/passwd\n", "A."),
        ("```md\n<<< @/x\n```", "```md\n<<< @/x\n```"),
        ("Now.\n<!--@include: ./g/self.md-->", "Now."),
    ],
)
def test_files_that_vitepress_pages_show_are_shown(text, shown):
    assert page_of({**PARTS, "docs/g/x.md": text}, "docs/g/x.md").content == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::: details Click me {open}\nText.\n:::", "**Click me**\nText."),
        (":::warning\nText.\n:::\n", "**Warning**\nText."),
        ("::: code-group labels=[a]\n```js{1,3} [a.js]\nx()\n```\n:::", "**a.js**\n```js\nx()\n```"),
        ("```ts:line-numbers=3 {1}\nx() // [!code ++]\n// [!code focus]\ny\n```", "```ts\nx()\ny\n```"),
        ("::: raw\nText.\n:::", "Text."),
        ("> [!NOTE]\n> Text.", "> **Note**\n> Text."),
        ("> [!tip] Mind\n> Text.", "> **Mind**\n> Text."),
        ("[[toc]]\n\nA {{ 1 + { a: 1 }.a }}{{ $frontmatter.who }} b `{{ c }}` <Badge text=\"new\" /> d", None),
        ("<script setup>\nimport A from './A.vue'\n\nconst b = { c: 1 }\n</script>\n\nA.\n\n<A :b='b' />\n"
         "<style>\n.a { b: c }\n</style>\n", "A."),
    ],
)  # fmt: skip
def test_vitepress_markup_is_not_shown(text, shown):
    page = page_of({**PARTS, "docs/x.md": f"---\nwho: me\n---\n{text}"}, "docs/x.md")
    assert page.content == (shown or "A me b `{{ c }}` new  d")


def test_vitepress_home_page_shows_its_front_matter():
    text = """---
layout: home
hero: { name: Kite, text: Fly it, tagline: For <b>all</b>, actions: [{ text: Start, link: /guide/ }] }
features: [{ icon: x, title: Fast, details: Very fast. }, { title: Small, link: /small }]
---
Own text {.lead}
"""
    page = page_of({**PARTS, "docs/index.md": text}, "docs/index.md")
    assert page.title == "Kite"
    assert page.sections[0].text == (
        "Kite Fly it\n\nFor all\n\n[Start](/guide/)\n\n**Fast** Very fast.\n\n**[Small](/small)**"
    )


def test_vitepress_headings_have_its_anchors():
    text = "# 1. A & B {#top}\n## 2.0 Ünï `x` <Badge text='n' />\n\na\n## Same\n\na\n## Same\n\na\n## C {.big}\n\na"
    page = page_of({**PARTS, "docs/x.md": text}, "docs/x.md")
    assert [section.anchor for section in page.sections] == ["_2-0-uni-x", "same", "same-1", "c"]
    assert "top" in page.anchors


def test_vitepress_pages_may_be_left_out_of_search():
    layout = detect_layout(PARTS, lambda name: PARTS[name].encode())
    assert layout.is_hidden({"search": "false"})


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("import x\n// ---cut---\nrun(x)", "run(x)"),
        ("import x\n // ---cut-before---\nrun(x)\n// ---cut-after---\nstop()", "run(x)"),
        ("a()\n// ---cut-start---\nb()\n// ---cut-end---\nc()", "a()\nc()"),
        ("// @errors: 2322\n// @noErrors\nrun(x)\n//   ^?\n// a note @ home", "run(x)\n// a note @ home"),
    ],
)
def test_code_is_read_as_twoslash_shows_it(code, shown):
    page = page_of({**SITE, "docs/a.md": f"# A\n\n```ts twoslash [x.ts]\n{code}\n```\n"}, "docs/a.md")
    assert page.content.endswith(f"**x.ts**\n```ts\n{shown}\n```")


def test_code_without_twoslash_is_shown_whole():
    page = page_of({**SITE, "docs/a.md": "# A\n\n```ts\nimport x\n// ---cut---\nrun(x)\n```\n"}, "docs/a.md")
    assert "// ---cut---" in page.content
