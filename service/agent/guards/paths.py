"""Which paths a job may read and write: the one place for the names that its tools refuse.

What is refused is refused to protect people who check the branch out later, and those who build the site from it.
"""

import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath

from service.agent.guards import configurations
from service.agent.guards.refused import Refused
from service.domain.texts.unicode_forms import normalized
from service.markup.generator_files import NAVIGATION_DATA

MAX_PATH = 400
"""Characters."""
WRITABLE_SUFFIXES = frozenset(
    {".md", ".mdx", ".markdown", ".rst", ".adoc", ".txt", ".json", ".yml", ".yaml", ".toml", ".html"}
)
"""Prose, and the data that sites keep beside it. Scripts and style sheets are code, and SVG may carry a script."""

BUILD_FILES = frozenset(
    {
        "package.json", "package-lock.json", "npm-shrinkwrap.json", "composer.json", "deno.json", "tsconfig.json",
        "jsconfig.json", "lerna.json", "nx.json", "turbo.json", "renovate.json", "vercel.json", "firebase.json",
        "pyproject.toml", "cargo.toml", "netlify.toml", "wrangler.toml", "bunfig.toml", "pipfile.toml", "poetry.toml",
        "docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml", "action.yml", "action.yaml",
        "azure-pipelines.yml", "azure-pipelines.yaml", "bitbucket-pipelines.yml", "cloudbuild.yaml", "cloudbuild.yml",
        "buildspec.yml", "appveyor.yml", "taskfile.yml", "requirements.txt", "constraints.txt", "pnpm-lock.yaml",
        "babel.config.json", "angular.json", "typedoc.json", "jsdoc.json", "now.json", "readthedocs.yml",
        "readthedocs.yaml", "environment.yml", "environment.yaml", "amplify.yml", "render.yaml", "heroku.yml",
        "lefthook.yml", "fly.toml", "mise.toml", "pixi.toml", "uv.toml", "hatch.toml", "tox.toml",
        "pnpm-workspace.yaml", "codeowners.txt", "cmakelists.txt", "robots.txt", "security.txt",
    }
)  # fmt: skip
"""Files with a writable suffix that decide what a build runs or who may do what; they are never written."""

_REQUIREMENTS = re.compile(r"(?:[\w.]{1,50}[-_])?requirements(?:[-_.][\w-]{1,50})?\.txt")
"""Packages that a build installs, and with them what they run."""
_STEERS_AGENTS = re.compile(
    r"(?:agents|claude|gemini|skill|copilot-instructions|qwen)(?:\.(?:local|override))?\.(?:md|markdown|txt)"
    r"|[^/]{1,200}\.(?:prompt|instructions|chatmode|agent)\.md",
    re.IGNORECASE,
)
"""Guidance for agents, ours and others', is for people to write: a change would steer every later job. In any case:
file systems that ignore it take ``agents.md`` for ``AGENTS.md``.
"""
_CODE_SUFFIXES = frozenset(
    {".py", ".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx", ".vue", ".svelte", ".astro", ".rb", ".go",
     ".sh", ".lua", ".php", ".j2", ".jinja", ".liquid", ".njk", ".ejs", ".hbs"}
)  # fmt: skip

_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{n}{i}" for n in ("com", "lpt") for i in range(1, 10))})


class Names:
    """Finds names that are the same to a file system which ignores case or composes accents."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        for path in paths:
            self.note(path, exists=True)

    def copied(self) -> "Names":
        """Return names of its own for a job, which notes its changes in them."""
        copy = Names(())
        copy._files, copy._folders = dict(self._files), dict(self._folders)
        return copy

    def note(self, path: str, *, exists: bool) -> None:
        if not exists:
            if self._files.get(_folded(path)) == path:
                del self._files[_folded(path)]
            return
        self._files[_folded(path)] = path
        folder = path.rpartition("/")[0]
        while folder and _folded(folder) not in self._folders:
            self._folders[_folded(folder)] = folder
            folder = folder.rpartition("/")[0]

    def check_new(self, path: str, *, instead_of: str = "") -> None:
        for part in path.split("/"):
            _check_new_part(part)
        if len(path) > MAX_PATH:
            raise Refused(f"A path has at most {MAX_PATH} characters.", "Give a shorter one.")
        other = self._files.get(_folded(path))
        if other not in (None, path, instead_of):
            raise Refused(
                f"{path} would be the same file as {other} where case or accents do not count.", "Give another name."
            )
        if _folded(path) in self._folders:
            raise Refused(f"{path} is a folder.", "Give the path of a file in it.")
        folder = path.rpartition("/")[0]
        while folder:
            known = self._folders.get(_folded(folder), folder)
            if known != folder:
                raise Refused(f"{folder} would be the same folder as {known} where case does not count: use {known}.")
            if self._files.get(_folded(folder)) not in (None, instead_of):
                raise Refused(f"{folder} is a file.", "Give a path in another folder.")
            folder = folder.rpartition("/")[0]


def checked_writable(path: str) -> None:
    """Raise Refused for a file that no job may write, by its name."""
    name = PurePosixPath(path).name
    if configurations.is_code_navigation(path):
        return  # its literal entries, as ``configurations.check_of`` finds
    if PurePosixPath(path).suffix.lower() in _CODE_SUFFIXES:
        raise Refused(f"{path} cannot be written: it is code, which a site generator or a reader's browser may run.")
    if not path.lower().endswith(tuple(WRITABLE_SUFFIXES)):
        raise Refused(f"{path} cannot be written: only {', '.join(sorted(WRITABLE_SUFFIXES))} files can.")
    if name.lower() in BUILD_FILES or _REQUIREMENTS.fullmatch(name.lower()):
        raise Refused(f"{path} cannot be written: it steers builds, and is for people to change.")
    if _STEERS_AGENTS.fullmatch(name):
        raise Refused(f"{path} cannot be written: it instructs agents, and is for people to change.")
    configurations.check_name(path)


def normal_path(path: str) -> str:
    """Return a path from the root of the repository: without ``.``, ``..``, backslashes, a leading or doubled slash.

    Raise Refused when it names no file, or leads out of the repository.
    """
    normal = normal_folder(path)
    if not normal:
        raise Refused("The path is empty.", "Give the path of a file, such as guides/start.md.")
    return normal


def normal_folder(path: str) -> str:
    """Return a folder's path as ``normal_path`` does; empty for the root of the repository."""
    if any(c in path for c in "\0\n\r"):
        raise Refused("A path is one line of text.", "Give the path of a file, such as guides/start.md.")
    parts: list[str] = []
    for part in path.strip().replace("\\", "/").split("/"):
        if part == ".." and not parts:
            raise Refused(f"{path.strip()!r} leads out of the repository.", "Paths begin at its root.")
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    normal = "/".join(parts)
    try:
        normal.encode()
    except UnicodeEncodeError:
        raise Refused("The path has characters that UTF-8 cannot hold.", "Copy it from the list of files.") from None
    return normal


def is_under(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def is_hidden(path: str) -> bool:
    """Part of the path begins with a dot: ``.git``, ``.github``, ``.circleci``, ``.gitlab-ci.yml``, ``.env`` …

    So does what some file systems take for such a name: ``git~1`` (NTFS) or one with an ignorable character (HFS+).
    """
    if configurations.is_vitepress(path):
        path = path.replace(".vitepress/", "", 1)  # jobs add pages to its sidebar
    for part in path.split("/"):
        plain = "".join(c for c in part if unicodedata.category(c) not in ("Cf", "Cc")) if not part.isascii() else part
        if plain.startswith(".") or plain.lower().startswith("git~"):
            return True
    return False


def is_navigation_above(path: str, docs_folder: str) -> bool:
    folder, _, name = path.rpartition("/")
    if configurations.is_vitepress(path):
        folder = path.rpartition(".vitepress/")[0].rstrip("/")
    elif name not in NAVIGATION_DATA and not configurations.is_code_navigation(path):
        return False
    return not folder or docs_folder == folder or docs_folder.startswith(f"{folder}/")


def _check_new_part(part: str) -> None:
    if part != normalized("NFC", part):
        raise Refused(f"{part!r} is not in Unicode's normal form C.", "Write it with composed letters.")
    if any(c in '\\<>:"|?*' or unicodedata.category(c).startswith("C") for c in part):
        raise Refused(f"{part!r} has a character that some file systems refuse.", "Use letters, digits and -.")
    if part.endswith((".", " ")) or part.startswith((" ", "-")) or part.split(".")[0].lower() in _RESERVED:
        raise Refused(f"{part!r} is a name that some systems refuse.", "Give another name.")
    if len(part.encode()) > 255:
        raise Refused("A file's name has at most 255 bytes.", "Give a shorter one.")


def _folded(path: str) -> str:
    if path.isascii():
        return path.lower()
    return normalized("NFC", normalized("NFC", path).casefold())
