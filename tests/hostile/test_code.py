"""What looks for code in pages and in configurations takes linear time, whatever stands in them."""

from contextlib import suppress

import pytest

from service.agent.checks.markup import external_links
from service.agent.checks.new_code import code_of
from service.agent.guards.configurations import check_of
from service.agent.guards.refused import Refused
from service.markup.dialects.dialect import PLAIN
from tests.hostile.growth import assert_linear

pytestmark = pytest.mark.slow

UNITS = (
    "{", "{a ", "{a\n", "{'`'} `", "{{", "<", '<a "', "<a ", "<script>", "<meta ", "=javascript:", " onx=", "<img onx=",
    "import x\n", "export const a = {\n", ".. raw:: html\n\n ", "+++", "++++\n", "pass:[", "link:", "https://a ", "<https://",
)  # fmt: skip


@pytest.mark.parametrize("path", ["a.mdx", "a.md", "a.html", "a.rst", "a.adoc"])
def test_code_in_pages_is_found_in_linear_time(path):
    for unit in UNITS:
        assert_linear(
            lambda text: (code_of(text, path, PLAIN, vue=True), external_links(text, path)),
            lambda size, unit=unit: unit * (size // len(unit)),
            f"{path} {unit!r}",
            largest=1 << 14,
        )


@pytest.mark.parametrize("path", ["sidebars.js", ".vitepress/config.ts", "mkdocs.yml", "hugo.toml", "docs.json"])
def test_changed_configuration_is_compared_in_linear_time(path):
    check = check_of(path, lambda name: True)
    assert check is not None

    def compare(text):
        with suppress(Refused):
            check(text, f"{text} ")

    for unit in (
        "[",
        "{",
        "'a', ",
        "`",
        "`${",
        "/",
        "//",
        "/*",
        "a: ",
        "- a\n",
        "a = 1\n",
        "&a ",
        "{'a': [",
        "x = ['a'];\n",
    ):
        assert_linear(compare, lambda size, unit=unit: unit * (size // len(unit)), f"{path} {unit!r}", largest=1 << 14)
