"""Names in a question that no page has: of a flag, an option, a function, a code, a product.

A thing may be called by another word; a name is what it is. So names are looked for as they are written, and no other
word of the site stands for one.
"""

import re
from collections.abc import Callable

from tantivy import Query

from service.domain.texts.unicode_forms import normalized
from service.retrieval.search.analysis.terms import joined_names, words_in
from service.retrieval.search.words import Words

MAX_LOOKED_THROUGH = 2_000
"""Characters of a question."""
MAX_NAMES = 12
_CODE = re.compile(
    r"`(?P<span>[^`\n]{1,120})`"
    r"|\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (?P<path>/[\w./{}:-]{1,119}[\w}])"
    r"|(?<![\w-])(?P<flag>--[A-Za-z][\w-]{1,60})"
    r"|(?<![\w.@/-])(?P<dotted>[A-Za-z_]\w{0,60}(?:(?:\.|::|->)[A-Za-z_]\w{0,60}){1,5}(?:-\w{1,30}){0,4})(?:\(\))?"
    r"|(?<![\w.@/-])(?P<word>[A-Za-z_]\w{1,60})(?P<call>\([^()\s]{0,40}\))?(?![\w@/.-]*[@/])"
    r"|(?<![\w-])(?P<code>[A-Z]{1,6}-?\d{2,8}|[a-z]{2,6}\d{4,8})(?![\w-])"
)
_NAME = re.compile(r"\w[^\W_]*+_\w++|[a-z0-9]++[A-Z]\w*+|[A-Z][a-z]++[A-Z]\w*+|[A-Z]{1,6}-?\d{2,8}|[a-z]{2,6}\d{4,8}")
"""A word that is written as names in code are."""
_SEPARATOR = re.compile(r"\.|::|->|[\s/=:,;()\[\]{}\"']+")
_CAPITAL = re.compile(r"(?<=[\w,)`'\"] )(?P<name>[A-Z]\w{2,40}(?: [A-Z]\w{2,40}){0,3})(?!\w|[.:/@-]\w)")
_CODE_WORD = re.compile(r"(?<![\w-])[A-Z]{1,6}-\d{2,8}(?![\w-])")


def parts_of_names(query: str) -> frozenset[str]:
    """Return the words, in lower case, that names in code consist of: none of them is a slip in spelling."""
    return frozenset(word.casefold() for name in _code_names(query) for word in words_in(name))


def unknown_names(query: str, words: Words, is_known: Callable[[str], bool], only: Query | None) -> tuple[str, ...]:
    """Return the names of a question that no page has, as they are written. ``is_known``: whether a term is on a page
    that the reader may see, which are those of ``only``.
    """
    return tuple(name for name in _code_names(query)[:MAX_NAMES] if _is_unknown(name, words, is_known, only))


def capital_words(query: str) -> dict[str, str]:
    """Return the words, in lower case, that are written with a capital inside of a sentence, as products are, each with
    the whole name: of "the Silver Shelf" both words have "Silver Shelf".
    """
    names = [match["name"] for match in _CAPITAL.finditer(query[:MAX_LOOKED_THROUGH])]
    return {word.casefold(): name for name in names for word in name.split()}


def _code_names(query: str) -> list[str]:
    text = normalized("NFKC", query[:MAX_LOOKED_THROUGH])
    found: dict[str, None] = {}
    for match in _CODE_WORD.finditer(text):
        found[match[0]] = None
    for match in _CODE.finditer(text):
        name = match["span"] or match["path"] or match["flag"] or match["dotted"] or match["code"]
        if name is None and (match["call"] or _NAME.fullmatch(match["word"])):
            name = match["word"]
        if name:
            found[name.strip()] = None
    return list(found)


def _is_unknown(name: str, words: Words, is_known: Callable[[str], bool], only: Query | None) -> bool:
    """Return whether a name is nowhere, and neither are all of its parts."""
    if _in_a_row(name, words, is_known, only):
        return False
    return any(not _in_a_row(part, words, is_known, only) for part in _SEPARATOR.split(name) if part.strip("-"))


def _in_a_row(name: str, words: Words, is_known: Callable[[str], bool], only: Query | None) -> bool:
    """Return whether a page has the name: as one word, or its words one behind the other."""
    if any(is_known(term) for joined in joined_names(name.strip("-")) if (term := words.stem(joined))):
        return True
    typed = words_in(name)
    terms = [term for word in typed if (term := words.stem(word))]
    if not terms or not all(map(is_known, terms)):
        return not terms
    return len(terms) == 1 or bool(words.with_run(terms, only, 1))
