"""The title and the summary with which each task's play hands its work in: ``words.md``."""

import re
from collections.abc import Mapping
from pathlib import Path


def _words() -> Mapping[str, tuple[str, str]]:
    text = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    found = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        name, title, summary = (" ".join(part.split()) for part in section.split("\n\n", 2))
        found[name] = title, summary
    return found


WORDS = _words()
