from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.sites import Skipped
from service.markup.dialects.dialect import Dialect
from service.markup.front_matter import list_field
from service.markup.prose import words_of
from service.markup.slugs import slug
from service.retrieval.readers.markdown import MAX_LINES, MAX_PAGE_BYTES, ParsedPage, parse_page


def page_of(text: str, path: str = "page.md", **dialect: Any) -> ParsedPage:
    page = parse_page(text.encode(), path, Dialect(**dialect))
    assert isinstance(page, ParsedPage), page
    return page


def shown(text: str, path: str = "page.mdx", **dialect: Any) -> str:
    return page_of(text, path, **dialect).content


# Titles and front matter


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: Front\n---\n# Top\n", "Front"),
        ("---\ntitle: 1.10\n---\n", "1.10"),
        ("---\ntitle: 2024-01-01\n---\n", "2024-01-01"),
        ("---\nsidebar_label: Bar\n---\n# Top\n", "Bar"),
        ("# The `top` of *it*\n\nText.", "The top of it"),
        ("Name\n====\n\nText.", "Name"),
        ("\ufeff---\ntitle: Marked\n---\n", "Marked"),
        ("---\r\ntitle: Lines\r\n---\r\nText.\r\n", "Lines"),
        ("+++\ntitle = 'Toml'\n+++\nText.", "Toml"),
        ("---\ntitle: Errors: what to do\n---\nText.", "Errors: what to do"),
        ("---\ntitle: [unclosed\n---\nText.", "[unclosed"),
        ("Text only.", ""),
        ("---\n\nA rule, not front matter.", ""),
    ],
)
def test_page_title_is_from_front_matter_or_first_top_heading(text, title):
    assert page_of(text).title == title


def test_front_matter_is_not_shown():
    page = page_of("---\ntitle: T\nkeywords: [a, b]\ndescription: About *it*.\n---\n\nText.\n")
    assert page.content == "Text."
    assert page.description == "About it."
    assert list_field(page.front_matter, "keywords") == ("a", "b")


@pytest.mark.parametrize("written", ["[a, b]", "a, b", "\n  - a\n  - b"])
def test_a_list_is_read_however_it_is_written(written):
    assert list_field(page_of(f"---\ntags: {written}\n---\n").front_matter, "tags") == ("a", "b")


# Sections


def test_sections_know_their_place():
    page = page_of(
        "---\ntitle: T\n---\n\nIntro.\n\n## One\n\nFirst.\n\n### Part\n\nDeeper.\n\n## Two\n\nSecond.\n",
        "guide/page.md",
    )
    assert [(s.heading, s.heading_path, s.anchor, s.text, s.start_line, s.end_line) for s in page.sections] == [
        ("", (), "", "Intro.", 4, 6),
        ("One", ("One",), "one", "First.", 7, 10),
        ("Part", ("One", "Part"), "part", "Deeper.", 11, 14),
        ("Two", ("Two",), "two", "Second.", 15, 17),
    ]


def test_a_heading_with_nothing_but_headings_is_in_their_path():
    page = page_of("Intro.\n\n## Kinds\n\n### Small\n\nText.\n")
    assert [s.heading_path for s in page.sections] == [(), ("Kinds", "Small")]
    assert "kinds" in page.anchors


def test_the_first_top_heading_is_the_page_not_a_section():
    page = page_of("# Title\n\nIntro.\n\n## One\n\nText.\n")
    assert [(s.heading, s.anchor) for s in page.sections] == [("", ""), ("One", "one")]
    assert "title" in page.anchors


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("## What's new in v2.0?", "whats-new-in-v20"),
        ("## `kubectl` & friends", "kubectl--friends"),
        ("## Größe ändern", "größe-ändern"),
        ("## snake_case stays", "snake_case-stays"),
        ("## With an id {#custom}", "custom"),
        ("## With [a link](x.md)", "with-a-link"),
        ("## With attributes {#custom .wide}", "custom"),
        ("## With a comment {/* #custom */}", "custom"),
    ],
)
def test_anchors_are_as_the_site_makes_them(heading, anchor):
    page = page_of(f"{heading}\n\nText.\n")
    assert page.sections[0].anchor == anchor
    assert "{" not in page.sections[0].heading


def test_repeated_headings_are_numbered():
    text = "## Use\n\na\n\n## Use\n\nb\n\n## Use 1\n\nc\n\n## Use\n\nd\n"
    assert [s.anchor for s in page_of(text).sections] == ["use", "use-1", "use-1-1", "use-2"]
    assert [s.anchor for s in page_of(text, slugs="python").sections] == ["use", "use_1", "use-1", "use_2"]
    assert slug("Größe & Co", "python") == "groe-co"


def test_code_is_kept_whole():
    code = '```python linenums="1"\n# not a heading\n\n\n<Card>{kept}</Card> {{< kept >}}\n```'
    page = page_of(f"## Use\n\n{code}\n\nAfter.\n", "page.mdx", shortcodes=True)
    assert code in page.sections[0].text
    assert [s.heading for s in page.sections] == ["Use"]


def test_a_comment_character_in_code_is_no_heading():
    assert len(page_of("Run:\n\n    # as root\n    make\n\n~~~sh\n# too\n~~~\n").sections) == 1


def test_a_long_section_is_parted_between_blocks():
    text = "## Long\n\n" + "\n\n".join(f"Paragraph {n}. " + "word " * 60 for n in range(100)) + "\n"
    sections = page_of(text).sections
    assert len(sections) > 3
    assert {(s.heading, s.anchor) for s in sections} == {("Long", "long")}
    lines = text.split("\n")
    for section in sections:
        assert len(section.text) < 7000
        covered = "\n".join(lines[section.start_line - 1 : section.end_line])
        assert section.text.split("\n")[-1].strip() in covered
    assert all(f"Paragraph {n}." in page_of(text).content for n in range(100))


def test_a_page_without_text_still_has_a_place():
    page = page_of("---\ntitle: st.button\ndescription: Shows a button.\n---\n\n<Autofunction function='x' />\n")
    assert [(s.text, s.start_line) for s in page.sections] == [("Shows a button.", 5)]


# What no reader sees


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('import A from "/snippets/a.mdx";\n\nText.', "Text."),
        ('import {\n  A,\n  B\n} from "x"\n\nText.', "Text."),
        ("export const meta = {\n  a: 1\n}\n\nText.", "Text."),
        ("import A, {B,\n  C} from 'x'\n\nText.", "Text."),
        ("{list.map((x) => (\n  <li>{x.name}</li>\n))}\n\nText.", "Text."),
        ("{a && <b>{c}</b>} Text.", "Text."),
        ("<Tabs items={['npm', 'pnpm']}>\n\nText.\n\n</Tabs>", "**npm**\npnpm\nText."),
        ("Export your data, import {it} again.", "Export your data, import  again."),
        ("<!-- note\n\n## to self -->\n\nText.", "Text."),
        ("{/* note\n## to self */}\nText.", "Text."),
        ("Text <!-- with --> a comment.", "Text  a comment."),
        ("<Note>\n  Mind it.\n</Note>", "Mind it."),
        ('<Card title="Start here" icon="rocket" href="/start">\n  Begin.\n</Card>', "**Start here**\n\n  Begin."),
        ('Use <Tooltip tip="It is fast">the cache</Tooltip>.', "Use the cache."),
        ("A{' '}<b>bold</b> word.", "A bold word."),
        ("Value: {props.value}.", "Value: ."),
        (":::tip Mind this\nText.\n:::", "**Mind this**\nText."),
        (":::note[Title]\nText.\n:::", "**Title**\nText."),
        ('<Steps>\n    <Step title="One">\n        Do it.\n    </Step>\n</Steps>', "**One**\n\nDo it."),
        ('<img src="x.png" alt="A cat" />', "**A cat**"),
        ("<style>\n.a { color: red }\n</style>\nText.", "Text."),
        ("`<Card>` and `{x}` stay.", "`<Card>` and `{x}` stay."),
        ("1 < 2 and <https://example.com>.", "1 < 2 and <https://example.com>."),
        ("Replace <name> by yours.", "Replace <name> by yours."),
        ("&nbsp;\n\nAn&nbsp;`a&nbsp;b` file.", "An `a&nbsp;b` file."),
    ],
)
def test_mdx_noise_is_not_shown(source, expected):
    assert "\n".join(line for line in shown(source).split("\n") if line.strip()) == "\n".join(
        line for line in expected.replace("\n  Begin", "\nBegin").split("\n") if line.strip()
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('A {{< glossary_tooltip text="pod" term_id="pod" >}} runs.', "A pod runs."),
        ('A {{<glossary_tooltip term_id="api-server">}} runs.', "A api server runs."),
        ("{{< note >}}\nMind it.\n{{< /note >}}", "Mind it."),
        ('{{% tab name="Linux" %}}\nRun it.\n{{% /tab %}}', "Linux\nRun it."),
        ('## {{% heading "whatsnext" %}}\n\nMore.', "## whatsnext\n\nMore."),
        ("Show {{</* note */>}}.", "Show `{{< note >}}`."),
        ('{% hint style="info" %}\nMind it.\n{% endhint %}', "Mind it."),
        ('{% tab title="Linux" %}\nRun it.\n{% endtab %}', "Linux\nRun it."),
        ("{{< comment >}}\nhidden\n{{< /comment >}}\nText.", "Text."),
    ],
)
def test_hugo_shortcodes_leave_their_words(source, expected):
    assert shown(source, "page.md", shortcodes=True).strip() == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('The {{domxref("Window.open")}} method.', "The Window.open method."),
        ('See {{domxref("Window.open()", "open()")}}.', "See open()."),
        ('A {{HTTPHeader("Accept")}} header.', "A Accept header."),
        ('{{Glossary("DOM")}} and {{cssxref(":hover")}}', "DOM and :hover"),
        ('{{APIRef("DOM")}}\n\nText.', "Text."),
        ("{{Compat}}\n\nText{{optional_inline}}.", "Text."),
    ],
)
def test_macros_leave_their_text(source, expected):
    assert shown(source, "page.md") == expected


def test_an_imported_snippet_is_shown_where_it_is_used():
    files = {"/snippets/key.mdx": b"---\ntitle: No\n---\n\nCreate a **key**.\n"}
    text = (
        'import Key from "/snippets/key.mdx";\nimport Gone from "./gone.mdx"\n\n'
        "## Keys\n\nFirst:\n\n<Key />\n\n<Gone />\n\n## More\n\nLast.\n"
    )
    page = parse_page(text.encode(), "page.mdx", Dialect(), files.get)
    assert isinstance(page, ParsedPage)
    assert [(s.heading, s.text) for s in page.sections] == [
        ("Keys", "First:\n\nCreate a **key**."),
        ("More", "Last."),
    ]


# Links


def test_links_are_found_with_their_lines():
    page = page_of(
        "---\ntitle: T\n---\n"
        "See [the *guide*](guide.md#top) and ![not this](x.png).\n"
        '<Card title="Start" href="/start" />\n\n'
        "`[not](code.md)`\n\n```\n[nor](this.md)\n```\n\n"
        '[by reference][ref] and <a href="/html">html</a>\n\n[ref]: /referenced\n',
        "page.mdx",
    )
    assert sorted((link.href, link.text, link.line) for link in page.links) == [
        ("/html", "html", 13),
        ("/referenced", "by reference", 13),
        ("/start", "Start", 5),
        ("guide.md#top", "the guide", 4),
    ]


def test_a_hugo_reference_is_a_link():
    page = page_of('[Pods]({{< ref "/docs/pods.md" >}})', shortcodes=True)
    assert [link.href for link in page.links] == ["/docs/pods.md"]


def test_ids_in_tags_are_anchors():
    page = page_of(
        '<a name="old"></a>\n\n<div id="box">x</div>\n\n<Accordion title="Are you sure?">x</Accordion>', "a.mdx"
    )
    assert page.anchors >= {"old", "box", "are-you-sure"}


def test_search_reads_words_not_addresses():
    assert words_of("[the guide](https://example.com/x?y) ![shot](a/b.png)").split() == ["the", "guide", "shot"]


# What is wrong with a page is its own affair

HOSTILE = {
    "nested quotes": ">" * 900_000,
    "nested lists": "- " * 400_000,
    "indented lists": "".join(" " * (2 * n) + "- a\n" for n in range(900)),
    "one long line": "word " * 200_000,
    "brackets": "[" * 900_000,
    "open links": "[a](" * 200_000,
    "backticks": "`" * 900_000,
    "tags": "<div>" * 180_000,
    "open attributes": "<A b='" * 150_000,
    "open braces": "{{" * 400_000,
    "open shortcodes": "{{< " * 200_000,
    "open comments": "<!--" * 200_000,
    "comments": "<!-- -->" * 110_000,
    "open scripts": "<script>" * 100_000,
    "headings": "# a\n" * 49_000,
    "deep flow yaml": f"---\na: {'[' * 60_000}\n---\nText.\n",
    "deep block yaml": f"---\n{'- ' * 30_000}\n---\nText.\n",
    "deep toml": f"+++\n{'a.' * 30_000}b = 1\n+++\nText.\n",
    "yaml bomb": "---\n"
    + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9) if n else 'x'}]\n" for n in range(12))
    + "---\nText.\n",
    "yaml merge bomb": "---\na0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12))
    + "---\nText.\n",
    "yaml constructs": "---\ntitle: !!python/object/apply:os.system ['true']\n---\nText.\n",
    "endless front matter": "---\n" + "a: b\n" * 40_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("mdx", [False, True], ids=["md", "mdx"])
@pytest.mark.slow
def test_a_hostile_page_is_read_or_skipped(name, mdx):
    page = parse_page(HOSTILE[name].encode(), "page.md", Dialect(mdx=mdx, shortcodes=True))
    assert isinstance(page, ParsedPage | Skipped)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"caf\xe9", "It is not UTF-8 text."),
        (b"\x89PNG\0\0", "It is not text."),
        (b"a" * (MAX_PAGE_BYTES + 1), "It is larger than 1 MiB."),
        (b"\n" * (MAX_LINES + 1), f"It has more than {MAX_LINES:,} lines."),
    ],
)
def test_invalid_page_is_skipped_with_the_reason(data, reason):
    assert parse_page(data, "x.md") == Skipped("x.md", reason)


FRAGMENTS = st.sampled_from(
    [
        *("# A\n", "## B {#b}\n", "\n", "text ", "```\n", "~~~\n", "- ", "> ", "    ", "<Card title='x'>", "</Card>"),
        *(
            "<!--",
            "-->",
            "{/*",
            "*/}",
            "{{< x >}}",
            "{{",
            "}}",
            "---\n",
            "title: x\n",
            "===\n",
            "[a](b.md)",
            "![",
            "](",
        ),
        *("`", "import x from 'y'\n", "export const a = {\n", ":::note\n", "!!! tip\n", "|a|b|\n", "é", "\t", "\r\n"),
        *(
            "\x0b",
            "\u2028",
            "<script>",
            "</script>",
            "{% x %}",
            "layout: home\n",
            "> [!TIP] ",
            "[[toc]]\n",
            "// [!code a]",
        ),
    ]
)
PAGES = st.lists(FRAGMENTS | st.text(max_size=8), max_size=60).map("".join)
DIALECTS = st.builds(
    Dialect, mdx=st.booleans(), shortcodes=st.booleans(), vue=st.booleans(), book=st.booleans(),
    slugs=st.sampled_from(["github", "python", "vitepress"]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("<Card title='x'>[a](b.md)", [1]),
        ("One.\n<Card title='x' description='y'>[a](b.md)\n\n<Tab title='z'> [c](d.md)\n", [2, 4]),
        ("<Card\n  title='x'\n>\n[a](b.md)\n</Card>\n[c](d.md)\n", [4, 6]),
    ],
)
def test_a_link_behind_what_a_component_shows_has_its_own_line(text, lines):
    assert [link.line for link in page_of(text).links] == lines


@given(st.binary(max_size=300), DIALECTS)
def test_no_bytes_raise(data, dialect):
    assert isinstance(parse_page(data, "x.md", dialect), ParsedPage | Skipped)


@settings(max_examples=300)
@given(PAGES, DIALECTS)
def test_sections_cover_the_file_in_order(text, dialect):
    page = parse_page(text.encode("utf-8", "surrogatepass"), "x.md", dialect)
    if isinstance(page, Skipped):
        return
    last = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    before = 0
    for section in page.sections:
        assert before < section.start_line <= section.end_line <= last
        before = section.end_line
        assert section.heading == (section.heading_path[-1] if section.heading_path else "")
        assert not section.anchor or section.anchor in page.anchors
    assert all(1 <= link.line <= last for link in page.links)


@settings(max_examples=200)
@given(PAGES, DIALECTS)
def test_every_section_is_on_the_page(text, dialect):
    page = parse_page(text.encode("utf-8", "surrogatepass"), "x.md", dialect)
    if isinstance(page, ParsedPage):
        assert all(section.text in page.content or section.text == page.description for section in page.sections)


@given(st.lists(st.text(alphabet="abc #-_é1", min_size=1, max_size=12), max_size=20))
def test_anchors_of_headings_are_distinct(names):
    page = page_of("".join(f"## x{name}\n\ntext\n\n" for name in names))
    anchors = [section.anchor for section in page.sections]
    assert len(anchors) == len(set(anchors)) == len(names)


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_last_section_ends_with_the_last_line(end):
    page = parse_page(f"---\ntitle: A\n---\n\nText.\n\n## B\n\nMore.{end}".encode(), "a.md")
    assert [(section.start_line, section.end_line) for section in page.sections] == [(4, 6), (7, 9)]
    page = parse_page(f"Text.{end}".encode(), "a.md")
    assert [(section.start_line, section.end_line) for section in page.sections] == [(1, 1)]


# Braces of MDX, escaped signs, attributes


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("<Button onClick={e => alert('hi {')}>\n  Press\n</Button>\n\nMore.", "Press\n\nMore."),
        ("<B on={() => `}${x}`} />\n\nMore.", "More."),
        ("<B a={/* } */ 1} />\n\nMore.", "More."),
        ("A \\{word\\}, {'{'} and {\"}\"}, `\\{code\\}`.", "A {word}, { and }, `\\{code\\}`."),
        ('export const T = () => {\n  const s = "it\'s {";\n  return s;\n};\n\nMore.', "More."),
        ('<Card title={"Braces } here"}>\n  Text.\n</Card>', "**Braces } here**\n\nText."),
        ("It's {1 + 1} o'clock, isn't it {'}'}?", "It's  o'clock, isn't it }?"),
        ("A { alone.\n\nMore.", "A { alone.\n\nMore."),
    ],
)
def test_braces_in_strings_of_mdx_are_not_counted(text, content):
    assert shown(text).replace("\n\n\n", "\n\n") == content


@pytest.mark.parametrize(
    ("text", "dialect", "heading", "anchors"),
    [
        ("## Map\\<K, V\\>\n\nText.", {}, "Map<K, V>", {"mapk-v"}),
        ("## `List<T>` class\n\nText.", {}, "List<T> class", {"listt-class"}),
        ('## 1.2 { id="v1.2" }\n\nText.', {"slugs": "python"}, "1.2", {"v1.2"}),
        ("## A { id=b .c }\n\nText.", {"slugs": "python"}, "A", {"b"}),
        ("## A { .c #b data-x='1' }\n\nText.", {"slugs": "python"}, "A", {"b"}),
        ("## A\n\n[x](y){ #span } z\n{ #para }", {"slugs": "python"}, "A", {"a", "span", "para"}),
        ("## 1. Wash the pot\n\nText.", {"slugs": "gitbook"}, "1. Wash the pot", {"id-1.-wash-the-pot"}),
        ("## Run v2.0 & go\n\nText.", {"slugs": "gitbook"}, "Run v2.0 & go", {"run-v2.0-and-go"}),
        ('## A <a href="#b" id="b"></a>\n\nText.', {"slugs": "gitbook"}, "A", {"b"}),
        ("Height\n------\n\nText.", {}, "Height", {"height"}),
        ("Height\r\n------\r\n\r\nText.", {}, "Height", {"height"}),
    ],
)
def test_headings_have_the_anchors_of_their_generator(text, dialect, heading, anchors):
    page = page_of(text, **dialect)
    assert ([section.heading for section in page.sections], set(page.anchors)) == ([heading], anchors)
    assert "---" not in page.content


def test_wrapped_targets_of_links_stay_in_the_text():
    assert "[a](<b.md#c>) [d](<e f/g.md>)" in page_of("[a](<b.md#c>) [d](<e f/g.md>)").content


@pytest.mark.parametrize(
    ("heading", "shown", "anchor", "text"),
    [
        ('<Icon name="exclamation-triangle" /> No tests found', "No tests found", "-no-tests-found", "Go."),
        ('`build.base` <Badge text="New" variant="tip" />', "build.base", "buildbase-", "New\n\nGo."),
        ("useTide <Version>3.2.0</Version>", "useTide", "usetide-320", "3.2.0\n\nGo."),
        ('Sails <span class="badge">beta</span>', "Sails", "sails-beta", "beta\n\nGo."),
        ("[![npm](https://x.test/y.svg)](https://npm.test) Ship", "Ship", "npm-ship", "Go."),
        ("![Ship](ship.svg)", "Ship", "ship", "Go."),
    ],
)
def test_icons_and_badges_are_no_words_of_a_heading(heading, shown, anchor, text):
    page = parse_page(f"# Fleet\n\n## {heading}\n\nGo.\n".encode(), "a.mdx")
    (section,) = [each for each in page.sections if each.anchor]
    assert (section.heading, section.anchor, section.text) == (shown, anchor, text)
