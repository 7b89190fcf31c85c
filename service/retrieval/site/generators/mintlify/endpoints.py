"""Pages that are made of the operations of an API where the navigation names its description.

Their addresses are folder, tag and summary. Facts: ``generateOpenApiFromDocsConfig.js`` of @mintlify/prebuild 1.0.1370,
``openapi/common.ts`` of @mintlify/scraping 4.0.1081, ``openapi/filenameUtils.js`` of @mintlify/common 1.0.1211.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from posixpath import normpath
from typing import Any

from msgspec import Struct, field

from service.retrieval.readers.openapi_pages import METHODS, read_document
from service.retrieval.site.layout import MAX_FACT, Read, join_path

MAX_NODES, MAX_PAGES = 200_000, 10_000
"""Parts of a navigation, and pages that are made of all its descriptions."""
_FOLDERS = {
    "openapi": "api-reference", "asyncapi": "api-reference", "graphql": "graphql-reference", "sdk": "sdk-reference",
}  # fmt: skip
"""Where pages are made of each kind of description unless its ``directory`` says so."""
_MADE = "a description of an API makes it"
_PICKED = re.compile(r"(?:(\S+)\s+)?([A-Za-z]+)\s+(\S+)")
"""An operation among the pages of a group: file, method and path."""

Resolve = Callable[[str, object], tuple[str, object]]
"""A function of the file of a node and the node: those with what its ``$ref`` names."""


class Endpoints(Struct, frozen=True):
    pages: Mapping[str, tuple[str, str]]
    """Path of the description, and key of the operation there, by address."""
    unknown: tuple[tuple[str, str], ...]
    """Beginnings of addresses that are not known, and why."""


class _Named(Struct):
    """A description, where a part of the navigation names it; what is below that part may pick operations of it."""

    source: str
    folder: str
    picked: list[str] = field(default_factory=list)
    is_whole: bool = True
    """Whether pages are made of all its operations: where none is picked."""


def endpoints(config: str, navigation: object, children: tuple[str, ...], resolve: Resolve, site: "Files") -> Endpoints:
    """Return the pages that a navigation makes. ``children``: its keys that hold parts of it."""
    named, unknown = list[_Named](), dict[str, str]()
    stack: list[tuple[str, object, _Named | None]] = [(config, navigation, None)]
    for _ in range(MAX_NODES):
        if not stack:
            break
        file, node, above = stack.pop()
        file, node = resolve(file, node)
        if isinstance(node, str):
            _pick(node, above, named)
        elif isinstance(node, list):
            stack += [(file, item, above) for item in reversed(node)]
        elif isinstance(node, dict):
            for kind, default in _FOLDERS.items():
                source, folder = _declared(node.get(kind), default)
                if source and kind == "openapi":
                    above = _Named(source, folder)
                    named.append(above)
                elif source:
                    unknown[f"/{folder}"] = _MADE
            stack += [(file, node[key], above) for key in reversed(children) if key in node]
    pages: dict[str, tuple[str, str]] = {}
    for each in named:
        path = join_path(site.root, normpath(each.source).lstrip("/"))
        document = site.document(path)
        if document is None or _is_partly_read(document):
            unknown[f"/{each.folder}"] = _MADE
        for key, address in _addresses(document or {}, each.folder):
            if (each.is_whole or key in each.picked) and len(pages) < MAX_PAGES:
                pages.setdefault(address, (path, key))
    return Endpoints(pages, tuple(unknown.items()))


class Files:
    """The descriptions of a site, each read once."""

    def __init__(self, root: str, files: frozenset[str], read: Read) -> None:
        self.root = root
        self._files, self._read = files, read
        self._documents: dict[str, Mapping[str, Any] | None] = {}

    def document(self, path: str) -> Mapping[str, Any] | None:
        if path not in self._documents:
            data = self._read(path) if path in self._files else None
            self._documents[path] = read_document(data, path) if data is not None else None
        return self._documents[path]


def _declared(value: object, default: str) -> tuple[str, str]:
    """Return source and folder of a declared description; empty for none. Of several the first counts."""
    one = value[0] if isinstance(value, list) and value else value
    folder = one.get("directory") if isinstance(one, dict) else None
    source = one.get("source") if isinstance(one, dict) else one
    clean = normpath(f"/{folder}").strip("/") if isinstance(folder, str) else default
    return source[:MAX_FACT] if isinstance(source, str) else "", clean[:MAX_FACT].lower()


def _pick(page: str, above: _Named | None, named: list[_Named]) -> None:
    match = _PICKED.fullmatch(page.strip()[:MAX_FACT])
    if match is None or match[2].lower() not in (*METHODS, "webhook"):
        return
    key = match[3] if match[2].lower() == "webhook" else f"{match[2]} {match[3]}"
    key = key.rstrip("/").casefold()
    if match[1]:
        folder = above.folder if above is not None else _FOLDERS["openapi"]
        named.append(_Named(match[1], folder, [key], is_whole=False))
    elif above is not None:
        above.picked.append(key)
        above.is_whole = False


def _is_partly_read(document: Mapping[str, Any]) -> bool:
    """Return whether a description has operations, or trees of tags, that are not read here."""
    items = [item for part in ("paths", "webhooks") for item in _table(document.get(part)).values()]
    is_newer = str(document.get("openapi", "")).startswith("3.2")
    return is_newer or any("$ref" in _table(item) or "additionalOperations" in _table(item) for item in items)


def _addresses(document: Mapping[str, Any], folder: str) -> Iterator[tuple[str, str]]:
    """Yield the key of each operation, case-folded, and the address of its page."""
    taken: dict[str, set[str]] = {}
    for part in ("paths", "webhooks"):
        for path, item in _table(document.get(part)).items():
            for method in METHODS:
                operation = _table(_table(item).get(method))
                if not operation or _is_true(operation.get("x-excluded")):
                    continue
                tags = operation.get("tags")
                tag = str(tags[0]) if isinstance(tags, list) and tags else ""
                is_webhook = part == "webhooks"
                title = _file_name(str(operation.get("summary") or ""))
                title = title or (_file_name(path) if is_webhook else f"{method}-{_file_name(path)}")
                href = _table(operation.get("x-mint")).get("href")
                given = href if isinstance(href, str) and href.strip("/") else ""
                base = (given or normpath(f"/{folder}/{_file_name(tag)}/{title}")).strip("/")[:MAX_FACT]
                names = taken.setdefault(tag, set())
                name, number = base, 0
                while name.lower() in names and number < MAX_PAGES:
                    number += 1
                    name = f"{base}-{number}"
                if not _is_true(operation.get("x-hidden")):
                    names.add(name.lower())
                yield (path if is_webhook else f"{method} {path}").rstrip("/").casefold(), f"/{name.lower()}"


def _file_name(words: str) -> str:
    name = re.sub(r"\{[^{}\n]*\}", "-", words.replace(" ", "-"))
    name = name.removeprefix("-").removesuffix("-")
    return re.sub(r"[{}(),.'\n/]", "", name).replace("--", "-").lower()


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_true(value: object) -> bool:
    return str(value).lower() == "true"
