"""Images that a change adds to a page and that the repository does not have.

Generators look for them in many places: beside the page, below its address, in ``static`` or ``public``. So an image
is missing only where no file of the repository could be meant; and where a site has all images of that folder
elsewhere, as pages that were there before show, no file could be.
"""

import asyncio
import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from posixpath import basename, dirname, normpath
from urllib.parse import unquote

from msgspec import Struct

from service.agent.checks.changed import Changed
from service.agent.checks.links.links import Links
from service.agent.checks.markup import links_of
from service.agent.checks.rules import IMAGE_MISSING
from service.agent.workspace import Workspace
from service.domain.jobs.decider import Problem
from service.markup.dialects.dialect import Dialect
from service.markup.pages import is_page
from service.retrieval.site.navigation import SitePage

MAX_LOOKED_FOR = 200
"""Images of one job."""
MAX_NAMES = 200
"""Names that one is compared with."""
MAX_FOLDERS, MAX_ABOVE = 50, 10
_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".bmp", ".apng")
_ALIAS = re.compile(r"(?:@site|@|~)/(?:src/)?")


class _Image(Struct, frozen=True):
    path: str
    """The page's."""
    target: str
    line: int

    @property
    def file(self) -> str:
        """The target without an alias of the site's root, a query or an anchor."""
        return _ALIAS.sub("/", unquote(self.target.partition("#")[0].partition("?")[0]), count=1)


async def check(links: Links, changed: Sequence[Changed]) -> list[Problem]:
    workspace, layout = links.workspace, await links.layout()
    added = await asyncio.to_thread(_added, changed, layout.dialect)
    if not added:
        return []
    files = frozenset(await asyncio.to_thread(workspace.paths))
    plain = [image for image in added if not _is_beside(image, files)]
    if not plain:
        return []
    _, now = await links.views()
    missing = await asyncio.to_thread(_missing, plain, now.files, now.site.pages, layout.bases)
    left_out = await workspace.left_out({_place_of(image) for image in missing})
    missing = [image for image in missing if _place_of(image) not in left_out]  # a link or a submodule: it is not here
    folders = await asyncio.to_thread(_without_images, missing, now.files)
    elsewhere = await _used_before(workspace, folders) if folders else set[str]()
    return await asyncio.to_thread(_problems, missing, elsewhere, now.files)


def _without_images(images: Sequence[_Image], files: Collection[str]) -> set[str]:
    """Return the folders of these images, and those above them, of which the repository has no image."""
    folders = sorted({folder for image in images for folder in _above(dirname(image.file))}, key=len)
    return {folder for folder in folders[:MAX_FOLDERS] if not _has_folder(folder, files)}


def _problems(images: Sequence[_Image], elsewhere: Collection[str], files: Collection[str]) -> list[Problem]:
    names = sorted(path for path in files if path.lower().endswith(_SUFFIXES))
    return [
        IMAGE_MISSING.problem(image.path, f"The image {image.target} does not exist.{_near(image, names)}", image.line)
        for image in images
        if not any(folder in elsewhere for folder in _above(dirname(image.file)))
    ]


def _added(changed: Sequence[Changed], dialect: Dialect) -> list[_Image]:
    found: list[_Image] = []
    for file in changed:
        if not file.after or not is_page(file.path):
            continue
        known = {image.target for image in _images(file.before or "", file.path, dialect)}
        found += [image for image in _images(file.after, file.path, dialect) if image.target not in known]
    return found[:MAX_LOOKED_FOR]


def _images(text: str, path: str, dialect: Dialect) -> Iterator[_Image]:
    for link in links_of(text, path, dialect):
        image = _Image(path, link.target, link.line)
        if link.is_image and image.file.lower().endswith(_SUFFIXES) and "://" not in link.target:
            yield image


def _is_beside(image: _Image, files: Collection[str]) -> bool:
    return normpath(f"{dirname(image.path)}/{image.file}").lstrip("/") in files and not image.file.startswith("/")


def _missing(
    images: Sequence[_Image], files: Collection[str], pages: Mapping[str, SitePage], bases: Sequence[str]
) -> list[_Image]:
    return [image for image in images if not _exists(image, files, pages, bases)]


def _exists(image: _Image, files: Collection[str], pages: Mapping[str, SitePage], bases: Sequence[str]) -> bool:
    ends = []
    if image.file.startswith("/"):
        ends = [image.file, *(image.file.removeprefix(base) for base in bases if base)]
    else:
        page = pages.get(image.path)
        beside = normpath(f"{dirname(image.path)}/{image.file}").lstrip("/")
        if beside in files:
            return True
        if page is not None:
            ends = [normpath(f"{base}/{image.file}") for base in (page.url, dirname(page.url))]
    tails = tuple(f"/{end.lstrip('/')}" for end in ends)
    return any(f"/{path}".endswith(tails) for path in files) if tails else False


def _above(folder: str) -> Iterator[str]:
    """Yield a folder, and those above it."""
    for _ in range(MAX_ABOVE):
        if not folder.strip("./"):
            return
        yield folder
        folder = dirname(folder)


def _has_folder(folder: str, files: Collection[str]) -> bool:
    inner = f"/{normpath(folder).lstrip('./')}/" if folder.strip("./") else "/"
    return any(inner in f"/{path}" and path.lower().endswith(_SUFFIXES) for path in files)


def _place_of(image: _Image) -> str:
    place = image.file if image.file.startswith("/") else f"{dirname(image.path)}/{image.file}"
    return normpath(place).lstrip("/")


async def _used_before(workspace: Workspace, folders: set[str]) -> set[str]:
    """Return the folders that images of pages are in that were there before the changes."""
    found: set[str] = set()
    pages = [path for path in workspace.readable_base_paths() if is_page(path) and workspace.is_documentation(path)]
    async for texts in workspace.base_texts(pages):
        found |= await asyncio.to_thread(_named_in, texts, folders - found)
        if len(found) == len(folders):
            break
    return found


def _named_in(texts: Mapping[str, str], folders: Collection[str]) -> set[str]:
    return {folder for folder in folders if any(f"{folder}/" in text for text in texts.values())}


def _near(image: _Image, names: Sequence[str]) -> str:
    wanted = basename(image.file)
    same = [name for name in names if basename(name).lower() == wanted.lower()]
    if not same and len(wanted) <= 100:
        close = difflib.get_close_matches(wanted, [basename(name) for name in names[:MAX_NAMES]], n=1, cutoff=0.8)
        same = [name for name in names if basename(name) in close]
    return f" Did you mean {same[0]}?" if same else " Add it, or name one that exists."
