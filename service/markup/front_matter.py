"""The front matter at the head of a page, and the YAML and TOML of configurations.

All from strangers: sizes, depth and aliases are bounded before a parser sees the text, and the YAML loader makes
strings, lists and mappings only (no merge keys, no tags, no dates).
"""

import json
import re
import tomllib
from collections.abc import Mapping

from msgspec import Struct

MAX_FRONT_MATTER = 64 << 10
MAX_YAML_BYTES = 512 << 10
MAX_ALIASES = 20
MAX_DEPTH = 50

FrontMatter = Mapping[str, object]
"""Front matter: every scalar of YAML is a string, as written."""


_ALIAS = re.compile(r"(?:^|[\s\[{,:-])\*[\w-]", re.MULTILINE)
_BRACKET = re.compile(r"[\[\]{}]")
_DEEP_BLOCK = re.compile(r"(?:[-?][ \t]+){20}")
_INDENTED = re.compile(r"^ {300}(?=[^ \n]{0,200}[^ \n]:(?: |$))", re.MULTILINE)
_DEEP_KEY = re.compile(r"(?:[\w-]{1,50}[ \t]*\.[ \t]*){20}")
_SIMPLE_FIELD = re.compile(r"^([A-Za-z][\w-]*)[ \t]*:[ \t]++(\S(?:.*\S)?)", re.MULTILINE)
_BEGIN = re.compile(r"\s*+(---|\+\+\+)[ \t\r]*\n")
_JSON = re.compile(r"\s*+\{(?=\s*\"[\w.-]{1,100}\"\s*:)")
_ENDS = {mark: re.compile(rf"^(?:{re.escape(mark)}|\.\.\.)[ \t\r]*(?:\n|\Z)", re.MULTILINE) for mark in ("---", "+++")}


class Block(Struct, frozen=True):
    """The lines at the head of a page that hold its front matter."""

    text: str
    """Between the two lines of marks; up to the greatest size where the second is missing."""
    is_toml: bool
    end: int
    """Where the page's own text begins; 0 where no line closes the block."""


def _flow_depth(text: str) -> int:
    """Return a depth at least that of the brackets: those in quotes are counted too."""
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
    import yaml  # late: it takes 9 ms, and a start needs none

    # libyaml's is ten times as fast. Scalars stay strings: a title 1.10 is what its author wrote, nothing can be built.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        return yaml.load(text, Loader=loader)  # noqa: S506  (makes strings, lists and mappings only)
    except (yaml.YAMLError, RecursionError, UnicodeError, TypeError) as error:
        raise ValueError("not YAML") from error


def load_toml(text: str) -> dict[str, object]:
    """Raises ValueError for what is broken or out of bounds."""
    if _DEEP_KEY.search(text) or _flow_depth(text) > MAX_DEPTH:
        raise ValueError("too deep")
    return tomllib.loads(text)


def block_of(source: str) -> Block | None:
    """Return the block that a page begins with, read or not; None when it begins with something else."""
    begin = _BEGIN.match(source, 0, MAX_FRONT_MATTER) if source.lstrip()[:3] in ("---", "+++") else None
    if begin is None:
        return None
    end = _ENDS[begin[1]].search(source, begin.end(), MAX_FRONT_MATTER)
    text = source[begin.end() : MAX_FRONT_MATTER if end is None else end.start()]
    return Block(text, begin[1] == "+++", 0 if end is None else end.end())


def lines_of(source: str) -> int:
    """Return the number of lines that the front matter takes, its marks included."""
    block = block_of(source)
    if block is None:
        return source.count("\n", 0, _json_block(source)[1])
    if not block.end:
        return 0
    return source.count("\n", 0, block.end) + (source[block.end - 1] != "\n")


def split_front_matter(source: str) -> tuple[FrontMatter, int]:
    """The front matter, and where the page's own text begins. Broken YAML is read line by line: a title with a
    colon in it is the commonest mistake, and no reason to lose the page.
    """
    block = block_of(source)
    if block is None:
        return _json_block(source)
    if not block.end:
        return {}, 0
    try:
        front_matter = load_toml(block.text) if block.is_toml else load_strings(block.text)
    except (ValueError, RecursionError):
        front_matter = {key: value.strip("\"'") for key, value in _SIMPLE_FIELD.findall(block.text)}
    if front_matter is None or not block.text.strip():
        return {}, block.end
    if not isinstance(front_matter, dict):
        return {}, 0
    return {str(key): value for key, value in front_matter.items() if isinstance(key, str)}, block.end


def _json_block(source: str) -> tuple[FrontMatter, int]:
    """Return the front matter that is an object of JSON, as Hugo reads it, and where the page's own text begins."""
    begin = _JSON.match(source)
    if begin is None or _flow_depth(source[:MAX_FRONT_MATTER]) > MAX_DEPTH:
        return {}, 0
    try:
        found, end = json.JSONDecoder().raw_decode(source[:MAX_FRONT_MATTER], begin.end() - 1)
    except (ValueError, RecursionError):
        return {}, 0
    line_end = source.find("\n", end)
    if not isinstance(found, dict) or source[end : line_end if line_end >= 0 else None].strip():
        return {}, 0
    return found, line_end + 1 if line_end >= 0 else len(source)


def text_field(front_matter: FrontMatter, *names: str) -> str:
    """The first of these that is a scalar, as one line."""
    for name in names:
        value = front_matter.get(name)
        if isinstance(value, str | int | float) and str(value).strip():
            return " ".join(str(value).split())
    return ""


def list_field(front_matter: FrontMatter, *names: str) -> tuple[str, ...]:
    """A list of words, however it is written: a list, or a string with commas."""
    for name in names:
        value = front_matter.get(name)
        if isinstance(value, str) and value.strip():
            return tuple(word.strip() for word in value.split(",") if word.strip())[:100]
        if isinstance(value, list):
            return tuple(item.strip() for item in value[:100] if isinstance(item, str) and item.strip())
    return ()


def is_true(front_matter: FrontMatter, *names: str) -> bool:
    return any(text_field(front_matter, name).lower() in ("true", "yes", "on") for name in names)
