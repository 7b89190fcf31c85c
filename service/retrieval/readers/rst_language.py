"""Sphinx's roles and directives for docutils, taken for what they say: nothing is imported, executed or drawn.

docutils' registers are the process's own: names that pages use are added to them once, all with the same few
meanings.
"""

import re
from collections.abc import Callable
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles
from docutils.statemachine import StringList

MAX_NAMES = 2_000
"""Limit for roles and directives that pages have invented."""
MAX_INCLUDES = 50
"""Limit for one page, those within others counted."""
MAX_REPEATS = 3
"""Limit for the same file in one page: files may include each other."""
MAX_INCLUDED = 200_000
"""Characters of one."""

_CODE = frozenset(
    """
    code code-block sourcecode prompt ipython testcode testsetup doctest productionlist parsed-literal console
    code-cell terminal
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
_SILENT = frozenset(
    """
    raw meta contents index highlight currentmodule module currentlibrary default-domain sectionauthor codeauthor
    tabularcolumns graphviz digraph graph mermaid plot plantuml uml inheritance-diagram autosummary automodule math
    role default-role sectnum header footer testcleanup acks title target-notes py:module py:currentmodule
    """.split()  # noqa: SIM905  (as above)
)
_TITLED = frozenset("tab-item tab group-tab code-tab card grid-item-card dropdown rubric admonition topic".split())  # noqa: SIM905
_VERSIONED = {
    "versionadded": "New in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since",
}
_OBJECTS = re.compile(
    r"(?:(?:py|c|cpp|js|rst|std|http|php|rb|go|java|config):)?(?:function|class|method|classmethod|staticmethod"
    r"|attribute|data|exception|decorator|decoratormethod|property|option|cmdoption|envvar|confval|describe|object"
    r"|member|macro|type|struct|enum|enumerator|var|setting|directive|role|program|opcode|token|get|post|put|delete"
    r"|patch|autofunction|autoclass)"
)
_KNOWN_ROLE = re.compile(r"(?<!\\):([A-Za-z][\w.+-]*(?::[A-Za-z][\w.+-]*){0,3}):`")
_KNOWN_DIRECTIVE = re.compile(r"^[ \t]*\.\. (?:\|[^|\n]+\| )?([A-Za-z][\w.+-]*(?::[\w.+-]+)*)::", re.MULTILINE)
_STANDARD = frozenset(
    """
    attention caution danger error hint important note tip warning image figure table csv-table list-table replace
    unicode date class container compound epigraph highlights pull-quote line-block sidebar admonition topic rubric
    """.split()  # noqa: SIM905  (as above)
)
_made: set[str] = set()


def learn(source: str) -> None:
    """Give every role and directive that a text names a meaning."""
    for name in set(_KNOWN_ROLE.findall(source)):
        _role(name.lower())
    for name in set(_KNOWN_DIRECTIVE.findall(source)):
        _directive(name.lower())
    for name in ("include", "raw", "literalinclude", "toctree"):
        _directive(name)


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
    name: str, rawtext: str, text: str, *_: object, **__: object
) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """``text``, ``title <target>``, ``~package.name``, ``!name``."""
    text = text.replace("\x00", "")
    kind = name.rpartition(":")[2]
    targeted = _targeted(text)
    title, target = targeted if targeted is not None and targeted[0] else (text, text)
    if targeted is None:
        title = title.removeprefix("!")
        if title.startswith("~"):
            title = target = title[1:]
            title = title.rpartition(".")[2]
        if kind in ("doc", "ref", "numref"):
            title = re.sub(r"[-_]+", " ", title.rpartition("/")[2])
    if kind == "doc":
        return [nodes.reference(rawtext, title, refuri=f"{target}.rst", written=targeted is not None)], []
    if kind in ("ref", "numref", "term", "guilabel", "menuselection", "abbr", "dfn", "sub-ref", "any"):
        return [nodes.inline(rawtext, title)], []
    if kind == "download":
        return [nodes.inline(rawtext, title)], []
    return [nodes.literal(rawtext, title)], []


def _targeted(text: str) -> tuple[str, str] | None:
    """Title and target of ``title <target>``."""
    title, bracket, target = text.rstrip().rpartition("<")
    if not bracket or target.find(">") != len(target) - 1 or len(target) < 2:
        return None
    return title.rstrip(), target[:-1]


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
    option_spec: ClassVar[Any] = _AnyOption()

    def run(self) -> list[nodes.Node]:
        name = self.name.lower()
        argument = " ".join(self.arguments)
        if name == "toctree":
            return self._toctree()
        if name == "include":
            return self._include(argument)
        if name == "literalinclude":
            text = self._read(argument)
            return [self._code(text, self.options.get("language", ""))] if text else []
        if name in _CODE:
            text = "\n".join(self.content) or (argument if name == "productionlist" else "")
            return [self._code(text, argument.split(" ")[0] if name != "parsed-literal" else "")] if text else []
        if name in _SILENT:
            return self._described() if name == "meta" else []
        if name in _VERSIONED:
            version, rest = (*argument.split(None, 1), "", "")[:2]
            return self._with_lead(f"{_VERSIONED[name]} {version}: {rest}".rstrip(": "))
        if name == "seealso":
            return self._with_lead(" ".join(filter(None, ("See also:", argument))))
        if name in _TITLED:
            return self._with_lead(argument, strong=True)
        if _OBJECTS.fullmatch(name):
            return self._object(argument)
        return self._with_lead(argument if name in ("glossary", "todo") else "")

    def _nested(self) -> list[nodes.Node]:
        holder = nodes.container()
        holder.document = self.state.document
        if self.content:
            self.state.nested_parse(self.content, self.content_offset, holder, match_titles=True)
        return list(holder.children)

    def _with_lead(self, lead: str, *, strong: bool = False) -> list[nodes.Node]:
        if not lead:
            return self._nested()
        words, _ = self.state.inline_text(lead, self.lineno)
        paragraph = nodes.paragraph("", "", nodes.strong("", "", *words) if strong else nodes.inline("", "", *words))
        paragraph.line = self.lineno
        return [paragraph, *self._nested()]

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

    def _object(self, argument: str) -> list[nodes.Node]:
        """Something of an API: its signatures, and what is said of it."""
        signatures = [line.strip() for line in argument.split("\n") if line.strip()]
        paragraph = nodes.paragraph()
        paragraph.line = self.lineno
        for signature in signatures[:20]:
            named = re.match(r"(?:[\w]+\s+)*?([\w.:-]+)\s*(?:\(|\[|=|$|,|\s)", signature)
            paragraph += nodes.literal(signature, signature)
            paragraph += nodes.Text("\n")
            if named is not None:
                paragraph.setdefault("ids", []).append(named[1])
        return [paragraph, *self._nested()]

    def _toctree(self) -> list[nodes.Node]:
        listed = nodes.paragraph()
        listed.line = self.lineno
        for line in list(self.content)[:2000]:
            title, target = _targeted(line) or ("", line.strip())
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
        text = data[: 4 * MAX_INCLUDED].decode("utf-8", "replace")[:MAX_INCLUDED] if data is not None else ""
        for option, keep in (("start-after", 1), ("end-before", 0)):
            mark = self.options.get(option)
            if mark and mark in text:
                text = text.split(mark, 1)[keep]
        lines = text.splitlines()
        chosen = self.options.get("lines", "")
        first, last = (self.options.get(one, "") for one in ("start-line", "end-line"))
        if re.fullmatch(r"\d{1,6}-\d{0,6}", chosen):
            begin, _, end = chosen.partition("-")
            lines = lines[int(begin) - 1 : int(end) if end else None]
        elif first.isdecimal() or last.isdecimal():
            lines = lines[int(first or 0) : int(last) if last.isdecimal() else None]
        return "\n".join(lines)

    def _include(self, target: str) -> list[nodes.Node]:
        text = self._read(target)
        if not text:
            return []
        if "literal" in self.options or "code" in self.options:
            return [self._code(text, self.options.get("code", ""))]
        learn(text)
        lines = text.expandtabs(8).split("\n")
        self.state_machine.insert_input(StringList(lines, source=target), target)
        return []
