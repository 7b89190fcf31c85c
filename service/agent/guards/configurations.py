"""Files that a site generator runs, or that name code for it to run: what of them a job may change.

Navigation is documentation, and stays writable. A hook, a plugin, a theme or a template is code that the next build of
the site runs, with the rights of that build: it is for people to change. Two texts are compared part by part; a part
that may not be changed must be the same in both, and what cannot be read cannot be compared.

Facts: MkDocs reads its configuration with PyYAML's ``Loader``, for which ``!!python/…`` calls what it names, in any
part (mkdocs.org/user-guide/configuration); so the tags, anchors and aliases of YAML are compared, not its values.
"""

import json
import re
from collections.abc import Callable, Mapping
from posixpath import dirname
from typing import NamedTuple

from msgspec import Struct

from service.agent.guards import javascript
from service.agent.guards.refused import Refused
from service.markup.front_matter import MAX_DEPTH, MAX_YAML_BYTES, check_bounds, load_toml

_ADVICE = "It names code that the site generator runs, so people change the rest."

_SIDEBARS = re.compile(r"(?:^|/)sidebars\.(?:[cm]?js|ts)$")
_VITEPRESS = re.compile(r"(?:^|/)\.vitepress/(?:config|sidebars?|nav)(?:/[\w-]{1,100}){0,2}\.[cm]?[jt]s$")
_HUGO_MENU = re.compile(r"(?:^|/)config/[\w-]{1,100}/menus?(?:\.[\w-]{1,40})?\.(?:toml|ya?ml|json)$")
_TEMPLATE_FOLDER = re.compile(
    r"(?:^|/)(?:layouts|_layouts|_includes|_templates|themes|overrides|archetypes|templates)/", re.IGNORECASE
)
_PROSE = (".md", ".mdx", ".markdown", ".rst", ".adoc", ".txt")

_ALL = frozenset({"*"})


class _Rule(NamedTuple):
    name: re.Pattern[str]
    writable: frozenset[str]
    """Parts of the file that may be changed; ``-x``: all but that."""
    beside: tuple[str, ...] = ()
    """One of these is beside the file: other programs have files of its name, too."""


_RULES = (
    _Rule(
        re.compile(r"(?:^|/)mkdocs(?:\.[\w-]{1,40})?\.ya?ml$"),
        frozenset({"nav", "not_in_nav", "exclude_docs", "draft_docs", "site_name", "site_description"}),
    ),
    _Rule(re.compile(r"(?:^|/)(?:docs|mint)\.json$"), frozenset({"-integrations", "-analytics"})),
    _Rule(re.compile(r"(?:^|/)hugo\.(?:toml|ya?ml|json)$"), frozenset({"menu", "menus", "title"})),
    _Rule(
        re.compile(r"(?:^|/)config\.(?:toml|ya?ml|json)$"),
        frozenset({"menu", "menus", "title"}),
        ("content", "layouts", "archetypes", "themes"),
    ),
    _Rule(
        re.compile(r"(?:^|/)config/[\w-]{1,100}/[\w.-]{1,100}\.(?:toml|ya?ml|json)$"),
        frozenset(),
        ("../../content", "../../layouts", "../../themes"),
    ),
    _Rule(re.compile(r"(?:^|/)_config\.ya?ml$"), frozenset({"title", "description", "tagline", "header_pages"})),
    _Rule(
        re.compile(r"(?:^|/)antora\.yml$"),
        frozenset({"title", "version", "display_version", "nav", "start_page", "prerelease"}),
    ),
    _Rule(re.compile(r"(?:^|/)(?:[\w-]{0,100}-)?playbook\.ya?ml$"), frozenset(), ("antora.yml", "supplemental-ui")),
    _Rule(re.compile(r"(?:^|/)book\.toml$"), frozenset({"book"})),
    _Rule(re.compile(r"(?:^|/)book\.json$"), frozenset({"title", "description", "author"}), ("SUMMARY.md",)),
    _Rule(re.compile(r"(?:^|/)_quarto\.ya?ml$"), frozenset({"website", "book"})),
    _Rule(re.compile(r"(?:^|/)(?:docfx\.json|zensical\.toml)$"), frozenset()),
)


def is_code_navigation(path: str) -> bool:
    """Return whether a file is a program that names the pages of a site: its literal entries may be changed."""
    return _SIDEBARS.search(path) is not None or _VITEPRESS.search(path) is not None


def is_vitepress(path: str) -> bool:
    return _VITEPRESS.search(path) is not None


def check_name(path: str) -> None:
    """Raise Refused for a template, by its path."""
    if _TEMPLATE_FOLDER.search(path) and not path.lower().endswith(_PROSE):
        raise Refused(f"{path} cannot be written: it is a template, which the site generator runs.")


def check_of(path: str, exists: Callable[[str], bool]) -> Callable[[str | None, str | None], None] | None:
    """Return the check of a file's change; None for a file that is no configuration.

    The check is a function of both texts, None where there is no file. It raises Refused. Its time is linear; run it
    in a thread.
    """
    if is_code_navigation(path):
        return lambda before, after: _check_program(path, before, after)
    if _HUGO_MENU.search(path) or path.rpartition("/")[2] == "sidebars.json":
        return lambda before, after: _check_parts(path, _ALL, before, after)
    for rule in _RULES:
        if rule.name.search(path.lower()) and (
            not rule.beside or any(exists(_beside(path, each)) for each in rule.beside)
        ):
            writable = rule.writable
            return lambda before, after: _check_parts(path, writable, before, after)
    return None


def _beside(path: str, name: str) -> str:
    folder = dirname(path)
    while name.startswith("../"):
        folder, name = dirname(folder), name[3:]
    return f"{folder}/{name}".lstrip("/")


def _check_program(path: str, before: str | None, after: str | None) -> None:
    if before is None or after is None:
        raise Refused(f"{path} cannot be made or removed: it is a program, which the site generator runs.")
    try:
        was, now = (javascript.outline(text, vitepress=is_vitepress(path)) for text in (before, after))
    except javascript.Unreadable as error:
        reason = f"{path} cannot be written: it is a program, and {error}."
        raise Refused(reason, "Leave it: the pull request says which line people add to it.") from None
    if was.code != now.code:
        reason = f"{path} is a program: only entries of its sidebars that are plain text and lists can be changed."
        raise Refused(reason, "Change such an entry alone, or leave it to people.")
    for written in sorted(now.strings - was.strings):
        if not javascript.is_text(written):
            raise Refused(f"{path}: {written[:100]} is shown as HTML or run. Write plain text, or an address.")


def _check_parts(path: str, writable: frozenset[str], before: str | None, after: str | None) -> None:
    if after is None:
        raise Refused(f"{path} cannot be moved or deleted: the site is built by it.")
    try:
        now = _parts(path, after)
        was = _parts(path, before) if before is not None else {}
    except ValueError as error:
        raise Refused(f"{path} cannot be written so: {error}.") from None
    for name in sorted(was.keys() | now.keys()):
        old, new = was.get(name), now.get(name)
        if old == new:
            continue
        if not _may_change(name, writable):
            allowed = ", ".join(sorted(each for each in writable if each[0] not in "-*"))
            advice = f"Only {allowed} can be changed here." if allowed else ""
            raise Refused(f"{name[:100]!r} of {path} cannot be changed.", f"{advice} {_ADVICE}".strip())
        if new is not None and new.is_special:
            raise Refused(f"{name[:100]!r} of {path} has a tag, an anchor or an alias of YAML. Write plain values.")
        for text in sorted((new.texts if new else frozenset()) - (old.texts if old else frozenset())):
            if "<" in text or "{{" in text or "{%" in text or javascript.is_running_address(text):
                raise Refused(f"{text[:100]!r} in {path} is shown as HTML or run. Write plain text, or an address.")


def _may_change(name: str, writable: frozenset[str]) -> bool:
    if any(each.startswith("-") for each in writable):
        return f"-{name}" not in writable
    return name in writable or writable is _ALL


class _Part(Struct, frozen=True):
    value: str
    """Equal for equal parts."""
    texts: frozenset[str]
    is_special: bool = False
    """It has tags, anchors or aliases."""


def _parts(path: str, text: str) -> Mapping[str, _Part]:
    """The parts of a configuration by their names. Raises ValueError for what cannot be read."""
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
    return {name: _Part(repr(each), frozenset(_texts(each))) for name, each in value.items()}


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


def _yaml_parts(text: str) -> Mapping[str, _Part]:
    import yaml  # late: it takes 9 ms, and a start needs none

    try:
        check_bounds(text, MAX_YAML_BYTES, MAX_DEPTH)
    except ValueError as error:
        raise ValueError(f"it is {error}") from None
    values: dict[str, list[str]] = {}
    texts: dict[str, set[str]] = {}
    special: set[str] = set()
    depth, name, documents = 0, "", 0
    try:
        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
        for event in yaml.parse(text, Loader=loader):
            documents += isinstance(event, yaml.DocumentStartEvent)
            starts = isinstance(event, yaml.CollectionStartEvent)
            if depth == 1 and not name and isinstance(event, yaml.ScalarEvent) and not event.anchor and not event.tag:
                name = event.value or '""'
                continue
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth >= 1 and isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                if not name:
                    raise ValueError("it has a key that is no plain word")
                values.setdefault(name, []).append(_canonical(event))
                if isinstance(event, yaml.ScalarEvent):
                    texts.setdefault(name, set()).add(event.value)
                if getattr(event, "anchor", None) or getattr(event, "tag", None):
                    special.add(name)
                if depth == 1 and not starts:
                    name = ""
            elif depth == 0 and isinstance(event, yaml.NodeEvent) and not isinstance(event, yaml.MappingStartEvent):
                raise ValueError("it is not a mapping")
            depth += starts
    except (yaml.YAMLError, UnicodeError, RecursionError) as error:
        raise ValueError(f"it is not YAML ({str(error).splitlines()[0]})") from None
    if documents > 1:
        raise ValueError("it has more than one document")
    return {
        each: _Part("\n".join(listed), frozenset(texts.get(each, ())), each in special)
        for each, listed in values.items()
    }


def _canonical(event: object) -> str:
    facts = (getattr(event, name, None) for name in ("anchor", "tag", "value"))
    return f"{type(event).__name__} {[*facts]!r}"
