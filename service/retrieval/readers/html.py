"""HTML pages: what a reader came for, as sections.

libxml2 reads what browsers read, in bounded depth, and knows the line of each element. Of the tree, ``main`` (or what
says that it is the main content, or the only ``article``) is kept, without scripts, navigation, asides, headers,
footers, forms and what is hidden. Headings keep the ``id`` that they have, or that of the element around them (Sphinx,
Docusaurus, Hugo and MkDocs write one or the other); the ``¶`` and ``#`` that lead to it are left out.
"""

import re
from collections.abc import Iterator

from lxml import etree, html

from service.domain.sites import Skipped
from service.markup.prose import MAX_HEADING
from service.ports.docs_source import PAGE_BYTES
from service.retrieval.readers.markdown import MAX_LINES, ParsedPage
from service.retrieval.readers.outline import Outline, TooLong

MAX_HTML_BYTES = PAGE_BYTES["html"]
MAX_DEPTH = 150
"""Elements nested deeper than this are read as text of that depth."""

_UNSEEN = frozenset(
    """
    script style noscript template nav header footer aside form svg canvas iframe object embed video audio map math
    button input select textarea dialog head link meta base title
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
_UNSEEN_ROLES = frozenset(("navigation", "banner", "contentinfo", "search", "complementary", "menu", "alert", "dialog"))
_UNSEEN_CLASSES = re.compile(
    r"(?:^|\s)(?:headerlink|hash-link|anchor-link|skip-link|sr-only|visually-hidden|breadcrumbs?|toc|table-of-contents"
    r"|theme-doc-toc-\w+|pagination(?:-nav)?|sidebar|sphinxsidebar|md-sidebar|navbar|edit-this-page|related"
    r"|theme-edit-this-page|cookie-\w+|copybtn|pager)(?:\s|$)"
)
_BLOCKS = frozenset(
    """
    address article blockquote body center dd details div dl dt fieldset figcaption figure hr html li main ol p pre
    section summary table tbody td tfoot th thead tr ul h1 h2 h3 h4 h5 h6 caption
    """.split()  # noqa: SIM905  (as above)
)
MAX_ATTRIBUTES = 2_000
"""Limit for one element. libxml2 compares each with all before it, and no deadline can interrupt that."""
_ATTRIBUTE = r"""(?:=[^\s/>=]*+|[^\s/>=]++)(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>]*+))?+"""
_TAG = re.compile(rf"<[A-Za-z][^\s/>]*+(?:[\s/]++|{_ATTRIBUTE})*+")
_ATTRIBUTE_OF_TAG = re.compile(rf"[\s/]++|{_ATTRIBUTE}")
_HEADING = re.compile(r"h[1-6]")
_LANGUAGE = re.compile(r"(?:language|lang|highlight|brush:?)[-_ ]([\w+#-]{1,30})")


def parse_html(data: bytes, path: str) -> ParsedPage | Skipped:
    """Never raises for what is in the page."""
    if len(data) > MAX_HTML_BYTES:
        return Skipped(path, f"It is larger than {MAX_HTML_BYTES >> 20} MiB.")
    if b"\0" in data:
        return Skipped(path, "It is not text.")
    lines = data.count(b"\n") + 1
    if lines > MAX_LINES:
        return Skipped(path, f"It has more than {MAX_LINES:,} lines.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Skipped(path, "It is not UTF-8 text.")
    if not text.strip():
        return Skipped(path, "It has no text.")
    if any(_has_too_many_attributes(found[0]) for found in _TAG.finditer(text)):
        return Skipped(path, f"An element has more than {MAX_ATTRIBUTES:,} attributes.")
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=False)
    try:
        root = html.document_fromstring(text.encode(), parser=parser)
        return _Reader(root, path).page(lines)
    except (etree.LxmlError, ValueError, AssertionError):
        return Skipped(path, "It is not HTML.")
    except (RecursionError, TooLong):
        return Skipped(path, "It is nested too deeply, or has too many parts.")


def _has_too_many_attributes(tag: str) -> bool:
    """Count attributes as the HTML standard divides a tag (section 13.2.5.32 and the following)."""
    if len(tag) <= 2 * MAX_ATTRIBUTES:
        return False
    return sum(1 for found in _ATTRIBUTE_OF_TAG.finditer(tag) if not found[0][0].isspace()) > MAX_ATTRIBUTES


class _Reader:
    def __init__(self, root: etree._Element, path: str) -> None:
        self._root, self._path = root, path
        self._outline = Outline()
        self._line = 1
        self._words: list[str] = []  # of the block that is being read
        self._is_blank = True  # they have no letter
        self._first = 1

    def page(self, lines: int) -> ParsedPage:
        front_matter: dict[str, object] = {}
        for meta in self._root.iter("meta"):
            name, content = (meta.get("name") or meta.get("property") or "").lower(), meta.get("content") or ""
            if name in ("description", "og:title", "og:description", "robots", "docsearch:version"):
                front_matter.setdefault(name, content[:2000])
        if "noindex" in str(front_matter.get("robots", "")).lower():
            front_matter["searchable"] = "false"
        language = self._root.get("lang")
        if language:
            front_matter["lang"] = language[:20]
        if front_matter.get("docsearch:version"):
            front_matter["version"] = front_matter["docsearch:version"]
        content = self._content()
        self._walk(content, "", 0)
        self._flush()
        named = next((_plain_text(one) for one in content.iter("h1")), "")
        title = named or str(front_matter.get("og:title", "")) or " ".join(self._root.findtext(".//title", "").split())
        description = " ".join(str(front_matter.get("description") or front_matter.get("og:description") or "").split())
        return self._outline.page(
            self._path, title=title[:MAX_HEADING], description=description, front_matter=front_matter, last_line=lines
        )

    def _content(self) -> etree._Element:
        for query in ("//main", "//*[@role='main']", "//article"):
            found = self._root.xpath(query)
            if len(found) == 1 or (found and query != "//article"):
                return found[0]
        bodies = self._root.xpath("//body")
        return bodies[0] if bodies else self._root

    def _walk(self, element: etree._Element, prefix: str, depth: int) -> None:
        """``prefix`` begins each block's first line: a list item's mark, a quote's."""
        tag = element.tag
        if not isinstance(tag, str) or _is_unseen(element):
            return
        self._line = max(self._line, element.sourceline or 1)
        own = element.get("id") or (element.get("name") if tag == "a" else None)
        if own:
            self._outline.anchors.add(own)
        if depth > MAX_DEPTH:
            self._say(_plain_text(element))
            return
        if _HEADING.fullmatch(tag):
            self._flush()
            self._heading(element, int(tag[1]))
            return
        if tag == "pre":
            self._flush()
            text = "".join(_texts(element, keep_lines=True))
            language = _language_of(element)
            first = element.sourceline or self._line
            self._outline.code(text, language, first, first + text.strip("\n").count("\n"))
            self._line = first + text.count("\n")
            return
        if tag == "table":
            self._flush()
            self._table(element)
            return
        is_block = tag in _BLOCKS
        if is_block:
            self._flush()
        self._begin(tag, prefix)
        marks = _MARKS.get(tag, "") if not is_block else ""
        if marks and _plain_text(element):
            self._say(marks)
        if element.text:
            self._say(element.text)
        for child in element:
            self._walk(child, _prefix_of(child, prefix), depth + 1)
            if child.tail:
                self._say(child.tail)
        if marks and _plain_text(element):
            self._say(marks)
        if tag == "a" and element.get("href"):
            self._outline.link(element.get("href", ""), _plain_text(element), element.sourceline or self._line)
        if is_block:
            self._flush()
            if tag in ("li", "blockquote"):
                self._words, self._is_blank = [], True

    def _begin(self, tag: str, prefix: str) -> None:
        if tag == "br":
            self._words.append("\n")
        elif tag in ("li", "blockquote"):
            self._put(prefix)
            self._first = self._line

    def _say(self, text: str) -> None:
        if self._is_blank:
            self._first = self._line
        self._put(re.sub(r"\s+", " ", text) if text != "\n" else text)

    def _put(self, text: str) -> None:
        self._words.append(text)
        self._is_blank = self._is_blank and not text.strip()

    def _flush(self) -> None:
        words, self._words, self._is_blank = self._words, [], True
        if not words:
            return
        text = re.sub(r"[ \t]+", " ", "".join(words).lstrip("\n"))
        text = re.sub(r" ?\n ?", "\n", text).strip()
        if text in ("-", ">"):
            self._put(f"{text} ")  # for the block that follows in the item
        elif text:
            self._outline.prose(text, self._first, self._line)

    def _heading(self, element: etree._Element, level: int) -> None:
        anchor = element.get("id") or ""
        if not anchor:
            inner = element.xpath("./a[@id or @name]")
            anchor = (inner[0].get("id") or inner[0].get("name") or "") if inner else ""
        parent = element.getparent()
        if not anchor and parent is not None and parent.tag in ("section", "div", "article") and parent[0] is element:
            anchor = parent.get("id") or ""
        text = _plain_text(element)
        text = text.rstrip("¶#\u200b").rstrip()
        if text:
            is_code = next(element.iter("code"), None) is not None and not (element.text or "").strip()
            self._outline.heading(level, text, anchor, element.sourceline or self._line, is_code=is_code)

    def _table(self, table: etree._Element) -> None:
        rows: list[str] = []
        first = table.sourceline or self._line
        for row in table.iter("tr"):
            cells = [_plain_text(cell).replace("|", "\\|") for cell in row if cell.tag in ("td", "th")]
            if any(cells):
                rows.append("| " + " | ".join(cells) + " |")
                if len(rows) == 1:
                    rows.append("|" + " --- |" * len(cells))
            self._line = max(self._line, row.sourceline or 1)
        for link in table.iter("a"):
            self._outline.link(link.get("href") or "", _plain_text(link), link.sourceline or self._line)
        for named in table.xpath(".//*[@id]"):
            self._outline.anchors.add(named.get("id"))
        self._outline.prose("\n".join(rows), first, self._line)


_MARKS = {"code": "`", "kbd": "`", "tt": "`", "samp": "`", "strong": "**", "b": "**"}


def _prefix_of(child: etree._Element, prefix: str) -> str:
    return "- " if child.tag == "li" else "> " if child.tag == "blockquote" else prefix


def _is_unseen(element: etree._Element) -> bool:
    if element.tag in _UNSEEN:
        return element.tag != "header" or not any(True for _ in element.iter("h1", "h2"))
    if element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return True
    if element.get("role") in _UNSEEN_ROLES:
        return True
    classes = element.get("class")
    return classes is not None and _UNSEEN_CLASSES.search(classes) is not None


def _texts(element: etree._Element, *, keep_lines: bool = False) -> Iterator[str]:
    """Yield the texts of an element and of those in it, without unseen parts; no recursion, since trees can be deep."""
    stack: list[tuple[etree._Element, bool]] = [(element, True)]
    while stack:
        node, is_root = stack.pop()
        if isinstance(node, str):
            yield node
            continue
        after = None if is_root else node.tail
        if after:
            stack.append((after, False))
        if not isinstance(node.tag, str) or (not is_root and _is_unseen(node)):
            continue
        stack.extend((child, False) for child in reversed(node))
        if keep_lines and node.tag == "br":
            yield "\n"
        elif node.tag in _BLOCKS and not is_root:
            yield (
                "\n" if keep_lines and node.tag in ("div", "li", "tr", "p") and node.getprevious() is not None else " "
            )
        if node.text:
            yield node.text


def _plain_text(element: etree._Element) -> str:
    return " ".join("".join(_texts(element)).split())


def _language_of(element: etree._Element) -> str:
    around = element.getparent()
    outer = around.getparent() if around is not None else None
    for one in (*element.iter("code"), element, around, outer):
        found = _LANGUAGE.search(one.get("class") or "") if one is not None else None
        if found is not None and found[1] not in ("default", "none", "text"):
            return found[1]
    return ""
