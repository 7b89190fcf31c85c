"""Faults that random jobs on random sites found (scripts/no-harm): a link that was sound stays so, whatever the job."""

import pytest

from tests.adapters.site_jobs import done
from tests.adapters.test_builtin_links import PAGE, STARLIGHT, docusaurus

HUGO = {"hugo.toml": "baseURL = 'https://kites.test/'\ntitle = 'S'\n", "content/_index.md": PAGE}
SPHINX = {"conf.py": "project = 'S'\n", "index.rst": "S\n=\n\n.. toctree::\n   :glob:\n\n   *\n"}
MYST = "extensions = ['myst_parser']\nmyst_heading_anchors = 3\n"
MKDOCS = {"mkdocs.yml": "site_name: S\n", "docs/index.md": PAGE}
JEKYLL = {"_config.yml": "baseurl: ''\n", "index.md": "---\ntitle: S\n---\n"}
BOOK = {
    "book.toml": "[book]\n",
    "src/SUMMARY.md": "# Summary\n\n- [S](index.md)\n- [G](größe.md)\n  - [U](über/über.md)\n",
    "src/index.md": PAGE,
    "src/über/über.md": PAGE,
}
PART = '# A\n\n--8<-- "part.txt"\n\n'
FRENCH = "locales: {root: {lang: 'en'}, fr: {lang: 'fr'}}, "


@pytest.mark.parametrize(
    ("files", "job", "changed"),
    [
        (  # a relative link of Hugo counts from the address, in which folders have no blanks
            {**HUGO, "content/my tools/a.md": PAGE, "content/b.md": "[a](../my-tools/a/) [x](../)\n"},
            "move page content/my tools/a.md to content/other tools/c d.md",
            {"content/b.md": "[a](../other-tools/c-d/) [x](../)\n"},
        ),
        (
            {**HUGO, "content/a.md": "[b](../deep/b/)\n", "content/deep/b.md": PAGE},
            "move page content/a.md to content/deep/a.md",
            {"content/deep/a.md": "[b](../b/)\n"},
        ),
        (  # under a theme it may count from either: then both must hold
            {
                **HUGO,
                "hugo.toml": "theme = 'wind'\nbaseURL = 'https://kites.test/'\n",
                "content/a.md": "[b](../deep/b/)\n",
                "content/deep/b.md": PAGE,
            },
            "move page content/a.md to content/deep/a.md",
            {"content/deep/a.md": "[b](../b/)\n"},
        ),
        (  # a name that two pages have is refused
            {**HUGO, "content/a/wind.md": PAGE, "content/b.md": PAGE, "content/c.md": '[w]({{< ref "wind" >}})\n'},
            "move page content/b.md to content/b/wind.md",
            {"content/c.md": '[w]({{< ref "a/wind" >}})\n'},
        ),
        (  # an absolute name of Hugo is not looked for elsewhere
            {**HUGO, "content/a.md": PAGE, "content/c.md": '[a]({{< ref "/a.md" >}})\n'},
            "move page content/a.md to content/b/a.md",
            {"content/c.md": '[a]({{< ref "/b/a.md" >}})\n'},
        ),
        (
            {**HUGO, "content/s/_index.md": PAGE, "content/s/a.md": '[s]({{< ref "_index.md" >}})\n'},
            "rename page content/s/_index.md to content/t/_index.md",
            {"content/s/a.md": '[s]({{< ref "../t/_index.md" >}})\n'},
        ),
        (  # the file of a page counts from its folder, though the page's address is one folder deeper
            {**MKDOCS, "docs/a.md": PAGE, "docs/d/b.md": "[a](../a.md)\n"},
            "move page docs/a.md to docs/d/a.md",
            {"docs/d/b.md": "[a](a.md)\n"},
        ),
        (
            {**MKDOCS, "docs/a.md": PAGE, "docs/d/e/b.md": "[a](../../a.md)\n"},
            "move page docs/d/e/b.md to docs/d/b.md",
            {"docs/d/b.md": "[a](../a.md)\n"},
        ),
        (  # the page of a folder need not be named by the links to it
            {**MKDOCS, "docs/zoo/index.md": PAGE, "docs/zoo/a.md": "[d](index.md) [x](b.md)\n", "docs/zoo/b.md": PAGE},
            "rename page docs/zoo/index.md to docs/zoo/all.md",
            {"docs/zoo/a.md": "[d](all.md) [x](b.md)\n"},
        ),
        (
            {
                **SPHINX,
                "a/index.rst": "A\n=\n",
                "a/b.rst": "B\n=\n\n`a <index.html>`_ :doc:`x </c>`\n",
                "c.rst": "C\n=\n",
            },
            "move page a/b.rst to d/b.rst",
            {"d/b.rst": "B\n=\n\n`a <../a/index.html>`_ :doc:`x </c>`\n"},
        ),
        (
            {**SPHINX, "a.rst": "A\n=\n\n`a <a.html>`_ :doc:`a`\n\n.. include:: part.txt\n", "part.txt": "Text.\n"},
            "move page a.rst to d/b.rst",
            {"d/b.rst": "A\n=\n\n`a <b.html>`_ :doc:`b`\n\n.. include:: ../part.txt\n"},
        ),
        (  # ß is another letter in an address than in what addresses are compared by
            {
                **HUGO,
                "hugo.toml": "[languages.en]\n[languages.fr]\n",
                "content/größe.fr.md": PAGE,
                "content/b.fr.md": "See [g](../gr%C3%B6%C3%9Fe/) now.\n",
            },
            "remove page content/größe.fr.md",
            {"content/b.fr.md": "See g now.\n"},
        ),
        (
            {
                "astro.config.mjs": STARLIGHT % FRENCH,
                "src/content/docs/b.md": "[a](/sail/fr/a/)\n",
                "src/content/docs/fr/a.md": PAGE,
            },
            "move page src/content/docs/fr/a.md to src/content/docs/fr/d/c.md",
            {"src/content/docs/b.md": "[a](/sail/fr/d/c/)\n"},
        ),
        (
            {
                **JEKYLL,
                "a/index.md": "---\ntitle: A\n---\n",
                "b.md": "---\n---\n[a]({{ '/a/' | relative_url }}) [c](/a/)\n",
            },
            "rename page a/index.md to a/c.md",
            {"b.md": "---\n---\n[a]({{ '/a/c.html' | relative_url }}) [c](/a/c.html)\n"},
        ),
        (
            {
                **JEKYLL,
                "a.md": "---\n---\n# Old\n",
                "b.md": "[a]({% link a.md %}#old) [b]({{ '/a.html#old' | relative_url }})\n",
            },
            'set the title of a.md to "New"',
            {"b.md": "[a]({% link a.md %}#new) [b]({{ '/a.html#new' | relative_url }})\n"},
        ),
        (  # a link that has been mended has the target that another link had
            {**MKDOCS, "docs/a.md": "# A\n\n[a](a.md) [b](b.md)\n", "docs/b.md": PAGE},
            "move page docs/a.md to docs/d/b.md",
            {"docs/d/b.md": "# A\n\n[a](b.md) [b](../b.md)\n"},
        ),
        (  # an argument of a shortcode is no anchor of the page
            {**HUGO, "content/a.md": '## Part\n\nText. [a]({{< ref "a.md#part" >}})\n'},
            'replace "Part" with "Piece" in every page',
            {"content/a.md": '## Piece\n\nText. [a]({{< ref "a.md#piece" >}})\n'},
        ),
        (  # links of MyST do not name the ids of headings
            {**SPHINX, "conf.py": MYST, "a.md": "# A\n", "b.md": "[a](a.md#a)\n"},
            'set the title of a.md to "Größe"',
            {"b.md": "[a](a.md#größe)\n"},
        ),
        (  # in the list of a book an entry that has others below it stays one
            {**BOOK, "src/größe.md": PAGE},
            "remove page src/größe.md",
            {"src/SUMMARY.md": BOOK["src/SUMMARY.md"].replace("größe.md", "")},
        ),
        (  # an entry of the navigation that is found by two names goes once
            {"mkdocs.yml": 'nav:\n  - A: "what?.md"\n  - B: b.md\n', "docs/what?.md": PAGE, "docs/b.md": PAGE},
            'remove page "docs/what?.md"',
            {"mkdocs.yml": "nav:\n  - B: b.md\n"},
        ),
        (  # a heading that links name stays, though nothing is left below it, and a part might have its anchor
            {
                "a.md": f"{PART}## Next\n\n- [o](old.md)\n\n## End\n\n- [o](old.md)\n",
                "b.md": "[n](a.md#next)\n",
                "old.md": PAGE,
            },
            "remove page old.md",
            {"a.md": f"{PART}## Next\n\n## End\n", "b.md": "[n](a.md#next)\n"},
        ),
        (
            {
                "a.md": "# A\n\n## kites-2\n\nOf kites: [a](b.md#kites) [c](kites) [d](kites/b.md)\n",
                "b.md": "## Kites\n",
            },
            'replace "kites" with "birds" in a.md',
            {"a.md": "# A\n\n## birds-2\n\nOf birds: [a](b.md#kites) [c](kites) [d](kites/b.md)\n"},
        ),
    ],
)
async def test_job_leaves_sound_links_sound(files, job, changed):
    found = await done(files, job)
    assert {path: found.files[path] for path in changed} == changed, found.message
    assert found.problems == ()


@pytest.mark.parametrize(
    ("files", "page", "links"),
    [
        (
            {**MKDOCS, "mkdocs.yml": "site_name: S\nuse_directory_urls: false\n", "docs/d/index.md": PAGE},
            "docs/a.md",
            "[d](d/) [e](d/#page)",
        ),
        ({**JEKYLL, "_config.yml": "baseurl: /jay\n", "d/a.md": "---\n---\n"}, "index.md", "[a](d/a.html)"),
    ],
)
async def test_sound_link_is_not_fixed(files, page, links):
    found = await done({**files, page: f"---\ntitle: T\n---\n\n{links}\n"}, "fix broken links")
    assert found.changed == {}


async def test_translation_of_a_page_named_like_a_version_is_named():
    files = {
        **HUGO,
        "hugo.toml": "[languages.en]\n[languages.fr]\n",
        "content/v1.2.md": PAGE,
        "content/v1.2.fr.md": PAGE,
    }
    found = await done(files, "remove page content/v1.2.md")
    assert [one.path for one in found.problems] == ["content/v1.2.fr.md"]


async def test_translation_that_is_a_draft_is_named():
    french = "i18n/fr/docusaurus-plugin-content-docs/current/a.md"
    draft = "---\ndraft: true\n---\n# A\n"
    files = docusaurus("i18n: {defaultLocale: 'en', locales: ['en', 'fr']}, ", **{"docs/a.md": PAGE, french: draft})
    found = await done(files, "rename page docs/a.md to docs/b.md")
    assert [(one.path, one.code) for one in found.problems] == [(french, "name_left")]


async def test_name_that_a_list_cannot_have_is_named():
    found = await done({**BOOK, "src/größe.md": PAGE}, 'rename page src/größe.md to "src/c#sharp.md"')
    assert found.files["src/SUMMARY.md"] == BOOK["src/SUMMARY.md"]
    assert [(one.path, one.line) for one in found.problems] == [("src/SUMMARY.md", 4)]


async def test_names_of_another_version_are_others():
    lists, page = '{"main": ["g/a", "b"]}\n', "---\npagination_next: g/a\n---\n\nText.\n\nMore.\n"
    old = "versioned_docs/version-1.0"
    files = docusaurus(
        **{
            "versions.json": '["1.0"]\n',
            "versioned_sidebars/version-1.0-sidebars.json": lists,
            "sidebars.json": lists,
            **{f"{folder}/{name}.md": page for folder in (old, "docs") for name in ("g/a", "b")},
        }
    )
    found = await done(files, "rename page docs/g/a.md to docs/g/c.md")
    assert found.problems == ()
    assert found.changed.keys() == {"docs/g/a.md", "docs/b.md", "docs/g/c.md", "sidebars.json"}
    found = await done(files, f"rename page {old}/g/a.md to {old}/g/c.md")
    assert found.problems == ()
    sidebars = "versioned_sidebars/version-1.0-sidebars.json"
    assert found.files[sidebars] == lists.replace("g/a", "g/c")
    assert found.changed.keys() == {f"{old}/g/a.md", f"{old}/b.md", f"{old}/g/c.md", sidebars}


@pytest.mark.parametrize("asked", ["rename page {}/a.md to {}/c.md", "remove page {}/a.md"])
async def test_sidebar_of_a_version_follows_its_pages(asked):
    sidebar, old = "versioned_sidebars/version-1.0-sidebars.json", "versioned_docs/version-1.0"
    items = '{\n  "a": [\n    "a",\n    {"type": "doc", "id": "a", "label": "A"},\n    "b"\n  ]\n}\n'
    pages = {f"{folder}/{name}.md": PAGE for folder in (old, "docs") for name in ("a", "b")}
    files = docusaurus(**{"versions.json": '["1.0"]\n', sidebar: items, **pages})
    found = await done(files, asked.format(old, old))
    assert found.problems == ()
    renamed = items.replace('    "a",', '    "c",').replace('"id": "a"', '"id": "c"')
    assert found.files[sidebar] == (renamed if "rename" in asked else '{\n  "a": [\n    "b"\n  ]\n}\n')


@pytest.mark.parametrize("head", ["# A\n", "---\ndraft: true\n---\n# A\n"])
async def test_translation_of_a_removed_page_is_named(head):
    french = "i18n/fr/docusaurus-plugin-content-docs/current/a.md"
    files = docusaurus("i18n: {defaultLocale: 'en', locales: ['en', 'fr']}, ", **{"docs/a.md": head, french: PAGE})
    found = await done({**files, "docs/b.md": PAGE}, "remove page docs/a.md")
    assert [(one.path, one.code) for one in found.problems] == [(french, "name_left")]
    assert found.files[french] == PAGE
    found = await done({**files, "docs/a.md": PAGE}, f"remove page {french}")
    assert found.problems == ()


PART = "## Set the sail\n\nText.\n"
SHOWN_PARTS = {
    "mkdocs": (
        {"mkdocs.yml": "site_name: S\nmarkdown_extensions:\n- pymdownx.snippets:\n    base_path: [docs]\n"},
        ("docs/a.md", '# A\n\n--8<-- "parts/p.md"\n'),
        ("docs/parts/p.md", "docs/b.md", "a.md"),
    ),
    "mdbook": (
        {"book.toml": '[book]\ntitle = "S"\n', "src/SUMMARY.md": "# Summary\n\n- [A](a.md)\n- [B](b.md)\n"},
        ("src/a.md", "# A\n\n{{#include p.md}}\n"),
        ("src/p.md", "src/b.md", "a.md"),
    ),
    "docusaurus": (
        docusaurus(),
        ("docs/a.mdx", "import P from './_p.mdx'\n\n# A\n\n<P />\n"),
        ("docs/_p.mdx", "docs/b.md", "./a.mdx"),
    ),
    "vitepress": (
        {"docs/.vitepress/config.ts": "export default {title: 'S'}\n"},
        ("docs/a.md", "# A\n\n<!--@include: ./p/p.md-->\n"),
        ("docs/p/p.md", "docs/b.md", "./a.md"),
    ),
    "mintlify": (
        {"docs.json": '{"name": "S", "navigation": {"pages": ["a", "b"]}}\n'},
        ("a.mdx", "import P from '/snippets/p.mdx'\n\n# A\n\n<P />\n"),
        ("snippets/p.mdx", "b.mdx", "/a"),
    ),
}


@pytest.mark.parametrize("kind", SHOWN_PARTS)
async def test_links_to_a_heading_of_a_shown_file_follow_it(kind):
    site, (page, text), (part, other, target) = SHOWN_PARTS[kind]
    link = f"# B\n\n[a]({target}#set-the-sail) and [top]({target})\n"
    files = {**site, page: text, part: PART, other: link}
    found = await done(files, 'replace "Set the sail" with "Raise the sail" in every page')
    assert found.problems == ()
    assert found.changed == {
        part: PART.replace("Set the", "Raise the"),
        other: link.replace("#set-the-sail", "#raise-the-sail"),
    }
    there = {**files, page: f"{text}\n## Set the sail\n\nText of its own.\n"}
    kept = await done(there, f'replace "Set the sail" with "Raise the sail" in {part}')
    assert kept.changed.keys() == {part}


async def test_files_that_a_moved_page_shows_are_found_from_its_new_folder():
    page = (
        "A\n=\n\n.. image:: a.png\n\n.. figure:: /d/a.png\n\n.. csv-table:: T\n   :file: t.csv\n\n"
        ".. |s| image:: a.png\n\n::\n\n   .. image:: a.png\n\n"
    )
    files = {**SPHINX, "d/a.rst": page, "d/a.png": "x", "d/t.csv": "x\n", "d/x.rst": "X\n=\n"}
    found = await done(files, "rename page d/a.rst to e/a.rst")
    assert found.problems == ()
    head, code, shown = page.partition("::\n\n   .. image")
    assert found.files["e/a.rst"] == head.replace(" a.png", " ../d/a.png").replace("t.csv", "../d/t.csv") + code + shown
    mdx = "import x from '!!raw-loader!./x.py'\n\n# A\n\n<img src={require('./a.png').default} />\n"
    sources = {"docs/d/x.py": "1\n", "docs/d/a.png": "x", "docs/b.md": PAGE}
    found = await done({**docusaurus(), **sources, "docs/d/a.mdx": mdx}, "rename page docs/d/a.mdx to docs/e/a.mdx")
    assert found.files["docs/e/a.mdx"] == mdx.replace("./x.py", "../d/x.py").replace("./a.png", "../d/a.png")
    assert {one.code for one in found.problems} == {"new_code"}
    adoc = "= A\n\ninclude::./p.adoc[]\n\ninclude::partial$q.adoc[]\n"
    pages = "modules/ROOT/pages"
    antora = {"antora.yml": "name: s\nversion: '1'\n", f"{pages}/d/a.adoc": adoc, f"{pages}/d/p.adoc": "x\n"}
    found = await done(antora, f"rename page {pages}/d/a.adoc to {pages}/e/a.adoc")
    assert found.files[f"{pages}/e/a.adoc"] == adoc.replace("./p.adoc", "../d/p.adoc")


@pytest.mark.parametrize(
    ("files", "page", "to", "left"),
    [
        (
            {"mkdocs.yml": "site_name: S\nplugins: [awesome-pages]\n", "docs/g/.pages": "nav:\n- One: one.md\n- ...\n"},
            "docs/g/one.md",
            "docs/g/two.md",
            ("docs/g/.pages", 2),
        ),
        (
            {"mkdocs.yml": "site_name: S\nplugins: [awesome-nav]\n", "docs/g/.nav.yml": "nav:\n- one.md\n- '*'\n"},
            "docs/g/one.md",
            "docs/g/two.md",
            ("docs/g/.nav.yml", 2),
        ),
        (
            {".gitbook.yaml": "redirects:\n  a/b: one.md\n", "SUMMARY.md": "# Summary\n\n* [H](README.md)\n"},
            "one.md",
            "two.md",
            (".gitbook.yaml", 2),
        ),
        (
            {
                "next.config.mjs": "import nextra from 'nextra'\n",
                "pages/_meta.js": "export default {\n  one: 'One',\n}\n",
            },
            "pages/one.mdx",
            "pages/two.mdx",
            ("pages/_meta.js", 2),
        ),
    ],
)
async def test_lists_that_a_job_may_not_write_are_named(files, page, to, left):
    there = {**files, page: PAGE, f"{page.rpartition('/')[0]}/index.md".lstrip("/"): PAGE}
    for asked in (f"rename page {page} to {to}", f"remove page {page}"):
        found = await done(there, asked)
        assert [(one.path, one.line, one.code) for one in found.problems] == [(*left, "name_left")]
        assert found.files[left[0]] == files[left[0]]


async def test_address_with_an_anchor_in_front_matter_follows_its_page():
    home = "---\nlayout: home\nfeatures:\n  - title: A\n    link: /a#part\n  - link: /a\n---\n"
    site = {"docs/.vitepress/config.ts": "export default {title: 'S'}\n", "docs/index.md": home, "docs/a.md": PAGE}
    found = await done(site, "rename page docs/a.md to docs/b.md")
    assert found.files["docs/index.md"] == home.replace("/a", "/b")


PLUGINS_OF_MYST = {"docs/conf.py": "project = 'S'\nextensions = ['myst_parser']\n", "docs/a.md": PAGE}
MKDOCS_NAV = "site_name: S\nnav:\n- index.md\n- Other: https://example.com/a.md\n- A: a.md\n"


@pytest.mark.parametrize(
    ("files", "page", "to", "other", "before", "after"),
    [
        (
            {"mkdocs.yml": MKDOCS_NAV, "docs/index.md": PAGE, "docs/a.md": PAGE},
            *("docs/a.md", "docs/b.md", "mkdocs.yml"),
            *("A: a.md", "A: b.md"),
        ),
        (
            {**PLUGINS_OF_MYST, "docs/index.md": "# H\n\n```{toctree}\n```\n\n[z](project:a.md#p) <path:a.md>\n"},
            *("docs/a.md", "docs/g/b.md", "docs/index.md"),
            *("a.md", "g/b.md"),
        ),
        (
            docusaurus(**{"docs/a.md": PAGE, "docs/o.mdx": "# O\n\n<a href={useBaseUrl('/docs/a')}>a</a>\n"}),
            *("docs/a.md", "docs/b.md", "docs/o.mdx"),
            *("/docs/a", "/docs/b"),
        ),
        (
            docusaurus(**{"docs/a.md": PAGE, "docs/o.md": "# O\n\n[a](a.md) [a](./a)\n"}),
            *("docs/a.md", "docs/a/index.md", "docs/o.md"),
            *("a.md", "a/index.md"),
        ),
        (
            {"mkdocs.yml": "site_name: S\n", "docs/A.md": PAGE, "docs/o.md": "# O\n\n[a](A.md)\n"},
            *("docs/A.md", "docs/a.md", "docs/o.md"),
            *("A.md", "a.md"),
        ),
        (
            {
                "hugo.toml": "[languages.en]\n[languages.fr]\n",
                "content/o.md": '---\ntitle: O\n---\n\n{{< ref "a.md" >}} {{< ref path="a.md" lang="fr" >}}\n',
                **{f"content/a{end}.md": "---\ntitle: A\n---\n" for end in ("", ".fr")},
            },
            *("content/a.md", "content/b.md", "content/o.md"),
            *('"a.md" >', '"b.md" >'),
        ),
        (
            docusaurus(
                **{
                    "sidebars.js": "module.exports = {s: [{type: 'doc', id: 'g/own', label: 'g/own'}, 'g/own']}\n",
                    "docs/g/a.md": "---\nid: own\n---\n# A\n",
                    "docs/h/o.md": PAGE,
                }
            ),
            *("docs/g/a.md", "docs/h/a.md", "sidebars.js"),
            *("id: 'g/own', label: 'g/own'}, 'g/own'", "id: 'h/own', label: 'g/own'}, 'h/own'"),
        ),
    ],
)
async def test_name_in_any_form_follows_its_page_alone(files, page, to, other, before, after):
    found = await done(files, f"rename page {page} to {to}")
    assert found.files[other] == files[other].replace(before, after)
    assert {one.code for one in found.problems} <= {"new_code", "name_left"}


async def test_new_page_is_put_into_the_folder_that_is_meant():
    nav = "site_name: S\nnav:\n- index.md\n- G:\n  - One: g/one.md\n"
    files = {"mkdocs.yml": nav, "docs/index.md": PAGE, "docs/g/one.md": PAGE}
    found = await done(files, "create page g/two")
    assert found.changed.keys() == {"docs/g/two.md", "mkdocs.yml"}
    assert "g/two.md" in found.files["mkdocs.yml"]
    found = await done({**files, "other/g/x.md": PAGE}, "create page g/two")
    assert "docs/g/two.md" not in found.files
