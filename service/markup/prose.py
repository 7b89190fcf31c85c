"""Prose as a reader sees it: one pass over it, code spans stepped over; the anchors it meets are kept.

- Hugo's shortcodes are ``{{< >}}`` and ``{{% %}}``; ``{{</* */>}}`` shows one
  (gohugo.io/content-management/shortcodes).
- Liquid's tags are ``{% %}`` (Jekyll, GitBook); of them, of shortcodes and of components, titles and the like are kept.
- MDN's macros are ``{{name("argument", "text")}}``: cross-references show their text, the others are page furniture.

The expressions are atomic, or short, where they could backtrack.
"""

import re
from collections.abc import Callable, Mapping
from html import unescape

from service.markup.dialects import python_markdown
from service.markup.dialects.dialect import PYTHON_MARKDOWN, Dialect
from service.markup.dialects.mdx import shown_braces
from service.markup.fences import code_span
from service.markup.front_matter import FrontMatter, text_field
from service.markup.slugs import slug
from service.markup.syntax import ATTRIBUTE, ATTRIBUTES, is_component

MAX_HEADING = 300
MAX_LINKS = 5000
MAX_INDENT = 200


_PROSE = re.compile(
    r"(?=[`{<&]|^[ \t]*[>\[:!?=])(?:"  # what each of them begins with: at most places there is nothing to try
    r"(?P<code>``[^\n]{1,1000}?``|`[^`\n]{1,2000}(?:\n[^`\n]{1,2000})?`)"
    r"|(?P<shown>\{\{[<%]/\*(?P<inner>[^\n]{0,500}?)\*/[>%]\}\})"
    r"|(?P<shortcode>\{\{(?P<kind>[<%])(?P<call>(?>[^\n{}]{0,1000}))\}\})"
    r"|(?P<liquid>\{%-?(?P<liquid_call>(?>[^%\n]{0,500}))%\})"
    r"|(?P<macro>\{\{(?P<name>\s*+[A-Za-z_][\w.-]*+)\s*+(?:\((?P<arguments>(?>[^(){}]{0,1000}(?:\([^(){}]*\)[^(){}]*)*))\))?[^{}]{0,200}\}\})"
    r"|(?P<alert>^(?P<quote>[ \t]*>[ \t>]*+)\[!(?P<alarm>[A-Za-z]{3,20})\][-+]?(?P<headline>[^\n]{0,300}))"
    r"|(?P<toc>^[ \t]*\[\[toc\]\][ \t]*$)"
    r"|(?P<space>&(?:nbsp|#160);)"
    r"|(?P<mustache>\{\{(?P<expression>(?>[^{}]{0,1000}(?:\{[^{}]{0,500}\}[^{}]{0,500}){0,20}))\}\})"
    r"|<(?P<url>(?:https?://|mailto:)[^\s<>]{1,2000})>"
    r"|(?<![\\])(?<!\]\()<(?P<raw>script|style|svg)\b"
    + ATTRIBUTES
    + r">(?:[^<]|<(?!/?(?P=raw)\b)){0,20000}+</(?P=raw)\s*>"
    r"|(?<![\\])(?<!\]\()(?<!\]: )<(?P<close>/?)(?P<tag>[A-Za-z][\w.:-]*+|(?=>))(?P<attributes>" + ATTRIBUTES + r")/?>"
    r"|(?P<admonition>^[ \t]*:::++[ \t]*+(?P<box>[\w-]*+)[ \t]*+(?P<label>[^\n]{0,300})$)"
    r"|(?P<callout>^[ \t]*(?:!!!|\?\?\?\+?|===[!+]?)[ \t]++(?P<callout_kind>[\w-]*+)[^\n\"]{0,100}+"
    r"(?:\"(?P<callout_label>[^\"\n]{0,300})\")?[ \t]*+$)"
    r"|(?P<jsx>\{(?P<literal>[\"'`])(?P<words>[^\"'`{}]{0,500})(?P=literal)\}|\{[^{}\n]{0,500}\})"
    r")",
    re.MULTILINE | re.DOTALL,
)
_NOISE = re.compile(r"[<{]|&(?:nbsp|#160);|^[ \t]*(?::::|!!!|\?\?\?|===|\[\[toc|>[ \t>]*\[!)", re.MULTILINE)
_OPEN = re.compile(r"\{[^}\n]{0,500}[\n{]")
_EXPRESSIONS = re.compile(
    r"``[^\n]{1,1000}?``|`[^`\n]{1,2000}`"
    r"|(?<![={\\])\{(?!\{)(?>(?:[^{}]|\{(?>(?:[^{}]|\{[^{}]{0,300}\}){0,500})\}){0,2000})\}"
)
"""Code, and expressions of MDX that may take several lines; what a tag is given is read with it."""
_TABS = re.compile(r"\b(?:values|items)=\{\s*(\[[^\]]{0,2000}\])")
_TAB = re.compile(r"(?:\blabel\s*:\s*|[\[,]\s*)['\"]([^'\"\n]{1,100})['\"]")
"""Names of tabs, which their list gives instead of each of them."""
_FRONT_MATTER = re.compile(r"\s*\$?frontmatter\.([\w-]{1,100})\s*")
_ALERTS = frozenset(("note", "tip", "info", "important", "warning", "caution", "danger"))
_UNNAMED_BOXES = frozenset(("code-group", "raw", "v-pre", "tabs", "steps"))
"""Containers of which a reader sees only what is in them."""
_BOX_ATTRIBUTES = re.compile(r"\{([^{}\n]*)\}[ \t]*$")
_INCLUDING = frozenset(("include", "readfile", "snippet", "include_relative"))
"""Shortcodes and tags that show another file."""
_WORDS = frozenset(
    """
    title label heading header summary alt caption description question tip text name term path query body default
    """.split()  # noqa: SIM905  (as below)
)
_ONLY_COMPONENTS = frozenset(("name", "path", "query", "body", "header", "text", "default", "term"))
_ANCHORED = ("title", "label", "path", "name", "query", "body")
_HTML = frozenset(
    """
    a abbr address area article aside audio b base bdi bdo blockquote body br button canvas caption center cite code
    col colgroup data datalist dd del details dfn dialog div dl dt em embed fieldset figcaption figure font footer
    form h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label legend li link main map mark meta nav
    noscript object ol optgroup option output p param picture pre progress q s samp section select small source span
    strong sub summary sup table tbody td template textarea tfoot th thead time title tr track u ul var video wbr
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
_APART = frozenset(
    """
    br p div li tr td th h1 h2 h3 h4 h5 h6 dt dd table ul ol hr summary details section
    """.split()  # noqa: SIM905  (as above)
)
_CROSS_REFERENCE = re.compile(
    r"(?:xref|element|attr|header|status|method|glossary|rfc|csp|webextapiref|interface|term)$", re.IGNORECASE
)
_ARGUMENT = re.compile(r"""["']([^"']{0,300})["']""")
_CALL_NAMED = re.compile(r"""(?<![\w-])([\w-]++)\s*+=\s*+(?:"([^"]*)"|'([^']*)'|`([^`]*)`|([^\s"'`]+))""")
_CALL_PLAIN = re.compile(r"""(?:^|\s)(?:"([^"]*)"|`([^`]*)`|([^\s"'`=]+))(?=\s|$)""")
_SHORTCODE_WORDS = ("text", "title", "name", "label", "caption", "alt", "heading", "term_id")
_EMPHASIS = re.compile(r"(?<!\\)(\*{1,3}|(?<![^\W_])_{1,3}|~~)(?=\S)(.{1,300}?)(?<=[^\s\\])\1(?!\w)")
_IMAGE_OR_LINK = re.compile(
    r"!?\[((?:[^\[\]]|\[[^\[\]]{0,300}\]){0,500})\]\([^()\[\n]{0,1000}(?:\([^()\[\n]{0,300}\)[^()\[\n]{0,1000})?\)"
)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


_ADDED = "\x1e"
"""Stands for the end of a line that is not in the file, until lines need not be counted any more: white space, as that
is, and of no meaning where a file has it.
"""


_ATTRIBUTES = r"\{[ \t]*(?:[.#][A-Za-z][\w:-]*|[\w-]{1,50}=)[^{}\n]{0,300}\}[ \t]*$"
_BLOCK_ATTRIBUTES = re.compile(r"^[ \t]*" + _ATTRIBUTES, re.MULTILINE)
_HEADING_ATTRIBUTES = re.compile(r"(?<=\S)[ \t]++" + _ATTRIBUTES)
"""Attributes that goldmark gives to the block above, on a line of their own, or to a heading."""


_KRAMDOWN = re.compile(r"(?P<code>`[^`\n]{1,2000}`)|(?:(?<![ \t])[ \t]++)?\{::?[^{}\n]{1,300}\}")
_KRAMDOWN_ID = re.compile(r"\{:[^{}\n]{0,300}?#([\w:.-]{1,100})[^{}\n]{0,300}\}")


def _without_list(found: re.Match[str]) -> str:
    return found["code"] or ""


class Cleaner:
    """Cleans prose, and gathers the anchors that its tags set."""

    def __init__(self, dialect: Dialect, *, mdx: bool) -> None:
        self.anchors: set[str] = set()
        self.imported: frozenset[str] = frozenset()
        self.includes: Callable[[str], bool] = _no_file
        """Whether there is such a file; it is then ``used``."""
        self.used: list[str] = []
        """The imported components that the prose has used since the last look."""
        self.values: FrontMatter = {}
        """The page's front matter, of which VitePress shows values."""
        self._mdx, self._vue = mdx, dialect.vue
        self._slugs = dialect.slugs
        self._has_attributes, self._is_kramdown = dialect.shortcodes, dialect.kramdown
        self._is_python = dialect.slugs in PYTHON_MARKDOWN
        self._text = ""

    def clean(self, text: str) -> str:
        if self._is_python:
            self.anchors.update(python_markdown.anchors_in(text))
            text = python_markdown.shown(text)
        if self._is_kramdown and "{:" in text:
            self.anchors.update(_KRAMDOWN_ID.findall(text))
            text = _KRAMDOWN.sub(_without_list, text)
        if _NOISE.search(text):
            if self._has_attributes and "{" in text:
                text = (_BLOCK_ATTRIBUTES if "\n" in text else _HEADING_ATTRIBUTES).sub("", text)
            self._text = text
            if self._mdx and _OPEN.search(text):
                text = self._text = _EXPRESSIONS.sub(_without_expression, text)
            text = _PROSE.sub(self._replace, text)
        return shown_braces(text.replace(_ADDED, "\n"))

    def _replace(self, match: re.Match[str]) -> str:
        whole = match[0]
        if match["code"] is not None:
            return whole
        kept = self._kept(match)
        missing = whole.count("\n") - kept.count("\n")
        return kept.replace("\n", _ADDED, -missing) if missing < 0 else kept + "\n" * missing

    def _kept(self, match: re.Match[str]) -> str:
        if match["shown"] is not None:
            return code_span(f"{{{{{match[0][2]} {match['inner'].strip()} {match[0][-3]}}}}}")
        if match["shortcode"] is not None:
            return self._shortcode(match["call"].rstrip(">% \t"))
        if match["liquid"] is not None:
            return self._shortcode(match["liquid_call"].rstrip("- \t"))
        if match["macro"] is not None:
            if self._vue:
                return self._interpolated(match[0][2:-2])
            return _macro_text(match["name"].strip(), match["arguments"])
        if match["url"] is not None:
            return match[0]
        if match["space"] is not None:
            return " "
        if match["raw"] is not None:
            return ""
        if match["tag"] is not None:
            return self._tag(match)
        if match["admonition"] is not None:
            words = _box_title(match["box"], match["label"])
            return f"**{words}**" if words else ""
        if match["alert"] is not None:
            if match["alarm"].lower() not in _ALERTS:
                return match[0]
            return f"{match['quote']}**{match['headline'].strip() or match['alarm'].capitalize()}**"
        if match["toc"] is not None or match["mustache"] is not None:
            return self._vue_text(match)
        if match["callout"] is not None:
            label = match["callout_label"]
            words = match["callout_kind"].capitalize() if label is None else label
            return f"**{words}**\n"[: len(words) + 4] if words else ""
        if not self._mdx:
            return match[0]
        return match["words"] or ""

    def _vue_text(self, match: re.Match[str]) -> str:
        if not self._vue:
            return "" if self._mdx and match["toc"] is None else match[0]
        return "" if match["toc"] is not None else self._interpolated(match["expression"])

    def _interpolated(self, expression: str) -> str:
        """Return what VitePress shows of an expression: a value of the front matter, as far as it is known."""
        named = _FRONT_MATTER.fullmatch(expression)
        return text_field(self.values, named[1]) if named is not None else ""

    def _shortcode(self, call: str) -> str:
        call = call.strip()
        name, _, rest = call.partition(" ")
        if name.startswith("/") or not name:
            return ""
        if name in ("link", "post_url"):  # of Jekyll: in the place of an address
            return rest.strip()
        named: dict[str, str] = {key: a or b or c or d for key, a, b, c, d in _CALL_NAMED.findall(rest)}
        positional: list[str] = [a or b or c for a, b, c in _CALL_PLAIN.findall(rest)]
        if name in _INCLUDING and self._shows(named.get("file") or named.get("path") or next(iter(positional), "")):
            return ""
        if name in ("ref", "relref"):
            return named.get("path") or (positional[0] if positional else "")
        for key in _SHORTCODE_WORDS:
            if named.get(key):
                return named[key].replace("-", " ") if key == "term_id" else named[key]
        if name == "heading" and positional:
            return positional[0]
        return ""

    def _shows(self, target: str) -> bool:
        if not target or not self.includes(target):
            return False
        self.used.append(target)
        return True

    def _tag(self, match: re.Match[str]) -> str:
        tag = match["tag"]
        component = is_component(tag)
        if not component and tag and tag.lower() not in _HTML and "-" not in tag:
            return match[0]  # a placeholder such as <name>
        if tag in self.imported and not match["close"]:
            self.used.append(tag)
            return ""
        attributes = match["attributes"]
        if match["close"] or not attributes.strip():
            return self._gap(match, component, tag)
        values = ((key.lower(), unescape(a or b or c)) for key, a, b, c in ATTRIBUTE.findall(attributes))
        named = {key: value for key, value in values if "{{" not in value}
        for key in ("id", "name") if tag == "a" else ("id",):
            if named.get(key):
                self.anchors.add(named[key])
        words = shown_words(tag, named)
        if component and tag.endswith("Tabs"):
            words += [name for listed in _TABS.findall(attributes) for name in _TAB.findall(listed)]
        if component:
            for key in _ANCHORED:
                if named.get(key):
                    anchor = slug(named[key].strip(), self._slugs)
                    self.anchors.update((anchor, f"param-{anchor}") if tag.endswith("Field") else (anchor,))
        if not words or tag == "a":
            return self._gap(match, component, tag)
        if self._at_line_start(match):
            return f"**{words[0]}**" + "".join(f"\n{word}" for word in words[1:]) + "\n"
        words = [value for value in words if value != named.get("tip")]  # seen on hover only
        return " ".join(words) + " " if words else ""

    def _gap(self, match: re.Match[str], component: bool, tag: str) -> str:
        if component:
            return ""
        return " " if tag.lower() in _APART and not self._at_line_start(match) else ""

    def _at_line_start(self, match: re.Match[str]) -> bool:
        before = self._text[max(0, match.start() - MAX_INDENT) : match.start()]
        line = before[before.rfind("\n") + 1 :]
        return not line.strip() and len(line) < MAX_INDENT


def shown_words(tag: str, attributes: Mapping[str, str]) -> list[str]:
    """Return the attributes of a tag that its reader sees, such as the title of a card."""
    component = is_component(tag)
    return [
        value.strip()
        for key, value in attributes.items()
        if key in _WORDS and value.strip() and (component or key not in _ONLY_COMPONENTS)
    ]


def _box_title(name: str, label: str) -> str:
    """Return the title that a container ``:::`` shows: its own, else its kind."""
    attributes = _BOX_ATTRIBUTES.search(label)
    if attributes is not None:
        label = label[: attributes.start()]
        given = next((a or b for key, a, b, _ in ATTRIBUTE.findall(attributes[1]) if key in ("title", "label")), "")
        label = label.strip() or given
    label = label.strip()
    label = label[1:-1] if label.startswith("[") and label.endswith("]") else label
    return "" if name in _UNNAMED_BOXES else label or name.capitalize()


def _without_expression(match: re.Match[str]) -> str:
    """Return the lines that an expression takes, empty; a short one is read with the rest."""
    whole = match[0]
    return "\n" * whole.count("\n") if whole[0] == "{" and ("\n" in whole or "{" in whole[1:]) else whole


def _no_file(_target: str) -> bool:
    return False


def _macro_text(name: str, arguments: str | None) -> str:
    if arguments is None or not _CROSS_REFERENCE.search(name):
        return ""
    values = _ARGUMENT.findall(arguments)
    shown = next((value for value in values[1:2] if value), values[0] if values else arguments.strip())
    return shown.rpartition("/")[2] if "/" in shown and not values[1:2] else shown


_CODE_SPAN = re.compile(r"(``[^\n]{1,1000}?``|`[^`\n]{1,2000}`)")


def plain(text: str) -> str:
    """Inline Markdown to words."""
    return " ".join(unmarked(text).split())[:MAX_HEADING]


def unmarked(text: str) -> str:
    """Inline Markdown without its marks, every space kept: anchors are made of them, too."""
    if "`" not in text:
        return _unmarked(text)
    return "".join(
        part.strip("`").replace("\\|", "|") if index % 2 else _unmarked(part)
        for index, part in enumerate(_CODE_SPAN.split(text))
    )


def _unmarked(text: str) -> str:
    if "](" in text:
        text = _IMAGE_OR_LINK.sub(r"\1", text)
    if "<" in text:
        text = re.sub(r"(?<!\\)</?[A-Za-z][^<>]{0,300}>", "", text)
    if "*" in text or "_" in text or "~" in text:
        text = _EMPHASIS.sub(r"\2", text)
    text = _ESCAPE.sub(r"\1", text.replace("`", ""))
    return unescape(text) if "&" in text else text


_BARE_URL = re.compile(r"(?:https?://|mailto:)[^\s)>\]]{0,2000}")


def words_of(text: str) -> str:
    """A section's text as search reads it: without the addresses that its links and images go to."""
    if "](" in text:
        text = _IMAGE_OR_LINK.sub(r"\1", text)
    if "://" in text:
        text = _BARE_URL.sub(" ", text)
    return text
