"""Attacks by what is in a repository: pages, ignore files, descriptions and navigation that are dear to read."""

import json
from collections.abc import Callable, Mapping

from scripts.attacks.attack import Answers, Attack, attack, publish
from scripts.attacks.ground import Target

Files = Mapping[str, bytes]
INDEX = b"# Home\n\nWords.\n"


def _site(what: str, made: Callable[[Target], Files], name: str) -> Attack:
    """A push of these files, which the service then indexes."""

    async def run(target: Target, answers: Answers) -> None:
        await publish(target, answers, {"index.md": INDEX, **made(target)})

    run.__name__ = name
    return attack(what, "200")(run)


def _ignore(_: Target) -> Files:
    names = {f"{'a' * 200}{number}.md": INDEX for number in range(50)}
    return {"docs.json": b'{"name":"A","navigation":{"pages":["index"]}}', ".mintignore": b"*a*a*a*a*a*b\n", **names}


def _hex(target: Target) -> Files:
    return {"dump.md": b"# Dump\n\n```\n" + b"deadbeef" * target.many(45_000) + b"\n```\n"}


def _spaces(target: Target) -> Files:
    return {"spaces.md": b"# S\n\nx" + b" " * target.many(1_000_000) + b"x\n"}


def _inline(target: Target) -> Files:
    n = target.many(50_000)
    pieces = (
        b"[",
        b"![",
        b"*a **a ",
        b"`" * 7 + b" ",
        b"<a ",
        b"</",
        b"[a](",
        b"_a__",
        b"&",
        b"\\",
        b"<!--",
        b"{{",
        b"http://",
    )
    return {f"inline-{at}.md": b"# I\n\n" + piece * n + b"\n" for at, piece in enumerate(pieces)}


def _blocks(target: Target) -> Files:
    n = target.many(10_000)
    return {
        "quotes.md": b"> " * n + b"x\n",
        "lists.md": b"".join(b" " * i + b"- x\n" for i in range(target.many(2_000))),
        "stars.md": b"* " * n + b"x\n",
        "table.md": b"|a" * n + b"|\n" + b"|-" * n + b"|\n" + (b"|x" * n + b"|\n") * 5,
        "fences.md": b"```\n" * n,
        "headings.md": b"# H\n" * n,
        "setext.md": b"x\n" * n + b"===\n",
        "footnotes.md": b"".join(b"[^%d]: [^%d]\n" % (i, i + 1) for i in range(n)),
        "references.md": b"".join(b"[r%d]: /x\n" % i for i in range(n)) + b"[r1]" * n,
    }


def _html(target: Target) -> Files:
    n = target.many(50_000)
    return {
        "deep.html": b"<div>" * n,
        "attributes.html": b"<p " + b"a=b " * n + b">x",
        "tables.html": b"<table><tr><td>" * n,
        "entities.html": b"&amp" * n,
        "comments.html": b"<!-" * n,
        "select.html": b"<select><option>" * n,
        "nested.md": b"<details><summary>\n\n" * n,
        "script.html": b"<script>" * n,
    }


def _mdx(target: Target) -> Files:
    n = target.many(50_000)
    return {
        "braces.mdx": b"# M\n\n" + b"{" * n + b"\n",
        "tags.mdx": b"<Tabs>" * n,
        "attributes.mdx": b"<A b={{" * n,
        "imports.mdx": b'import X from "./braces.mdx"\n' * n + b"<X />\n" * n,
        "self.mdx": b'import S from "./self.mdx"\n\n<S />\n',
        "expressions.mdx": b"{/* " * n,
        "unclosed.mdx": b'<A b="' * n,
    }


def _notebooks(target: Target) -> Files:
    cells = [{"cell_type": "markdown", "source": ["x" * 10]} for _ in range(target.many(100_000))]
    return {
        "deep.ipynb": b'{"cells":' + b"[" * target.many(500_000),
        "wide.ipynb": json.dumps({"cells": cells}).encode(),
        "outputs.ipynb": json.dumps(
            {"cells": [{"cell_type": "code", "source": "x", "outputs": cells[:50_000]}]}
        ).encode(),
    }


def _yaml(_: Target) -> Files:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]", *(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))]
    bomb = "\n".join(lines)
    deep = "nav: " + "[" * 20_000
    return {
        "mkdocs.yml": f"site_name: A\n{bomb}\nnav: *a11\n".encode(),
        "bomb.md": f"---\n{bomb}\ntitle: *a11\n---\n# B\n".encode(),
        "deep.md": f"---\n{deep}\n---\n# D\n".encode(),
        "long.md": b"---\n" + b"a: " * 100_000 + b"\n---\n# L\n",
        "unclosed.md": b"---\n" + b"a: b\n" * 100_000,
        "api/openapi.yaml": f"openapi: 3.1.0\n{bomb}\npaths: *a11\n".encode(),
    }


def _refs(target: Target) -> Files:
    schemas = {
        f"S{n}": {"properties": {k: {"$ref": f"#/components/schemas/S{n + 1}"} for k in "abcdefgh"}} for n in range(40)
    }
    schemas["S40"] = {"$ref": "#/components/schemas/S0"}
    operation = {
        "summary": "x",
        "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}},
    }
    paths = {
        f"/p{n}": {"get": operation, "post": {**operation, "requestBody": operation["responses"]["200"]}}
        for n in range(target.many(500))
    }
    document = {
        "openapi": "3.1.0",
        "info": {"title": "x", "version": "1"},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    outside = {**document, "paths": {"/x": {"$ref": "http://127.0.0.1:1/x"}, "/y": {"$ref": "file:///etc/passwd"}}}
    return {
        "docs.json": b'{"name":"A","openapi":["openapi.json","outside.json"],"navigation":{"pages":["index"]}}',
        "openapi.json": json.dumps(document).encode(),
        "outside.json": json.dumps(outside).encode(),
    }


def _navigation(target: Target) -> Files:
    groups: object = "index"
    for number in range(400):
        groups = {"group": f"g{number}", "pages": [groups]}
    pages = [f"p{n}" for n in range(target.many(200_000))]
    return {
        "docs.json": json.dumps(
            {"name": "A", "navigation": {"groups": [groups, {"group": "all", "pages": pages}]}}
        ).encode(),
        "deep/docs.json": b'{"navigation":' + b"[" * 500_000,
    }


def _docusaurus(target: Target) -> Files:
    n = target.many(30_000)
    return {
        "docusaurus.config.js": b"module.exports = {" + b"a: {" * n,
        "sidebars.js": b"module.exports = [" + b"'a'," * n,
        "docs/a.md": INDEX,
    }


def _sphinx(target: Target) -> Files:
    n = target.many(5_000)
    substitutions = b"".join(b".. |s%d| replace:: " % i + b"|s%d| " % (i + 1) * 10 + b"\n" for i in range(30))
    return {
        "conf.py": b"project = 'A'\n",
        "index.rst": b"A\n=\n\n.. toctree::\n\n" + b"".join(b"   p%d\n" % i for i in range(n)),
        "substitutions.rst": b"S\n=\n\n" + substitutions + b"\n|s0|\n",
        "titles.rst": b"".join(b"T%d\n===\n\n" % i for i in range(n)),
        "nested.rst": b"".join(b" " * i + b".. note::\n\n" for i in range(1_000)),
        "stars.rst": b"N\n=\n\n" + b"*a " * 50_000,
        "table.rst": b"=" * 10 + b" " + b"=" * 10 + b"\n" + b"a" * 10 + b" b\n" * n,
        "include.rst": b".. include:: /dev/zero\n",
        "raw.rst": b".. raw:: html\n   :file: /etc/passwd\n",
        "csv.rst": b".. csv-table::\n   :file: /dev/zero\n",
    }


def _large(target: Target) -> Files:
    return {
        "large.md": b"# L\n\n" + b"All work and no play. " * target.many(180_000),
        "words.md": b"# W\n\n" + b" ".join(b"w%x" % (n * 2_654_435_761 % 2**32) for n in range(target.many(300_000))),
        "line.md": b"# O\n\n" + b"x" * target.many(3_900_000),
    }


def _many(target: Target) -> Files:
    return {
        f"s{n % 100}/p{n}.md": b"# Page %d\n\n%s\n" % (n, b"Words and words. " * 50) for n in range(target.many(15_000))
    }


def _slow(target: Target) -> Files:
    page = b"# S\n\n" + (b"[" * 300 + b"*_" * 300 + b"<a " * 300 + b"`" * 301 + b"\n\n") * 300
    return {f"slow-{n}.md": page for n in range(target.many(90))}


def _unicode(target: Target) -> Files:
    n = target.many(200_000)
    return {
        "marks.md": b"# U\n\na" + "\u0301".encode() * n,
        "bidi.md": ("# B\n\n" + "\u202e" * n).encode(),
        "wide.md": ("# W\n\n" + "\ufdfa" * n).encode(),
        "invalid.md": b"# I\n\n" + b"\xff\xfe\xc3" * n,
        "nul.md": b"# N\n\n" + b"\x00" * n,
        "dotted.md": ("# \u0130" * 1_000 + "\n").encode(),
        "returns.md": b"# R\r" * n,
    }


ATTACKS: tuple[Attack, ...] = (
    _site("an ignore file with many stars, and long names", _ignore, "ignore_files"),
    _site("a dump of 350 KB without a space in a fence", _hex, "hex_dumps"),
    _site("a million spaces in a line", _spaces, "long_spaces"),
    _site("brackets, stars, ticks and tags that never end", _inline, "inline_bombs"),
    _site("quotes, lists, tables, fences and footnotes without end", _blocks, "block_bombs"),
    _site("HTML that nests, and HTML that never ends", _html, "html_bombs"),
    _site("MDX: braces, tags, and pages that import themselves", _mdx, "mdx_bombs"),
    _site("notebooks: brackets by the million, cells by the hundred thousand", _notebooks, "notebook_bombs"),
    _site("YAML whose aliases multiply, in front matter, settings and descriptions", _yaml, "yaml_bombs"),
    _site("OpenAPI whose references multiply, and go elsewhere", _refs, "ref_bombs"),
    _site("navigation that nests, and names 200,000 pages", _navigation, "navigation_bombs"),
    _site("settings in JavaScript that never end", _docusaurus, "script_settings"),
    _site("reStructuredText: substitutions that multiply, files of the machine", _sphinx, "rst_bombs"),
    _site("pages as large as they may be", _large, "large_pages"),
    _site("15,000 pages", _many, "many_pages"),
    _site("90 pages that each take as long as they may", _slow, "slow_pages"),
    _site("marks, directions and bytes that are no text", _unicode, "odd_texts"),
)
