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
    assert described(check, shown=5).endswith("and markup. Links are not checked here.")
