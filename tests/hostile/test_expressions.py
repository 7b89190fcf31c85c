"""Every regular expression over what others wrote takes linear time, by attacks made from the expression itself."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hostile.expressions import Expression, Shape, expressions, modules, shapes
from tests.hostile.growth import MOST_SECONDS, Hangs, growth, seconds

pytestmark = pytest.mark.slow

SMALL, SMALL_QUICK = 1_000, 0.0002
"""Characters of a shape's first text, and seconds for it: where it takes longer, a larger one is looked at."""
SCREENED, QUICK = 4_000, 0.005
"""The same of the larger one: quadratic work of this size takes longer."""
HANGS = 99.0
SUSPECTS = 12
"""Shapes of one expression that are looked at again."""
BUILT: dict[str, list[str]] = {
    "service.adapters.builtin.editing.navigation_files.sidebars _named": [
        r"(?P<quote>['\"`])/?a/b(?:\.md|\.html)?(?P=quote)"
    ],
    "service.adapters.builtin.editing.navigation_files.entries _json_named": [
        r'(?:^|[\[,])\s*"guides/start"\s*(?:[\],]|$)'
    ],
    "service.adapters.builtin.editing.navigation_files.entries _json_relabelled": [
        r'"label"\s*+:\s*+("Old")',
        r'"id"\s*+:\s*+"a/b"',
    ],
    "service.adapters.builtin.editing.removing _out_of_navigation": [
        r"""["']destination["']\s*+:\s*+["']/?a/b/?(?:[#?][^"']*)?["']"""
    ],
    "service.adapters.builtin.editing.unlinking _empty_wrapper": [r"^[ \t]*<Cards(?:[ \t][^<>\n]*)?>[ \t\r\n]*\Z"],
    "service.adapters.builtin.editing.steps _folders_in": ["(?:^|/)guides/start(?=/)"],
    "service.adapters.models.patterns _split": [r'"Alpha text (\d+)\."'],
    "service.agent.checks.navigation named_in_code": ["['\"]/?guides/start(?:\\.md)?['\"]"],
    "service.agent.guidance.frameworks _shows_folder": [r"path\s*:\s*[\"'](?:\.\./)+docs/?[\"']"],
    "service.agent.pull_request _filled": [r"\b(?:files|pages|changes|changed|what)"],
    "service.agent.tools.matches find_pattern": [],  # the model's own, in a child process with a deadline
    "service.agent.workspace _occurrences": [r"the\ same\ words\."],
    "service.markup.generator_files matcher": [r"(?:^|/)(?:mkdocs\.yml|config/_default/hugo\.toml)$"],
    "service.markup.mentions _pattern": [r"(?<![\w@/.`-])@docsmith(?![\w-])"],
    "service.retrieval.search.analysis.stems _by_rules": [r"(?<=...)(?:tions|ing)\Z", r"\A(?:un|re)(?=...)"],
    "service.retrieval.search.analysis.writing_systems _phrases": ["为什么|怎么|吗"],
    "service.retrieval.search.questions.named has_sign": [r"(?<![^\w\s(`'\"])==(?![^\w\s)`'\"])"],
    "service.retrieval.site.link_rules redirected": [r"/old/(?P<slug>.*)", r"/(?P<a>[^/]+)/x/(?P<rest>.*)"],
    "service.retrieval.site.generators.sphinx.configuration sphinx": [r"^extensions\s*="],
    "service.retrieval.site.generators.vitepress.rewrites _expression": [
        r"packages(?:/([^/#?]+?))/src(?:/([^#?]+?))?/?"
    ],
    "service.markup.streaming.code fence_line": ["(?: {0,3}+> ?+){0}", "(?: {0,3}+> ?+){3}"],
}
"""Examples of the expressions that a function builds as it runs."""
SINGLE_BLANKS = {"service.adapters.builtin.editing.forms"}
"""Modules whose expressions read lines of words with one blank between them."""

OWN_FILES = {"service.web.widget.bundle", "service.web.widget.short_names"}
"""Modules whose expressions read files of ours alone."""


@pytest.mark.parametrize("module", [module for module in modules() if module not in OWN_FILES])
def test_expression_takes_linear_time(module):
    for expression in expressions(module, BUILT):
        for way, shape, found in _growths(expression):
            assert found <= 3, f"{expression.where} {way} {expression.pattern.pattern!r}: {shape}, {found:.1f}"


def test_expression_that_takes_quadratic_time_is_found():
    expression = Expression("this test", re.compile(r"\s+$"), frozenset({"search"}))
    suspects = (shape for shape in _shapes(expression) if _is_suspect(expression, "finditer", shape))
    assert any(_growth(expression, "finditer", shape, most=0.5) > 3 for shape in suspects)


def _growths(expression: Expression) -> Iterator[tuple[str, Shape, float]]:
    """Yield the suspects: the way of use, the shape, and by how much more time twice the size takes."""
    for way in {_way(each) for each in expression.ways}:
        slow = [shape for shape in _shapes(expression) if _is_suspect(expression, way, shape)]
        for shape in slow[:: max(1, len(slow) // SUSPECTS)]:
            yield way, shape, _growth(expression, way, shape)


def _shapes(expression: Expression) -> list[Shape]:
    found = shapes(expression.pattern)
    if _has_single_blanks(expression):
        found = list({(re.sub(r"\s+", " ", one), re.sub(r"\s+", " ", two), end) for one, two, end in found})
    return found


def _is_suspect(expression: Expression, way: str, shape: Shape) -> bool:
    small = _cost(expression, way, shape, SMALL)
    return small > SMALL_QUICK and (small == HANGS or _cost(expression, way, shape, SCREENED) > QUICK)


def _has_single_blanks(expression: Expression) -> bool:
    return expression.where.split()[0].partition(":")[0] in SINGLE_BLANKS


def _growth(expression: Expression, way: str, shape: Shape, most: float = MOST_SECONDS) -> float:
    """Of the time for twice the size; 1 when a look at four times the size shows that it is linear."""
    first = _cost(expression, way, shape, SCREENED)
    if first == HANGS:
        return HANGS
    if _cost(expression, way, shape, 4 * SCREENED) < 8 * first:
        return 1.0
    try:
        return growth(_work(expression, way), lambda size: _text(expression, shape, size), first=SCREENED, most=most)
    except Hangs:
        return HANGS


def _way(method: str) -> str:
    return method if method in ("match", "fullmatch") else "finditer"


def _work(expression: Expression, way: str) -> Any:
    method = getattr(expression.pattern, way)
    if way == "finditer":
        return lambda text: sum(1 for _ in method(text))
    return method


def _text(expression: Expression, shape: Shape, size: int) -> str | bytes:
    before, unit, behind = shape
    text = before + unit * max(1, size // len(unit)) + behind
    if _has_single_blanks(expression):
        text = re.sub(r"\s+", " ", text)
    return text.encode() if isinstance(expression.pattern.pattern, bytes) else text


def _cost(expression: Expression, way: str, shape: Shape, size: int) -> float:
    try:
        return seconds(_work(expression, way), _text(expression, shape, size), most=1)
    except Hangs:
        return HANGS
