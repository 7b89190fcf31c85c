"""Agent, index and a renderer read the same links, headings and code in a page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.markup_agreement import by_agent, differences
from service.markup.dialects.dialect import Dialect

MDX = Dialect(mdx=True)
SAMPLES = {
    "inline": "See [one](a.md), ![picture](b.png) and [two](<c d.md> 'title').",
    "parentheses": "[one](/a_(b)) and [two](/c\\_d), not \\[three](/e).",
    "picture in link": "[![badge](b.svg)](a.md) and [a [b] c](d.md)",
    "link in link": "[outer [inner](a.md) words](b.md)",
    "over two lines": "[one\nand the same](a.md\n'title') goes on",
    "reference": "[one][r], [R][], [r] and [none].\n\n[r]: /defined 'title'\n[unused]:\n  <b c>",
    "reference in quote": "> [one][q]\n>\n> [q]: /quoted",
    "footnote": "Words[^1] go on.\n\n[^1]: The note.",
    "code span": "`[no](a.md)` and ``[no](`b`.md)`` but [yes](c.md)",
    "code span over two lines": "a `[no]\n(a.md)` b",
    "backticks without an end": "a ` [yes](a.md) and `` [yes](b.md)",
    "code span across blocks": "- a ` b\n- [yes](c.md) ` d\n",
    "escaped backtick": "\\`[yes](a.md)`",
    "indented code": "Words:\n\n    [no](a.md)\n\n    # no heading\n",
    "indented in list": "- one\n\n      [no](a.md)\n\n  [yes](b.md)\n",
    "no code after prose": "Words\n    [yes](a.md)",
    "fence": "```\n[no](a.md)\n# no\n```",
    "fence of tildes": "~~~ md\n```\n[no](a.md)\n~~~~\n\n[yes](b.md)",
    "fence in list": "1. one\n\n   ```sh\n   # no\n   [no](a.md)\n   ```\n2. [yes](b.md)",
    "fence in quote": "> ```\n> [no](a.md)\n\n[yes](b.md)",
    "fence with backticks": "``` `x` ``` [yes](a.md)",
    "fence too short": "````\n```\n[no](a.md)\n````",
    "headings": "# One `two` [three](a.md)\n\nFour\n====\n\n## Five ##\n\n- # in a list\n",
    "heading that is none": "#hashtag and\n\\# escaped",
    "comment": "<!-- [no](a.md)\n\n# no\n```\n-->\n\n[yes](b.md)",
    "comment in prose": "a <!-- [no](a.md) --> [yes](b.md)",
    "html": "<div>\n[no](a.md)\n<a href='b.md'>yes</a>\n</div>\n\n<a href=\"c.md\">yes</a> and [yes](d.md)",
    "tag around brackets": '<a title="[no](a.md)" href="b.md">[x]</a>',
    "autolink": "<https://example.com/[a](b.md)> and [yes](c.md)",
    "tasks": "- [ ] to do\n- [x] [done](a.md)",
    "table": "| a | b |\n|---|---|\n| [one](a.md) | `[no](b.md)` |",
    "entities": "[one](a&amp;b.md) [two](c%20d.md)",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_is_read_alike_by_all(name):
    assert differences(SAMPLES[name], "a.md") == {}


@given(st.lists(st.sampled_from(sorted(SAMPLES)), max_size=6))
def test_pages_of_samples_are_read_alike_by_all(names):
    text = "\n\n".join(SAMPLES[name] for name in names)
    assert differences(text, "a.md") == {}


@given(st.sampled_from(sorted(SAMPLES)), st.sampled_from(["> ", "- ", "1. ", "> - "]))
def test_nested_samples_are_read_alike_by_all(name, mark):
    first, rest = (mark, "> " + " " * (len(mark) - 2)) if mark[0] == ">" else (mark, " " * len(mark))
    lines = [f"{rest}{line}".rstrip() for line in SAMPLES[name].split("\n")]
    assert differences(first + "\n".join(lines)[len(first) :], "a.md") == {}


@pytest.mark.parametrize(
    ("text", "links", "code"),
    [
        ("<Card\n  title='x'\n  href='/a'\n>\n    [b](/b)\n</Card>", {"/a", "/b"}, ()),
        ("<Tab>\n    ```js\n    [no](/a)\n    ```\n</Tab>\n", set(), ("[no](/a)",)),
        ("Words:\n    ```js\n    [no](/a)\n    ```\n", set(), ("[no](/a)",)),
        ("import A from './a'\n\n<A to='/b' />\n", {"/b"}, ()),
        ("export const a = {\n  b: '[no](/a)',\n\n  c: 1,\n}\n\n[yes](/b)", {"/b"}, ()),
        ("{/* [no](/a)\n\n```\n*/}\n\n[yes](/b)", {"/b"}, ()),
        ("<Frame caption='[yes](/a)' />", {"/a"}, ()),
    ],
)
def test_mdx_is_read_alike_by_agent_and_index(text, links, code):
    read = by_agent(text, "a.mdx", MDX)
    assert (read.links, read.code) == (links, code)
    assert differences(text, "a.mdx", MDX) == {}
