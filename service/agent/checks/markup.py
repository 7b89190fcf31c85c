"""Facts that the checks read in a page's text.

Every function is a function of text alone. Pages come from strangers: repetitions in the expressions are bounded.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import yaml
from msgspec import Struct
from msgspec.structs import replace

from service.agent.checks.pages import markdown_of
from service.markup import links as markup_links
from service.markup.addresses import link_target
from service.markup.dialects.dialect import PLAIN, Dialect
from service.markup.front_matter import block_of, load_strings
from service.markup.inline import InlineReader
from service.markup.markdown import Markdown
from service.markup.page_names import Form, may_name_pages, page_names
from service.markup.pages import is_markdown

MAX_LINKS_OF_A_PAGE = 5_000
MAX_LINE = 5_000
"""Limit for a line, in characters, in which a link is distinguished from the same text in code."""
MAX_AROUND = 64
_WEB_ADDRESS = re.compile(r"https?://[^\s<>\"'`\])}]{1,2000}+")
_WEB = re.compile(r"https?://[^\s/]")
_AUTOLINK = re.compile(r"<(https?://[^\s<>]{1,2000}+)>")
_WITH_COLON = frozenset(("document", "label", "any", "term", "xref"))
"""Forms in which what stands before a colon is another site, or a part of this one, and no scheme."""
_EXTERNAL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")


class PageLink(Struct, frozen=True):
    target: str
    """As written."""
    line: int
    before: str
    after: str
    """The text around the target, which distinguishes it from longer targets, and from the same text in code."""
    is_image: bool = False
    form: Form = "link"

    @property
    def found(self) -> str:
        """The target with what stands around it: ``(/a/b)``."""
        return self.with_target(self.target)

    def with_target(self, target: str) -> str:
        return f"{self.before}{target}{self.after}"

    def spelled(self, path: str) -> str:
        """Return a path or address as a target that can stand here."""
        if self.form != "link":
            return path
        return link_target(path, self.target, is_wrapped=self.before.endswith("<") and self.after == ">")


def links_of(text: str, path: str = "", dialect: Dialect = PLAIN) -> list[PageLink]:
    """Return the links and images that may lead to files of the site, and what else names one, in order."""
    has_links = "](" in text or "]:" in text or "=" in text
    if not has_links and not may_name_pages(text, path):
        return []
    page = markdown_of(text, path, dialect) if not path or is_markdown(path) else None
    if not has_links:
        found: Sequence[markup_links.Link] = ()
    elif page is None:
        reader = InlineReader(text)
        reader.read_html(0, len(text))
        found = markup_links.links_of(text, reader)
    else:
        found = page.links
    used = {link.start for link in found if link.kind == "reference"}
    own = [link for link in found if _is_its_place(link, used) and not _is_elsewhere(link.target)]
    defined = {link.start for link in own if link.kind == "definition"}
    named: list[tuple[int, str, bool, Form]] = [(link.start, link.target, link.is_image, "link") for link in own]
    known = {start for start, *_ in named}
    others = page_names(text if page is None else page.text, path, dialect, page)
    named += [
        (one.start, one.target, one.is_image, one.form)
        for one in others
        if one.start not in known and (one.form in _WITH_COLON or _EXTERNAL.match(one.target) is None)
    ]
    named.sort()
    links: list[PageLink] = []
    lines: list[tuple[int, int]] = []
    line, at = 1, 0
    for start, target, is_image, form in named[:MAX_LINKS_OF_A_PAGE]:
        end = start + len(target)
        begin = text.rfind("\n", 0, start) + 1 if start in defined else start - 1
        after = text[end : end + 1].rstrip("\r\n")
        line, at = line + text.count("\n", at, begin), begin
        links.append(PageLink(target, line, text[begin:start], after, is_image, form))
        lines.append((begin, end + len(after)))
    return _told_apart(text, links, lines)


def external_links(text: str, path: str, dialect: Dialect = PLAIN) -> list[tuple[str, int]]:
    """Return the addresses of the web that a page links to, each with its line, in order."""
    if "://" not in text:
        return []
    if is_markdown(path):
        page = Markdown(text, path=path, dialect=dialect)
        found = [(link.start, link.target) for link in page.links if link.kind != "definition"]
        found += [(match.start(), match[1]) for match in _AUTOLINK.finditer(page.prose)]
    else:
        found = [(match.start(), match[0].rstrip(".,;:!?'")) for match in _WEB_ADDRESS.finditer(text)]
    listed: list[tuple[str, int]] = []
    line, at = 1, 0
    for start, target in sorted(found)[:MAX_LINKS_OF_A_PAGE]:
        line, at = line + text.count("\n", at, start), start
        if _WEB.match(target) and "{" not in target:
            listed.append((target.partition("#")[0], line))
    return listed


def _is_its_place(link: markup_links.Link, used: Collection[int]) -> bool:
    """Return whether the target stands here: that of a reference stands where it is defined."""
    return link.start in used if link.kind == "definition" else link.kind != "reference"


def _is_elsewhere(target: str) -> bool:
    return not target or _EXTERNAL.match(target) is not None or "{" in target or target[0] == "$"


def _told_apart(text: str, links: list[PageLink], places: Sequence[tuple[int, int]]) -> list[PageLink]:
    """The links with so much around them that nothing else on their line reads the same."""
    alike = Counter((link.line, link.found) for link in links)
    for index, (link, (begin, end)) in enumerate(zip(links, places, strict=True)):
        start = text.rfind("\n", max(0, begin - MAX_LINE), begin + 1) + 1
        line = text[start : end + MAX_LINE].partition("\n")[0] if start or begin < MAX_LINE else ""
        if line.count(link.found) <= alike[link.line, link.found]:
            continue
        least = max(start, begin - MAX_AROUND)
        while begin > least and line.count(text[begin:end]) > 1:
            begin -= 1
        links[index] = replace(link, before=text[begin : end - len(link.target) - len(link.after)])
    return links


# Front matter


def front_matter_problem(text: str) -> tuple[int, str] | None:
    """Line and sentence."""
    block = block_of(text)
    if block is None or block.is_toml:
        return None
    if not block.end:
        return 1, "The front matter has no closing line of three hyphens."
    try:
        value = load_strings(block.text)
    except ValueError as error:
        cause = error.__cause__
        if isinstance(cause, yaml.MarkedYAMLError) and cause.problem_mark is not None:
            return cause.problem_mark.line + 2, f"The front matter is not YAML: {cause.problem or 'it cannot be read'}."
        return 1, f"The front matter cannot be read: {error}."
    if value is not None and value != "" and not isinstance(value, dict):
        return 1, "The front matter is not a mapping of names to values."
    return None


# Markdown and MDX


_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Z][\w.]{0,100})(?=[\s/>])"
    r"(?P<rest>(?:[^<>\"'{}]|\"[^\"]{0,2000}\"|'[^']{0,2000}'"
    r"|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,500}\}){0,2000}\}){0,5000}\}){0,5000})>"
)
_SHORTCODE = re.compile(
    r"\{\{[<%]\s*+(?P<close>/?+)\s*+(?P<name>[\w-]++)(?P<rest>(?:[^{}\n>%]|[>%](?!\}\}))*+)[>%]\}\}"
)
_IMPORT = re.compile(r"^import\s++(?P<names>[^'\"\n]{0,499}?[^\s'\"])\s++from\s++['\"]", re.MULTILINE)
_USED = re.compile(r"<([A-Za-z_$][\w$]*)[\s/>.]")


def unbalanced(page: Markdown, *, components: bool) -> dict[str, tuple[int, int]]:
    """Components (or Hugo shortcodes) opened and closed unequally often: by name, the surplus of openings and a line.

    A shortcode that is never closed has no content, so only names that are closed somewhere count.
    """
    pattern = _TAG if components else _SHORTCODE
    if "<" not in page.text and "{{" not in page.text:
        return {}
    surplus: Counter[str] = Counter()
    closed: set[str] = set()
    lines: dict[str, int] = {}
    prose, line, at = page.prose, 1, 0
    for match in pattern.finditer(prose):
        name = match["name"]
        line, at = line + prose.count("\n", at, match.start()), match.start()
        if match["close"]:
            surplus[name] -= 1
            closed.add(name)
        elif not match["rest"].rstrip().endswith("/"):
            surplus[name] += 1
        lines[name] = line
    return {name: (count, lines[name]) for name, count in surplus.items() if count and (components or name in closed)}


def imports(page: Markdown) -> dict[str, int]:
    """Names that an MDX page imports, with the line."""
    found: dict[str, int] = {}
    for start, end in page.unseen:
        for match in _IMPORT.finditer(page.text, start, end):
            for name in re.findall(r"(?:\bas\s+)?([A-Za-z_$][\w$]*)(?!\s+as\b)", match["names"]):
                if name != "as":
                    found[name] = page.line_of(match.start())
    return found


def components(page: Markdown) -> set[str]:
    """The names of tags outside of code, HTML's among them."""
    return set(_USED.findall(page.prose))


# Secrets

_SECRETS = (
    ("an AWS access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a GitHub token", re.compile(r"\bgh[pousr]_[A-Za-z0-9]{36,}\b|\bgithub_pat_[A-Za-z0-9_]{60,}\b")),
    ("a GitLab token", re.compile(r"\bgl(?:pat|dt|rt|ptt|ft|soat)-[A-Za-z0-9_-]{20,}")),
    ("a Slack token", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{20,}|\bxapp-\d-[A-Za-z0-9-]{20,}")),
    ("a Slack webhook", re.compile(r"hooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,}")),
    ("a Stripe key", re.compile(r"\b[sr]k_live_[A-Za-z0-9]{20,}\b")),
    ("an Anthropic key", re.compile(r"\bsk-ant-[A-Za-z0-9_-]{32,}")),
    ("an OpenAI key", re.compile(r"\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{40,}")),
    ("a Google key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b")),
    ("an npm token", re.compile(r"\bnpm_[A-Za-z0-9]{36}\b")),
    ("a PyPI token", re.compile(r"\bpypi-AgE[A-Za-z0-9_-]{50,}")),
    ("a SendGrid key", re.compile(r"\bSG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{40,}")),
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY(?: BLOCK)?-----\s+[A-Za-z0-9+/=]{20}")),
    ("a Docsmith key", re.compile(r"\bdocsmith_(?:dsc_)?[A-Za-z0-9]{36}\b")),
)  # fmt: skip
_EXAMPLE = re.compile(r"EXAMPLE|(.)\1{7}|1234567890|abcdefghij|xxxx", re.IGNORECASE)


def secrets(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the text and the line of each secret. A plain example is not a secret."""
    for kind, pattern in _SECRETS:
        line, at = 1, 0
        for match in pattern.finditer(text):
            if not _EXAMPLE.search(match[0]):
                line, at = line + text.count("\n", at, match.start()), match.start()
                yield kind, match[0], line
