"""The files of a commit that an index is made from, as an archive, with what is left out and why."""

import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from dulwich.objects import Commit, ObjectID
from dulwich.repo import Repo

from service.adapters.git.names import is_plain
from service.adapters.git.objects import Entry, Objects, left_out
from service.domain.errors import Invalid
from service.markup.generator_files import CONFIGURATIONS, NAVIGATION
from service.ports.docs_source import LEFT_OUT, MAY_HOLD_PAGES, REASON, LeftOut, size_limit

MAX_EXPORT_BYTES = 2 * 1024 * 1024 * 1024
"""Limit for all files of a commit together, in bytes."""

OWN_FOLDER, OWN_FILE = ".docsmith", "assistant.md"
"""Instructions of a site's owner to the assistant."""
_TOOLS = """
versions.json _config.yml .readthedocs.yaml .readthedocs.yml readthedocs.yml tox.ini noxfile.py pyproject.toml Makefile
justfile Justfile zensical.toml _quarto.yml _toc.yml llms.txt AGENTS.md
"""
SITE_FILES = frozenset([*chain(*CONFIGURATIONS.values()), *NAVIGATION["gitbook"], *_TOOLS.split()])
"""Configuration of a documentation site, looked for in the folders above its pages too."""


SITE_FOLDERS = (
    "config/_default", "config/production", "layouts/shortcodes", "layouts/_shortcodes", "i18n", "website", "site",
    "docusaurus",
)  # fmt: skip
"""Folders that lie beside the pages, looked for in the folders above them: of a site of Hugo, and those that
configurations of Docusaurus usually are in.
"""
MAX_SITE_FILES = 300
"""Limit for the files of each such folder."""


def export(repository: Repo, commit: Commit, docs_folder: str, archive: Path) -> None:
    objects = Objects(repository)
    partial = archive.with_name(f".{archive.name}.{os.getpid()}.new")
    left: list[LeftOut] = []
    written = 0
    try:
        with tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as tar:
            for path, mode, sha in _exported(objects, commit.tree, docs_folder, left.append):
                content = objects.blob(sha, size_limit(path.decode()))
                if content is None:
                    left.append(over_limit(path.decode()))
                    continue
                written += len(content)
                if written > MAX_EXPORT_BYTES:
                    raise Invalid(
                        f"The files of the documentation folder have more than {MAX_EXPORT_BYTES >> 30} GiB together."
                        " Name a smaller folder.",
                        code="too_large",
                    )
                info = tarfile.TarInfo(path.decode())
                info.size, info.mtime = len(content), max(0, commit.commit_time)
                info.mode = 0o755 if mode & 0o100 else 0o644
                tar.addfile(info, io.BytesIO(content))
            for one in left:
                _add_left_out(tar, one)
        partial.replace(archive)
    finally:
        partial.unlink(missing_ok=True)


def _add_left_out(tar: tarfile.TarFile, left: LeftOut) -> None:
    info = tarfile.TarInfo(left.path)
    info.type = LEFT_OUT
    info.pax_headers = {REASON: left.reason, **({MAY_HOLD_PAGES: "1"} if left.may_hold_pages else {})}
    tar.addfile(info)


def _exported(
    objects: Objects, tree: ObjectID, docs_folder: str, leave: Callable[[LeftOut], None]
) -> Iterator[tuple[bytes, int, ObjectID]]:
    """The site's configuration and its own file in the folders above, then everything in the docs folder, in order."""
    parts = [part.encode() for part in docs_folder.split("/") if part]
    yield from above(objects, tree, parts, leave)
    docs = objects.entry(tree, parts)
    if docs is not None and stat.S_ISDIR(docs.mode):
        yield from sorted(objects.files(docs.id, folder=b"/".join(parts), leave=leave))
    elif docs is not None:
        left = left_out(b"".join(part + b"/" for part in parts[:-1]), docs)
        if left is not None:
            leave(left)


def above(
    objects: Objects, tree: ObjectID, parts: Sequence[bytes], leave: Callable[[LeftOut], None]
) -> Iterator[tuple[bytes, int, ObjectID]]:
    """Yield the files in the folders above the documentation that describe the site."""
    for depth in range(len(parts)):
        folder = objects.entry(tree, parts[:depth])
        if folder is None or not stat.S_ISDIR(folder.mode):
            return
        prefix = b"".join(part + b"/" for part in parts[:depth])
        own = objects.entry(tree, [*parts[:depth], OWN_FOLDER.encode(), OWN_FILE.encode()])
        found = [(prefix, entry) for entry in objects.entries(folder.id) if is_site_file(entry.name)]
        found += _in_site_folders(objects, tree, parts[:depth])
        if own is not None:
            found.append((prefix + OWN_FOLDER.encode() + b"/", own))
        for place, entry in found:
            left = left_out(place, entry)
            if left is not None:
                leave(left)
            elif stat.S_ISREG(entry.mode):
                yield place + entry.name, entry.mode, entry.id


def _in_site_folders(objects: Objects, tree: ObjectID, above_pages: Sequence[bytes]) -> Iterator[tuple[bytes, Entry]]:
    for name in SITE_FOLDERS:
        inside = [*above_pages, *(part.encode() for part in name.split("/"))]
        folder = objects.entry(tree, inside)
        if folder is None or not stat.S_ISDIR(folder.mode):
            continue
        files = [entry for entry in objects.entries(folder.id) if not stat.S_ISDIR(entry.mode) and is_plain(entry.name)]
        yield from ((b"".join(part + b"/" for part in inside), entry) for entry in files[:MAX_SITE_FILES])


def is_site_file(name: bytes) -> bool:
    return is_plain(name) and name.decode() in SITE_FILES


def over_limit(path: str) -> LeftOut:
    """Return the record of a file that is larger than its ``size_limit``."""
    return LeftOut(path, f"It is larger than {size_limit(path) >> 20} MiB.")
