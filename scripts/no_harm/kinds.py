"""Generators as this script knows them: the configuration of a small site, its rules, and the ways to write links.

The rules are written down here a second time, from the documentation of the generators, so that a mistake in
Docsmith's own is not made twice; ``builds`` compares them with what the generators themselves make.
"""

import json
import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from random import Random
from urllib.parse import quote

from msgspec import Struct

from scripts.no_harm.reader import Form, Reading, Rules, front_matter

NAMES = ("two words", "größe", "設定", "UPPER", "v1.2")
ODD = ("a&b", "c#sharp", "what?", "100%", "it's")
ODD_NAMES = {"mdbook": ("a&b", "it's"), "gitbook": ODD, "mkdocs": ODD, "plain": ODD, "docusaurus": ("a&b", "it's"),
             "vitepress": ("a&b",), "jekyll": ("a&b",)}  # fmt: skip
"""Names of pages that only some generators can do with."""
SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "sphinx": (".rst", ".md"), "docusaurus": (".md", ".mdx"), "starlight": (".md", ".mdx"), "mintlify": (".mdx",),
    "nextra": (".mdx",), "fumadocs": (".mdx",),
}  # fmt: skip
UNKNOWN_SLUGS = ("gitbook",)
"""Generators whose documentation does not say what anchors they make of other signs than letters, digits and blanks."""
FIRST: Mapping[str, str] = {"gitbook": "README", "hugo": "_index"}
"""The name of the page that stands for its folder, where it is not ``index``."""
FILE_FORMS = ("file", "angle", "reference")


class Sample(Struct):
    """The frame of a site, before it has texts."""

    rules: Rules
    files: dict[str, str]
    """The configuration and other files without links."""
    folder: str
    """Where the pages are."""
    forms: tuple[str, ...]
    front: tuple[str, ...] = ("", "yaml")
    """Kinds of front matter; empty for none."""
    copies: tuple[tuple[str, str], ...] = ()
    """Translations and versions: a folder for pages, or, where that is empty, what stands before their suffix; and
    whether it is one of the language of the other pages (``version``) or not (``language``).
    """
    include: str = ""
    """How a part is shown; ``%s`` is its name."""
    draft: str = ""
    title_field: bool = False
    """Whether the title is in the front matter alone."""
    own_ids: bool = False


Pages = list[str]
"""Paths below the folder of the pages, the first page of the site first."""


def plain_slug(text: str) -> str:
    return re.sub(r"[^\w\s-]", "", text.strip().lower()).replace(" ", "-")


def ascii_slug(text: str) -> str:
    """Return the anchor that Python-Markdown makes of a heading."""
    return re.sub(r"[-\s]+", "-", plain_slug(unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()))


def _split(inside: str) -> tuple[str, str]:
    """Return the folder of a page, with a slash, and its name without its suffix."""
    folder, _, name = inside.rpartition("/")
    return f"{folder}/" if folder else "", name.rpartition(".")[0]


def _folders(indexes: tuple[str, ...], end: str) -> Callable[[str, str], str]:
    """Return the rule of addresses that are paths: those of an index are its folder's."""

    def address(inside: str, _text: str) -> str:
        folder, name = _split(inside)
        return quote(f"/{folder}" if name in indexes else f"/{folder}{name}{end}")

    return address


def _name_of(inside: str, start: str = "") -> str:
    return start + "/".join(part for part in _split(inside)).replace("//", "/")


def _bare(inside: str) -> str:
    return "".join(_split(inside))


# MkDocs and Sphinx


def mkdocs(random: Random, pages: Pages) -> Sample:
    is_directory = random.random() < 0.7
    redirect = random.random() < 0.4
    lines = ["site_name: Kites", "site_url: https://kites.test/", f"use_directory_urls: {str(is_directory).lower()}",
             "markdown_extensions: [attr_list, pymdownx.snippets]"]  # fmt: skip
    if random.random() < 0.6:
        lines += ["nav:", *(f"  - {_title(at)}: {_yaml(page)}" for at, page in enumerate(pages))]
    if redirect:
        maps = f"        gone.md: {_yaml(random.choice(pages))}"
        lines += ["plugins:", "  - search", "  - redirects:", "      redirect_maps:", maps]
    end = "/" if is_directory else ".html"
    rules = Rules(
        (("docs", ""),),
        _folders(("index", "README"), end),
        ascii_slug,
        relative="address",
        named=_from_root,
        lists=("mkdocs.yml",),
    )
    forms = (*FILE_FORMS, "near tag")
    return Sample(rules, {"mkdocs.yml": "\n".join(lines) + "\n"}, "docs", forms, include='--8<-- "%s"', own_ids=True)


def _from_root(site: Reading, _path: str, form: Form, target: str) -> str:
    """Snippets are named from the root of the repository."""
    return target if form == "include" and target in site.files else ""


def sphinx(_random: Random, pages: Pages) -> Sample:
    suffix = posixpath.splitext(pages[0])[1]
    is_rest = suffix == ".rst"
    extensions = "" if is_rest else "extensions = ['myst_parser']\nmyst_heading_anchors = 3\n"
    rules = Rules(
        (("docs", ""),),
        _folders((), ".html"),
        plain_slug,
        (suffix,),
        relative="address",
        reads_files=not is_rest,
        named=_sphinx_name,
        lists=(f"docs/index{suffix}",),
    )
    forms = ("document", "document root", "rest") if is_rest else FILE_FORMS
    include = ".. include:: %s" if is_rest else "```{include} %s\n```"
    return Sample(
        rules, {"docs/conf.py": f"project = 'Kites'\n{extensions}"}, "docs", forms, front=("",), include=include
    )


def _sphinx_name(site: Reading, path: str, form: Form, target: str) -> str:
    if form != "document":
        return ""
    suffix = site.rules.suffixes[0]
    joined = f"docs{target}" if target.startswith("/") else posixpath.join(posixpath.dirname(path), target)
    found = posixpath.normpath(joined) + suffix
    return found if found in site.address_of else ""


# Books


def mdbook(_random: Random, pages: Pages) -> Sample:
    lines = ["# Summary", "", *(_summary_item(page, at, is_raw=True) for at, page in enumerate(pages))]
    rules = Rules((("src", ""),), _folders(("index",), ".html"), plain_slug, relative="file", lists=("src/SUMMARY.md",))
    files = {"book.toml": '[book]\ntitle = "Kites"\n', "src/SUMMARY.md": "\n".join(lines) + "\n"}
    return Sample(rules, files, "src", FILE_FORMS, front=("",), include="{{#include %s}}", own_ids=True)


def gitbook(random: Random, pages: Pages) -> Sample:
    lines = ["# Summary", "", *(_summary_item(page, at) for at, page in enumerate(pages))]
    files = {"SUMMARY.md": "\n".join(lines) + "\n", ".gitbook.yaml": "root: ./\n"}
    if random.random() < 0.5:
        files[".gitbook.yaml"] += f"redirects:\n  gone/away: {_yaml(random.choice(pages))}\n"
    rules = Rules((("", ""),), _folders(("README",), ""), plain_slug, lists=("SUMMARY.md", ".gitbook.yaml"))
    return Sample(rules, files, "", FILE_FORMS, front=("", "yaml"))


def _summary_item(page: str, at: int, *, is_raw: bool = False) -> str:
    return f"{'  ' * min(1, page.count('/'))}- [{_title(at)}]({page.replace(' ', '%20') if is_raw else quote(page)})"


# Hugo and Jekyll


def hugo(random: Random, pages: Pages) -> Sample:
    is_french = random.random() < 0.4
    lines = ["baseURL = 'https://kites.test/'", "title = 'Kites'", "refLinksErrorLevel = 'WARNING'"]
    if is_french:
        lines += ["[languages.en]", "weight = 1", "[languages.fr]", "weight = 2"]
    rules = Rules(
        (("content", ""),),
        _hugo_address,
        plain_slug,
        relative="address",
        reads_files=False,
        named=_hugo_name,
        lists=("hugo.toml",),
    )
    forms = ("hugo name", "hugo path", "hugo near", "address", "near", "near tag")
    if random.random() < 0.4:
        lines += ["[[menu.main]]", "name = 'One'", f"pageRef = '/{_bare(random.choice(pages))}'"]
    return Sample(
        rules,
        {"hugo.toml": "\n".join(lines) + "\n"},
        "content",
        forms,
        front=("yaml", "toml", "json"),
        copies=(("", "language"),) if is_french else (),
        draft="draft",
        own_ids=True,
    )


def _hugo_address(inside: str, text: str) -> str:
    fields = front_matter(text)
    if fields.get("draft", "").lower() == "true":
        return ""
    folder, name = _split(inside)
    language = "/fr" if name.endswith(".fr") else ""
    name = name.removesuffix(".fr")
    shown = fields.get("slug") or name
    whole = f"/{folder}" if name in ("_index", "index") else f"/{folder}{shown}/"
    return quote(language + re.sub(r"[^\w./-]", "", whole.lower().replace(" ", "-")))


def _hugo_name(site: Reading, path: str, form: Form, target: str) -> str:
    if form != "hugo":
        return ""
    is_french = path.endswith(".fr.md")
    bare = target.partition("#")[0]
    if not bare:
        return path
    ending = ".fr.md" if is_french else ".md"
    stem = re.sub(r"(?:/_?index)?(?:\.md)?$", "", bare).rstrip("/")
    joined = stem if bare.startswith("/") else posixpath.join(posixpath.dirname(path)[len("content") :] or "/", stem)
    own = [each for each in site.address_of if each.endswith(".fr.md") == is_french]
    for wanted in (joined, f"/{stem}"):
        wanted = posixpath.normpath(wanted)
        wanted = wanted.rstrip("/")
        for each in (f"content{wanted}{ending}", f"content{wanted}/_index{ending}"):
            found = [page for page in own if page.lower() == each.lower()]
            if found:
                return found[0]
    named = [page for page in own if posixpath.basename(page).lower() == f"{stem}{ending}".lower()]
    return named[0] if "/" not in stem and len(named) == 1 else ""


def jekyll(random: Random, pages: Pages) -> Sample:
    base = random.choice(("", "/jay"))
    is_pretty = random.random() < 0.5
    lines = ["title: Kites", f'baseurl: "{base}"', "plugins: [jekyll-relative-links]"]
    lines += ["permalink: pretty"] if is_pretty else []
    post = "2024-02-03-news"
    files = {
        "_config.yml": "\n".join(lines) + "\n",
        f"_posts/{post}.md": "---\ntitle: News\n---\n\nThe word kite900.\n",
    }
    if random.random() < 0.4:
        address = quote(f"/{_bare(random.choice(pages[1:]))}{'/' if is_pretty else '.html'}")
        files["_data/navigation.yml"] = f'- title: One\n  url: "{address}"\n'
    rules = Rules(
        (("", ""),),
        _jekyll_address(is_pretty),
        plain_slug,
        relative="address",
        base=base,
        named=_jekyll_name,
        lists=("_data/navigation.yml",),
    )
    forms = ("file", "liquid", "based", "address", "near", "post")
    return Sample(rules, files, "", forms, front=("yaml",), include="{%% include %s %%}")


def _jekyll_address(is_pretty: bool) -> Callable[[str, str], str]:
    plain = _folders(("index",), "/" if is_pretty else ".html")

    def address(inside: str, text: str) -> str:
        post = re.fullmatch(r"_posts/(\d+)-(\d+)-(\d+)-(.+)\.md", inside)
        if post is not None:
            return f"/{post[1]}/{post[2]}/{post[3]}/{quote(post[4])}{'/' if is_pretty else '.html'}"
        if inside.startswith("_") or front_matter(text).get("published") == "false":
            return ""
        return front_matter(text).get("permalink") or plain(inside, text)

    return address


def _jekyll_name(site: Reading, _path: str, form: Form, target: str) -> str:
    bare = target.partition("#")[0]
    match form:
        case "include":
            return f"_includes/{bare}"
        case "liquid":
            return bare if bare in site.address_of else ""
        case "post":
            return bare if (bare := f"_posts/{bare}.md") in site.address_of else ""
        case "based":
            return site.page_at(site.rules.base + bare)
    return ""


# Sites of JavaScript


def docusaurus(random: Random, pages: Pages) -> Sample:
    route = random.choice(("docs", "guide", "/"))
    prefix = "" if route == "/" else f"/{route}"
    slash = random.choice(("", "trailingSlash: true,", "trailingSlash: false,"))
    has_versions, is_french = random.random() < 0.3, random.random() < 0.3
    names = [_bare(page) for page in pages]
    files: dict[str, str] = {}
    mounts: list[tuple[str, str]] = [("docs", f"{prefix}/next" if has_versions else prefix)]
    copies: list[tuple[str, str]] = []
    if has_versions:
        files["versions.json"] = '["1.0"]\n'
        mounts.append(("versioned_docs/version-1.0", prefix))
        copies.append(("versioned_docs/version-1.0", "version"))
    if is_french:
        mounts.append(
            ("i18n/fr/docusaurus-plugin-content-docs/current", f"/fr{prefix}{'/next' if has_versions else ''}")
        )
        copies.append(("i18n/fr/docusaurus-plugin-content-docs/current", "language"))
    sidebar = random.choice(("", "sidebars.js", "sidebars.json"))
    if sidebar:
        listed = json.dumps({"main": names}, ensure_ascii=False, indent=2)
        files[sidebar] = listed + "\n" if sidebar.endswith("json") else f"module.exports = {listed};\n"
    if has_versions:
        versioned = json.dumps({"main": names}, ensure_ascii=False, indent=2)
        files["versioned_sidebars/version-1.0-sidebars.json"] = versioned + "\n"
    languages = "i18n: {defaultLocale: 'en', locales: ['en', 'fr']}," if is_french else ""
    given = f"sidebarPath: './{sidebar}'," if sidebar else ""
    files["docusaurus.config.js"] = (
        f"module.exports = {{\n  title: 'Kites', url: 'https://kites.test', baseUrl: '/', {slash} {languages}\n"
        "  onBrokenLinks: 'ignore', onBrokenAnchors: 'ignore', markdown: {hooks: {onBrokenMarkdownLinks: 'ignore'}},\n"
        f"  presets: [['classic', {{docs: {{routeBasePath: '{route}', {given}}}, blog: false, pages: {{}}}}]],\n}};\n"
    )
    rules = Rules(
        tuple(mounts),
        _docusaurus_address(slash),
        plain_slug,
        (".md", ".mdx"),
        relative="address",
        has_top_anchors=False,
        named=_docusaurus_name,
        lists=(sidebar,) if sidebar else (),
        fallbacks=((mounts[-1][1], mounts[0][1]),) if is_french else (),
    )
    return Sample(
        rules,
        files,
        "docs",
        (*FILE_FORMS, "root file", "address"),
        copies=tuple(copies),
        draft="draft",
        include="import Part from './%s';",
        own_ids=True,
    )


def _docusaurus_address(slash: str) -> Callable[[str, str], str]:
    def address(inside: str, text: str) -> str:
        fields = front_matter(text)
        folder, name = _split(inside)
        if fields.get("draft") == "true" or name.startswith("_"):
            return ""
        is_index = name.lower() in ("index", "readme") or f"{name}/".lower() == folder.rpartition("/")[2].lower()
        whole = fields.get("slug") or (f"/{folder}" if is_index else f"/{folder}{name}")
        whole = whole if whole.startswith("/") else f"/{folder}{whole}"
        if "true" in slash:
            whole = whole.rstrip("/") + "/"
        elif "false" in slash:
            whole = whole.rstrip("/") or "/"
        return quote(whole)

    return address


def _docusaurus_name(site: Reading, _path: str, form: Form, target: str) -> str:
    joined = target.replace("@site/", "", 1) if target.startswith("@site/") else ""
    return joined if form == "include" and joined in site.files else ""


def starlight(random: Random, pages: Pages) -> Sample:
    base, is_french = random.choice(("", "/sail")), random.random() < 0.4
    folder = "src/content/docs"
    mounts = [(folder, "")]
    copies: list[tuple[str, str]] = []
    languages = ""
    if is_french:
        mounts.insert(0, (f"{folder}/fr", "/fr"))
        copies.append((f"{folder}/fr", "language"))
        languages = "defaultLocale: 'root', locales: {root: {label: 'English', lang: 'en'}, fr: {label: 'F'}}, "
    slugs = [plain_path(_bare(page)).removesuffix("/index") for page in pages]
    listed = ", ".join(f"{{slug: '{slug}'}}" for slug in slugs)
    sidebar = f"sidebar: [{listed}], " if random.random() < 0.5 else ""
    redirect = random.choice(pages)
    moved = f"redirects: {{'/gone': '{base}{_slugged(redirect, '')}'}}, " if random.random() < 0.4 else ""
    config = (
        "import { defineConfig } from 'astro/config';\nimport starlight from '@astrojs/starlight';\n"
        f"export default defineConfig({{ site: 'https://kites.test', base: '{base or '/'}', {moved}\n"
        f"  integrations: [starlight({{ title: 'Kites', {languages}{sidebar}}})] }});\n"
    )
    content = (
        "import { defineCollection } from 'astro:content';\nimport { docsLoader } from '@astrojs/starlight/loaders';\n"
        "import { docsSchema } from '@astrojs/starlight/schema';\n"
        "export const collections = { docs: defineCollection({ loader: docsLoader(), schema: docsSchema() }) };\n"
    )
    rules = Rules(
        tuple(mounts),
        _slugged,
        plain_slug,
        (".md", ".mdx"),
        relative="address",
        reads_files=False,
        base=base,
        lists=("astro.config.mjs",),
        fallbacks=((f"{base}/fr", base),) if is_french else (),
    )
    return Sample(
        rules,
        {"astro.config.mjs": config, "src/content.config.ts": content},
        folder,
        ("address", "near", "address tag", "reference address"),
        front=("yaml",),
        copies=tuple(copies),
        draft="draft",
        title_field=True,
    )


def plain_path(path: str) -> str:
    return "/".join(plain_slug(part) for part in path.split("/"))


def _slugged(inside: str, text: str) -> str:
    fields = front_matter(text)
    folder, name = _split(inside)
    if fields.get("draft") == "true":
        return ""
    given = fields.get("slug")
    whole = given if given is not None else plain_path(folder if name == "index" else folder + name)
    whole = whole.strip("/")
    return quote(f"/{whole}/" if whole else "/")


def vitepress(random: Random, pages: Pages) -> Sample:
    is_clean = random.random() < 0.5
    items = ", ".join(f"{{ text: '{_title(at)}', link: '/{_bare(page)}' }}" for at, page in enumerate(pages))
    sidebar = f"themeConfig: {{ sidebar: [{items}] }}, " if random.random() < 0.6 else ""
    config = (
        f"export default {{ title: 'Kites', cleanUrls: {str(is_clean).lower()}, {sidebar}ignoreDeadLinks: true }}\n"
    )
    rules = Rules(
        (("docs", ""),),
        _folders(("index",), "" if is_clean else ".html"),
        vitepress_slug,
        relative="file",
        lists=("docs/.vitepress/config.mjs",),
    )
    return Sample(
        rules,
        {"docs/.vitepress/config.mjs": config},
        "docs",
        (*FILE_FORMS, "bare", "address", "root file"),
        include="<!--@include: ./%s-->",
        own_ids=True,
    )


def mintlify(random: Random, pages: Pages) -> Sample:
    names = [_bare(page) for page in pages]
    half = len(names) // 2
    settings = {
        "$schema": "https://mintlify.com/docs.json", "theme": "mint", "name": "Kites", "colors": {"primary": "#101010"},
        "navigation": {"groups": [{"group": "One", "pages": names[:half]}, {"group": "Two", "pages": names[half:]}]},
        "redirects": [{"source": "/gone", "destination": f"/{random.choice(names)}"}],
    }  # fmt: skip
    files = {"docs.json": json.dumps(settings, ensure_ascii=False, indent=2) + "\n"}
    rules = Rules(
        (("", ""),),
        _mintlify_address,
        plain_slug,
        (".mdx", ".md"),
        relative="file",
        routes=_mintlify_routes,
        named=_below_root,
        lists=("docs.json",),
    )
    return Sample(
        rules,
        files,
        "",
        ("address", "bare", "card"),
        front=("yaml",),
        title_field=True,
        include="import Part from '/snippets/%s';",
    )


def _mintlify_address(inside: str, text: str) -> str:
    return "" if inside.startswith("snippets/") else _folders(("index",), "")(inside, text)


def _mintlify_routes(files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for each in json.loads(files["docs.json"].removeprefix("\ufeff"))["redirects"]:
        yield each["source"], each["destination"]


def _below_root(site: Reading, _path: str, form: Form, target: str) -> str:
    bare = target.lstrip("/")
    return bare if form == "include" and target.startswith("/") and bare in site.files else ""


def nextra(random: Random, pages: Pages) -> Sample:
    files = {"next.config.mjs": "import nextra from 'nextra';\nexport default nextra({})({});\n",
             "package.json": '{"dependencies": {"nextra": "4.6.1", "nextra-theme-docs": "4.6.1"}}\n'}  # fmt: skip
    if random.random() < 0.6:
        top = {name: name.title() for page in pages if "/" not in page for name in [_bare(page)]}
        files["content/_meta.js"] = f"export default {json.dumps(top, ensure_ascii=False, indent=2)}\n"
    rules = Rules(
        (("content", ""),),
        _folders(("index",), ""),
        plain_slug,
        (".mdx", ".md"),
        relative="file",
        lists=("content/_meta.js",),
    )
    return Sample(rules, files, "content", ("file", "address", "reference"), front=("", "yaml"))


def fumadocs(random: Random, pages: Pages) -> Sample:
    files = {
        "source.config.ts": "import { defineDocs } from 'fumadocs-mdx/config';\n"
        "export const docs = defineDocs({ dir: 'content/docs' });\n",
        "lib/source.ts": "import { loader } from 'fumadocs-core/source';\n"
        "export const source = loader({ baseUrl: '/docs', source: docs.toFumadocsSource() });\n",
    }
    if random.random() < 0.6:
        top = [_bare(page) for page in pages if "/" not in page]
        files["content/docs/meta.json"] = (
            json.dumps({"title": "Kites", "pages": [*top, "..."]}, ensure_ascii=False) + "\n"
        )
    rules = Rules(
        (("content/docs", ""),),
        _fumadocs_address,
        plain_slug,
        (".mdx", ".md"),
        relative="file",
        lists=("content/docs/meta.json",),
    )
    return Sample(
        rules,
        files,
        "content/docs",
        ("file", "address", "reference"),
        front=("yaml",),
        copies=(("", "language"),) if random.random() < 0.4 else (),
        title_field=True,
    )


def _fumadocs_address(inside: str, _text: str) -> str:
    folder, name = _split(inside)
    parts = [part for part in folder.split("/") if part and not part.startswith("(")]
    language = "/fr" if name.endswith(".fr") else ""
    name = name.removesuffix(".fr")
    return quote("/".join([f"{language}/docs", *parts, *([] if name == "index" else [name])]))


def plain(_random: Random, _pages: Pages) -> Sample:
    rules = Rules((("docs", ""),), _folders(("index", "README"), ""), plain_slug, relative="file")
    return Sample(rules, {"README.md": "# Kites\n\nAll of it is in `docs`.\n"}, "docs", FILE_FORMS, front=("", "yaml"))


def _title(at: int) -> str:
    return f"Chapter {at + 1}"


def _yaml(text: str) -> str:
    return text if re.fullmatch(r"[\w./-]+", text) else json.dumps(text, ensure_ascii=False)


def vitepress_slug(text: str) -> str:
    """Return the anchor that VitePress makes of a heading (@mdit-vue/shared)."""
    plain = re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFKD", text))
    return re.sub(r"[^\w]+", "-", plain.replace("_", "-")).strip("-").lower()


KINDS: Mapping[str, Callable[[Random, Pages], Sample]] = {
    "docusaurus": docusaurus, "fumadocs": fumadocs, "gitbook": gitbook, "hugo": hugo, "jekyll": jekyll,
    "mdbook": mdbook, "mintlify": mintlify, "mkdocs": mkdocs, "nextra": nextra, "plain": plain, "sphinx": sphinx,
    "starlight": starlight, "vitepress": vitepress,
}  # fmt: skip
