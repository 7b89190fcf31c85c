"""Links as real sites have them, whose generators call them sound: nothing is said of them, and nothing is changed."""

import json

import pytest

from tests.adapters.site_jobs import done

PAGE = "# Page\n\nText.\n"
FIX = "fix broken links"
API = {
    "openapi": "3.0.0",
    "info": {"title": "A"},
    "paths": {"/keys": {"get": {"summary": "List keys", "tags": ["Keys"], "responses": {}}}},
}


def mintlify(api=API):
    tabs = [{"tab": "API", "openapi": "api.json"}, {"tab": "Guides", "pages": ["a"]}]
    config = {"name": "S", "theme": "mint", "navigation": {"tabs": tabs}}
    return {"docs.json": json.dumps(config), "api.json": json.dumps(api), "a.mdx": PAGE}


JEKYLL = {
    "_config.yml": "title: S\nbaseurl: ''\ncollections: {docs: {output: true, permalink: '/:collection/:path/'}}\n"
}
SPHINX = {"conf.py": "project = 'S'\nextensions = ['myst_parser']\n", "index.md": PAGE}
FUMADOCS = {
    "source.config.ts": "export const docs = defineDocs({ dir: 'content/docs' });\n",
    "lib/source.ts": "export const source = loader({ baseUrl: '/docs', source: docs });\n",
    "next.config.mjs": "export default { async redirects() { return [\n"
    "  { source: '/docs', destination: '/docs/a', permanent: false },\n"
    "  { source: '/docs/away', destination: 'https://away.test/', permanent: true },\n] } };\n",
    "app/docs/[[...slug]]/page.tsx": "",
    "app/(site)/docs/table/page.tsx": "",
    "content/docs/a.mdx": PAGE,
}


@pytest.mark.parametrize(
    ("files", "page", "text"),
    [
        (mintlify(), "a.mdx", "[k](/api-reference/keys/list-keys) [l](/api-reference/keys/list-keys/)"),
        (FUMADOCS, "content/docs/b.mdx", "[d](/docs) [e](/docs/away) [f](/docs/table) [a](/docs/a)"),
        (
            {"docs.json": '{"name": "S", "navigation": {"pages": ["a"]}}', "a.mdx": PAGE},
            "a.mdx",
            "```js\nimport a from './made.mdx'\nimport { b } from 'pack/b'\n```\n",
        ),
        (
            {"docs.json": '{"name": "S", "navigation": {"pages": ["a"]}}', "a.mdx": PAGE},
            "a.mdx",
            "import { Widget } from 'widgets/react'\nimport Other from \"@scope/other\"\n\n<Widget />",
        ),
        (
            {
                "astro.config.mjs": "import starlight from '@astrojs/starlight'\n"
                "export default defineConfig({ integrations: [starlight({ title: 'S' })] })\n",
                "src/components/Card.astro": "",
                "src/lib/facts.ts": "",
            },
            "src/content/docs/a.mdx",
            "import Card from '@/components/Card.astro'\nimport facts from '../../lib/facts'\n\n<Card />",
        ),
        ({**JEKYLL, "_docs/b.md": PAGE, "_docs/in/c.md": PAGE}, "_docs/in/a.md", "[c](../c/) [b](../../b/)"),
        (
            JEKYLL,
            "_docs/a.md",
            "```liquid\n{% raw %}[x]({% link lost.md %}) {% post_url 2020-01-01-lost %}{% endraw %}\n```\n",
        ),
        (
            {"hugo.toml": "title = 'S'\n", "content/b.md": PAGE},
            "content/a.md",
            '[b]({{< ref "b" >}})\n\n<!-- [c]({{< ref "b#later" >}}) -->\n',
        ),
        (
            {".gitbook.yaml": "root: ./\n", "SUMMARY.md": "* [A](a.md)\n* [B](b.md)\n", "b.md": PAGE},
            "a.md",
            "[x](#get-the-code)\n\n<details>\n\n<summary>Get the <code>code</code></summary>\n\nText.\n\n</details>\n",
        ),
        (
            {
                **SPHINX,
                "in/b.rst": ".. _the-end:\n\nEnd\n===\n\n.. _Big Fish:\n\nText.\n",
                "c.md": "(here/now)=\n\nText.\n",
            },
            "a.md",
            "[e](the-end) [n](here/now) [](#the-end) {ref}`Fish <big fish>` {ref}`the-end` {doc}`/in/b` {doc}`../in/b`",
        ),
        (
            {**SPHINX, "in/b.rst": "B\n=\n", "c.md": "(here)=\n\nText.\n"},
            "in/a.rst",
            ":doc:`/in/b` :doc:`b <../in/b>` :ref:`here` :ref:`Now\n<here>`",
        ),
        (
            {"book.toml": "[book]\n", "src/SUMMARY.md": "- [A](a.md)\n"},
            "src/a.md",
            "Write `\\{{#include file.rs}}`:\n\n```md\n\\{{#include file.rs:2}}\n```\n",
        ),
    ],
)
async def test_sound_links_are_left_alone(files, page, text):
    found = await done({**files, page: f"{text}\n"}, FIX)
    assert (found.changed, found.message) == ({}, "- No link is broken.")


async def test_page_that_a_translation_lacks_is_shown_in_the_default_language():
    files = {
        "astro.config.mjs": "import starlight from '@astrojs/starlight'\nexport default defineConfig({ integrations: ["
        "starlight({ title: 'S', defaultLocale: 'en', locales: { en: {}, fr: {} } })] })\n",
        "src/content/docs/en/index.md": "---\ntitle: H\n---\n\n[a](/fr/a/) [h](/fr/) [e](/en/) [gone](/fr/gone/)\n",
        "src/content/docs/en/a.md": "---\ntitle: A\n---\n",
        "src/content/docs/fr/b.md": "---\ntitle: B\n---\n",
    }
    found = await done(files, "fix broken links")
    assert found.changed == {}
    assert "/fr/gone/" in found.message
    assert "/fr/a/" not in found.message
    assert "`/fr/`" not in found.message


async def test_endpoint_that_no_description_has_is_broken():
    found = await done({**mintlify(), "a.mdx": "[k](/api-reference/keys/lost-keys)\n"}, FIX)
    assert found.changed == {}
    assert "`/api-reference/keys/lost-keys`" in found.message
    assert "Left alone" not in found.message


@pytest.mark.parametrize(
    ("files", "page", "link", "reason"),
    [
        (
            mintlify(),
            "a.mdx",
            "/api-reference/keys/list-keys#body-limit",
            "which anchors the build gives to operations is not known",
        ),
        (
            mintlify({**API, "openapi": "3.2.0"}),
            "a.mdx",
            "/api-reference/keys/lost",
            "a description of an API makes it",
        ),
        (
            {"mkdocs.yml": "site_name: S\nhooks: [made.py]\nnav: [a.md, made.md]\n"},
            "docs/a.md",
            "made.md",
            "the build may add the file",
        ),
        (
            {"mkdocs.yml": "site_name: S\n", "docs/b.md": "# B\n\n{{ shown('b') }}\n"},
            "docs/a.md",
            "b.md#shown",
            "the page has components that may have the anchor",
        ),
        (
            {"docs.json": '{"name": "S", "navigation": {"pages": ["a"]}, "redirects": '
             '[{"source": "/old/:slug*", "destination": "/new/:slug*"}]}'},
            "a.mdx",
            "/old/b",
            "a redirect leads it to /new/b",
        ),
    ],
)  # fmt: skip
async def test_link_that_may_be_sound_is_named_with_its_reason(files, page, link, reason):
    found = await done({**files, page: f"# Page\n\n[x]({link})\n"}, FIX)
    assert found.changed == {}
    assert f"\n  - {reason}: `{link}` ({page}, line 3)" in found.message


async def test_broken_link_is_mended_as_the_site_reads_links():
    """Jekyll makes no page of a file's name; a plugin does."""
    files = {**JEKYLL, "_docs/in/harbour.md": PAGE, "_docs/a.md": "[h](on/harbour.md)\n"}
    assert (await done(files, FIX)).files["_docs/a.md"] == "[h](../in/harbour)\n"


async def test_absolute_names_of_documents_follow_a_page_that_moves():
    files = {**SPHINX, "in/b.rst": "B\n=\n", "a.rst": "A\n=\n\n:doc:`/in/b` and :doc:`B </in/b>`.\n"}
    found = await done(files, "rename in/b.rst to in/c.rst")
    assert found.files["a.rst"] == "A\n=\n\n:doc:`/in/c` and :doc:`B </in/c>`.\n"
    assert found.problems == ()


async def test_names_of_places_in_a_removed_page_are_named():
    files = {**SPHINX, "b.md": "# B\n\n(here)=\n\nText.\n", "a.md": "# A\n\nSee {ref}`here`.\n"}
    found = await done(files, "remove page b.md")
    assert [(one.path, one.line) for one in found.problems] == [("a.md", 3)]


async def test_pages_that_a_navigation_in_another_file_names_move():
    files = {
        "docs.json": '{"name": "S", "theme": "mint", "navigation": {"$ref": "./nav/all.json"}}',
        "nav/all.json": '{"groups": [{"group": "G", "pages": ["in/a", "in/b"]}]}',
        "in/a.mdx": PAGE,
        "in/b.mdx": PAGE,
    }
    found = await done(files, "rename in/b.mdx to in/c.mdx")
    assert found.files["nav/all.json"] == '{"groups": [{"group": "G", "pages": ["in/a", "in/c"]}]}'
    assert found.problems == ()


async def test_address_that_still_leads_to_the_moved_page_is_left_alone():
    page = "---\npermalink: /mast/\n---\n\nText.\n"
    shown = "<a href='{{ '/mast/' | relative_url }}'>M</a>\n"
    files = {**JEKYLL, "mast.md": page, "_includes/menu.html": shown, "_redirects": "/old/ /mast/\n"}
    found = await done(files, "rename mast.md to pole.md")
    assert (found.changed, found.problems) == ({"mast.md": None, "pole.md": page}, ())


async def test_tags_of_liquid_count_from_the_source():
    files = {
        "docs/_config.yml": JEKYLL["_config.yml"],
        "docs/_docs/b.md": PAGE,
        "docs/a.md": "[b]({% link _docs/b.md %})\n",
    }
    found = await done(files, "rename docs/_docs/b.md to docs/_docs/c.md")
    assert found.files["docs/a.md"] == "[b]({% link _docs/c.md %})\n"


async def test_configuration_of_sphinx_that_names_a_moved_page_is_named():
    files = {**SPHINX, "conf.py": SPHINX["conf.py"] + "moved = {'old.md': 'in/b.md'}\nkind = 'b'\n", "in/b.md": PAGE}
    found = await done(files, "rename in/b.md to in/c.md")
    assert [(one.path, one.line) for one in found.problems] == [("conf.py", 3)]


async def test_page_that_sends_readers_on_follows_the_page():
    page = "Old\n===\n\n.. meta::\n\n  :http-equiv=refresh: 3; url=../b/\n"
    files = {**SPHINX, "tox.ini": "sphinx-build -b dirhtml . out\n", "b.rst": "B\n=\n", "old.rst": page}
    found = await done(files, "rename b.rst to c.rst")
    assert found.files["old.rst"] == page.replace("../b/", "../c/")


async def test_pages_that_name_their_parent_by_its_title_follow_a_new_title():
    child = "---\ntitle: Sail\nparent: %s\n---\n\nText.\n"
    files = {**JEKYLL, "a.md": "---\ntitle: Mast\n---\n\nText.\n", "b.md": child % "Mast", "c.md": child % "'Mast'"}
    found = await done({**files, "d.md": child % "Masts"}, 'set title of a.md to "Pole: the long one"')
    assert (found.files["b.md"], found.files["d.md"]) == (child % '"Pole: the long one"', child % "Masts")
    assert found.files["c.md"] == child % '"Pole: the long one"'
    assert found.problems == ()
