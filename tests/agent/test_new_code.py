"""Code that a page's change adds is found, data and samples of code are not."""

import pytest

from service.agent.checks.new_code import code_of
from service.markup.dialects.dialect import Dialect

PLAIN = Dialect()


def found(text, path="a.mdx", **options):
    return [(piece.kind, piece.line) for piece in code_of(text, path, PLAIN, **options)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("import X from './x'\n", "an import"),
        ("import './x.css'\n", "an import"),
        ("export const a = () => 1\n", "an export"),
        ("Hello {name}.\n", "an expression"),
        ("Hello {(() => fetch('https://x.example'))()}.\n", "an expression"),
        ("Hello {`${name}`}.\n", "an expression"),
        ("<Tabs items={load()} />\n", "an expression"),
        ("<Tabs {...props}>x</Tabs>\n", "an expression"),
        ("<p>{\n  name\n}</p>\n", "an expression"),
        ("Broken {\n", "an expression"),
        ("{'`'} <img src=x onerror=steal()> {'`'}\n", "an event handler"),
        ("{'`'} {steal()} {'`'}\n", "an expression"),
        ("<script>steal()</script>\n", "<script>"),
        ("<script src=//x.example>\n</script>\n", "<script>"),
        ("Some <iframe src='https://x.example'></iframe>\n", "<iframe>"),
        ("<meta http-equiv=refresh content=0>\n", "<meta>"),
        ("<img src=x onerror=steal()>\n", "an event handler"),
        ("<img title='>' alt=\"<\" src=x\n  OnError = 'steal()' />\n", "an event handler"),
        ("<svg/onload=steal()>\n", "an event handler"),
        ("<div dangerouslySetInnerHTML={{__html: 'x'}} />\n", "an event handler"),
        ("<a href='javascript:steal()'>x</a>\n", "an address that runs"),
        ("<a href=' java&#115;cript:steal()'>x</a>\n", "an address that runs"),
        ("[x](javascript:steal())\n", "an address that runs"),
        ("[x](<JavaScript:steal()>)\n", "an address that runs"),
        ("[x][y]\n\n[y]: javascript:steal()\n", "an address that runs"),
        ("<a href={'javascript:steal()'}>x</a>\n", "an address that runs"),
    ],
)
def test_code_is_found_in_a_page_of_mdx(text, kind):
    assert kind in [each for each, _ in found(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Words, `{code}`, `<script>` and `javascript:x`.\n",
        "```html\n<script>steal()</script>\n```\n",
        "```js\nimport x from 'y'\n```\n",
        "<CardGroup cols={2}>\n<Card title=\"A\" icon='b' />\n</CardGroup>\n",
        "<Tabs items={['a', \"b\", -1]} style={{color: 'red', 'a-b': {c: [true]}}} open={true} />\n",
        "<Note>{/* not shown {x} */}</Note>\n",
        "Text{' '}and {`plain`}.\n",
        "## Title {#my-id}\n",
        "<Frame>![A](a.png)</Frame>\n",
        "An \\{escaped} brace, [a link](https://x.example/javascript:1), <b>only = one</b>.\n",
        "<b>Note</b>: set online = true only= once.\n",
        "<!-- <script> -->\n",
        "![a](data:image/png;base64,AAAA)\n",
    ],
)
def test_data_and_samples_are_no_code(text):
    assert found(text) == []


@pytest.mark.parametrize(
    ("path", "text", "kinds"),
    [
        ("a.md", "import x from 'y'\n\nHello {name}.\n", []),
        ("a.md", "Hi\n\n<SCRIPT>x</script>\n", ["<script>"]),
        ("a.html", "<p onclick=x>{{ site.x }}</p>\n", ["a template's tag", "an event handler"]),
        ("a.rst", "Hi\n\n.. raw:: html\n\n   <script>x</script>\n\nEnd <script>\n", ["<script>"]),
        ("a.rst", ".. raw:: html\n\n   <b>x</b>\n", []),
        ("a.rst", ".. program-output:: ls\n", ["a directive that is executed"]),
        ("a.adoc", "++++\n<script>x</script>\n++++\n\nlink:javascript:x[y]\n", ["<script>", "an address that runs"]),
        ("a.md", "```{code-cell} python\nx\n```\n", ["a block that is executed"]),
        ("a.md", "```{raw} html\n<script>x</script>\n```\n", ["<script>"]),
        ("a.md", '```python exec="on"\nx\n```\n', ["a block that is executed"]),
        ("a.md", "---\nhead:\n  - [script, {src: x}]\n---\n", ["an entry of the front matter's head"]),
        ("a.md", "```jsx live\nx\n```\n", ["a block that is executed"]),
        ("a.txt", "<script>\n", []),
    ],
)
def test_code_is_found_in_other_pages(path, text, kinds):
    assert sorted(kind for kind, _ in found(text, path)) == kinds


def test_pages_of_vitepress_are_templates():
    text = 'Hi {{ name }} and `{{ code }}`.\n\n<p @click="x" :class="y">a</p>\n'
    assert found(text, "a.md") == []
    assert [kind for kind, _ in found(text, "a.md", vue=True)] == [
        "an expression", "a directive of Vue", "a directive of Vue",
    ]  # fmt: skip


def test_code_has_its_line():
    assert found("---\ntitle: A\n---\n\nOne\n\n{two}\n\n<iframe>\n") == [("an expression", 7), ("<iframe>", 9)]


def test_a_changed_script_is_other_code():
    one, two = (code_of(f"<script>\n{what}\n</script>\n", "a.md", PLAIN)[0].key for what in ("a()", "b()"))
    assert one != two
