"""Sphinx's roles and directives for docutils, taken for what they say: nothing is imported, executed or drawn.

docutils' registers are the process's own: names that pages use are added to them once, all with the same few
meanings.
"""

import re
from collections.abc import Callable, Mapping
from html import unescape
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.directives.tables import CSVTable
from docutils.statemachine import StringList

from service.retrieval.readers.markdown import ParsedPage, parse_page
from service.retrieval.readers.sphinx.language import (
    CODE,
    OBJECTS,
    SILENT,
    TITLED,
    VERSIONED,
    identifier,
    is_shown,
    object_ids,
    role_words,
    selected,
    shown_signature,
    signature_name,
    targeted,
)

MAX_NAMES = 2_000
"""Limit for roles and directives that pages have invented."""
MAX_INCLUDES = 50
"""Limit for one page, those within others counted."""
MAX_REPEATS = 3
"""Limit for the same file in one page: files may include each other."""
MAX_INCLUDED = 200_000
"""Characters of one."""

_KNOWN_ROLE = re.compile(r"(?<!\\):([A-Za-z][\w.+-]*(?::[A-Za-z][\w.+-]*){0,3}):`")
_KNOWN_DIRECTIVE = re.compile(r"^[ \t]*\.\. (?:\|[^|\n]+\| )?([A-Za-z][\w.+-]*(?::[\w.+-]+)*)::", re.MULTILINE)
_STANDARD = frozenset(
    """
    attention caution danger error hint important note tip warning image figure table list-table replace
    unicode date container compound epigraph highlights pull-quote line-block sidebar admonition topic rubric
    """.split()  # noqa: SIM905  (as above)
)
_HTML = re.compile(
    r"<(script|style|svg)\b(?:[^<]|<(?!/?\1\b)){0,50000}+</\1\s*>|<!--(?:[^<-]|-(?!->)|<(?!!--)){0,5000}+-->|<[^<>]{1,2000}>",
    re.IGNORECASE,
)
_made: set[str] = set()


def learn(source: str) -> None:
    """Give every role and directive that a text names a meaning."""
    for name in set(_KNOWN_ROLE.findall(source)):
        _role(name.lower())
    for name in set(_KNOWN_DIRECTIVE.findall(source)):
        _directive(name.lower())
    for name in ("include", "raw", "literalinclude", "toctree", "class"):
        _directive(name)
    directives.register_directive("csv-table", _CsvTable)


def _role(name: str) -> None:
    if len(_made) < MAX_NAMES and f"role {name}" not in _made and name not in _PLAIN_ROLES:
        _made.add(f"role {name}")
        roles.register_local_role(name, _reference)


_PLAIN_ROLES = frozenset("emphasis strong literal title-reference subscript superscript sub sup code math raw".split())  # noqa: SIM905


def _directive(name: str) -> None:
    if len(_made) < MAX_NAMES and name not in _made and name not in _STANDARD:
        _made.add(name)
        directives.register_directive(name, _Anything)


def _reference(
    name: str, rawtext: str, text: str, *others: Any, **_: object
) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """Show the words of a role; a document that it names is a link."""
    inliner = next(one for one in others if hasattr(one, "document"))
    document = inliner.document
    text = text.replace("\x00", "")
    title, is_code = role_words(name, text, document.settings.facts, document.settings.page)
    if name.rpartition(":")[2] == "doc":
        found = targeted(text)
        target = found[1] if found is not None and found[0] else text
        return [nodes.reference(rawtext, title, refuri=f"{target}.rst", written=found is not None)], []
    return [nodes.literal(rawtext, title) if is_code else nodes.inline(rawtext, title)], []


class _AnyOption(dict[str, Callable[[str], str]]):
    def __getitem__(self, _key: str) -> Callable[[str], str]:
        return directives.unchanged  # type: ignore[no-any-return]

    def __contains__(self, _key: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


class _Anything(Directive):  # type: ignore[misc]  # docutils has no types
    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    content: StringList
    option_spec: ClassVar[Any] = _AnyOption()

    def run(self) -> list[nodes.Node]:
        name = self.name.lower()
        argument = " ".join(self.arguments)
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, argument)
        if name in CODE:
            return self._code_block(name, argument)
        if name in SILENT:
            return self._described() if name == "meta" else self._context(name, argument)
        if name in VERSIONED:
            version, rest = (*argument.split(None, 1), "", "")[:2]
            return self._with_lead(f"{VERSIONED[name]} {version}: {rest}".rstrip(": "))
        if name in TITLED:
            self._without_rules()
            return self._with_lead(argument, strong=True)
        if OBJECTS.fullmatch(name):
            return self._object(name, "\n".join(self.arguments))
        return self._with_lead(argument if name == "todo" else "")

    def _code_block(self, name: str, argument: str) -> list[nodes.Node]:
        text = "\n".join(self.content) or (argument if name == "productionlist" else "")
        caption = self._with_lead(self.options["caption"], nested=False) if self.options.get("caption") else []
        language = argument.split(" ")[0] if name != "parsed-literal" else ""
        return [*caption, self._code(text, language)] if text else caption

    def _literal_include(self, argument: str) -> list[nodes.Node]:
        text = selected(self._read(argument), self.options)
        caption = self.options.get("caption")
        lead = (
            self._with_lead(caption or argument.rpartition("/")[2], nested=False) if "caption" in self.options else []
        )
        suffix = argument.rpartition(".")[2] if "." in argument else ""
        language = self.options.get("language") or ("python" if suffix == "py" else suffix)
        return [*lead, self._code(text, language)] if text else []

    def _code_tab(self, argument: str) -> list[nodes.Node]:
        language, _, title = argument.partition(" ")
        return [*self._with_lead(title or language, strong=True, nested=False),
                self._code("\n".join(self.content), language)]  # fmt: skip

    def _only(self, argument: str) -> list[nodes.Node]:
        return self._nested() if is_shown(argument) else []

    def _raw(self, argument: str) -> list[nodes.Node]:
        text = "\n".join(self.content) if "html" in argument.split() else ""
        words = unescape(_HTML.sub(" ", text))
        paragraph = nodes.paragraph("", "", nodes.Text(" ".join(words.split())))
        paragraph.line = self.lineno
        return [paragraph] if words.strip() else []

    def _see_also(self, argument: str) -> list[nodes.Node]:
        return self._with_lead(" ".join(filter(None, ("See also:", argument))))

    def _button(self, argument: str) -> list[nodes.Node]:
        return self._nested() or self._with_lead(argument.rpartition("/")[2])

    def _glossary(self, _argument: str) -> list[nodes.Node]:
        """Several terms may share a definition; a key for sorting may follow a term."""
        lines: list[str] = []
        for line in self.content:
            if line[:1].strip() and lines and lines[-1][:1].strip():
                lines[-1] += f", {line.partition(' : ')[0]}"
            else:
                lines.append(line.partition(" : ")[0] if line[:1].strip() else line)
        self.content = StringList(lines, source=self.state.document["source"])
        found = self._nested()
        for one in found:
            for term in one.findall(nodes.term):
                term.setdefault("ids", []).extend(identifier("term", name) for name in term.astext().split(", "))
        return found

    def _context(self, name: str, argument: str) -> list[nodes.Node]:
        """Note what the objects below are in: their module, or the program whose options they are."""
        settings = self.state.document.settings
        kind = name.rpartition(":")[2]
        if kind in ("module", "currentmodule", "automodule"):
            settings.module = "" if argument == "None" else argument
        elif kind == "program":
            settings.program = "" if argument == "None" else "-".join(argument.split())
        if kind not in ("module", "automodule"):
            return []
        target = nodes.target("", "", ids=[f"module-{argument}"])
        return [target, *(self._nested() if self.content else [])]

    def _without_rules(self) -> None:
        """Cards have lines of signs between their head, body and foot."""
        if any(line.strip() in ("^^^", "+++") for line in self.content):
            lines = ["" if line.strip() in ("^^^", "+++") else line for line in self.content]
            self.content = StringList(lines, source=self.state.document["source"])

    def _nested(self) -> list[nodes.Node]:
        holder = nodes.container()
        holder.document = self.state.document
        if self.content:
            self.state.nested_parse(self.content, self.content_offset, holder, match_titles=True)
        return list(holder.children)

    def _with_lead(self, lead: str, *, strong: bool = False, nested: bool = True) -> list[nodes.Node]:
        if not lead:
            return self._nested() if nested else []
        words, _ = self.state.inline_text(lead, self.lineno)
        paragraph = nodes.paragraph("", "", nodes.strong("", "", *words) if strong else nodes.inline("", "", *words))
        paragraph.line = self.lineno
        return [paragraph, *(self._nested() if nested else [])]

    def _code(self, text: str, language: str) -> nodes.Node:
        block = nodes.literal_block(text, text, classes=["code", language] if language else [])
        block.line = self.lineno
        return block

    def _described(self) -> list[nodes.Node]:
        match = re.search(r":description:\s*(.+)", "\n".join(self.content))
        described = self.options.get("description") or (match[1] if match is not None else "")
        if described:
            self.state.document["description"] = described[:2000]
        return []

    def _object(self, name: str, argument: str) -> list[nodes.Node]:
        """Something of an API: its signatures, and what is said of it."""
        settings = self.state.document.settings
        signatures = [line.strip() for line in argument.replace("\\\n", "").split("\n") if line.strip()][:20]
        is_python = name.rpartition(":")[0] in ("", "py")
        above = ".".join(filter(None, (settings.module, *settings.classes))) if is_python else ""
        paragraph = nodes.paragraph()
        paragraph.line = self.lineno
        for signature in signatures:
            shown = shown_signature(name, signature, "" if settings.classes else settings.module)
            paragraph += nodes.literal(shown, shown)
            paragraph += nodes.Text("\n")
        ids = object_ids(name, signatures, program=settings.program, above=above)
        paragraph.setdefault("ids", []).extend(ids)
        if not ids or not is_python:
            return [paragraph, *self._nested()]
        settings.classes.append(
            signature_name(signatures[0].rpartition(" ")[2] if "(" not in signatures[0] else signatures[0])
        )
        try:
            return [paragraph, *self._nested()]
        finally:
            settings.classes.pop()

    def _toctree(self, _argument: str) -> list[nodes.Node]:
        listed = nodes.paragraph()
        listed.line = self.lineno
        for line in list(self.content)[:2000]:
            title, target = targeted(line) or ("", line.strip())
            if target and target != "self" and "*" not in target:
                uri = target if "://" in target or target.endswith((".rst", ".md")) else f"{target}.rst"
                listed += nodes.reference("", title, refuri=uri, unseen=True)
        return [listed] if listed.children else []

    def _read(self, target: str) -> str:
        settings = self.state.document.settings
        settings.included += 1
        times = settings.times[target] = settings.times.get(target, 0) + 1
        if settings.included > MAX_INCLUDES or times > MAX_REPEATS:
            return ""
        data = settings.include(target) if settings.include is not None and target else None
        return data[: 4 * MAX_INCLUDED].decode("utf-8", "replace")[:MAX_INCLUDED] if data is not None else ""

    def _include(self, target: str) -> list[nodes.Node]:
        text = selected(self._read(target), self.options)
        if not text:
            return []
        if target.endswith((".md", ".markdown")) or "parser" in self.options:
            return self._markdown(text, target)
        if "literal" in self.options or "code" in self.options:
            return [self._code(text, self.options.get("code", ""))]
        learn(text)
        lines = text.expandtabs(8).split("\n")
        self.state_machine.insert_input(StringList(lines, source=target), target)
        return []

    def _markdown(self, text: str, target: str) -> list[nodes.Node]:
        page = parse_page(text.encode(), target)
        if not isinstance(page, ParsedPage) or not page.content:
            return []
        paragraph = nodes.paragraph("", "", nodes.Text(f"**{page.title}**\n\n{page.content}"))
        paragraph.line = self.lineno
        return [paragraph]


class _CsvTable(CSVTable):  # type: ignore[misc]  # docutils has no types
    """A table whose file is one of the repository."""

    def run(self) -> list[nodes.Node]:
        self.options.pop("url", None)
        target = self.options.pop("file", "")
        settings = self.state.document.settings
        data = settings.include(target) if target and settings.include is not None else None
        if data is not None:
            lines = data[:MAX_INCLUDED].decode("utf-8-sig", "replace").splitlines()
            self.content = StringList(lines, source=settings.page)
        return super().run() if self.content else []


_SPECIAL: Mapping[str, Callable[[_Anything, str], list[nodes.Node]]] = {
    "toctree": _Anything._toctree,
    "include": _Anything._include,
    "literalinclude": _Anything._literal_include,
    "code-tab": _Anything._code_tab,
    "raw": _Anything._raw,
    "only": _Anything._only,
    "seealso": _Anything._see_also,
    "glossary": _Anything._glossary,
    "button-link": _Anything._button,
    "button-ref": _Anything._button,
}
