"""What the builtin editor writes is in the page's own markup, and reads as it was meant; else it is put back."""

import pytest

from tests.adapters.site_jobs import done


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\ufeff# The rig\r\n\r\nText.\r\n", "\ufeff# New: *rig*\r\n\r\nText.\r\n"),
        (
            "\ufeff---\r\ntitle: Old\r\n---\r\n\r\n# Old\r\n",
            '\ufeff---\r\ntitle: "New: *rig*"\r\n---\r\n\r\n# New: *rig*\r\n',
        ),
        ("---\ntitle:\nweight: 3\n---\n\nText.\n", '---\ntitle: "New: *rig*"\nweight: 3\n---\n\nText.\n'),
        ('---\ntitle: "Goes on\n  below"\n---\n', '---\ntitle: "New: *rig*"\n---\n'),
        ("---\ntitle: >-\n  Goes on\n  below\nweight: 3\n---\n", '---\ntitle: "New: *rig*"\nweight: 3\n---\n'),
        ("---\ntitle: Goes on\n  below\n---\n", '---\ntitle: "New: *rig*"\n---\n'),
        (
            '{\n  "weight": 3,\n  "title": "Old"\n}\n\nText.\n',
            '{\n  "weight": 3,\n  "title": "New: *rig*"\n}\n\nText.\n',
        ),
        ('+++\ntitle = """Old\nname"""\nweight = 3\n+++\n', '+++\ntitle = "New: *rig*"\nweight = 3\n+++\n'),
        ("Old\r\n===\r\n\r\nText.\r\n", "New: *rig*\r\n==========\r\n\r\nText.\r\n"),
    ],
)
async def test_title_is_set_in_the_markup_of_the_page(before, after):
    found = await done({"a.md": before}, 'set the title of a.md to "New: *rig*"')
    escaped = after.replace("# New: *rig*", "# New: \\*rig\\*").replace(
        "New: *rig*\r\n==========", "New: \\*rig\\*\r\n============"
    )
    assert found.files["a.md"] == escaped


@pytest.mark.parametrize(
    ("files", "path", "text"),
    [
        (
            {"conf.py": "project = 'S'\n", "index.rst": "S\n=\n"},
            "guide/new.rst",
            "New \\*page\\*\n============\n\nHello.\n",
        ),
        (
            {"conf.py": "project = 'S'\n", "index.rst": "S\n=\n"},
            "guide/new",
            "New \\*page\\*\n============\n\nHello.\n",
        ),
        ({"a.md": "# A\n"}, "new.md", "# New \\*page\\*\n\nHello.\n"),
        ({"a.md": "\ufeff---\ntitle: A\n---\n"}, "new.md", '---\ntitle: "New *page*"\n---\n\nHello.\n'),
        ({"a.md": "+++\ntitle = 'A'\n+++\n"}, "new.md", '+++\ntitle = "New *page*"\n+++\n\nHello.\n'),
    ],
)
async def test_new_page_is_in_the_markup_of_its_suffix_and_neighbours(files, path, text):
    found = await done(files, f'create page {path} with title "New *page*" and text "Hello."')
    assert found.files[path if "." in path else f"{path}.rst"] == text


async def test_title_that_reads_otherwise_is_put_back():
    found = await done({"a.md": "# Old\n"}, 'set the title of a.md to "AT&amp;T"')
    assert found.changed == {}
    assert found.message == '- a.md was left as it was: with this title it would read "AT&T".'
    found = await done({"b.md": "# Old\n"}, 'create page a.md with title "AT&amp;T"')
    assert found.changed == {}


async def test_replacing_keeps_addresses_and_words_whole():
    page = "A cat is no category. Concatenate cats. <https://cat.test> [cat](http://cat.test) 猫cat cat-like\n"
    found = await done({"a.md": page, "b.md": "bobcat\n"}, 'replace "cat" with "dog" in every page')
    assert found.changed == {
        "a.md": "A dog is no category. Concatenate cats. <https://cat.test> [dog](http://cat.test) 猫dog dog-like\n"
    }
    assert 'because "cat" is only a part of the word there: category, Concatenate, cats, bobcat.' in found.message


async def test_new_page_is_named_in_the_list_of_pages():
    files = {
        "book.toml": "[book]\n",
        "src/SUMMARY.md": "# Summary\n\n[Preface](preface.md)\n\n- [A](./a.md)\n    - [B](./b/c%20d.md)\n",
        "src/a.md": "# A\n",
        "src/preface.md": "# P\n",
        "src/b/c d.md": "# C\n",
    }
    found = await done(files, 'create page "src/b/e f.md" with title "E"')
    assert found.files["src/SUMMARY.md"] == files["src/SUMMARY.md"] + "    - [E](b/e%20f.md)\n"
    found = await done(files, 'create page src/g h.md with title "G"')
    assert "- [A](./a.md)\n- [G](g%20h.md)\n" in found.files["src/SUMMARY.md"]


@pytest.mark.parametrize("text", ["rename a b.md to c d.md", 'Remove "a b.md"', "remove page a b.md"])
async def test_names_of_pages_may_have_blanks(text):
    assert (await done({"a b.md": "# A\n", "c.md": "# C\n"}, text)).changed["a b.md"] is None
