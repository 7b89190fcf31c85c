"""Every reader of pages takes time in proportion to the page, whatever stands in it."""

import json
from itertools import pairwise

import pytest

from service.agent.checks.gates import Changed, check_files
from service.agent.checks.markup import links_of
from service.domain.sites import Skipped
from service.retrieval.readers.markdown import ParsedPage
from tests.hostile.growth import assert_linear, seconds
from tests.retrieval.formats import page_of, read

pytestmark = pytest.mark.slow

FILES = {
    "markdown": ("a.md", {}),
    "mdx": ("a.mdx", {}),
    "hugo": ("content/a.md", {"hugo.toml": "", "content/_index.md": "x"}),
    "mkdocs": ("docs/a.md", {"mkdocs.yml": "site_name: x"}),
    "mdn": ("files/en-us/a/index.md", {"files/en-us/b/index.md": "x"}),
    "rst": ("a.rst", {}),
    "html": ("a.html", {}),
    "notebook": ("a.ipynb", {}),
    "vitepress": ("docs/a.md", {"docs/.vitepress/config.js": "", "docs/b.md": "# c\n" * 9}),
    "mdbook": ("src/a.md", {"book.toml": "", "src/SUMMARY.md": "[a](a.md)", "src/b.md": "b\n" * 9}),
    "yaml": ("openapi.yaml", {}),
}
Shape = tuple[str, str, str]
"""What stands before, what is repeated, what stands behind."""
SHAPES: dict[str, list[Shape]] = {
    "markdown": [
        ("x", " ", "x"),
        ("x", "\t", "x"),
        ("", " ", "\n"),
        ("# a ", "{#a", "\n"),
        ("", "[", ""),
        ("", "[a](", ""),
        ("", "[a]: b\n[a] ", ""),
        ("", "`", "x"),
        ("", "` `` ", ""),
        ("", "<a ", ""),
        ("<a ", "-", ">"),
        ("<a ", "b='", ""),
        ("<", "A", "\n"),
        ("", "<a href='b'>\n", ""),
        ("", "<script>", ""),
        ("{{", "a", "\n"),
        ("{{a(", "(", ""),
        (":::", " ", "x" * 400),
        ("!!! ", " ", "x" * 400),
        ("", "`<!--", ""),
        ("# ", "{/*", ""),
        ("# ", "`<!-- ", ""),
        ("", "> ", ""),
        ("", "- ", ""),
        ("", "*a", ""),
        ("", "# a\n```\nb\n```\n", ""),
        ("---\na:", " ", "\n---\nx"),
        ("---\na: ", "[", "\n---\nx"),
        ("---\n", "- a\n", "---\nx"),
    ],
    "mdx": [("", "import a from 'b'\n", ""), ("", "export const a = {\n", ""), ("", "<A title='b'>", "")],
    "hugo": [("{{<", " ", ""), ("", "{{< a ", ""), ("{{< a ", "b=", " >}}"), ("# ", "-", "")],
    "mkdocs": [("", "# a_1\n", ""), ("", '--8<-- "a"\n', ""), ("", '=== "a"\n    b\n', "")],
    "vitepress": [
        ("", "{{", ""),
        ("{{", "{a}", ""),
        ("", "> [!NOTE]\n", ""),
        ("", "<!--@include: ", ""),
        ("", "<<< @/b.md\n", ""),
        ("```js ", "[a", "\nb\n```"),
        ("```js\n", "// [!code a] ", "\n```"),
        ("```js\n", " ", "// [!code\n```"),
        ("::: tip ", "{a", "\n"),
        ("", "<!--@include: ./b.md#c-->", ""),
    ],
    "mdbook": [("", "{{#include b.md}}", ""), ("", "{{#a ", ""), ("```rust\n", "# a\n", "```")],
    "mdn": [("", "{{a('b')}}", ""), ("", "- a\n  - : b\n", "")],
    "rst": [
        ("", "x\n=\n\n", ""),
        (":a:`", " ", "x`"),
        ("", ".. a:: b\n\n   c\n\n", ""),
        (f".. |a| replace:: {'b' * 2000}\n\n", "|a| ", ""),
        (".. toctree::\n\n   ", " ", "<a"),
    ],
    "html": [
        ("<p>", "<i>x</i>", ""),
        ("<p>", "<i> </i>", ""),
        ("<h1>", "#", "x</h1>"),
        ("", "<div>", ""),
        ("", "<b>", ""),
        ("", "<table>", ""),
        ("<table>", "<tr><td>x", ""),
        ("<p ", "a ", ">x"),
        ("", "<header>", "x"),
        ("<pre>", "\n", "x"),
        ("", "<", ""),
        ("", "&", ""),
    ],
    "notebook": [("", "#", ""), ("", "x\n", ""), ("", " ", "x")],
    "yaml": [
        ("openapi: 3.0.0\npaths:\n  /a: ", "[", ""),
        ("openapi: 3.0.0\npaths:\n  /a: ", "'", ""),
        ("openapi: 3.0.0\npaths:\n", "  /a: {get: {summary: b}}\n", ""),
        ("openapi: 3.0.0\ninfo: {title: '", "a\n\n", "'}"),
    ],
}


@pytest.mark.parametrize("kind", SHAPES)
def test_pages_are_read_in_linear_time(kind):
    path, others = FILES[kind]

    def parse(text):
        if kind == "notebook":
            text = json.dumps({"cells": [{"cell_type": "markdown", "source": text}]})
        found = read({**others, path: text}, path)
        assert isinstance(found, ParsedPage | Skipped)
        assert "longer than" not in getattr(found, "reason", "")

    for before, unit, behind in SHAPES[kind]:
        name = f"{kind} {before[:30]!r} {unit!r} {behind[:10]!r}"
        assert_linear(parse, lambda size, shape=(before, unit, behind): _shaped(size, *shape), name, largest=1 << 14)


def _shaped(size, before, unit, behind):
    return before + unit * (size // len(unit)) + behind


@pytest.mark.parametrize("unit", [":A", "*a "])
def test_page_slow_in_docutils_is_left_out(unit):
    found = read({"a.rst": unit * (200_000 // len(unit))}, "a.rst", seconds=0.2)
    assert isinstance(found, Skipped)
    assert found.reason == "Reading it took longer than 0.2 seconds."


DEEP = {
    "quotes.md": ">" * 100_000,
    "lists.md": "- " * 100_000,
    "indented.md": "".join("  " * depth + "- a\n" for depth in range(900)),
    "brackets.md": "[" * 100_000 + "a" + "](b)" * 100_000,
    "tags.mdx": "<A>" * 100_000 + "</A>" * 100_000,
    "braces.mdx": "{" * 100_000 + "}" * 100_000,
    "front.md": "---\na: " + "[" * 20_000 + "]" * 20_000 + "\n---\nText.",
    "front2.md": "---\n" + "- " * 20_000 + "\n---\nText.",
    "front3.md": "+++\na = " + "[" * 20_000 + "]" * 20_000 + "\n+++\nText.",
    "front4.md": "+++\n" + ".".join("a" * 20_000) + " = 1\n+++\nText.",
    "aliases.md": "---\na: &a [x, x]\n"
    + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in pairwise("abcdefghijk"))
    + "draft: *k\n---\nText.",
    "divs.html": "<div>" * 100_000 + "text",
    "spans.html": "<span>" * 100_000 + "text",
    "tables.html": "<table><tr><td>" * 20_000 + "text",
    "lists.html": "<ul><li>" * 20_000 + "text",
    "deep.ipynb": '{"cells": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep2.ipynb": '{"metadata": ' + '{"a": ' * 100_000 + "1" + "}" * 100_000 + ', "cells": []}',
    "outputs.ipynb": json.dumps(
        {"cells": [{"cell_type": "code", "source": "run()", "outputs": [{"text": "x" * 200_000}] * 30}]}
    ),
    "quotes.rst": "".join(" " * depth + "a\n\n" for depth in range(1_200)),
    "directives.rst": "".join("   " * depth + ".. note::\n\n" for depth in range(500)),
    "roles.rst": ":a:`" * 20_000,
    "openapi.json": '{"openapi": "3.0.0", "paths": ' + '{"a": ' * 100_000 + "1" + "}" * 100_001,
    "swagger.json": '{"openapi": "3.0.0", "paths": {}, "x": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "a/openapi.yaml": "openapi: 3.0.0\npaths: " + "{a: " * 50_000 + "1" + "}" * 50_000,
    "b/openapi.yaml": "openapi: 3.0.0\npaths:\n" + "".join(" " * depth + "a b:\n" for depth in range(1, 1_500)),
    "c/openapi.yaml": "openapi: 3.0.0\nx0: &x0 [a, a, a, a, a, a, a, a, a]\n"
    + "".join(f"x{n + 1}: &x{n + 1} [{', '.join([f'*x{n}'] * 9)}]\n" for n in range(9))
    + "paths: {/a: {get: {parameters: *x9}}}",
    "d/openapi.yaml": "openapi: 3.0.0\n"
    "paths: {/a: {$ref: '#/paths/~1b'}, /b: {$ref: '#/paths/~1a'}, /c: &c {get: *c}}\n"
    "components:\n  schemas:\n"
    "    A: {properties: {a: {$ref: '#/components/schemas/A'}, b: {$ref: '#/components/schemas/B'}}}\n"
    "    B: {allOf: [{$ref: '#/components/schemas/A'}, {$ref: '#/components/schemas/B'}]}\n",
}


@pytest.mark.parametrize("path", DEEP)
def test_deep_page_is_read_or_left_out_with_reason(path):
    found: list[ParsedPage | Skipped] = []
    seconds(lambda text: found.append(read({path: text}, path)), DEEP[path])  # raises where it takes too long
    assert isinstance(found[0], ParsedPage) or found[0].reason


GATED = [
    ("", "<!--", ""),
    ("", "{/*", ""),
    ("", "`a ", ""),
    ("`a\n", " ", "x"),
    ("", "```x\n", ""),
    ("", "![", ""),
    ("", "](a", ""),
    ("", "](", ""),
    ("{{<", " ", ""),
    ("{{<", "a", ""),
    ("", "{{< a ", ""),
    ("", "<A ", ""),
    ("", "<A{}>\n", ""),
    ("import", " ", ""),
    ("", "import A from 'b'\n", ""),
    ("", "<A />\n", ""),
    ("", "sk-ant-" + "q7" * 20 + "\n", ""),
    ("---\n", "a: b\n", ""),
]


def test_changed_pages_are_checked_in_linear_time():
    def check(text):
        check_files([Changed("a.mdx", "import Q from 'q'\n" * 2 + text[: len(text) // 2], text)])
        links_of(text)
        links_of(text, "a.mdx")

    for before, unit, behind in GATED:
        name = f"{before!r} {unit!r} {behind!r}"
        assert_linear(check, lambda size, shape=(before, unit, behind): _shaped(size, *shape), name, largest=1 << 14)


def test_dropped_imports_are_looked_for_in_linear_time():
    def check(size):
        before = "".join(f"import A{number} from 'b'\n" for number in range(size // 20))
        check_files([Changed("a.mdx", before, "x `y` " * (size // 6))])

    assert_linear(check, lambda size: size, "imports", largest=1 << 14)


@pytest.mark.parametrize("attribute", ["a{0} ", "a{0}=b ", "a{0}='>'", '=" a{0}', "a{0}/"])
def test_flood_of_attributes_is_refused(attribute):
    flood = "".join(attribute.format(number) for number in range(40_000))
    found: list[ParsedPage | Skipped] = []
    seconds(lambda text: found.append(read({"a.html": text}, "a.html")), f"<p {flood}>x</p>")
    assert found == [Skipped("a.html", "An element has more than 2,000 attributes.")]


def test_long_attributes_are_read():
    page = page_of(f"""<p data-props='{{"a": "{"b > c " * 20_000}"}}' style="{"a: b; " * 9_000}">Text</p>""", "a.html")
    assert page.content == "Text"


def test_shown_files_do_not_multiply_page():
    snippet = "word " * 3_000
    page = page_of({"a.mdx": "import S from './s.mdx'\n\n" + "# A\n\n<S />\n\n" * 2_000, "s.mdx": snippet}, "a.mdx")
    assert 500_000 < len(page.content) < 1_100_000
    code = page_of(
        {"mkdocs.yml": "", "docs/a.md": '```\n--8<-- "s.txt"\n```\n\n' * 2_000, "docs/s.txt": snippet}, "docs/a.md"
    )
    assert 500_000 < len(code.content) < 1_200_000


def test_substitutions_do_not_multiply_page():
    page = page_of(f".. |a| replace:: {'b' * 5_000}\n\n" + "|a| " * 2_000, "a.rst")
    assert 900_000 < len(page.content) < 1_100_000


def test_schemas_that_name_each_other_are_cut():
    alternatives = ", ".join(f"{{$ref: '#/components/schemas/S{number}'}}" for number in range(20))
    schemas = "\n".join(f"    S{number}: {{oneOf: [{alternatives}], anyOf: [{alternatives}]}}" for number in range(20))
    text = f"openapi: 3.0.0\npaths: {{}}\ncomponents:\n  schemas:\n{schemas}\n"
    assert_linear(lambda _: page_of(text, "openapi.yaml"), lambda size: size, "schemas", largest=1_000)


def test_like_headings_are_numbered_in_linear_time():
    def parse(size):
        some = "".join(f"# a_{number}\n" for number in range(size // 14))
        page_of({"mkdocs.yml": "site_name: x", "docs/a.md": some + some}, "docs/a.md")

    assert_linear(parse, lambda size: size, "headings", largest=1 << 16)
