"""Folders of documents as Docusaurus has them: ids and addresses by names without their numbers, or by front matter.

Facts: packages/docusaurus-plugin-content-docs/src of facebook/docusaurus, ``docs.ts``, ``slug.ts``,
``numberPrefix.ts`` and ``versions/version.ts``.
"""

import re
from posixpath import normpath
from typing import Literal

from msgspec import Struct

from service.markup.front_matter import FrontMatter, text_field
from service.markup.slugs import slug as github_slug
from service.retrieval.site.ignore_files import IgnoreRules

_NUMBERED = re.compile(r"(?!\d+[-_.]\d)(\d+)\s*[-_.]+\s*([^-_.\s].*)")
"""A number before a name; dates and versions are none."""


class SidebarItem(Struct, frozen=True, omit_defaults=True):
    """A document, a folder whose documents are listed by their names, or a category with items."""

    id: str = ""
    """Id of a document; of a category, that of its own page."""
    folder: str | None = None
    """Path below that of the documents; empty for all of them."""
    is_reference: bool = False
    """Whether the document belongs to another list."""
    items: tuple["SidebarItem", ...] = ()


class Category(Struct, frozen=True, omit_defaults=True):
    """A folder's category, as ``_category_.json`` describes it."""

    position: float | None = None
    page: str = ""
    """Id of its own page, whole or without the folder."""
    has_link: bool = False
    """Whether it says what its own page is; else that is the index of the folder."""


class DocumentSet(Struct, frozen=True, omit_defaults=True):
    """The documents of one folder: one version of them, in one language."""

    folder: str
    prefix: str
    """Prefix of their addresses; NUL where the site's links decide."""
    route: str
    """Prefix without what stands for version and language."""
    version: str = ""
    language: str = ""
    is_default: bool = True
    original: str = ""
    """The folder that it holds translations of."""
    keeps_numbers: bool = False
    style: Literal["docusaurus", "files", "starlight"] = "docusaurus"
    """The rule that makes addresses; ``files``: of names alone."""
    include: IgnoreRules = IgnoreRules()
    """Rules that a page has to fit, where there are any."""
    exclude: IgnoreRules = IgnoreRules()
    has_own_rules: bool = False
    """Whether ``exclude`` stands instead of the rule that names with ``_`` are no pages."""
    sidebars: tuple[SidebarItem, ...] | None = None
    """None where the navigation is not known."""
    sidebar_file: str = ""
    """The file that has them; it names no documents of other versions."""
    categories: dict[str, Category] = {}
    """By folder below that of the documents."""

    def why_excluded(self, inside: str) -> str:
        """Return why a file is no page; empty for a page. ``inside``: its path below the folder."""
        if self.has_own_rules:
            if self.exclude.ignores(inside):
                return "Excluded by the site's configuration."
        elif any(part.startswith("_") for part in inside.split("/")[-1 if self.style == "starlight" else 0 :]):
            return "Names that begin with an underscore are parts of other pages."
        if self.include.lines and not self.include.ignores(inside):
            return "Not among the files that the site's configuration includes."
        return ""

    def id_of(self, inside: str, front_matter: FrontMatter) -> str:
        """Return the id by which sidebars name a document."""
        if self.style == "starlight":
            return self._slug(inside, front_matter)
        folder, name = self._named(inside, front_matter)
        name = text_field(front_matter, "id") or name
        return f"{folder}/{name}" if folder else name

    def address(self, inside: str, front_matter: FrontMatter, base: str) -> str:
        """Return a page's address. ``base`` stands for a prefix that links decide."""
        prefix = base if self.prefix == "\0" else self.prefix
        if self.style == "starlight":
            return f"{prefix}/{self._slug(inside, front_matter)}"
        folder, name = self._named(inside, front_matter)
        if self.style == "files":
            return f"{prefix}/{folder}/{'' if name == 'index' else name}"
        slug = text_field(front_matter, "slug")
        if slug.startswith("/"):
            return f"{prefix}{slug}"
        if not slug and is_category_index(inside):
            return f"{prefix}/{folder}"
        return prefix + normpath(f"/{folder}/{slug or text_field(front_matter, 'id') or name}")

    def _slug(self, inside: str, front_matter: FrontMatter) -> str:
        """Return the address below that of the language; ``slug`` names the language, too."""
        slug = text_field(front_matter, "slug").strip("/")
        if slug:
            language = self.prefix[len(self.route) :].strip("/")
            return "" if slug == language else slug.removeprefix(f"{language}/") if language else slug
        parts = [github_slug(part) for part in inside.rpartition(".")[0].split("/")]
        return "/".join(parts[:-1] if parts[-1] == "index" else parts)

    def _named(self, inside: str, front_matter: FrontMatter) -> tuple[str, str]:
        folder, _, file = inside.rpartition("/")
        name = file.rpartition(".")[0]
        if (
            self.keeps_numbers
            or self.style != "docusaurus"
            or text_field(front_matter, "parse_number_prefixes") == "false"
        ):
            return folder, name
        return "/".join(numbered(part)[1] for part in folder.split("/")), numbered(name)[1]


def numbered(name: str) -> tuple[float | None, str]:
    """Return the number before a name, and the name without it."""
    match = _NUMBERED.fullmatch(name)
    return (float(match[1][:15]), match[2]) if match is not None else (None, name)


def is_category_index(inside: str) -> bool:
    """Return whether a document is the page of its folder, by its file's name."""
    folder, _, file = inside.rpartition("/")
    name = file.rpartition(".")[0].casefold()
    return name in ("index", "readme") or (bool(folder) and name == folder.rpartition("/")[2].casefold())
