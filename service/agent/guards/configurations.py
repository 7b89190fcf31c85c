"""Files that a site generator runs, or that name code for it to run: what of them a job may change.

Navigation is documentation, and stays writable. A hook, a plugin, a theme or a template is code that the next build of
the site runs, with the rights of that build: it is for people to change. Two texts are compared part by part; a part
that may not be changed must be the same in both, and what cannot be read cannot be compared.

Facts: MkDocs reads its configuration with PyYAML's ``Loader``, for which ``!!python/…`` calls what it names, in any
part (mkdocs.org/user-guide/configuration); so the tags, anchors and aliases of YAML are compared, not its values.
"""

import re
from collections.abc import Callable, Set
from posixpath import dirname
from typing import NamedTuple

from service.agent.guards import javascript
from service.agent.guards.parts import Part, parts_of
from service.agent.guards.refused import Refused
from service.markup.generator_files import SIDEBARS_PROGRAM, VITEPRESS_PROGRAM

_ADVICE = "It names code that the site generator runs, so people change the rest."

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
    return SIDEBARS_PROGRAM.search(path) is not None or VITEPRESS_PROGRAM.search(path) is not None


def is_vitepress(path: str) -> bool:
    return VITEPRESS_PROGRAM.search(path) is not None


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
        now = parts_of(path, after)
        was = parts_of(path, before) if before is not None else {}
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
        if new is not None:
            _require_plain(path, name, new, old.texts if old else frozenset())


def _require_plain(path: str, name: str, part: Part, known: Set[str]) -> None:
    """Raise Refused for a part that is more than plain values. ``known``: its texts as they were."""
    if part.is_special:
        raise Refused(f"{name[:100]!r} of {path} has a tag, an anchor or an alias of YAML. Write plain values.")
    for text in sorted(part.texts - known):
        if "<" in text or "{{" in text or "{%" in text or javascript.is_running_address(text):
            raise Refused(f"{text[:100]!r} in {path} is shown as HTML or run. Write plain text, or an address.")


def _may_change(name: str, writable: frozenset[str]) -> bool:
    if any(each.startswith("-") for each in writable):
        return f"-{name}" not in writable
    return name in writable or writable is _ALL
