"""Hugo: ``content``, a language's folder or suffix, ``_index.md``, ``url``, ``slug``, ``aliases``, lower case
(gohugo.io/content-management/urls).
"""

import re
from collections.abc import Mapping
from posixpath import dirname

from service.markup.dialects import Dialect
from service.markup.front_matter import load_strings, load_toml
from service.markup.slugs import SlugStyle
from service.retrieval.site.layout import LANGUAGE, LANGUAGES, Layout, Read, join_path, read_text, within

_HUGO_SECTION = re.compile(r"_index(?:\.[a-z-]+)?\.md")


def hugo(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = re.sub(r"/?config/_default$", "", dirname(config))
    content = join_path(root, "content")
    if not any(within(name, content) for name in files):
        return None
    default = ""
    text = read_text(read, config)
    try:
        settings = load_toml(text) if config.endswith(".toml") else load_strings(text)
        if isinstance(settings, dict):
            default = str(settings.get("defaultContentLanguage") or settings.get("defaultcontentlanguage") or "")
    except (ValueError, RecursionError):
        pass  # its defaults then
    found = re.search(r"autoHeadingIDType[\"']?\s*[:=]\s*[\"']?([\w-]{1,30})", text, re.IGNORECASE)
    return _hugo_layout(content, files, docs_folder, default, _HUGO_SLUGS.get(found[1] if found else "", "hugo"))


_HUGO_SLUGS: Mapping[str, SlugStyle] = {"github-ascii": "hugo-ascii", "blackfriday": "blackfriday"}


def hugo_by_folders(files: frozenset[str], docs_folder: str) -> Layout | None:
    """Without its configuration Hugo is known by ``content`` and its ``_index.md``."""
    sections = [
        name
        for name in files
        if within(name, docs_folder)
        and _HUGO_SECTION.fullmatch(name[name.rfind("/") + 1 :])
        and "content" in name.split("/")[:-1]
    ]
    if not sections:
        return None
    shallow = min(sections, key=lambda name: (name.count("/"), name))
    content = shallow[: shallow.index("content/") + len("content")]
    return _hugo_layout(content, files, docs_folder, "", "hugo")


def _hugo_layout(content: str, files: frozenset[str], docs_folder: str, default: str, slugs: SlugStyle) -> Layout:
    inside = {name[len(content) + 1 :].split("/", 1)[0] for name in files if name.startswith(content + "/")}
    languages = sorted(part for part in inside if LANGUAGE.fullmatch(part) and part[:2].lower() in LANGUAGES)
    default = default if default in languages or (default and not languages) else "en"
    if languages and default not in languages:
        default = languages[0]
    mounts = tuple((join_path(content, part), "" if part == default else f"/{part}", "", part) for part in languages)
    return Layout(
        "hugo",
        docs_folder,
        content,
        Dialect(shortcodes=True, slugs=slugs),
        ("",),
        mounts=mounts,
        default_language=default,
    )
