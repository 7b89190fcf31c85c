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
