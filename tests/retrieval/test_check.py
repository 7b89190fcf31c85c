"""The check of an index: what is wrong with a site, or with how it was read."""

from service.retrieval.index.check import described
from tests.retrieval.sites import DOMAIN


async def test_check_lists_findings_of_each_kind(indexed):
    await indexed.fill(
        {
            "docs.json": '{"navigation": {"pages": ["a", "b/index"]}}',
            "a.mdx": 'import X from "/none.mdx"\n\n# A\n\nSee <X /> and {{< note >}}.\n\n## B\n\n.. note:: C.\n',
            "b/index.mdx": "# B\n\nText.",
            "b.mdx": "# B\n\nText.",
            "LICENSE.md": "Text.",
        }
    )
    check = await indexed.index.check(DOMAIN)
    assert (check.generator, check.pages, check.navigation_entries) == ("mintlify", 3, 2)
    assert not check.is_clean
    found = {kind: [(one.path, one.detail) for one in each.first] for kind, each in check.findings.items()}
    assert found["same_address"] == [("b/index.mdx", "It has the address /b, as b.mdx has.")]
    assert found["missing_include"] == [("a.mdx", "It shows /none.mdx, which is not found.")]
    assert found["leftover"] == [("a.mdx", "directive: .. note::")]
    assert found["not_in_navigation"] == [("b.mdx", "The navigation does not name it; its address is /b.")]
    assert [path for path, _ in found["skipped"]] == ["LICENSE.md"]
    text = described(check, shown=1)
    assert text.startswith("Mintlify: 3 pages, 4 sections, 2 of them in the navigation\n")
    assert "1 piece of markup was not read\n  a.mdx:7: directive: .. note::" in text


async def test_check_of_a_sound_site_is_clean(indexed):
    await indexed.fill({"docs.json": '{"navigation": {"pages": ["a"]}}', "a.mdx": "# A\n\nText."})
    check = await indexed.index.check(DOMAIN)
    assert check.is_clean
    assert described(check, shown=5).endswith("and markup. Anchors are not checked here.")


async def test_check_lists_links_that_the_rules_of_the_site_prove_broken(indexed):
    await indexed.fill(
        {
            "mkdocs.yml": "site_name: S\n",
            "docs/index.md": "# Home\n\n[a](in/a.md), [b](in/b.md), [c](in/a/#none), [e](/x.pdf).\n",
            "docs/in/a.md": "# A\n\n[h](../../) and [g](../gone/).\n",
        }
    )
    check = await indexed.index.check(DOMAIN)
    assert [(one.path, one.detail) for one in check.findings["broken_link"].first] == [
        ("docs/in/a.md", "It links to ../gone/: from the page's own address it leads to /in/gone, where no page is."),
        ("docs/index.md", "It links to in/b.md: no page is at in/b.md."),
    ]
    assert not check.is_clean


async def test_check_names_no_entry_that_the_build_may_add(indexed):
    await indexed.fill(
        {"mkdocs.yml": "site_name: S\nhooks: [h.py]\nnav: [a.md, made.md]\n", "docs/a.md": "# A\n\nText."}
    )
    assert (await indexed.index.check(DOMAIN)).is_clean


async def test_check_takes_names_that_count_from_the_root_for_sound(indexed):
    await indexed.fill(
        {
            "_config.yml": "title: S\nbaseurl: ''\ncollections: {docs: {output: true}}\n",
            "_docs/a.md": "---\ntitle: A\n---\n\n[b]({% link _docs/b.md %})\n",
            "_docs/b.md": "---\ntitle: B\n---\n\nText.\n",
        }
    )
    assert (await indexed.index.check(DOMAIN)).findings["broken_link"].number == 0


async def test_check_names_a_shown_file_that_is_cut(indexed):
    await indexed.fill(
        {
            "mkdocs.yml": "site_name: x",
            "docs/index.md": '# A\n\n--8<-- "log.md"\n',
            "log.md": "Words of a log.\n" * 70_000,
        }
    )
    check = await indexed.index.check(DOMAIN)
    details = [one.detail for one in check.findings["missing_include"].first]
    assert details == ["It shows log.md, of which the first 1,000,000 characters are in the index."]
    assert not check.is_clean
