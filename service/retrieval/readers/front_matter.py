"""The facts at the head of a page, and the YAML and TOML of configurations.

All from strangers: sizes, depth and aliases are bounded before a parser sees the text, and the YAML loader makes
strings, lists and mappings only (no merge keys, no tags, no dates).
"""

import re
import tomllib
from collections.abc import Mapping

import yaml

MAX_FRONT_MATTER = 64 << 10
MAX_YAML_BYTES = 512 << 10
MAX_ALIASES = 20
MAX_DEPTH = 50

Facts = Mapping[str, object]
"""Front matter: every scalar of YAML is a string, as written."""


class _Strings(getattr(yaml, "CBaseLoader", yaml.BaseLoader)):  # type: ignore[misc]  # libyaml: ten times as fast
    """Scalars stay strings: a title ``1.10`` or ``2024-01-01`` is what its author wrote, and nothing can be built."""


_ALIAS = re.compile(r"(?:^|[\s\[{,:-])\*[\w-]", re.MULTILINE)
_BRACKET = re.compile(r"[\[\]{}]")
_DEEP_BLOCK = re.compile(r"(?:[-?][ \t]+){20}")
_INDENTED = re.compile(r"^ {300}(?=[^ \n]{0,200}[^ \n]:(?: |$))", re.MULTILINE)
_DEEP_KEY = re.compile(r"(?:[\w-]{1,50}[ \t]*\.[ \t]*){20}")
_SIMPLE_FACT = re.compile(r"^([A-Za-z][\w-]*)[ \t]*:[ \t]++(\S(?:.*\S)?)", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\s*?(---|\+\+\+)[ \t]*\n(.*?)(?:^|\n)(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)


def _flow_depth(text: str) -> int:
    """At least as deep as the brackets really nest: those in quotes are counted too."""
    depth = deepest = 0
    for match in _BRACKET.finditer(text):
        depth += 1 if match[0] in "[{" else -1 if depth else 0
        deepest = max(depth, deepest)
    return deepest


def check_bounds(text: str, size: int, depth: int) -> None:
    """Raises ValueError for YAML that is larger or deeper than any that people write: libyaml's composer would run out
    of stack, which nothing can catch.
    """
    if len(text) > size:
        raise ValueError("too large")
    if _DEEP_BLOCK.search(text) or _INDENTED.search(text) or _flow_depth(text) > depth:
        raise ValueError("too deep")


def load_strings(text: str) -> object:
    """YAML of which every scalar is a string; raises ValueError for what is broken or out of bounds."""
    check_bounds(text, MAX_YAML_BYTES, MAX_DEPTH)
    if len(_ALIAS.findall(text)) > MAX_ALIASES:
        raise ValueError("too many aliases")
    try:
        return yaml.load(text, Loader=_Strings)  # noqa: S506  (makes strings, lists and mappings only)
    except (yaml.YAMLError, RecursionError, UnicodeError, TypeError) as error:
        raise ValueError("not YAML") from error


def load_toml(text: str) -> dict[str, object]:
    """Raises ValueError for what is broken or out of bounds."""
    if _DEEP_KEY.search(text) or _flow_depth(text) > MAX_DEPTH:
        raise ValueError("too deep")
    return tomllib.loads(text)


def split_front_matter(source: str) -> tuple[Facts, int]:
    """The facts, and where the page's own text begins. Broken YAML is read line by line: a title with a colon in it is
    the commonest mistake, and no reason to lose the page.
    """
    if source.lstrip()[:3] not in ("---", "+++"):
        return {}, 0
    match = _FRONT_MATTER.match(source, 0, MAX_FRONT_MATTER)
    if match is None:
        return {}, 0
    block = match[2]
    try:
        facts = load_toml(block) if match[1] == "+++" else load_strings(block)
    except (ValueError, RecursionError):
        facts = {key: value.strip("\"'") for key, value in _SIMPLE_FACT.findall(block)}
    if facts is None:
        return {}, match.end()
    if not isinstance(facts, dict):
        return {}, 0 if match[1] == "---" else match.end()
    return {str(key): value for key, value in facts.items() if isinstance(key, str)}, match.end()


def fact(facts: Facts, *names: str) -> str:
    """The first of these that is a scalar, as one line."""
    for name in names:
        value = facts.get(name)
        if isinstance(value, str | int | float) and str(value).strip():
            return " ".join(str(value).split())
    return ""


def facts_list(facts: Facts, *names: str) -> tuple[str, ...]:
    """A list of words, however it is written: a list, or a string with commas."""
    for name in names:
        value = facts.get(name)
        if isinstance(value, str) and value.strip():
            return tuple(word.strip() for word in value.split(",") if word.strip())[:100]
        if isinstance(value, list):
            return tuple(item.strip() for item in value[:100] if isinstance(item, str) and item.strip())
    return ()


def is_true(facts: Facts, *names: str) -> bool:
    return any(fact(facts, name).lower() in ("true", "yes", "on") for name in names)
