"""Short names: a module that has them does what it did before."""

import json
import shutil
import subprocess

import pytest

from service.web.widget.short_names import with_short_names

MODULE = r"""
const COUNT = 3;
const [FIRST, SECOND] = [1, 2];
let total = 0;
const shorthand = 4; const key = 5;
const method = () => 6, other = 7;
const kept = /COUNT/; // COUNT
const inTemplate = 8;
const spread = { FIRST };
function sum(one, two = COUNT) { return one + two; }
async function later() { return sum(1); }
const field = 9;
class Box {
  field = 10;
  #hidden = COUNT;
  method() { return this.#hidden + method(); }
  get key() { return key ? this.field : COUNT; }
  static total({ shorthand, key: other = COUNT }) { return shorthand + other + total; }
}
export const LAST = sum(FIRST, SECOND);
export function found() {
  total += COUNT;
  const a = { shorthand, key: COUNT, method() { return field; }, ...spread, sum };
  const box = new Box();
  return [a.shorthand, a.key, a.method(), a.FIRST, a.sum(1), box.method(), box.key, box.field, Box.total(a),
    `${inTemplate} COUNT`, "COUNT", kept.test("COUNT"), total ? FIRST : SECOND, LAST, typeof later, other];
}
"""


def run(source):
    if shutil.which("node") is None:
        pytest.skip("node is missing: install Node.js 20 or later")
    program = f"{source}\nconsole.log(JSON.stringify(found()));"
    command = ["node", "--input-type=module", "-e", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_module_with_short_names_does_the_same():
    short = with_short_names(MODULE)
    assert run(short) == run(MODULE)
    assert len(short) < len(MODULE)


@pytest.mark.parametrize(
    "use",
    [
        "one.name", "one?.name", "({ name: 1 })", "f({ name })", "f({ a, name })", "f(({ name = 1 }) => 1)",
        "f(class { name = 1 })", "f(class { name() { } })", "f({ name() { } })", "`${name}`", "a ? name : 1",
    ],
)  # fmt: skip
def test_name_that_may_be_more_than_a_variable_stays(use):
    assert with_short_names(f"const name = 0;\n{use};\n") == f"const name = 0;\n{use};\n"


@pytest.mark.parametrize("use", ["f(name)", "[...name]", "name()", "a = { b: name }", "a = [b, name, c]", "name += 1"])
def test_name_of_a_variable_becomes_short(use):
    assert "name" not in with_short_names(f"const name = 0;\n{use};\n")


@pytest.mark.parametrize("use", ['"name"', "/name/", "// name"])
def test_text_is_no_name(use):
    assert with_short_names(f"const name = {use};\n").endswith(f" = {use};\n")
