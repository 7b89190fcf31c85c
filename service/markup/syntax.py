"""Expressions for what is neither Markdown nor prose: tags, and the comments, shortcodes and modules of pages.

They are atomic, or short, where they could backtrack.
"""

import re

ATTRIBUTES = (
    r"""(?>(?:\s+|[^\s"'{}<>/=]+|=|/(?!>)|"[^"]*"|'[^']*'|\{(?>(?:[^{}]+|\{(?>(?:[^{}]+|\{[^{}]*\})*)\})*)\})*)"""
)
TAG = re.compile(rf"<(?P<close>/?)(?P<tag>[A-Za-z][\w.:-]*+|(?=>))(?P<attributes>{ATTRIBUTES})/?>")
ATTRIBUTE = re.compile(
    r"""(?<![\w:-])(?P<name>[\w:-]++)\s*+=\s*+"""
    r"""(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|\{\s*["'`](?P<braced>[^"'`{}]*)["'`]\s*\})"""
)
SHORTCODE = re.compile(r"\{\{[<%](?P<attributes>(?>[^\n{}]{0,1000}))\}\}|\{%(?P<liquid>(?>[^%\n]{0,500}))%\}")
COMMENTS = {"<!--": "-->", "{/*": "*/}", "{{< comment >}}": "{{< /comment >}}"}
"""The beginnings of comments and their ends: of HTML, MDX and Hugo."""
ESM = re.compile(
    r"(?:import\s+(?:[\w*{][^'\"\n]{0,500}\sfrom\s+)?['\"]|import\s+(?:\w+\s*,\s*)?\{[^}'\"\n]{0,500}$"
    r"|export\s+(?:const|let|var|default|function|async|class|\{|\*))"
)
"""The ``import`` and ``export`` of MDX, at the margin."""


def is_component(tag: str) -> bool:
    """Return whether the name of a tag is none of HTML's."""
    return tag[:1].isupper() or "." in tag
