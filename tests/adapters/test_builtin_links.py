"""Links on sites of all generators: only what is proved broken is changed, what is not known is named, and a page that
moves takes all that names it along.
"""

import pytest

from tests.adapters.site_jobs import done

PAGE = "# Page\n\nText.\n"
FIX = "fix broken links"


def docusaurus(options="", **files):
    config = "module.exports = {baseUrl: '/', %spresets: [['classic', {docs: {}, blog: {}}]]};\n" % options  # noqa: UP031
    return {"docusaurus.config.js": config, **files}


STARLIGHT = (
    "import starlight from '@astrojs/starlight';\n"
    "export default defineConfig({ base: '/sail', integrations: [starlight({ title: 'S', %s})] });\n"
)


# Only what is proved broken is changed


@pytest.mark.parametrize(
    ("files", "page", "before", "after"),
    [
        (
            {"mkdocs.yml": "site_name: S\n", "docs/a/one.md": PAGE, "docs/b/index.md": PAGE, "docs/b/two.md": PAGE},
            "docs/a/one.md",
            "[b](../b/) [two](../b/two/) [ok](../../b/two/)",
            "[b](../b/index.md) [two](../b/two.md) [ok](../../b/two/)",
        ),
        (
            {"mkdocs.yml": "site_name: S\nuse_directory_urls: false\n", "docs/a/one.md": PAGE, "docs/b/two.md": PAGE},
            "docs/a/one.md",
            "[two](../b/two.html)",
            None,
        ),
        (
            docusaurus("trailingSlash: true, ", **{"docs/a/one.md": PAGE, "docs/a/two.md": PAGE}),
            "docs/a/one.md",
            "[x](two) [y](../two) [z](two.md)",
            "[x](two.md) [y](../two) [z](two.md)",
        ),
        (
            docusaurus("trailingSlash: false, ", **{"docs/a/one.md": PAGE, "docs/a/two.md": PAGE}),
            "docs/a/one.md",
            "[x](two) [y](/docs/a/two)",
            None,
        ),
        (
            {"astro.config.mjs": STARLIGHT % "", "src/content/docs/index.md": PAGE, "src/content/docs/a.md": PAGE},
            "src/content/docs/index.md",
            "[a](/sail/a/) [b](/a/)",
            "[a](/sail/a/) [b](/sail/a/)",
        ),
    ],
)
async def test_broken_links_alone_are_fixed(files, page, before, after):
    files = {**files, page: f"# Page\n\n{before}\n"}
    found = await done(files, FIX)
    assert found.changed == ({page: f"# Page\n\n{after}\n"} if after else {})


@pytest.mark.parametrize(
    ("files", "page", "link", "reason"),
    [
        ({"a.md": PAGE}, "a.md", "/some/where", "which addresses the site has is not known"),
        (docusaurus(**{"docs/a.md": PAGE}), "docs/a.md", "/blog/2024/01/02/launch", "the blog makes its addresses"),
        (
            {
                "docusaurus.config.js": "module.exports = {plugins: ['./own'], presets: [['classic', {}]]};\n",
                "docs/a.md": PAGE,
            },
            "docs/a.md",
            "/gallery",
            "which addresses the site has is not known",
        ),
        (
            {"mkdocs.yml": "plugins:\n  - blog\n", "docs/a.md": PAGE},
            "docs/a.md",
            "../blog/2024/",
            "the blog plugin makes its addresses",
        ),
        (
            {"mkdocs.yml": "plugins:\n  - gen-files\n", "docs/a.md": PAGE},
            "docs/a.md",
            "api/made.md",
            "the build may add the file",
        ),
        (
            {"mkdocs.yml": "site_name: S\n", "docs/a.md": PAGE},
            "docs/a.md",
            "/elsewhere/",
            "which addresses the site has is not known",
        ),
        (
            {"hugo.toml": "title = 'S'\n", "content/a.md": PAGE},
            "content/a.md",
            "/tags/blue/",
            "the taxonomy tags makes it",
        ),
        (
            {
                "hugo.toml": "[module]\n[[module.mounts]]\nsource='content'\ntarget='content'\n[[module.mounts]]\n"
                "source='../LOG.md'\ntarget='content/LOG.md'\n",
                "content/a.md": PAGE,
            },
            "content/a.md",
            "LOG.md",
            "../LOG.md is mounted there",
        ),
        (
            {"hugo.toml": "title = 'S'\n", "content/a.md": PAGE, "content/b.md": "---\ndraft: true\n---\n"},
            "content/a.md",
            "/b/",
            "content/b.md is not published: it is a draft",
        ),
        (
            {
                "docs.json": '{"name": "S", "navigation": {"tabs": [{"tab": "API", "openapi": "api.json"}, '
                '{"tab": "Guides", "pages": ["a"]}]}}',
                "a.mdx": PAGE,
            },
            "a.mdx",
            "/api-reference/keys/list",
            "a description of an API makes it",
        ),
        (
            {"book.toml": "[book]\n", "src/SUMMARY.md": "- [A](a.md)\n", "src/a.md": PAGE},
            "src/a.md",
            "../std/index.html",
            "it leads out of the site",
        ),
        (
            {"conf.py": "project = 'S'\nextensions = ['autoapi.extension']\n", "index.md": PAGE, "a.md": PAGE},
            "a.md",
            "api/made.md",
            "the build may add the file",
        ),
    ],
)
async def test_link_that_may_be_right_is_named_with_its_reason(files, page, link, reason):
    found = await done({**files, page: f"# Page\n\n[x]({link})\n"}, FIX)
    assert found.changed == {}
    assert f"\n  - {reason}: `{link}` ({page}, line 3)" in found.message


@pytest.mark.parametrize(
    ("files", "page", "links"),
    [
        (
            docusaurus(
                **{
                    "docs/a.md": PAGE,
                    "src/pages/help.js": "export default () => null\n",
                    "static/form.pdf": "x",
                    "blog/2024-01-02-launch.md": PAGE,
                }
            ),
            "docs/a.md",
            "[h](/help) [f](/form.pdf) [p](../blog/2024-01-02-launch.md)",
        ),
        (
            docusaurus(
                "i18n: {defaultLocale: 'en', locales: ['en', 'fr']}, ", **{"docs/a.md": PAGE, "docs/b.md": PAGE}
            ),
            "i18n/fr/docusaurus-plugin-content-docs/current/a.md",
            "[b](./b.md) [c](/fr/docs/b)",
        ),
        (
            {
                "astro.config.mjs": STARLIGHT % "locales: {root: {lang: 'en'}, hi: {lang: 'hi'}}, ",
                "src/content/docs/a.md": PAGE,
                "src/content/docs/hi/b.md": PAGE,
            },
            "src/content/docs/hi/b.md",
            "[a](/sail/hi/a/)",
        ),
        (
            {
                "docs.json": '{"name": "S", "navigation": {"pages": ["a", "b"]}, "redirects": '
                '[{"source": "/old/:slug*", "destination": "/:slug*"}, {"source": "/was", "destination": "/b"}]}',
                "b.mdx": PAGE,
            },
            "a.mdx",
            "[b](/old/b) [c](/was) [d](/b/)",
        ),
    ],
)
async def test_links_by_the_rules_of_a_site_are_sound(files, page, links):
    found = await done({**files, page: f"# Page\n\n{links}\n"}, FIX)
    assert (found.changed, found.message) == ({}, "- No link is broken.")


# A page that moves takes all that names it along


@pytest.mark.parametrize(
    ("files", "old", "new", "page", "before", "after"),
    [
        (
            {"c d.md": PAGE},
            "c d.md",
            "e f.md",
            "index.md",
            "[a](c%20d.md#x) [b](<c d.md>) [c](./c%20d)",
            "[a](e%20f.md#x) [b](<e f.md>) [c](./e%20f)",
        ),
        (
            {"a.md": PAGE},
            "a.md",
            "b (c).md",
            "index.md",
            "[a](a.md) <a href='a.md'>x</a>",
            "[a](b%20(c).md) <a href='b%20(c).md'>x</a>",
        ),
        ({"a.md": PAGE}, "a.md", "100%.md", "index.md", "[a](a.md)", "[a](100%25.md)"),
        (
            {"über.md": PAGE},
            "über.md",
            "größe.md",
            "index.md",
            "[a](über.md) [b](%C3%BCber.md)",
            "[a](größe.md) [b](gr%C3%B6%C3%9Fe.md)",
        ),
        (
            {"mast.md": "---\nslug: mast\n---\n\nText.\n"},
            "mast.md",
            "pole.md",
            "index.md",
            "[a](mast.md) [b](./mast)",
            "[a](pole.md) [b](./mast)",
        ),
        (
            {"install-guide.md": PAGE},
            "install-guide.md",
            "set-up.md",
            "index.md",
            "[[Install Guide]] [[install-guide|how]]",
            "[[Set Up]] [[set-up|how]]",
        ),
        (
            {"a.md": PAGE},
            "a.md",
            "b.md",
            "index.md",
            "[a]: a.md 'A'\n\n[a] [x](a.md 'y') ![i](a.png)",
            "[a]: b.md 'A'\n\n[a] [x](b.md 'y') ![i](a.png)",
        ),
        (
            {"mkdocs.yml": "site_name: S\n", "docs/ops/info.md": PAGE},
            "docs/ops/info.md",
            "docs/ref/facts.md",
            "docs/a.md",
            "[a](/ops/info.md) [b](../ops/info/)",
            "[a](/ref/facts.md) [b](../ref/facts/)",
        ),
        (
            {"mkdocs.yml": "site_name: S\n", "docs/ops/info.md": PAGE},
            "docs/ops/info.md",
            "docs/ref/facts.md",
            "README.md",
            "[a](docs/ops/info.md)",
            "[a](docs/ref/facts.md)",
        ),
        (
            {"book.toml": "[book]\n", "src/SUMMARY.md": "- [A](a%20b.md)\n- [C](c.md)\n", "src/a b.md": PAGE},
            "src/a b.md",
            "src/d e.md",
            "src/c.md",
            "[a](./a%20b.md)",
            "[a](./d%20e.md)",
        ),
        (
            {"book.toml": "[book]\n", "src/a b.md": PAGE},
            "src/a b.md",
            "src/d e.md",
            "src/SUMMARY.md",
            "- [A](./a%20b.md)",
            "- [A](./d%20e.md)",
        ),
        (
            {".gitbook.yaml": "root: ./\n", "docs/a.md": PAGE, "README.md": PAGE},
            "docs/a.md",
            "docs/b.md",
            "SUMMARY.md",
            "* [Home](README.md)\n* [A](docs/a.md)\n  * [P](docs/a.md#p)",
            "* [Home](README.md)\n* [A](docs/b.md)\n  * [P](docs/b.md#p)",
        ),
        (
            {".gitbook.yaml": "root: ./\n", "docs/a.md": PAGE, "SUMMARY.md": "* [H](README.md)\n* [A](docs/a.md)\n"},
            "docs/a.md",
            "docs/b.md",
            "README.md",
            '{% content-ref url="docs/a.md" %}\n[a.md](docs/a.md)\n{% endcontent-ref %}',
            '{% content-ref url="docs/b.md" %}\n[a.md](docs/b.md)\n{% endcontent-ref %}',
        ),
        (
            {"hugo.toml": "title='S'\n", "content/docs/page.md": PAGE},
            "content/docs/page.md",
            "content/docs/leaf.md",
            "content/docs/_index.md",
            '[a]({{< relref "page" >}}) [b]({{% ref "/docs/page.md#x" %}}) [c]({{< ref path="page.md" >}}) '
            '[d](/docs/page/) `{{</* ref "page" */>}}`',
            '[a]({{< relref "leaf" >}}) [b]({{% ref "/docs/leaf.md#x" %}}) [c]({{< ref path="leaf.md" >}}) '
            '[d](/docs/leaf/) `{{</* ref "page" */>}}`',
        ),
        (
            {"hugo.toml": "title='S'\n", "content/page.md": PAGE},
            "content/page.md",
            "content/leaf.md",
            "content/note.md",
            "---\ndraft: true\n---\n[a](/page/)",
            "---\ndraft: true\n---\n[a](/leaf/)",
        ),
        (
            docusaurus(**{"docs/a b.md": PAGE}),
            "docs/a b.md",
            "docs/c/d e.md",
            "docs/i.md",
            "import A from './a b.md'\n\n[x](<a b.md>) [y](./a%20b)",
            "import A from './c/d e.md'\n\n[x](<c/d e.md>) [y](./c/d%20e)",
        ),
        (
            {"conf.py": "project = 'S'\n", "index.rst": "S\n=\n\n.. toctree::\n\n   a\n   i\n", "a.rst": "A\n=\n"},
            "a.rst",
            "b.rst",
            "i.rst",
            "I\n=\n\n:doc:`a` and `x <a.html>`_ and\n\n.. include:: a.rst\n",
            "I\n=\n\n:doc:`b` and `x <b.html>`_ and\n\n.. include:: b.rst\n",
        ),
        (
            {"a.md": PAGE},
            "a.md",
            "b.md",
            "index.md",
            "<!--@include: ./a.md-->\n\n{{#include a.md}}\n\n`a.md`",
            "<!--@include: ./b.md-->\n\n{{#include b.md}}\n\n`a.md`",
        ),
    ],
)
async def test_renaming_changes_every_name_of_a_page(files, old, new, page, before, after):
    head = "" if page in ("SUMMARY.md", "src/SUMMARY.md") or before.startswith(("---", "I\n")) else "# Page\n\n"
    found = await done({"index.md": PAGE, **files, page: f"{head}{before}\n"}, f'rename page "{old}" to "{new}"')
    assert found.files[page] == f"{head}{after}\n", found.message
    assert old not in found.files


JEKYLL = {
    "_config.yml": "baseurl: /jay\npermalink: pretty\ntheme: minima\ncollections:\n  recipes:\n    output: true\n",
    "docs/setup.md": "---\ntitle: Setup\n---\n\n## Colours\n{: .big #hue }\n\nBlue.\n",
    "_recipes/soup.md": "---\ntitle: Soup\n---\n\n[s]({% link docs/setup.md %})\n",
    "_posts/2024-02-03-news.md": "---\ntitle: News\n---\n\nText.\n",
    "_includes/card.md": "Text.\n",
    "index.md": "---\ntitle: Home\n---\n\n[a]({% link docs/setup.md %}#hue) "
    "[b](/jay/docs/setup/) [c](docs/setup.md#colours) "
    "[d]({{ '/docs/setup/' | relative_url }}) [e]({{ site.baseurl }}/docs/setup/) [f]({% post_url 2024-02-03-news %}) "
    "[g](/jay/recipes/soup/) [h](/jay/2024/02/03/news/)\n",
}


async def test_links_of_jekyll_are_sound_and_renamed():
    assert (await done(JEKYLL, FIX)).message == "- No link is broken."
    found = await done(JEKYLL, "rename page docs/setup.md to begin")
    assert found.files["_recipes/soup.md"] == JEKYLL["_recipes/soup.md"].replace("docs/setup.md", "docs/begin.md")
    assert found.files["index.md"] == JEKYLL["index.md"].replace("docs/setup", "docs/begin")
    found = await done(JEKYLL, 'rename page "_posts/2024-02-03-news.md" to "_posts/2024-02-04-tidings.md"')
    assert "post_url 2024-02-04-tidings %" in found.files["index.md"]
    broken = {**JEKYLL, "index.md": "[a]({% link docs/gone.md %}) [b](/docs/setup/)\n"}
    found = await done(broken, FIX)
    assert found.changed == {"index.md": "[a]({% link docs/gone.md %}) [b](/jay/docs/setup/)\n"}
    assert "`index.md`, line 1: `docs/gone.md" in found.message


FUMADOCS = {
    "source.config.ts": "export const docs = defineDocs({ dir: 'content/docs' });\n",
    "lib/source.ts": "export const source = loader({ baseUrl: '/docs', source: docs.toFumadocsSource() });\n",
    "content/docs/(start)/install.mdx": "---\ntitle: Install\n---\n\n## Second step [#two]\n\nText.\n",
    "content/docs/index.cn.mdx": "---\ntitle: Home\n---\n\nText.\n",
    "content/docs/index.mdx": "---\ntitle: Home\n---\n\n[a](/docs/install) "
    "[b](./(start)/install.mdx#two) [c](/cn/docs) "
    "[d](/blog/x) [e](/docs/install#two)\n",
}


async def test_links_of_route_groups_are_sound_and_renamed():
    found = await done(FUMADOCS, FIX)
    assert (found.changed, found.message.count("`")) == ({}, 2)
    assert "which addresses the site has is not known: `/blog/x`" in found.message
    found = await done(FUMADOCS, 'rename page "content/docs/(start)/install.mdx" to "content/docs/(start)/set up.mdx"')
    assert found.files["content/docs/index.mdx"] == FUMADOCS["content/docs/index.mdx"].replace(
        "/docs/install", "/docs/set%20up"
    ).replace("(start)/install", "(start)/set%20up")


# What is named outside of the text of pages


@pytest.mark.parametrize(
    ("files", "old", "new", "path", "after"),
    [
        (
            {
                "docs.json": '{"name": "S", "navigation": {"pages": ["a", "b"]}, "redirects": '
                '[{"source": "/was", "destination": "/a"}, {"source": "/a", "destination": "/b"}]}\n',
                "a.mdx": PAGE,
            },
            "a.mdx",
            "c.mdx",
            "docs.json",
            '{"name": "S", "navigation": {"pages": ["c", "b"]}, "redirects": '
            '[{"source": "/was", "destination": "/c"}, {"source": "/a", "destination": "/b"}]}\n',
        ),
        (
            {**FUMADOCS, "content/docs/(start)/meta.json": '{"title": "install", "pages": ["install", "..."]}\n'},
            "content/docs/(start)/install.mdx",
            "content/docs/(start)/begin.mdx",
            "content/docs/(start)/meta.json",
            '{"title": "install", "pages": ["begin", "..."]}\n',
        ),
        (
            docusaurus(**{"docs/g/a.md": PAGE, "docs/b.md": "---\nslug: /g/a/b\npagination_next: g/a\n---\n"}),
            "docs/g/a.md",
            "docs/g/c.md",
            "docs/b.md",
            "---\nslug: /g/a/b\npagination_next: g/c\n---\n",
        ),
    ],
)
async def test_names_in_data_and_front_matter_are_changed(files, old, new, path, after):
    assert (await done(files, f'rename page "{old}" to "{new}"')).files[path] == after


async def test_name_in_a_program_is_left_for_people_with_its_line():
    config = STARLIGHT.replace("%s", "sidebar: [{slug: 'guides/start'}], ")
    files = {"astro.config.mjs": config, "src/content/docs/guides/Start.md": PAGE}
    found = await done(files, 'rename page "src/content/docs/guides/Start.md" to "src/content/docs/guides/begin.md"')
    assert "`astro.config.mjs`, line 2: `guides/start`, perhaps `guides/begin`" in found.message
    assert [(one.path, one.line, one.code, one.is_error) for one in found.problems] == [
        ("astro.config.mjs", 2, "name_left", False)
    ]


async def test_removing_takes_out_names_of_all_forms():
    hugo = {
        "hugo.toml": "title='S'\n",
        "content/a.md": PAGE,
        "content/b.md": '# B\n\nOf [a]({{< relref "a.md" >}}) and {{< ref "a" >}}.\n',
    }
    found = await done(hugo, "remove page content/a.md")
    assert found.files["content/b.md"] == '# B\n\nOf a and {{< ref "a" >}}.\n'
    assert "`content/b.md`, line 3" in found.message
    book = {
        "book.toml": "[book]\n",
        "src/SUMMARY.md": "# Summary\n\n- [A](a%20b.md)\n- [C](c.md)\n",
        "src/a b.md": PAGE,
        "src/c.md": "# C\n\nOf [a](a%20b.md#x).\n",
    }
    found = await done(book, 'remove page "src/a b.md"')
    assert found.files["src/SUMMARY.md"] == "# Summary\n\n- [C](c.md)\n"
    assert found.files["src/c.md"] == "# C\n\nOf a.\n"


async def test_translation_of_a_renamed_page_is_named():
    french = "i18n/fr/docusaurus-plugin-content-docs/current/a.md"
    files = docusaurus("i18n: {defaultLocale: 'en', locales: ['en', 'fr']}, ", **{"docs/a.md": PAGE, french: PAGE})
    found = await done(files, "rename page docs/a.md to docs/b.md")
    assert f"`{french}`, line 1" in found.message
    assert [(one.path, one.code) for one in found.problems] == [(french, "name_left")]
