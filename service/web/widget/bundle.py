"""The widget's scripts as browsers load them: modules of ours joined to one file each, addressed by their content.

A file's address is the SHA-256 of its body in base64url, which is its integrity too: who knows the address can check
the bytes. The files name each other, so they are made in order: those that the panel loads when it needs them, then
the panel, which names them, then the loader, which names the panel.

Joining is text work on our own files, which keep to a form: an import is a line of its own, what is exported is
declared where it is exported, and every statement has its semicolon. Comments are left out, and the spaces and lines'
ends that mean nothing; what no other file can name gets a short name. A minifier that parses was turned down: it would
be the widget's only dependency, and what travels is compressed anyway.
"""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from service.web.widget.short_names import COMMENT, LITERAL, with_short_names

SCRIPTS = Path(__file__).parent.parent / "scripts"
WIDGET = SCRIPTS / "widget"
FILES = WIDGET / "files.js"
"""Holds the addresses of other files: its source is written here, for each file that imports it."""
PANEL, HIGHLIGHT, MARKDOWN, SEARCH, PROOF = "panel", "highlight", "markdown", "search", "proof"
_IN_PLACE_OF = {SCRIPTS / "proof.js": WIDGET / "late_proof.js"}
"""Modules whose import becomes that of another, which loads the first as a file when it is needed."""

_IMPORT = re.compile(r'^import (\w+|\{[^}]*\}) from "(\.[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"\bexport (?=(?:async )?(?:const|function|class) (\w+))")
_TOKEN = re.compile(
    rf"{COMMENT}|(?P<literal>{LITERAL})|(?P<space>\s*\n\s*)|(?P<mark> ?[=,;:?{{}}()<>&|\[\]*] ?"
    r"| (?:[-+/%]|[-+/%!]=+) (?![-+]))",
    re.DOTALL,
)
"""A comment, a literal (no template within a template), a line's end, or a mark with the spaces around it."""
_ENDS = re.compile(r"(?<=[;{},(\n])\n|^\n")
_CSS_SPACE = re.compile(r"/\*.*?\*/|\s+", re.DOTALL)
_CSS_MARK = re.compile(r"\s*([{};,])\s*|(?<=:)\s+|\s+(?=!)")
_CSS_END = re.compile(r";(?=})")


class Script(Struct, frozen=True):
    """A file that browsers load."""

    body: bytes
    packed: bytes
    """The body, compressed with gzip."""
    name: str
    """Its address without the folder and ``.js``."""

    @property
    def integrity(self) -> str:
        """For the attribute of that name."""
        return f"sha256-{self.name.replace('-', '+').replace('_', '/')}="


class Widget(Struct, frozen=True):
    """All files of the widget."""

    loader: Script
    panel: Script
    by_name: Mapping[str, Script]


@cache
def widget() -> Widget:
    """Return the files; the first call takes some 90 ms."""
    highlight = _script(_joined(WIDGET / "highlight.js"))
    texts = {file.stem: json.loads(file.read_bytes()) for file in sorted((WIDGET / "texts").glob("*.json"))}
    translated = {language: _script(f"export default {_json(text)};") for language, text in texts.items()}
    markdown = _script(_joined(SCRIPTS / "markdown.js"))
    search = _script(_joined(WIDGET / "finding.js"))
    proof = _script(_joined(SCRIPTS / "proof.js"))
    later = {HIGHLIGHT: highlight, MARKDOWN: markdown, SEARCH: search, PROOF: proof}
    named = {
        **{key: one.name for key, one in later.items()},
        "texts": {language: one.name for language, one in translated.items()},
    }
    panel = _script(_joined(WIDGET / "panel.js", named))
    labels = {language: text["ask"] for language, text in texts.items()}
    loader = _script(f"(() => {{\n{_joined(WIDGET / 'loader.js', {PANEL: panel.name, 'labels': labels})}\n}})();\n")
    files = (loader, panel, *later.values(), *translated.values())
    return Widget(loader, panel, MappingProxyType({one.name: one for one in files}))


def script_of(body: bytes) -> Script:
    return Script(body, gzip.compress(body, 9, mtime=0), name_of(body))


def name_of(body: bytes) -> str:
    """Return the name by which browsers ask for a file: the SHA-256 of its body in base64url."""
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode().rstrip("=")


def _script(text: str) -> Script:
    return script_of(text.encode())


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _joined(entry: Path, files: object = None) -> str:
    """Return a module with all that it imports, as one text; each imported module is the value of a function."""
    parts: list[str] = []
    names: dict[Path, str] = {}

    def source_of(file: Path) -> str:
        source = file.read_text(encoding="utf-8")
        return _packed(with_short_names(_IMPORT.sub(lambda found: bound(file, found), source)))

    def bound(importer: Path, found: re.Match[str]) -> str:
        file = (importer.parent / found[2]).resolve()
        file = _IN_PLACE_OF.get(file, file)
        if file.suffix != ".js":
            return f"const {found[1]} = {_value(file, source_of)};"
        if file not in names:
            names[file] = f"module{len(names)}"
            value = _json({"FILES": files}) if file == FILES else _value(file, source_of)
            parts.append(f"const {names[file]}={value};")
        return f"const {found[1].replace(' as ', ': ')} = {names[file]};"

    source = source_of(entry)
    return "\n".join([*parts, source])


def _packed(source: str) -> str:
    """Return a module without comments and without the spaces that mean nothing."""

    def packed(found: re.Match[str]) -> str:
        if found["space"]:
            return "\n"
        literal = found["literal"] or ""
        if literal.startswith("`") and literal.count("${") > literal.count("}"):
            raise ValueError(f"A template within a template loses spaces: {literal}. Join the inner text by +.")
        if "\n" in literal:
            raise ValueError(f"A template of several lines loses their ends: {literal}. Write \\n.")
        return literal or (found["mark"] or "").strip()

    return _ENDS.sub("", _TOKEN.sub(packed, source))


def _value(file: Path, source_of: Callable[[Path], str]) -> str:
    if file.suffix == ".css":
        sheet = _CSS_MARK.sub(r"\1", _CSS_SPACE.sub(" ", file.read_text(encoding="utf-8"))).strip()
        return _json(_CSS_END.sub("", sheet))
    source = source_of(file)
    return f"(()=>{{{_EXPORT.sub('', source)}\nreturn{{{','.join(_EXPORT.findall(source))}}}}})()"
