"""Hugo's configuration: one file, or those of ``config/_default`` and ``config/production`` together
(gohugo.io/configuration/introduction). Keys are in lower case, as Hugo takes no notice of it.
"""

import json
import re
from collections.abc import Mapping
from posixpath import dirname
from urllib.parse import urlsplit

from service.markup.front_matter import load_strings, load_toml
from service.retrieval.site.layout import Read, join_path, read_text

Settings = dict[str, object]

ROOT_NAMES = ("hugo", "config")
_SUFFIXES = (".toml", ".yaml", ".yml", ".json")
MAX_FILES, MAX_DEPTH = 100, 20


def site_root(config: str) -> str:
    return re.sub(r"/?config/(?:_default|production)$", "", dirname(config))


def read_settings(config: str, files: frozenset[str], read: Read) -> Settings:
    """Return all that the configuration of a site says; what is broken says nothing."""
    root = site_root(config)
    settings: Settings = {}
    if dirname(config) == root:
        _merge(settings, _loaded(config, read))
    for folder in (join_path(root, "config/_default"), join_path(root, "config/production")):
        inside = sorted(name for name in files if name.startswith(folder + "/") and name.endswith(_SUFFIXES))
        for name in inside[:MAX_FILES]:
            key, _, language = name[len(folder) + 1 :].lower().rpartition(".")[0].partition(".")
            values: object = _loaded(name, read)
            if key not in ROOT_NAMES:
                values = {key: _list_of(values, key) if key == "cascade" else values}
            _merge(settings, {"languages": {language: values}} if language else values)
    return settings


def _list_of(values: object, key: str) -> object:
    """A file for a list has it under its own name."""
    return values.get(key, values) if isinstance(values, dict) else values


def _loaded(name: str, read: Read) -> Settings:
    text = read_text(read, name)
    try:
        if name.endswith(".toml"):
            values: object = load_toml(text)
        else:
            values = json.loads(text) if name.endswith(".json") else load_strings(text)
    except (ValueError, RecursionError):
        return {}
    found = _lowered(values, 0)
    return found if isinstance(found, dict) else {}


def _lowered(value: object, depth: int) -> object:
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {str(key).lower(): _lowered(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list):
        return [_lowered(one, depth + 1) for one in value]
    return value


def _merge(into: Settings, more: object) -> None:
    if not isinstance(more, dict):
        return
    for key, value in more.items():
        known = into.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            _merge(known, value)
        else:
            into[key] = value


# What a value says


def table(settings: Mapping[str, object], *keys: str) -> Settings:
    """Return the table at the keys; an empty one where there is none."""
    found: object = settings
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def text(settings: Mapping[str, object], key: str) -> str:
    value = settings.get(key)
    return str(value).strip()[:500] if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def is_on(settings: Mapping[str, object], key: str) -> bool:
    return str(settings.get(key, "")).lower() == "true"


def tables(value: object) -> list[Settings]:
    """Return the tables of a list; a table alone is one of one."""
    listed = value if isinstance(value, list) else [value]
    return [one for one in listed[:1000] if isinstance(one, dict)]


def base_path(settings: Mapping[str, object]) -> str:
    """Return the path of ``baseURL``, without a slash at its end."""
    try:
        path = urlsplit(text(settings, "baseurl")).path
    except ValueError:
        return ""
    return path.rstrip("/") if path.startswith("/") else ""
