from tests.fakes.sites import read_site

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
