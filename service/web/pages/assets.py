"""Style sheets, pictures and scripts: ours, and those of others with their licences (``vendored/manifest.json``).

An asset is found by its name alone, and its address changes with its content.
"""

import hashlib
from functools import cache
from pathlib import Path

from msgspec import Struct

WEB = Path(__file__).parent.parent
FOLDERS = (
    WEB / "pages" / "templates",
    WEB / "dashboard" / "templates",
    WEB / "ask" / "templates",
    WEB / "scripts",
    WEB / "scripts" / "widget",
    WEB / "vendored",
)
"""The folders of templates and assets; folders within them are not searched for assets."""
TEMPLATES = FOLDERS[:3]
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Asset(Struct, frozen=True):
    body: bytes
    content_type: str
    version: str
    """A part of the body's hash."""


def find_asset(name: str) -> Asset | None:
    """Return the asset of that name."""
    path = _paths().get(name)
    return None if path is None else _asset(path)  # a name that strangers ask for is not kept


@cache
def _asset(path: Path) -> Asset:
    body = path.read_bytes()
    return Asset(body, TYPES[path.suffix], hashlib.sha256(body).hexdigest()[:12])


def asset_address(name: str) -> str:
    """Return the address of an asset, from the root of the service."""
    found = find_asset(name)
    assert found is not None, name
    return f"assets/{name}?v={found.version}"


@cache
def _paths() -> dict[str, Path]:
    return {
        file.name: file for folder in FOLDERS if folder.is_dir() for file in folder.iterdir() if file.suffix in TYPES
    }
