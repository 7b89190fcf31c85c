"""Sphinx: ``conf.py`` beside the root document, toctrees, ``html`` and ``dirhtml``
(sphinx-doc.org/en/master/usage/configuration).

``conf.py`` is read, not run: what it sets to a literal at its margin counts. Which builder makes the site is not in it.
It is ``dirhtml`` where ``.readthedocs.yaml`` says so, or where a command with it is in ``tox.ini``, ``noxfile.py``,
``pyproject.toml``, a ``Makefile`` or ``justfile`` beside ``conf.py`` or in a folder above, and none with ``html`` is;
else ``html``.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from posixpath import dirname, normpath

from msgspec import structs

from service.markup.dialects.dialect import Dialect
from service.markup.front_matter import load_strings
from service.markup.pages import MARKDOWN_SUFFIXES, is_markdown
from service.retrieval.readers.sphinx.facts import SphinxFacts
from service.retrieval.site.generators.sphinx.toctrees import EXTERNAL, Listed, external_pages, listed_pages
from service.retrieval.site.ignore_files import ignore_rules
from service.retrieval.site.layout import MAX_SCRIPT, Layout, NavEntry, Read, join_path, read_text, within
from service.retrieval.site.link_rules import TERM, LinkRules

MAX_TOCTREE = 20_000
"""Pages."""
_SIGNS = ("extensions", "project", "html_theme", "master_doc", "root_doc")
"""Settings of which one is in every configuration of Sphinx."""
_SUFFIXES = (".rst", ".md", ".ipynb")
_GENERATES = re.compile(
    r"autosummary|autoapi|apidoc|gallery|breathe|exhale|multiproject|jupyter_sphinx|nbsphinx_link|extra-files"
)
"""Extensions whose pages are made by the build."""
_MORE_LABELS = (
    ("intersphinx", "another site may have the label"),
    ("autosectionlabel", "headings are labels, too"),
    ("autodoc", "a docstring may have the label"),
    ("bibtex", "an extension makes labels"),
    *((name, "the build makes pages, which may have the label") for name in ("autosummary", "autoapi", "gallery")),
)
"""Extensions by whose means a label may be known that no page gives."""
_BUILDER = re.compile(r"(?:-[bM][ \t\"',]{0,5}|\bmake[ \t][^\n]{0,100}?)(dirhtml|html)\b")
_COMMANDS = ("tox.ini", "noxfile.py", "pyproject.toml", "Makefile", "justfile", "Justfile")
_READ_THE_DOCS = (".readthedocs.yaml", ".readthedocs.yml", "readthedocs.yml")


def sphinx(config: str, files: frozenset[str], read: Read, docs_folder: str) -> Layout | None:
    root = dirname(config)
    text = read_text(read, config)[:MAX_SCRIPT]
    settings = literal_settings(text)
    if not any(re.search(rf"^{sign}\s*=", text, re.MULTILINE) for sign in _SIGNS):
        return None
    external = _external(settings, root, files, read)
    document = str(settings.get("root_doc") or settings.get("master_doc") or "index")
    index = next((name for one in _SUFFIXES if (name := join_path(root, document + one)) in files), None)
    index = external[0].path if external else index
    if index is None:
        return None
    excluded = _strings(settings.get("exclude_patterns"))
    patterns = [one if one.startswith("**") else f"/{one.lstrip('/')}" for one in excluded if one]
    ignored = ignore_rules((*patterns, "_build", "_templates"), file=config)
    suffixes = tuple(one for one in _strings(settings.get("source_suffix")) if one in (*_SUFFIXES, ".txt"))
    layout = Layout(
        "sphinx", docs_folder, root, Dialect(slugs="docutils"), ("",), ignored=ignored,
        html_suffix=not _is_dirhtml(root, files, read),
        default_language=str(settings.get("language") or "").replace("_", "-"),
        links=LinkRules(
            reads_files=True, slash=True, has_all_anchors=False,
            has_all_files=not _GENERATES.search(" ".join(_strings(settings.get("extensions")))),
        ),
    )  # fmt: skip
    pages = frozenset(name for name in files if within(name, root) and layout.is_page(name))
    if suffixes:
        pages = frozenset(name for name in pages if name.endswith((*suffixes, *MARKDOWN_SUFFIXES)))
    facts, labels = _facts(settings, root, pages, read)
    links = structs.replace(layout.links, labels=labels, has_roles=True, labels_elsewhere=_others(settings, pages))
    listed = {one.path: NavEntry(at, one.title) for at, one in enumerate(external) if one.path in pages}
    order = listed or _order(index, root, pages, read)
    return structs.replace(layout, entries=order, sphinx=facts, links=links)


def _others(settings: Mapping[str, object], pages: frozenset[str]) -> str:
    """Return why a label that no page gives may be there; empty where it cannot."""
    extensions = " ".join(_strings(settings.get("extensions")))
    for name, reason in _MORE_LABELS:
        if name in extensions:
            return reason
    if len(pages) > MAX_TOCTREE or any(page.endswith(".ipynb") for page in pages):
        return "a page that is not read may have the label"
    return ""


def _external(settings: Mapping[str, object], root: str, files: frozenset[str], read: Read) -> Sequence[Listed]:
    """Return the pages of the file that lists them all, where the site has one."""
    path = join_path(root, str(settings.get("external_toc_path") or EXTERNAL))
    if path not in files or "sphinx_external_toc" not in _strings(settings.get("extensions")):
        return ()
    pages = frozenset(name for name in files if within(name, root) and name.endswith(_SUFFIXES))
    return external_pages(read_text(read, path), root, pages)


def _order(index: str, root: str, pages: frozenset[str], read: Read) -> dict[str, NavEntry]:
    """Return the pages in the order of the toctrees, from the root down."""
    titles = {index: ""}
    order: dict[str, NavEntry] = {}
    stack = [index]
    while stack and len(order) < MAX_TOCTREE:
        page = stack.pop()
        if page in order:
            continue
        order[page] = NavEntry(len(order), titles[page])
        text = read_text(read, page)[:MAX_SCRIPT]
        listed = [one for one in listed_pages(page, text, root, pages) if one.path not in order]
        for one in listed:
            titles.setdefault(one.path, one.title)
        stack.extend(one.path for one in reversed(listed))
    return order


def _facts(
    settings: Mapping[str, object], root: str, pages: frozenset[str], read: Read
) -> tuple[SphinxFacts, dict[str, str]]:
    """Return the facts that pages need, and the page of each label."""
    links = settings.get("extlinks")
    captions = {}
    for role, value in links.items() if isinstance(links, dict) else ():
        caption = value[1] if isinstance(value, tuple | list) and len(value) == 2 else None
        captions[str(role)] = caption if isinstance(caption, str) else "%s"
    own = settings.get("myst_substitutions")
    words = {str(key): str(value) for key, value in own.items()} if isinstance(own, dict) else {}
    words |= {key: str(settings[key]) for key in ("version", "release", "project") if key in settings}
    appended = (settings.get(key) for key in ("rst_prolog", "rst_epilog"))
    titles, labels = dict[str, str](), dict[str, str]()
    for page in sorted(pages)[:MAX_TOCTREE]:
        text = read_text(read, page)[:MAX_SCRIPT]
        titles |= titles_of(page, page[len(root) :].lstrip("/"), text)
        labels |= dict.fromkeys([*labels_of(page, text), *terms_of(text)], page)
        for target in _PART.findall(text)[:MAX_PARTS] if "include" in text else ():
            part = _part(page, target[0] or target[1], root)
            shown = read_text(read, part)[:MAX_SCRIPT] if part else ""
            labels |= dict.fromkeys([*labels_of(part, shown), *terms_of(shown)], page)
    role, added = str(settings.get("default_role") or ""), "\n\n".join(one for one in appended if isinstance(one, str))
    return SphinxFacts(role, captions, added, words, titles), labels


def _part(page: str, target: str, root: str) -> str:
    """Return the path of a file that a page includes; empty for one outside of the repository."""
    found = normpath(join_path(root if target.startswith("/") else dirname(page), target.lstrip("/")))
    return "" if found.startswith("..") else found


def titles_of(path: str, name: str, text: str) -> dict[str, str]:
    """Return the title of a document and those that its labels stand for, by ``doc NAME`` and ``ref LABEL``."""
    title, label = (_MYST_TITLE, _MYST_LABEL) if is_markdown(path) else (_TITLE, _LABEL)
    found: dict[str, str] = {}
    first = title.search(text)
    if first is not None:
        found[f"doc {name.rpartition('.')[0]}"] = _plain(first["title"])
    for match in label.finditer(text):
        words = _plain(match["title"])
        names = _LABEL_NAME.findall(match["labels"])
        found.update(
            (f"ref {' '.join((own or quoted or myst).casefold().split())}", words) for own, quoted, myst in names
        )
    return found


def labels_of(path: str, text: str) -> Iterator[str]:
    """Yield the names that a page gives to places in it, in lower case."""
    for named in _NAMED.findall(text):
        yield " ".join(next(filter(None, named)).lower().split())
    for own, quoted, myst in (_MYST_LABELS if is_markdown(path) else _LABELS).findall(text):
        yield " ".join((own or quoted or myst).lower().split())


def terms_of(text: str) -> Iterator[str]:
    """Yield the terms of glossaries, in lower case, as labels have them: lines that are indented as the first one is
    (sphinx-doc.org/en/master/usage/restructuredtext/directives.html#directive-glossary).
    """
    if ".glossary" in text:
        yield f"{TERM}*"
    outer: int | None = None  # the indent that all lines of the directive exceed
    inner = -1  # that of its terms
    for line in text.split("\n") if "glossary" in text else ():
        bare, indent = line.strip(), len(line) - len(line.lstrip())
        begins = _GLOSSARY.fullmatch(bare)
        if begins is not None:
            outer, inner = indent - (begins[1] is not None), -1
        elif outer is None or not bare:
            continue
        elif indent <= outer or _FENCE.fullmatch(bare):
            outer = None
        elif inner in (-1, indent) and not bare.startswith((":", "..")):
            inner = indent
            yield TERM + " ".join(bare.partition(" : ")[0].lower().split())


_GLOSSARY = re.compile(r"(?:\.\.[ \t]+glossary::|([`~:]{3,})\{glossary\}).*")
_FENCE = re.compile(r"[`~:]{3,}")
_SIGN = r"[=\-`:'\"~^_*+#<>.]"
_TITLE = re.compile(rf"^(?P<title>[^\s.][^\n]{{0,300}})\n(?P<sign>{_SIGN})(?P=sign){{2,}}[ \t]*$", re.MULTILINE)
_LABEL = re.compile(
    rf"^(?P<labels>(?:\.\. _[^\n]{{1,200}}:[ \t]*\n(?:[ \t]*\n)*){{1,10}})"
    rf"(?:(?P<over>{_SIGN})(?P=over){{2,}}[ \t]*\n[ \t]*)?"
    rf"(?P<title>[^\s.][^\n]{{0,300}})\n(?P<sign>{_SIGN})(?P=sign){{2,}}[ \t]*$",
    re.MULTILINE,
)
_MYST_TITLE = re.compile(r"^#[ \t]+(?P<title>[^\n]{1,300})$", re.MULTILINE)
_MYST_LABEL = re.compile(
    r"^(?P<labels>(?:\([^()\n]{1,200}\)=[ \t]*\n(?:[ \t]*\n)*){1,10})#{1,6}[ \t]+(?P<title>[^\n]{1,300})$", re.MULTILINE
)
_LABELS = re.compile(r"^[ \t]*\.\. _(?:([^`\n:]{1,200})|`([^`\n]{1,200})`)()?:[ \t]*$", re.MULTILINE)
_MYST_LABELS = re.compile(r"^[ \t>]*()()\(([^()\n]{1,200})\)=[ \t]*$", re.MULTILINE)
_NAMED = re.compile(
    r"^[ \t]*:name:[ \t]+(\S[^\n]{0,200})$|^[ \t]*name:[ \t]+(\S[^\n]{0,200})$|\{#([\w-]{1,200})[ }]"
    r"|(?<![\w`:_])_`([^`\n]{1,200})`(?![`_])",
    re.MULTILINE,
)
"""Labels of figures, tables and blocks, of attributes, and of targets in a sentence."""
_PART = re.compile(
    r"^[ \t]*\.\.[ \t]+include::[ \t]+([^\s<]\S{0,500})|^[ \t]*[`~:]{3,}\{include\}[ \t]+(\S{1,500})", re.MULTILINE
)
MAX_PARTS = 20
_LABEL_NAME = re.compile(r"^\.\. _(?:([^`\n:]+)|`([^`\n]+)`):|^\(([^()\n]+)\)=", re.MULTILINE)


def _plain(title: str) -> str:
    title = re.sub(r":[\w:+-]{1,50}:`(?:~[\w.]*?)?([^`<]{1,200}?)(?:[ \t]*<[^<>`]*>)?`", r"\1", title)
    return re.sub(r"\{[\w:+-]{1,50}\}|[`*]", "", title).strip()


def literal_settings(text: str) -> Mapping[str, object]:
    """Return what a configuration in Python sets to a literal at its margin."""
    found: dict[str, object] = {}
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return found
    for one in statements:
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
        value = one.value if isinstance(one, ast.Assign | ast.AnnAssign) else None
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if names and value is not None:
            try:
                literal = ast.literal_eval(value)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                continue
            found.update(dict.fromkeys(names, literal))
    return found


def _strings(value: object) -> Iterator[str]:
    items = value if isinstance(value, list | tuple | set | dict) else [value]
    yield from (item for item in items if isinstance(item, str))


def _is_dirhtml(root: str, files: frozenset[str], read: Read) -> bool:
    folders = [root]
    while folders[-1]:
        folders.append(dirname(folders[-1]))
    builders: set[str] = set()
    for folder in folders:
        for name in _READ_THE_DOCS:
            if (path := join_path(folder, name)) in files:
                return _read_the_docs_builder(read_text(read, path)) == "dirhtml"
    for folder in folders:
        for name in _COMMANDS:
            if (path := join_path(folder, name)) in files:
                commands = read_text(read, path)[:MAX_SCRIPT]
                builders |= {match[1] for match in _BUILDER.finditer(commands) if "help" not in match[0]}
    return builders == {"dirhtml"}


def _read_the_docs_builder(text: str) -> str:
    try:
        settings = load_strings(text)
    except ValueError:
        return ""
    section = settings.get("sphinx") if isinstance(settings, dict) else None
    return str(section.get("builder") or "") if isinstance(section, dict) else ""
