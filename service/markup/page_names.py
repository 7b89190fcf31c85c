"""The ways in which a page names another page or file, besides the links of Markdown and HTML.

Each form is read by its own rules (``service.retrieval.site.links``). What stands in code names nothing, except where
generators look there, too: shortcodes of Hugo, and includes.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from service.markup.dialects.dialect import Dialect
from service.markup.inline import Place
from service.markup.markdown import Markdown
from service.markup.pages import is_markdown

Form = Literal[
    "link", "hugo", "liquid", "post", "based", "wiki", "include", "document", "label", "any", "term", "download", "xref"
]
"""``link``: a target of Markdown or HTML. ``hugo``: an argument of ``ref`` or ``relref``. ``liquid``: Jekyll's
``link``, a path from the root of the source. ``post``: its ``post_url``. ``based``: an address to which it adds the
base of the site. ``wiki``: ``[[name]]``. ``include``: a file that is shown or imported. ``document``: a name of Sphinx,
without a suffix. ``label``: a name that it gives to a place in a page. ``any``: either, or the name of an object.
``term``: of a glossary. ``download``: a file. ``xref``: a page of Antora, with its module.
"""

MAX_NAMES = 5_000


class PageName(Struct, frozen=True, gc=False):
    target: str
    """As written: with its anchor, and with the end of the tag where that stands between both."""
    start: int
    form: Form
    is_image: bool = False


_HUGO = re.compile(
    r"\{\{[<%]\s*+(?:rel)?ref\s++(?:(?:path\s*=\s*)?(?:\"([^\"\n]{1,500})\"|`([^`\n]{1,500})`)|([^\s\"`{}<>%]{1,500}))"
)
_OTHER_LANGUAGE = re.compile(r"[\"`]?[^{}\n]{0,200}?\blang\s*=")
"""The rest of a tag that names the page of a language, which need not have the name of this one."""
_TAG_NAME = r"([^%\n{}]{1,500}?(?:(?=\s*-?%\}(?!#))|\s*-?%\}#[^\s()<>\"']{1,200}))"
"""The argument of a tag, with the end of the tag and the anchor behind it where there is one."""
_LIQUID = re.compile(rf"\{{%-?\s*+link\s++{_TAG_NAME}")
_POST = re.compile(rf"\{{%-?\s*+post_url\s++{_TAG_NAME}")
_BASED = re.compile(
    r"\{\{-?\s*+[\"'](/[^\"'\n{}]{0,600})[\"']\s*\|\s*(?:relative_url|absolute_url|prepend:)"
    r"|\{\{-?\s*+site\.baseurl\s*-?\}\}(/[^\s()<>{}\"']{0,500})"
)
_REFRESH = re.compile(r"http-equiv=[\"']?refresh[^\n]{0,100}?\burl=([^\s\"'>]{1,500})", re.IGNORECASE)
_BASE_URL = re.compile(r"\buseBaseUrl\([\"'](/[^\"'\n]{1,500})[\"']")
_PROJECT = re.compile(r"(?:<|\]\()(?:project|path):([^\s<>()]{1,500})[>)]")
_RAW = re.compile(r"\{%-?\s*+(end)?raw\s*+-?%\}")
_CONTENT = re.compile(r"\{%-?\s*+content-ref\s++url=\"([^\"\n]{1,500})\"")
_WIKI = re.compile(r"(?<![\[\\!])\[\[([^\[\]|#\n]{1,200})(?:#[^\[\]|\n]{0,200})?(?:\|[^\[\]\n]{0,300})?\]\](?!\()")
_NOT_WIKI = frozenset(("toc", "_toc_"))
_INCLUDES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"(?<!\\)\{\{#(?:include|rustdoc_include|playground|template)\s++([^\s:{}]{1,500})",  # mdBook
        r"^[ \t]*-{1,}8<-{1,}[ \t]+[\"']([^\"'\n:]{1,500})",  # pymdownx.snippets
        r"<!--[ \t]*@include:[ \t]*([^\s{}<>#]{1,500}?)(?:-->|[\s{}<>#])",  # VitePress
        r"^[ \t]*\.\.[ \t]+(?:include|literalinclude)::[ \t]+(\S{1,500})",  # reStructuredText
        r"^[ \t]*[`~:]{3,}\{(?:include|literalinclude)\}[ \t]+(\S{1,500})",  # MyST
        r"\{%-?\s*+(?:include_relative|include-markdown|include)\s++[\"']?([^\s\"'%{}]{1,500})",  # Liquid, Jinja
        r"\{\{[<%]\s*+(?:readfile|include)\s++(?:file=)?[\"']([^\"'\n]{1,500})",  # Hugo, Docsy
    )
)
_LOADER = r"(?:!{1,2}[\w.?=,&-]{1,100}!)?"
"""A loader of webpack, before the file that it reads."""
_INCLUDES_OUTSIDE_CODE = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^<<<[ \t]+([^\s{}#\[]{1,500})",  # VitePress
        r"<Snippet\s[^<>]{0,200}?file=[\"']([^\"'\n]{1,500})",  # Mintlify
        rf"^(?:import|export)\s[^'\"\n]{{0,500}}\bfrom\s+[\"']{_LOADER}"  # MDX
        r"((?:\.{1,2}|@|@site|~)?/[^\"'\n]{1,500})",
        rf"\brequire\([\"']{_LOADER}((?:\.{{1,2}}|@site)/[^\"'\n]{{1,500}})[\"']\)",
    )
)
_IMAGES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]{1,100}\|[ \t]+)?(?:image|figure)::[ \t]+([^\s{]{1,500})",  # reStructuredText
        r"^[ \t]*[`~:]{3,10}\{(?:image|figure)\}[ \t]*([^\s{]{1,500})",  # MyST
    )
)
_SIGN = re.compile(
    r"\{\{|\{%|\[\[|8<-|@include|<<<|include|Snippet|^(?:im|ex)port\s|[:{](?:any|term|download)[:}]`"
    r"|\{(?:image|figure)\}|\brequire\(|useBaseUrl|[<(](?:project|path):",
    re.MULTILINE,
)
_FILE = re.compile(r"^[ \t]+:file:[ \t]+(\S{1,500})", re.MULTILINE)
_DOCUMENT = re.compile(r"(?::doc:|\{doc\})`(?:[^`<>\n]{0,300}<)?([^`<>\n]{1,300})>?`")
_LABEL = re.compile(r"(?::(?:numref|ref):|\{(?:numref|ref)\})`(?:[^`<>]{0,300}<)?([^`<>]{1,300})>?`")
_ANY = re.compile(r"(?::any:|\{any\})`(?:[^`<>]{0,300}<)?!?([^`<>]{1,300})>?`")
_TERM = re.compile(r"(?::term:|\{term\})`(?:[^`<>]{0,300}<)?!?([^`<>]{1,300})>?`")
_DOWNLOAD = re.compile(r"(?::download:|\{download\})`(?:[^`<>]{0,300}<)?([^`<>\n]{1,300})>?`")
_XREF = re.compile(r"\bxref:([^\s\[\]{}]{1,300}\.adoc(?:#[^\s\[\]{}]{0,200})?)\[|<<([^\s<>,{}]{1,300}\.adoc)[#,>]")
_ASCIIDOC_FILE = re.compile(r"^include::(\.{1,2}/[^\s\[\]{}]{1,300})\[", re.MULTILINE)
_ASCIIDOC_CODE = re.compile(r"^(-{4,}|\.{4,})[ \t]*\n(?:(?!\1[ \t]*$)[^\n]*\n){0,2000}", re.MULTILINE)
_SHOWN = re.compile(r"[ \t]*[`~]{3,}[ \t]*\{(?!code|literalinclude|prompt|parsed-literal|sourcecode)")
"""The first line of a block that is read as a part of the page."""
_REST_SPAN = re.compile(r"``[^`\n]{1,500}(?:`[^`\n]{1,500}){0,20}``")
_REST_CODE = re.compile(r"\.\.[ \t]{1,20}(?:code|code-block|sourcecode|prompt)::")
_REST_LINK = re.compile(
    r"`[^`<>\n]{0,500}(?:\n[^`<>\n]{0,500})?<(?![^<>\n]{0,500}_>)([^<>\s]{1,500})>`__?"
    r"|^[ \t]*\.\.[ \t]+_[^:\n`]{1,200}:[ \t]+(\S{1,500})$",
    re.MULTILINE,
)


_ROLES: tuple[tuple[re.Pattern[str], Form], ...] = (
    (_DOCUMENT, "document"),
    (_LABEL, "label"),
    (_ANY, "any"),
    (_TERM, "term"),
    (_DOWNLOAD, "download"),
)


def may_name_pages(text: str, path: str) -> bool:
    """Return whether a text has the signs of such names, which is quick to see."""
    return _SIGN.search(text) is not None or "doc" in text or "ref" in text or path.endswith((".rst", ".adoc"))


def page_names(text: str, path: str, dialect: Dialect, page: Markdown | None) -> list[PageName]:
    """Return the names of other pages and files in a page, in order. ``page``: where it is one of Markdown."""
    found = [*_found(text, path, dialect, page)] if may_name_pages(text, path) else []
    return sorted({each.start: each for each in found}.values(), key=lambda each: each.start)[:MAX_NAMES]


def _found(text: str, path: str, dialect: Dialect, page: Markdown | None) -> Iterator[PageName]:
    prose, code, unseen = (page.prose, page.code, page.unseen) if page is not None else (text, (), ())
    if dialect.shortcodes:
        for each in _matches(_HUGO, text, "hugo"):  # in a comment, too, it must name a page, but none sees its anchor
            if _OTHER_LANGUAGE.match(text, each.start + len(each.target)):
                continue
            yield replace(each, target=each.target.partition("#")[0]) if _is_in(each.start, unseen) else each
    for pattern in _INCLUDES:
        yield from _matches(pattern, text, "include")
    for pattern in _INCLUDES_OUTSIDE_CODE:
        yield from (each for each in _matches(pattern, text, "include") if not _is_in(each.start, code))
    shown = _shown(text, path, code)
    for pattern, form in _ROLES:
        yield from (name for name, start in _placed(pattern, text, form) if not _is_in(start, shown))
    for pattern in _IMAGES:
        yield from (
            replace(each, is_image=True) for each in _matches(pattern, text, "link") if not _is_in(each.start, shown)
        )
    if path.endswith(".rst"):
        yield from (each for each in _matches(_FILE, text, "include") if not _is_in(each.start, shown))
    if path.endswith(".adoc"):
        blocks = [match.span() for match in _ASCIIDOC_CODE.finditer(text)] if "xref:" in text or "<<" in text else []
        yield from (each for each in _matches(_XREF, text, "xref") if not _is_in(each.start, blocks))
        yield from _matches(_ASCIIDOC_FILE, text, "include")
    yield from _matches(_REFRESH, prose, "link")
    yield from _matches(_BASE_URL, prose, "link")
    yield from _matches(_PROJECT, prose, "link")
    if path.endswith(".rst"):
        yield from _matches(_REST_LINK, text, "link")
    if is_markdown(path):
        tags = _without_raw(prose) if "endraw" in prose else prose
        yield from _matches(_LIQUID, tags, "liquid")
        yield from _matches(_POST, tags, "post")
        yield from _matches(_BASED, tags, "based")
        yield from _matches(_CONTENT, prose, "link")
        yield from (each for each in _matches(_WIKI, prose, "wiki") if each.target.casefold() not in _NOT_WIKI)


def _shown(text: str, path: str, code: Sequence[Place]) -> Sequence[Place]:
    """Return where a text is shown as it is written, so that roles in it are examples."""
    if not path.endswith(".rst"):
        return [place for place in code if _SHOWN.match(text, place[0]) is None]
    places = [match.span() for match in _REST_SPAN.finditer(text)] if "``" in text else []
    if "::" not in text:
        return places
    at, indent, begin = 0, -1, 0
    for line in text.split("\n"):
        own = len(line) - len(line.lstrip())
        if indent >= 0 and line.strip() and own <= indent:
            places.append((begin, at))
            indent = -1
        bare = line.strip()
        begins_code = _REST_CODE.match(bare) if bare.startswith("..") else bare.endswith("::")
        if indent < 0 and begins_code:
            indent, begin = own, at + len(line)
        at += len(line) + 1
    if indent >= 0:
        places.append((begin, at))
    return sorted(places)


def _without_raw(text: str) -> str:
    """Return a text with blanks for what Liquid shows as it is written."""
    kept, at, begin = list[str](), 0, -1
    for tag in _RAW.finditer(text):
        if tag[1] is None:
            begin = tag.end() if begin < 0 else begin
        elif begin >= 0:
            kept += [text[at:begin], " " * (tag.start() - begin)]
            at, begin = tag.start(), -1
    return "".join([*kept, text[at:]])


def _is_in(start: int, places: Sequence[Place]) -> bool:
    number = bisect_left(places, (start + 1, 0)) - 1
    return number >= 0 and start < places[number][1]


def _placed(pattern: re.Pattern[str], text: str, form: Form) -> Iterator[tuple[PageName, int]]:
    """Yield the names, each with the place where its role begins."""
    for match in pattern.finditer(text):
        group = match.lastindex or 1
        yield PageName(match[group], match.start(group), form), match.start()


def _matches(pattern: re.Pattern[str], text: str, form: Form) -> Iterator[PageName]:
    for match in pattern.finditer(text):
        group = match.lastindex or 1
        yield PageName(match[group], match.start(group), form)
