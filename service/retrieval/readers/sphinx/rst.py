"""reStructuredText, with Sphinx's roles and directives (``rst_language``), read by docutils; no file is read but those
of the repository that a page includes, and no configuration of this machine.

Section ids are docutils' own, as Sphinx shows them. Transforms are not run: what they would do that a reader sees
(substitutions, targets) is done here.
"""

import re
from typing import Any

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.utils import new_document

from service.domain.sites import Skipped
from service.retrieval.readers.markdown import MAX_PAGE_BYTES, Include, ParsedPage, source_text
from service.retrieval.readers.outline import Outline, TooLong
from service.retrieval.readers.sphinx.facts import NO_FACTS, SphinxFacts
from service.retrieval.readers.sphinx.language import role_words
from service.retrieval.readers.sphinx.rst_language import learn

MAX_DEPTH = 60
MAX_SUBSTITUTED = 1_000_000
"""Characters that the references of a page to its substitutions are shown as, in all."""
_ADMONITIONS = (
    nodes.attention, nodes.caution, nodes.danger, nodes.error, nodes.hint, nodes.important, nodes.note, nodes.tip,
    nodes.warning,
)  # fmt: skip
_UNSEEN = (
    nodes.comment,
    nodes.system_message,
    nodes.substitution_definition,
    nodes.pending,
    nodes.raw,
    nodes.problematic,
)
_GROUPS = (
    nodes.block_quote, nodes.container, nodes.compound, nodes.admonition, nodes.topic, nodes.sidebar, nodes.figure,
    nodes.legend, nodes.footnote, nodes.citation,
)  # fmt: skip


def parse_rst(
    data: bytes, path: str, include: Include | None = None, facts: SphinxFacts = NO_FACTS, *, page: str = ""
) -> ParsedPage | Skipped:
    """Never raises for what is in the page. ``page``: its name as a document of Sphinx."""
    source = source_text(data, path)
    if isinstance(source, Skipped):
        return source
    try:
        return _Reader(_document(source, path, include, facts, page), path).page(
            source.count("\n") + (not source.endswith("\n"))
        )
    except (RecursionError, TooLong):
        return Skipped(path, "It is nested too deeply, or has too many parts.")
    except Exception as error:  # noqa: BLE001 - a page's edge: docutils raises whatever its many parts do
        return Skipped(path, f"It cannot be read ({type(error).__name__}).")


def _document(source: str, path: str, include: Include | None, facts: SphinxFacts, page: str) -> nodes.document:
    if facts.appended:
        source = f"{source.rstrip()}\n\n{facts.appended}"
    learn(source)
    settings: Any = get_default_settings(Parser)
    settings.report_level = settings.halt_level = 5  # problems of a page are not printed on standard error
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.auto_id_prefix, settings.id_prefix = "id", ""  # as Sphinx has it
    settings.smart_quotes = settings.syntax_highlight = False
    settings.syntax_highlight = "none"
    settings.warning_stream = False
    settings.line_length_limit = MAX_PAGE_BYTES
    settings.include, settings.included, settings.times = include, 0, {}
    settings.facts, settings.page = facts, page
    settings.module, settings.program, settings.classes = "", "", []
    document = new_document(path, settings)
    Parser().parse(source, document)
    return document


class _Reader:
    def __init__(self, document: nodes.document, path: str) -> None:
        self._document, self._path = document, path
        self._outline = Outline()
        self._line = 1
        self._uris: dict[str, str] = {}
        self._room = MAX_SUBSTITUTED

    def page(self, lines: int) -> ParsedPage:
        front_matter: dict[str, object] = {}
        for target in self._document.findall(nodes.target):
            self._outline.anchors.update(target.get("ids", ()))
            for name in target.get("names", ()):
                if "refuri" in target:
                    self._uris[name] = target["refuri"]
        for child in self._document.children[:3]:
            if isinstance(child, nodes.field_list):
                for field in child.children:
                    front_matter[field.children[0].astext().lower()] = field.children[1].astext()[:2000]
        if front_matter:
            self._document.children = [one for one in self._document.children if not isinstance(one, nodes.field_list)]
        for child in self._document.children:
            self._block(child, 0, "")
        description = str(front_matter.get("description") or self._document.get("description") or "")
        title = str(front_matter.get("title") or "")
        return self._outline.page(
            self._path,
            title=title,
            description=" ".join(description.split()),
            front_matter=front_matter,
            last_line=max(lines, 1),
        )

    def _at(self, node: nodes.Node) -> int:
        """The node's line; for what comes from an included file, that of the line before."""
        line = getattr(node, "line", None)
        source = getattr(node, "source", None)
        if line and (source is None or source == self._path):
            self._line = max(self._line, line)
        return self._line

    def _block(self, node: nodes.Node, depth: int, prefix: str) -> None:
        if depth > MAX_DEPTH:
            raise TooLong
        if isinstance(node, _UNSEEN):
            return
        self._outline.anchors.update(getattr(node, "get", lambda *_: ())("ids", ()))
        if isinstance(node, nodes.section):
            self._section(node, depth)
        elif isinstance(node, nodes.literal_block | nodes.doctest_block):
            self._literal(node)
        elif isinstance(node, nodes.table):
            self._table(node)
        elif isinstance(node, nodes.bullet_list | nodes.enumerated_list):
            for number, item in enumerate(node.children, start=1):
                mark = "- " if isinstance(node, nodes.bullet_list) else f"{number}. "
                self._item(item, depth, mark)
        elif isinstance(node, nodes.definition_list | nodes.field_list | nodes.option_list):
            for item in node.children:
                self._defined(item, depth)
        elif isinstance(node, _ADMONITIONS):
            self._outline.prose(f"**{type(node).__name__.capitalize()}**", self._at(node), self._line)
            self._blocks(node, depth, prefix)
        elif isinstance(node, nodes.image):
            self._outline.prose(str(node.get("alt", "")), self._at(node), self._line)
        elif isinstance(node, nodes.title):
            self._outline.prose(f"**{self._text(node)}**", self._at(node), self._line)
        elif isinstance(node, _GROUPS):
            self._blocks(node, depth, "> " if isinstance(node, nodes.block_quote) else prefix)
        elif isinstance(node, nodes.line_block):
            self._outline.prose(self._lines(node), self._at(node), self._line)
        elif isinstance(node, nodes.Element) and not isinstance(node, nodes.target):
            first = self._at(node)
            text = self._text(node)
            self._outline.prose(prefix + text if text else "", first, first + text.count("\n"))

    def _blocks(self, node: nodes.Element, depth: int, prefix: str) -> None:
        for child in node.children:
            self._block(child, depth + 1, prefix)

    def _section(self, node: nodes.section, depth: int) -> None:
        ids = node.get("ids", [])
        for index, child in enumerate(node.children):
            if index == 0 and isinstance(child, nodes.title):
                line = self._at(child)
                # docutils counts the line below the title's text
                is_code = bool(child.children) and isinstance(child.children[0], nodes.literal)
                anchor = ids[0] if ids else ""
                self._outline.heading(depth + 1, child.astext(), anchor, max(1, line - 1), is_code=is_code)
            else:
                self._block(child, depth + 1, "")

    def _item(self, item: nodes.Node, depth: int, mark: str) -> None:
        for index, child in enumerate(getattr(item, "children", ())):
            self._block(child, depth + 1, mark if index == 0 else "  ")

    def _defined(self, item: nodes.Node, depth: int) -> None:
        for child in getattr(item, "children", ()):
            if isinstance(child, nodes.definition | nodes.field_body | nodes.description):
                self._blocks(child, depth + 1, "  ")
            elif isinstance(child, nodes.Element):
                self._outline.anchors.update(child.get("ids", ()))
                text = self._text(child)
                self._outline.prose(f"**{text}**" if text else "", self._at(child), self._line)

    def _literal(self, node: nodes.Element) -> None:
        classes = [one for one in node.get("classes", ()) if one not in ("code", "doctest")]
        text = node.astext()
        line = self._at(node)
        self._outline.code(text, classes[0] if classes else "", line, line + text.count("\n"))

    def _lines(self, node: nodes.Element) -> str:
        return "\n".join(
            self._lines(one) if isinstance(one, nodes.line_block) else self._text(one) for one in node.children
        )

    def _table(self, node: nodes.Element) -> None:
        line = self._at(node)
        rows: list[str] = []
        for title in node.findall(nodes.title):
            self._outline.prose(f"**{self._text(title)}**", line, line)
        for row in node.findall(nodes.row):
            cells = [" ".join(self._text(cell).split()).replace("|", "\\|") for cell in row.children]
            rows.append("| " + " | ".join(cells) + " |")
            if len(rows) == 1:
                rows.append("|" + " --- |" * len(cells))
        self._outline.prose("\n".join(rows), line, line + len(rows))

    def _text(self, node: nodes.Node) -> str:
        if isinstance(node, nodes.Text):
            return str(node.astext())
        if isinstance(node, _UNSEEN) and not isinstance(node, nodes.problematic):
            return ""
        if isinstance(node, nodes.literal):
            return f"`{node.astext()}`"
        if isinstance(node, nodes.title_reference) and self._document.settings.facts.default_role:
            facts = self._document.settings.facts
            words, is_code = role_words(facts.default_role, node.astext(), facts, self._document.settings.page)
            return f"`{words}`" if is_code else words
        if isinstance(node, nodes.image):
            return str(node.get("alt", ""))
        if isinstance(node, nodes.substitution_reference):
            defined = self._document.substitution_defs.get(node.get("refname", ""))
            known = self._document.settings.facts.substitutions.get(node.astext(), "")
            text = (known if defined is None else str(defined.astext()))[: self._room]
            self._room -= len(text)
            return text
        inner = "".join(self._text(child) for child in node.children)
        if isinstance(node, nodes.reference):
            self._link(node, inner)
            return "" if node.get("unseen") else inner
        if isinstance(node, nodes.strong):
            return f"**{inner}**" if inner else ""
        if isinstance(node, nodes.paragraph | nodes.list_item | nodes.definition | nodes.term | nodes.line):
            return inner + ("\n" if isinstance(node.parent, nodes.entry | nodes.definition | nodes.list_item) else "")
        return inner

    def _link(self, node: nodes.Element, text: str) -> None:
        uri = node.get("refuri") or self._uris.get(node.get("refname", "")) or ""
        if node.get("refid"):
            uri = f"#{node['refid']}"
        self._outline.link(str(uri), re.sub(r"[`*]", "", text), self._line)
