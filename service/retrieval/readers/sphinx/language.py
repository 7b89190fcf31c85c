"""Roles, parts of files and identifiers as Sphinx has them, for reStructuredText and MyST alike.

Facts: sphinx-doc.org/en/master/usage/restructuredtext (roles, directives, domains); identifiers as in Sphinx's
``util/nodes.py`` (``make_id``) and its domains.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from posixpath import dirname, normpath
from textwrap import dedent

from service.domain.texts.unicode_forms import normalized
from service.retrieval.readers.includes.files import chosen_lines, number_in, separated
from service.retrieval.readers.sphinx.facts import SphinxFacts

CODE = frozenset(
    """
    code code-block sourcecode prompt ipython testcode testsetup doctest productionlist parsed-literal console
    code-cell terminal click:example click:run
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
SILENT = frozenset(
    """
    raw meta contents index highlight currentmodule module currentlibrary default-domain sectionauthor codeauthor
    tabularcolumns graphviz digraph graph mermaid plot plantuml uml inheritance-diagram autosummary automodule math
    role default-role sectnum header footer testcleanup acks title target-notes py:module py:currentmodule program
    bibliography toctree rst-class cssclass testoutput js:module
    """.split()  # noqa: SIM905  (as above)
)
TITLED = frozenset("tab-item tab group-tab card grid-item-card dropdown rubric admonition topic".split())  # noqa: SIM905
VERSIONED = {
    "versionadded": "Added in version",
    "version-added": "Added in version",
    "versionchanged": "Changed in version",
    "version-changed": "Changed in version",
    "versionremoved": "Removed in version",
    "version-removed": "Removed in version",
    "deprecated": "Deprecated since version",
    "version-deprecated": "Deprecated since version",
}
ADMONITIONS = frozenset("attention caution danger error hint important note tip warning seealso todo".split())  # noqa: SIM905
OBJECTS = re.compile(
    r"(?:(?:py|c|cpp|js|rst|std|http|php|rb|go|java|config):)?(?:function|class|method|classmethod|staticmethod"
    r"|attribute|data|exception|decorator|decoratormethod|property|option|cmdoption|envvar|confval|describe|object"
    r"|member|macro|type|struct|enum|enumerator|var|setting|directive|role|opcode|token|get|post|put|delete"
    r"|patch|auto(?!module|summary)[a-z]+)"
)
_WORDS = frozenset(
    "ref numref term guilabel menuselection abbr dfn sub-ref any download doc kbd pep rfc index cve cwe eq".split()  # noqa: SIM905
)
"""Roles whose text is words; that of others is code."""


def targeted(text: str) -> tuple[str, str] | None:
    """Return title and target of ``title <target>``."""
    title, bracket, target = text.rstrip().rpartition("<")
    if not bracket or target.find(">") != len(target) - 1 or len(target) < 2:
        return None
    return title.rstrip(), target[:-1]


def role_words(name: str, text: str, facts: SphinxFacts, page: str = "") -> tuple[str, bool]:
    """Return the words that a role shows, and whether they are code. ``page``: the name of the document."""
    kind = name.rpartition(":")[2].lower()
    found = targeted(text)
    title, target = found if found is not None and found[0] else (text, text)
    if found is None and kind == "doc":
        title = facts.titles.get(f"doc {document_name(target, page)}") or _spaced(target.rpartition("/")[2])
    elif found is None and kind in ("ref", "numref"):
        title = facts.titles.get(f"ref {_label(target)}") or _spaced(target)
    elif found is None and kind in ("pep", "rfc", "cve", "cwe"):
        title = f"{kind.upper()} {text}"
    elif kind in facts.captions:
        title = title if found is not None else facts.captions[kind].replace("%s", text, 1)
        return title, False
    elif kind == "abbr":
        title = re.sub(r"(?:(?<![ \t])[ \t]++)?\([^()]*+\)$", "", text)
    elif kind == "index":
        title = re.sub(r"^(?:single|pair|triple|see|seealso):[ \t]*|!", "", title)
    elif kind == "guilabel":
        title = text.replace("&&", "\0").replace("&", "").replace("\0", "&")
    elif kind in ("file", "samp"):
        title = re.sub(r"(?<!\\)[{}]", "", text)
    elif found is None:
        title = _name_shown(text, kind)
    return title, kind not in _WORDS


def _name_shown(text: str, kind: str) -> str:
    title = text.removeprefix("!").lstrip(".")
    if title.startswith("~"):
        title = title[1:].rpartition(".")[2]
    return f"{title}()" if kind in ("func", "meth") and title and not title.endswith(")") else title


def _spaced(name: str) -> str:
    return re.sub(r"[-_]+", " ", name)


def _label(target: str) -> str:
    return " ".join(target.casefold().split())


def document_name(target: str, page: str) -> str:
    """Return the name of the document that a page means, from the folder of ``conf.py``."""
    name = target.removesuffix(".rst").removesuffix(".md")
    return name.lstrip("/") if name.startswith("/") else normpath(f"{dirname(page)}/{name}".lstrip("/"))


def selected(text: str, options: Mapping[str, str]) -> str:
    """Return the part of a file that the options of ``literalinclude`` and ``include`` choose."""
    lines = _object_lines(text, options["pyobject"]) if options.get("pyobject") else text.splitlines()
    for option, is_start, is_kept in (
        ("start-after", True, False), ("start-at", True, True), ("end-before", False, False), ("end-at", False, True),
    ):  # fmt: skip
        mark = options.get(option)
        at = next((number for number, line in enumerate(lines) if mark in line), None) if mark else None
        if at is not None:
            lines = lines[at + (not is_kept) :] if is_start else lines[: at + is_kept]
    first, last = (options.get(one, "") for one in ("start-line", "end-line"))
    first = first if first.isdecimal() else ""
    if first or last.isdecimal():
        lines = lines[number_in(first or "0") : number_in(last) if last.isdecimal() else None]
    if options.get("lines"):
        lines = _numbered(lines, options["lines"])
    if "dedent" in options:
        width = options["dedent"].strip()
        lines = (
            [line[number_in(width) :] for line in lines] if width.isdecimal() else dedent("\n".join(lines)).split("\n")
        )
    return "\n".join([*filter(None, (options.get("prepend"),)), *lines, *filter(None, (options.get("append"),))])


def _numbered(lines: Sequence[str], written: str) -> list[str]:
    """``1,3,5-10,20-``: lines from 1."""

    def part(one: str) -> Sequence[str]:
        first, dash, last = one.strip().partition("-")
        begin = number_in(first) if first.isdecimal() else 1
        return lines[max(begin - 1, 0) : number_in(last) if last.isdecimal() else len(lines) if dash else begin]

    return chosen_lines(map(part, separated(written)))


def _object_lines(text: str, name: str) -> list[str]:
    """Return the lines of a class or function of a program in Python; none where it is not found."""
    try:
        nodes: Sequence[ast.stmt] = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    node: ast.stmt | None = None
    for part in name.split("."):
        definitions = (one for one in nodes if isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef))
        node = next((one for one in definitions if one.name == part), None)
        if node is None:
            return []
        nodes = getattr(node, "body", ())
    assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return text.splitlines()[first - 1 : node.end_lineno]


def is_shown(expression: str) -> bool:
    """Return whether ``only`` shows its content in HTML; what cannot be read as an expression is taken for true."""
    words = re.findall(r"[\w.]+|[()]", expression)
    if len(words) > 50 or not words:
        return True
    known = ("html", "builder_html", "format_html", "builder_dirhtml")
    python = " ".join(one if one in ("and", "or", "not", "(", ")") else str(one in known) for one in words)
    try:
        return _truth(ast.parse(python, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return True


def _truth(node: ast.expr) -> bool:
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_truth(value) for value in values)
        case ast.BoolOp(values=values):
            return any(_truth(value) for value in values)
        case ast.UnaryOp(operand=operand):
            return not _truth(operand)
        case ast.Constant(value=value):
            return bool(value)
    raise ValueError("not an expression of tags")


def identifier(prefix: str, term: str) -> str:
    """Return the anchor that Sphinx makes of a term."""
    text = normalized("NFKD", f"{prefix}-{term}" if prefix else term).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-zA-Z0-9._]+", "-", " ".join(text.split())).lstrip("-0123456789._").rstrip("-")


def object_ids(name: str, signatures: Sequence[str], *, program: str = "", above: str = "") -> list[str]:
    """Return the anchors of an object, by its directive. ``above``: the module and classes that it is in."""
    kind = name.rpartition(":")[2]
    found: list[str] = []
    for signature in signatures:
        if kind in ("option", "cmdoption"):
            for one in signature.split(", "):
                flag = re.split(r"[\s=\[<]", one.strip())[0]
                prefix = "-".join(filter(None, ("cmdoption", program, "" if flag[:1] in "-/+" else "arg")))
                found.append(identifier(prefix, flag))
            continue
        if kind in ("envvar", "confval", "setting", "directive", "role", "token", "opcode"):
            found.append(identifier(kind, signature.lstrip(".: ").split("(")[0].split("::")[0]))
            continue
        named = re.match(r"([\w.:-]+)(?=[\s(\[=,:]|$)", signature)
        if named is not None:
            short = named[1].rstrip(":")
            found.append(f"{above}.{short}" if above else short)
            if name.startswith("c:"):
                found.append(f"c.{short}")
    return found


_IN_MODULES = frozenset("function class exception data decorator method attribute property".split())  # noqa: SIM905


def shown_signature(name: str, signature: str, module: str) -> str:
    """Return a signature as a directive shows it: with what the object is, and the module that it is in."""
    kind = name.rpartition(":")[2].removeprefix("auto")
    if name.rpartition(":")[0] not in ("", "py") or kind not in _IN_MODULES:
        return signature
    whole = f"{module}.{signature}" if module else signature
    return f"{kind} {whole}" if kind in ("class", "exception") else whole


def signature_name(signature: str) -> str:
    return re.split(r"[(\[\s=:]", signature.strip(), maxsplit=1)[0]
