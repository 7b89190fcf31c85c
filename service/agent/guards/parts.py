"""The parts of a configuration that two versions of it are compared by: its top keys, each with what is below it."""

import json
from collections.abc import Iterator, Mapping

from msgspec import Struct

from service.markup.front_matter import MAX_DEPTH, MAX_YAML_BYTES, check_bounds, load_toml


class Part(Struct, frozen=True):
    value: str
    """Equal for equal parts."""
    texts: frozenset[str]
    is_special: bool = False
    """It has tags, anchors or aliases."""


def parts_of(path: str, text: str) -> Mapping[str, Part]:
    """Return the parts of a configuration by their names. Raise ValueError for one that cannot be read."""
    if path.endswith((".yml", ".yaml")):
        return _yaml_parts(text)
    try:
        value = load_toml(text) if path.endswith(".toml") else json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"it cannot be read ({error})") from None
    if not isinstance(value, dict):
        value = {"": value}
    return {name: Part(repr(each), frozenset(_texts(each))) for name, each in value.items()}


def _texts(value: object) -> set[str]:
    found: set[str] = set()
    stack = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, str):
            found.add(here)
        elif isinstance(here, list):
            stack.extend(here)
        elif isinstance(here, dict):
            found.update(map(str, here))
            stack.extend(here.values())
    return found


def _yaml_parts(text: str) -> Mapping[str, Part]:
    try:
        check_bounds(text, MAX_YAML_BYTES, MAX_DEPTH)
    except ValueError as error:
        raise ValueError(f"it is {error}") from None
    values: dict[str, list[str]] = {}
    texts: dict[str, set[str]] = {}
    special: set[str] = set()
    for name, event in _yaml_events(text):
        values.setdefault(name, []).append(_canonical(event))
        if (scalar := getattr(event, "value", None)) is not None:
            texts.setdefault(name, set()).add(scalar)
        if not _is_plain(event):
            special.add(name)
    return {
        name: Part("\n".join(listed), frozenset(texts.get(name, ())), name in special)
        for name, listed in values.items()
    }


def _yaml_events(text: str) -> Iterator[tuple[str, object]]:
    """Yield the nodes below each key of a mapping, and where they end. Raise ValueError for another text."""
    import yaml  # late: it takes 9 ms, and a start needs none

    depth, key, documents = 0, "", 0
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader)):
            documents += isinstance(event, yaml.DocumentStartEvent)
            starts = isinstance(event, yaml.CollectionStartEvent)
            if depth == 1 and not key and (word := _plain_word(event)) is not None:
                key = word or '""'
                continue
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth >= 1 and isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                if not key:
                    raise ValueError("it has a key that is no plain word")
                yield key, event
                if depth == 1 and not starts:
                    key = ""
            elif depth == 0 and isinstance(event, yaml.NodeEvent) and not isinstance(event, yaml.MappingStartEvent):
                raise ValueError("it is not a mapping")
            depth += starts
    except (yaml.YAMLError, UnicodeError, RecursionError) as error:
        raise ValueError(f"it is not YAML ({str(error).splitlines()[0]})") from None
    if documents > 1:
        raise ValueError("it has more than one document")


def _plain_word(event: object) -> str | None:
    value: str | None = getattr(event, "value", None)
    return value if _is_plain(event) else None


def _is_plain(event: object) -> bool:
    return not getattr(event, "anchor", None) and not getattr(event, "tag", None)


def _canonical(event: object) -> str:
    facts = (getattr(event, name, None) for name in ("anchor", "tag", "value"))
    return f"{type(event).__name__} {[*facts]!r}"
