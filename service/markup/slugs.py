"""Anchors of headings, as each site's generator makes them of a heading's text.

Tried against the generators themselves (tests/retrieval/test_slugs.py):

- github: github-slugger 2, of Docusaurus, Mintlify, and GitHub itself. Letters, their marks, decimal digits, ``-`` and
  ``_`` stay; every space becomes ``-``, so that two are two.
- hugo, hugo-ascii, blackfriday: Hugo's ``autoHeadingIDType`` (gohugo.io/configuration/markup); a heading of which
  nothing is left is ``heading``.
- python, python-unicode: Python-Markdown's ``toc``; pymdownx: pymdownx.slugs with ``case: lower``. Repeats end in
  ``_1``, and one that ends so already counts on.
- docutils: ``make_id``, of Sphinx; the second of its kind is ``id1``.
- vitepress: its ``slugify``; one that begins with a digit gets ``_`` before it.
- gitbook: words with their points, ``id-`` before a digit (as its sites show: "1. Wash" is ``id-1.-wash``).
- mdn: spaces become ``_``; letter case and most punctuation go.
"""

import re
import unicodedata
from typing import Literal

from service.domain.texts.unicode_forms import normalized

SlugStyle = Literal[
    "github", "hugo", "hugo-ascii", "blackfriday", "python", "python-unicode", "pymdownx", "docutils", "mdn",
    "vitepress", "gitbook",
]  # fmt: skip

_GITHUB_SIMPLE = re.compile(r"[^a-z0-9_\- ]")
_MDN_DROPPED = re.compile(r"[#\"$%&+,/:;=?@\[\\\]^`{|}~'()!*<>]")
_COUNTED = re.compile(r"(.*)_([0-9]+)", re.DOTALL)
_VITEPRESS_SPECIAL = re.compile(r"[\s~`!@#$%^&*()\-_+=\[\]{}|\\;:\"'\u201c\u201d\u2018\u2019<>,.?/]+")
_CIRCLED = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
"""Letters by their meaning, symbols by their category."""
_DIGRAPHS = str.maketrans({"ß": "sz", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ħ": "h", "\u0131": "i", "ł": "l",
                           "ŧ": "t", "ƀ": "b", "ƃ": "b", "ƈ": "c", "ƌ": "d", "ƒ": "f", "ƙ": "k", "ƚ": "l",
                           "ƞ": "n", "ƥ": "p", "ƫ": "t", "ƭ": "t", "ƴ": "y", "ƶ": "z", "ǥ": "g", "ȥ": "z",
                           "ȷ": "j", "ȡ": "d", "ȴ": "l", "ȵ": "n", "ȶ": "t", "ȸ": "db", "ȹ": "qp"})  # fmt: skip


def slug(text: str, style: SlugStyle = "github") -> str:
    """The anchor of a heading's text, before repeats are numbered."""
    match style:
        case "github":
            lowered = text.lower()
            kept = _GITHUB_SIMPLE.sub("", lowered) if lowered.isascii() else "".join(filter(_is_word, lowered))
            return kept.replace(" ", "-")
        case "hugo" | "hugo-ascii":
            return _hugo(text.strip(), ascii_only=style == "hugo-ascii")
        case "blackfriday":
            kept = "".join(c if unicodedata.category(c)[0] in "LN" else " " for c in text)
            return "-".join("".join(map(_lower, kept)).split())
        case "python" | "python-unicode":
            if style == "python":
                text = normalized("NFKD", text).encode("ascii", "ignore").decode()
            return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())
        case "pymdownx":
            return re.sub(r"[^\w\- ]", "", normalized("NFC", text).strip().lower()).replace(" ", "-")
        case "docutils":
            ascii_text = normalized("NFKD", text.lower().translate(_DIGRAPHS)).encode("ascii", "ignore")
            return re.sub(r"^[-0-9]+|-+$", "", re.sub(r"[^a-z0-9]+", "-", " ".join(ascii_text.decode().split())))
        case "vitepress":
            bare = re.sub(r"[\u0300-\u036f\0-\x1f]", "", normalized("NFKD", text))
            return re.sub(r"^(?=\d)", "_", _VITEPRESS_SPECIAL.sub("-", bare).strip("-"), flags=re.ASCII).lower()
        case "gitbook":
            bare = re.sub(r"[\u0300-\u036f'\u2019]", "", normalized("NFKD", text)).lower().replace("&", " and ")
            joined = re.sub(r"-+", "-", re.sub(r"[^\w.]+", "-", bare)).strip("-")
            return re.sub(r"^(?=\d)", "id-", joined)
        case "mdn":
            return "_".join(_MDN_DROPPED.sub("", text).lower().split())


def _is_word(c: str) -> bool:
    category = unicodedata.category(c)
    if category[0] in "LM" or category in ("Nd", "Nl", "Pc") or c in "- ":
        return True
    return category == "So" and any(first <= ord(c) <= last for first, last in _CIRCLED)


def _lower(c: str) -> str:
    """Rune by rune, as Go does: ``İ`` is one ``i``."""
    return c.lower()[:1]


def _hugo(text: str, *, ascii_only: bool) -> str:
    if ascii_only:
        text = "".join(c for c in normalized("NFD", text) if unicodedata.category(c) != "Mn")
    kept = []
    for c in text:
        if ascii_only and not c.isascii():
            continue
        if c in "- ":
            kept.append("-")
        elif c == "_" or unicodedata.category(c) == "Nd" or unicodedata.category(c)[0] == "L":
            kept.append(_lower(c))
    return "".join(kept)


class Anchors:
    """The anchors of one page: gives each heading one of its own."""

    def __init__(self, style: SlugStyle) -> None:
        self._style = style
        self._used: dict[str, int] = {}
        self._free_from: dict[str, int] = {}
        """By anchor with a number: that all from it up to this one are used."""
        self._unnamed = 0

    def of(self, text: str) -> str:
        """Return the anchor of a heading with this text; empty when the generator gives it none."""
        base = slug(text, self._style)
        match self._style:
            case "python" | "python-unicode" | "pymdownx":
                return self._python(base)
            case "docutils":
                return self._docutils(base)
            case "hugo" | "hugo-ascii" | "blackfriday":
                return self._numbered(base or "heading", "-", 1)
            case "mdn":
                return self._numbered(base, "_", 2)
            case "github" | "vitepress" | "gitbook":
                return self._numbered(base, "-", 1)

    def take(self, anchor: str) -> None:
        """The page's author has given this one; generators that look out for it give it to no other."""
        if self._style != "github":  # Docusaurus asks its slugger only for those that it makes
            self._used.setdefault(anchor, 0)

    def _numbered(self, base: str, joint: str, first: int) -> str:
        anchor, count = base, self._used.get(base, 0)
        while anchor in self._used:
            count += 1
            anchor = f"{base}{joint}{count + first - 1}"
        self._used[base] = count
        self._used[anchor] = 0
        return anchor

    def _python(self, base: str) -> str:
        if base and base not in self._used:
            self._used[base] = 0
            return base
        counted = _COUNTED.fullmatch(base)
        stem, count = (counted[1], int(counted[2][:9])) if counted is not None else (base, 0)
        number = max(count, self._used.get(stem, 0)) + 1
        passed: list[str] = []
        while (anchor := f"{stem}_{number}") in self._used:
            passed.append(anchor)
            number = max(number + 1, self._free_from.get(anchor, 0))
        self._free_from.update(dict.fromkeys(passed, number))  # else a page of like headings takes quadratic time
        self._used.setdefault(stem, 0)
        if counted is None:
            self._used[stem] = number
        self._used[anchor] = 0
        return anchor

    def _docutils(self, base: str) -> str:
        if base and base not in self._used:
            self._used[base] = 0
            return base
        self._unnamed += 1
        while f"id{self._unnamed}" in self._used:
            self._unnamed += 1
        anchor = f"id{self._unnamed}"
        self._used[anchor] = 0
        return anchor
