"""Jekyll, and so GitHub Pages: ``_config.yml`` (jekyllrb.com/docs/configuration). Addresses are by ``permalink``, of
the page or of the site (jekyllrb.com/docs/permalinks); posts and collections have folders whose names begin with an
underscore, in which all else is no page.
"""

import re
from collections.abc import Iterator, Mapping
from posixpath import dirname, normpath

from service.markup.dialects.dialect import Dialect
from service.markup.front_matter import FrontMatter, is_true, load_strings, split_front_matter, text_field
from service.markup.pages import MARKDOWN_SUFFIXES
from service.retrieval.site.ignore_files import ignore_rules
from service.retrieval.site.layout import Layout, Read, clean_url, join_path, read_text, within
from service.retrieval.site.link_rules import LinkRules
from service.retrieval.site.settings import text_setting

MAX_PAGES, MAX_HEAD, MAX_COLLECTIONS = 50_000, 64 << 10, 100
_SIGNS = frozenset(
    """
    theme remote_theme baseurl permalink collections plugins gems kramdown defaults markdown exclude include url
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
"""Settings of which one is in every configuration."""
_FOLDERS = ("_layouts/", "_includes/", "_posts/", "_data/", "_sass/")
_BOOK = ("_toc.yml", "_toc.yaml")
"""Files of a Jupyter Book, whose configuration has the same name."""
_PLAIN_PLUGINS = re.compile(
    r"(?:jekyll-(?:seo-tag|sitemap|feed|relative-links|include-cache|redirect-from|remote-theme|titles-from-headings|"
    r"readme-index|optional-front-matter|github-metadata|default-layout|mentions|gist|coffeescript|commonmark|toc|"
    r"last-modified-at|target-blank|spaceship|sass-converter)|jemoji|github-pages|just-the-docs)$"
)
"""Plugins that make no pages of their own."""
_POST = re.compile(r"(?P<year>\d{2,4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})-(?P<title>.+)")
_STYLES = {
    "date": "/:categories/:year/:month/:day/:title.html",
    "pretty": "/:categories/:year/:month/:day/:title/",
    "none": "/:categories/:title.html",
}
_TOKEN = re.compile(r":([a-z_]+)")
_UNSEEN = "Jekyll makes no page of a file in a folder whose name begins with an underscore."


def jekyll(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    top = dirname(config)
    try:
        found = load_strings(read_text(read, config))
    except ValueError:
        found = None
    settings: Mapping[str, object] = found if isinstance(found, dict) else {}
    has_folders = any(join_path(top, folder) in name for name in files for folder in _FOLDERS)
    if any(join_path(top, name) in files for name in _BOOK) or not (_SIGNS & settings.keys() or has_folders):
        return None
    source = normpath(join_path(top, text_setting(settings, "source") or "."))
    root = "" if source == "." else source
    base = clean_url(text_setting(settings, "baseurl")).rstrip("/")
    site = _Site(settings, root, base, read)
    addresses: dict[str, str] = {}
    hidden: dict[str, str] = {}
    for path in sorted(name for name in files if within(name, root) and name.lower().endswith(MARKDOWN_SUFFIXES)):
        if len(addresses) >= MAX_PAGES:
            break
        address = site.address(path)
        if address:
            addresses[path] = address
        else:
            hidden[path] = _UNSEEN
    plugins = [one for key in ("plugins", "gems") for one in _strings(settings.get(key))]
    return Layout(
        "jekyll", docs_folder, root, Dialect(kramdown=True), (base,), hidden_pages=hidden, addresses=addresses,
        ignored=ignore_rules(("/vendor/", *(f"/{one}" for one in _strings(settings.get("exclude")))), file=config),
        include_folders=(join_path(root, "_includes"),),
        links=LinkRules(
            relative="address", slash=site.slash, has_all_addresses=all(map(_PLAIN_PLUGINS.match, plugins)),
            knows_root="baseurl" in settings, base=base, has_liquid=True, served=(root,),
        ),
    )  # fmt: skip


class _Site:
    def __init__(self, settings: Mapping[str, object], root: str, base: str, read: Read) -> None:
        self._root, self._base, self._read = root, base, read
        style = text_setting(settings, "permalink") or "date"
        self._posts = _STYLES.get(style, style)
        self.is_pretty = self._posts.endswith("/")
        listed = settings.get("collections")
        self._collections: dict[str, str] = {}
        for name, about in list(listed.items())[:MAX_COLLECTIONS] if isinstance(listed, dict) else ():
            if isinstance(about, dict) and str(about.get("output")).lower() == "true":
                default = "/:collection/:path/" if self.is_pretty else "/:collection/:path.html"
                self._collections[str(name)] = text_setting(about, "permalink") or default
        self._defaults = [*_defaults(settings.get("defaults"))]
        self._patterns = {self._posts, *self._collections.values()}

    @property
    def slash(self) -> bool | None:
        """Whether the addresses that do not end in ``.html`` end in a slash; None where some do."""
        ends = {each.endswith("/") for each in self._patterns if not each.endswith((".html", ":output_ext"))}
        return ends.pop() if len(ends) == 1 else None if ends else True

    def address(self, path: str) -> str:
        """Return the address of a page, or a post; empty for other files."""
        inside = path[len(self._root) :].lstrip("/")
        folders, name = inside.split("/")[:-1], inside.rpartition("/")[2].rpartition(".")[0]
        special = next((part for part in folders if part.startswith("_")), "")
        head = (self._read(path) or b"")[:MAX_HEAD].decode("utf-8", "replace").lstrip("\ufeff")
        front_matter = split_front_matter(head)[0]
        own = text_field(front_matter, "permalink") or self._default(inside)
        self._patterns.add(own or self._posts)
        if special and special != "_posts" and special[1:] not in self._collections:
            return ""
        if name.startswith("_") or is_true(front_matter, "draft"):
            return ""
        if special == "_posts":
            return self._of_post(folders, name, front_matter, own)
        if special:
            below = "/".join([*folders[folders.index(special) + 1 :], name])
            words = {
                "collection": special[1:],
                "path": below,
                "name": name,
                "title": text_field(front_matter, "slug") or name,
            }
            return self._expanded(own or self._collections[special[1:]], words)
        folder = "/".join(folders)
        is_index = name.lower() in ("index", "readme")
        if own:
            return self._expanded(own, {"path": folder, "basename": name, "title": name})
        if is_index:
            return clean_url(f"{self._base}/{folder}")
        return clean_url(f"{self._base}/{folder}/{name}{'' if self.is_pretty else '.html'}")

    def _of_post(self, folders: list[str], name: str, front_matter: FrontMatter, own: str) -> str:
        post = _POST.fullmatch(name)
        if post is None:
            return ""
        words = {key: value.zfill(2) for key, value in post.groupdict().items()}
        words["title"] = words["slug"] = text_field(front_matter, "slug") or post["title"]
        given = front_matter.get("categories") or front_matter.get("category") or ()
        named = (
            given.split() if isinstance(given, str) else [str(one) for one in given] if isinstance(given, list) else []
        )
        words["categories"] = "/".join([*folders[: folders.index("_posts")], *(one.lower() for one in named)])
        return self._expanded(own or self._posts, words)

    def _expanded(self, pattern: str, words: Mapping[str, str]) -> str:
        shown = _TOKEN.sub(lambda found: words.get(found[1], "" if found[1] == "output_ext" else found[0]), pattern)
        return clean_url(f"{self._base}/{shown}")

    def _default(self, inside: str) -> str:
        fitting = [(len(folder), link) for folder, link in self._defaults if within(inside, folder)]
        return max(fitting, default=(0, ""))[1]


def _defaults(listed: object) -> Iterator[tuple[str, str]]:
    """Yield the permalinks that the configuration gives the pages of folders."""
    for one in listed[:MAX_COLLECTIONS] if isinstance(listed, list) else ():
        scope, values = (one.get("scope"), one.get("values")) if isinstance(one, dict) else (None, None)
        if isinstance(scope, dict) and isinstance(values, dict) and text_setting(values, "permalink"):
            yield text_setting(scope, "path").strip("/"), text_setting(values, "permalink")


def _strings(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
