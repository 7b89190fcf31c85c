"""Marks of models and of our own prompts, which a model may copy into a page.

| Mark | Where it is refused |
|---|---|
| a tag of our prompts, ``<data 1a2b3c4d>`` | everywhere: no author knows it |
| a control token, ``<|im_end|>``, a tag of a call, ``<tool_call>`` | outside of code: in code, a page may speak of it |

One that the file had before may stay.
"""

import re
from collections.abc import Iterable

from service.agent.guards.refused import Refused
from service.markup.fences import without_fences

_OWN = re.compile(r"</?data [0-9a-f]{8}>")
_TOKEN = re.compile(
    r"<\|/?[a-z][a-z0-9_]{1,40}\|>|<\uff5c[\w▁]{2,40}\uff5c>|</?(?:tool_calls?|function_calls?)>|\[/?TOOL_CALLS\]",
    re.IGNORECASE,
)


def marks_in(text: str) -> list[str]:
    """Return the marks of a text that may be refused, each as it stands there."""
    found = _OWN.findall(text)
    if _TOKEN.search(text) is not None:
        prose = without_fences(text)
        found += [one[0] for one in _TOKEN.finditer(prose) if not _is_in_span(prose, one.start())]
    return found


def check(marks: Iterable[str], before: str) -> None:
    """Raise Refused for the first of these marks that the text before did not have."""
    for mark in marks:
        if mark in before:
            continue
        if _OWN.fullmatch(mark):
            advice = "Leave it out: it shows where quoted text begins and ends."
            raise Refused(f"The text has {mark}, a tag of your prompt.", advice)
        advice = "Leave it out, or put it into code if the page is about it."
        raise Refused(f"The text has {mark}, a control token of a model.", advice)


def _is_in_span(text: str, at: int) -> bool:
    """Return whether a backtick is open before a place on its line."""
    return text.count("`", text.rfind("\n", 0, at) + 1, at) % 2 == 1
