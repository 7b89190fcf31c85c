"""What the checks read in a page's text.

Every function is a function of text alone, and keeps positions: code and comments are blanked out, not cut, so that a
line found here is the line in the file. Pages come from strangers: repetitions in the expressions are bounded, and what
cannot be (the end of a comment) is looked for without one.
"""

import re
from collections import Counter
from collections.abc import Iterator

import yaml
from msgspec import Struct

from service.markup.front_matter import block_of, load_strings

MAX_LINKS_OF_A_PAGE = 5_000


class PageLink(Struct, frozen=True):
    target: str
    """As written."""
    line: int
    found: str
    """The target with what stands around it, which tells it from longer targets: ``(/a/b)``."""
    is_image: bool = False

    def with_target(self, target: str) -> str:
        return self.found.replace(self.target, target, 1)


_FENCED = (
    r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*"
    r"(?:\n(?![ \t>]*(?P=fence))[^\n]*)*(?:\n[ \t>]*(?P=fence)[`~]*[ \t]*(?=\n|\Z)|\Z|(?=\n))"
)
_CODE = re.compile(
    _FENCED + r"|<!--|\{/\*"
    r"|(?<!`)(?P<ticks>`{1,2})(?!`)(?:[^`\n]|(?!(?P=ticks))`|\n(?![ \t]{0,200}\n)){1,1000}?(?P=ticks)(?!`)",
    re.MULTILINE,
)
_COMMENT_ENDS = {"<!--": "-->", "{/*": "*/}"}
_BLANKED = re.compile(r"[^\n]")
_INLINE = re.compile(r"\]\(\s*<?(?P<target>(?:[^()\s<>]|\([^()\s]{0,500}\)){1,2000})(?=[\s>)])")
MAX_IMAGE_WORDS = 500
_ATTRIBUTE = re.compile(r"\b(?P<name>href|to|src)=(?P<quote>[\"'])(?P<target>[^\"'\n{}]{1,2000})(?P=quote)")
_DEFINITION = re.compile(r"^ {0,3}\[(?!\^)[^\]\n]{1,300}\]:[ \t]*<?(?P<target>[^\s<>]{1,2000})", re.MULTILINE)
_EXTERNAL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")


def without_code(text: str) -> str:
    """Code, inline code and comments as blanks of the same length."""
    if "`" not in text and "~~~" not in text and "<!--" not in text and "{/*" not in text:
        return text
    kept: list[str] = []
    at = begin = 0
    unclosed: set[str] = set()
    while (match := _CODE.search(text, begin)) is not None:
        begin, end = match.span()
        closing = _COMMENT_ENDS.get(match[0])
        if closing is not None:  # looked for here: an expression would look to the end from each one that is not closed
            found = -1 if closing in unclosed else text.find(closing, end)
            if found < 0:
                unclosed.add(closing)
                begin = end
                continue
            end = found + len(closing)
        kept += [text[at:begin], _BLANKED.sub(" ", text[begin:end])]
        at = begin = end
    return "".join([*kept, text[at:]])


def links_of(text: str) -> list[PageLink]:
    """Links and images that may lead to files of the site, in order."""
    if "](" not in text and "]:" not in text and "=" not in text:
        return []
    prose = without_code(text)
    found = [
        *(
            (*match.span("target"), _is_image(prose, match.start()), match.start("target") - 1)
            for match in _INLINE.finditer(prose)
        ),
        *(
            (*match.span("target"), match["name"] == "src", match.start("target") - 1)
            for match in _ATTRIBUTE.finditer(prose)
        ),
        *((*match.span("target"), False, match.start()) for match in _DEFINITION.finditer(prose)),
    ]
    found.sort()
    links: list[PageLink] = []
    line, at = 1, 0
    for start, end, is_image, begin in found[:MAX_LINKS_OF_A_PAGE]:
        target = text[start:end]
        if _EXTERNAL.match(target) or "{" in target or target[0] in "($":
            continue
        line += text.count("\n", at, start)
        at = start
        after = end + (text[end : end + 1] not in ("\n", "\r", ""))
        links.append(PageLink(target, line, text[begin:after], is_image))
    return links


def _is_image(text: str, bracket: int) -> bool:
    """Whether the bracket ends the words of an image."""
    words = text[max(0, bracket - MAX_IMAGE_WORDS - 2) : bracket].rpartition("![")
    return bool(words[1]) and "]" not in words[2] and "\n" not in words[2]


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


def open_fence(text: str) -> int | None:
    """The line of a code fence that is never closed."""
    fence, opened, quoted = "", 0, False
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})(.*)", line)
        if match is None:
            if fence and quoted and not line.lstrip().startswith(">"):
                fence = ""  # the end of a quotation ends what is open in it
            continue
        if not fence:
            if "`" not in match[2] or match[1][0] == "~":
                fence, opened, quoted = match[1], number, line.lstrip().startswith(">")
        elif match[1][0] == fence[0] and len(match[1]) >= len(fence) and not match[2].strip():
            fence = ""
    return opened if fence else None


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


def unbalanced(text: str, *, components: bool) -> dict[str, tuple[int, int]]:
    """Components (or Hugo shortcodes) opened and closed unequally often: by name, the surplus of openings and a line.

    A shortcode that is nowhere closed takes no content, so only names with some closing count.
    """
    pattern = _TAG if components else _SHORTCODE
    if (f"<{'' if components else ' '}" not in text and "<" not in text) and "{{" not in text:
        return {}
    surplus: Counter[str] = Counter()
    closed: set[str] = set()
    lines: dict[str, int] = {}
    prose, line, at = without_code(text), 1, 0
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


def imports(text: str) -> dict[str, int]:
    """Names that an MDX page imports, with the line."""
    found: dict[str, int] = {}
    line, at = 1, 0
    for match in _IMPORT.finditer(text):
        line, at = line + text.count("\n", at, match.start()), match.start()
        for name in re.findall(r"(?:\bas\s+)?([A-Za-z_$][\w$]*)(?!\s+as\b)", match["names"]):
            if name != "as":
                found[name] = line
    return found


def components(text: str) -> set[str]:
    """The names of tags outside of code, HTML's among them."""
    return set(_USED.findall(without_code(text)))


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
    """What it is, itself, and its line. What is plainly an example is none."""
    for kind, pattern in _SECRETS:
        line, at = 1, 0
        for match in pattern.finditer(text):
            if not _EXAMPLE.search(match[0]):
                line, at = line + text.count("\n", at, match.start()), match.start()
                yield kind, match[0], line
