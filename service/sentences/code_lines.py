"""Code held against the code of the passages.

A block, statement or line that a passage has is right, however it is spread over lines. Of any other, each token that
has a meaning of its own must be in a passage; and where the passages have the two tokens before it, or those on both
sides, always with something else, it is a slip: a wrong argument. Names that a reader chooses, or that the code itself
defines, may be anything.
"""

import re
from collections.abc import Sequence
from itertools import chain

from msgspec import Struct

from service.sentences.code import (
    CLOSING,
    COMMON,
    METHODS,
    NAME_KEYS,
    OPENING,
    Token,
    is_configuration,
    is_placeholder,
    names_given_in,
    statements_in,
    tokens_in,
    without_placeholders,
)
from service.sentences.numbers import numbers_in
from service.sentences.passage_facts import MAX_FILLERS, keys_of, stream_of
from service.sentences.passages import Passages
from service.sentences.words import LITERALS, WORD, stem

MAX_TOKENS = 400
FIRST = 2
"""The place of a line's first token, behind the marks of its beginning."""
_COMMAND = re.compile(r"(?:^|\s)--?[A-Za-z]|^[<>=]")
_FLAG = re.compile(r"--?[a-z][\w-]*")
_GAPS = frozenset("[<$…")
MAX_GROUND = 200
"""A token in more segments says nothing of where a sentence comes from."""


class Lost(Struct, frozen=True):
    """A token that no passage has there."""

    text: str
    line: int
    """Its line in the block, from 0."""


class CodeJudge:
    def __init__(self, passages: Passages, said: Passages) -> None:
        self._passages, self._said = passages, said
        self._block = -1
        self._given: set[str] = set()
        """Names that the block defines."""

    def block(self, lines: Sequence[str], block: int, info: str) -> tuple[list[Lost], list[int]]:
        """Return what is missing of a block, and segments that have the rest. Parts of one ``block`` share the names
        that they define.
        """
        if block != self._block:
            self._block, self._given = block, set()
        if not is_configuration(info):
            self._given |= _names_given(lines)
        statements = statements_in(without_placeholders(line) for line in lines)
        places = self._passages.places_of_stream(stream_of(chain.from_iterable(statements)))
        if places:
            return [], places
        known = [self._passages.places_of_line(line) for line in lines]
        places = [at for one in known for at in one]
        missing: list[Lost] = []
        for statement in statements:
            lost, where = self._judge(statement[:MAX_TOKENS], self._given)
            missing += [one for one in lost if not known[one.line]]
            places += where
        return missing, places

    def span(self, code: str) -> tuple[list[str], list[int]]:
        """Return the same for code within a sentence."""
        passages = self._passages
        exact = passages.places_of_line(code)
        tokens = tokens_in(without_placeholders(code))[:MAX_TOKENS]
        if not exact and len(tokens) > 1:
            exact = passages.places_of_stream(stream_of(tokens))
        exact += passages.of_token(code.casefold())
        lost, places = self._judge(tokens, set(), is_alone=True)
        return ([], [*exact, *places]) if exact else ([one.text for one in lost], places)

    def unknown(self, lines: Sequence[str], info: str) -> list[str]:
        """Return the names and flags of a block, or of code within a sentence, that neither a passage nor the reader
        has, and that the code does not define. Values are no names, wherever they stand.
        """
        given = set() if is_configuration(info) else _names_given(lines)
        found: list[str] = []
        for line in lines:
            if not self._passages.places_of_line(line):
                found += self._unknown_of(line, given)
        return found

    def _unknown_of(self, line: str, given: set[str], *, is_inner: bool = False) -> list[str]:
        tokens = tokens_in(without_placeholders(line))[:MAX_TOKENS]
        found: list[str] = []
        for at, token in enumerate(tokens):
            if token.kind in ("mark", "number") or token.key in given or is_placeholder(token.text.strip("\"'`")):
                continue
            if token.kind == "string" and not is_inner and " " in token.key and _COMMAND.search(token.key):
                found += self._unknown_of(token.text[1:-1], given, is_inner=True)
            elif (token.kind != "string" or _is_naming(tokens, at)) and not _is_chosen(tokens, at):
                is_known = self._passages.is_in_code(token.key) or self._places_of(token) != []
                if not is_known and not self._is_said(token):
                    found.append(token.text)
        return found

    def _judge(
        self, tokens: Sequence[Token], given: set[str], *, is_inner: bool = False, is_alone: bool = False
    ) -> tuple[list[Lost], list[int]]:
        """``is_inner``: a text within code. ``is_alone``: code within a sentence, which means the words that it has."""
        keys = keys_of(tokens)
        count = sum(token.kind != "mark" for token in tokens)
        missing: list[Lost] = []
        places: list[int] = []
        for at, token in enumerate(tokens):
            if (
                token.kind == "mark"
                or token.key in given
                or is_placeholder(token.text.strip("\"'`"))
                or _is_chosen(tokens, at)
            ):
                continue
            if token.kind == "string" and " " in token.key and _COMMAND.search(token.key) and not is_inner:
                lost, inside = self._judge(tokens_in(token.text[1:-1])[:MAX_TOKENS], given, is_inner=True)
                missing += [Lost(one.text, token.line) for one in lost]
                places += inside
                continue
            if (
                token.kind != "number"
                and keys[at + 1] == ":"
                and not _GAPS.isdisjoint(self._passages.tokens_behind(keys[at], keys[at + 1]))
            ):
                continue  # there the passages have a placeholder
            where = self._places_of(token)
            if where is None and is_alone and count == 1 and self._is_strange(token):
                where = []
            if where and count > 1 and not self._is_code(token, keys[at + 3]):
                where = []
                if keys[at + 3] in ("=", ":"):
                    missing.append(Lost(token.text, token.line))  # that the reader used the word means nothing here
                    continue
            if not where and at and tokens[at - 1].text == "." and token.key in METHODS:
                continue
            if (where is not None and not where and not self._is_said(token)) or self._is_slip(tokens, keys, at):
                missing.append(Lost(token.text, token.line))
            elif where and len(where) <= MAX_GROUND:
                places += where
        return missing, places

    def _is_strange(self, token: Token) -> bool:
        """Return whether a common word, which a sentence has as code, is nowhere."""
        key = token.key
        return token.kind == "name" and len(key) > 2 and key not in LITERALS and not self._passages.has_word(key)

    def _places_of(self, token: Token) -> Sequence[int] | None:
        """Return the segments that have a token; None when it need not be in any."""
        of_token = self._passages.of_token
        key = token.key
        if found := of_token(key):
            return found
        if token.kind == "number":
            if len(key) == 1 and key in "01":
                return None
            number = next(iter(numbers_in(key)), None)
            return [at for at, _ in self._passages.number_places(number)] if number is not None else None
        if key in COMMON or len(key) < 2:
            return None
        if token.kind == "string" and not _FLAG.fullmatch(key):
            return self._places_of_string(key)
        if token.kind in ("flag", "string"):
            return []
        for form in (key.removesuffix("s"), key + "s", key.lstrip("_"), key.replace("_", "-"), key.replace("-", "_")):
            if found := of_token(form):
                return found
        parts = [part for part in key.split("-") if part]
        if len(parts) > 1 and all(of_token(part) for part in parts):
            return of_token(parts[0])
        return []

    def _is_code(self, token: Token, behind: str) -> bool:
        """Return whether a plain word is a name in the passages' code, and not one of their prose alone."""
        key, passages = token.key, self._passages
        if token.kind != "name" or not key.isalpha() or not token.text.islower() or key in COMMON:
            return True
        if behind in ("=", ":"):
            return passages.takes_value(key)
        return any(passages.is_in_code(form) for form in (key, key + "s", key[:-1]))

    def _places_of_string(self, text: str) -> Sequence[int] | None:
        if " " in text or not text.strip() or "…" in text:
            return None
        words = [match[0] for match in WORD.finditer(text)]
        if not words:
            number = next(iter(numbers_in(text)), None)
            return None if number is None else [at for at, _ in self._passages.number_places(number)]
        if all(self._passages.has_word(word.casefold()) or is_placeholder(word) for word in words):
            return self._passages.of_stem(stem(words[0])) or None
        return []

    def _is_said(self, token: Token) -> bool:
        return bool(self._said.of_token(token.key)) or self._said.has_word(token.key)

    def _is_slip(self, tokens: Sequence[Token], keys: Sequence[str], place: int) -> bool:
        """Return whether the passages have always something else here, and never this beside what stands before it."""
        token, at = tokens[place], place + 2
        if len(tokens) < 2 or token.kind == "flag":  # flags stand in any order
            return False
        passages = self._passages
        before = passages.tokens_behind(keys[at - 2], keys[at - 1])
        both = passages.tokens_between(keys[at - 1], keys[at + 1])
        is_empty = keys[at - 1] in OPENING and not CLOSING.isdisjoint(before)
        is_before = is_empty or _may_stand(keys[at], before)
        is_between = _may_stand(keys[at], both)
        is_value = token.kind == "string" and keys[at - 1] in ("=", ":") and keys[at + 1] != ":"
        if token.kind == "number" or token.key in LITERALS or is_value:
            return not is_before and not self._is_beside(tokens, place)
        if at == FIRST + 1 and token.kind == "name" and tokens[0].kind == "name" and not is_between:
            return True  # what a command is to do
        return not is_before and not is_between

    def _is_beside(self, tokens: Sequence[Token], place: int) -> bool:
        """Return whether a passage has a value beside the name before it."""
        one = next((token for token in reversed(tokens[max(0, place - 4) : place]) if token.kind != "mark"), None)
        return one is not None and self._passages.are_together(one.key, tokens[place].key)


def _may_stand(key: str, fillers: Sequence[str]) -> bool:
    return not fillers or key in fillers or len(fillers) > MAX_FILLERS


def _names_given(lines: Sequence[str]) -> set[str]:
    given: set[str] = set()
    depth = 0
    for line in lines:
        given |= names_given_in(line, depth=max(0, depth))
        depth += sum(line.count(mark) for mark in "([{") - sum(line.count(mark) for mark in ")]}")
    return given


def _is_naming(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a string is a key, or names what is imported."""
    behind = tokens[at + 1].text if at + 1 < len(tokens) else ""
    before = tokens[at - 1].key if at else ""
    is_required = before == "(" and at > 1 and tokens[at - 2].key == "require"
    return behind == ":" or before in ("from", "import") or is_required


def _is_chosen(tokens: Sequence[Token], at: int) -> bool:
    """Return whether the reader chooses what stands here: the value of a ``name`` or the like."""
    for back in (1, 2, 3):
        if at < back:
            return False
        before = tokens[at - back]
        if before.kind == "mark" and before.text in ':=("{[':
            continue
        name = before.key.lstrip("-").replace("_", "-").rsplit("-", 1)[-1]
        return (back > 1 or before.kind == "flag") and name in NAME_KEYS
    return False
