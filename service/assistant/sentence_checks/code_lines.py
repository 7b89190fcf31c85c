"""Lines of code held against the code of the passages.

A line that a passage has is right. Of any other, each token that has a meaning of its own must be in a passage; and
where the passages have the two tokens before it, or those on both sides, always with something else, it is a slip: a
wrong argument. Names that a reader chooses, or that the code itself defines, may be anything.
"""

import re
from collections.abc import Sequence

from service.assistant.sentence_checks.code import (
    COMMON,
    NAME_KEYS,
    Token,
    is_configuration,
    is_placeholder,
    names_given_in,
    tokens_in,
    without_placeholders,
)
from service.assistant.sentence_checks.numbers import numbers_in
from service.assistant.sentence_checks.passage_facts import MAX_FILLERS, keys_of
from service.assistant.sentence_checks.passages import Passages
from service.assistant.sentence_checks.words import WORD, stem

MAX_TOKENS = 400
FIRST = 2
"""The place of a line's first token, behind the marks of its beginning."""
_COMMAND = re.compile(r"(?:^|\s)--?[A-Za-z]|^[<>=]")
_LITERALS = frozenset(("true", "false", "none", "null", "nil", "undefined"))


class CodeJudge:
    def __init__(self, passages: Passages, said: Passages) -> None:
        self._passages, self._said = passages, said
        self._block = -1
        self._depth = 0
        """Open brackets in the block so far."""
        self._given: set[str] = set()
        """Names that the block defines."""

    def line(self, line: str, block: int, info: str) -> tuple[list[str], list[int]]:
        """Return what is missing of a line of a block, and the segments that have the rest."""
        if block != self._block:
            self._block, self._depth, self._given = block, 0, set()
        if not is_configuration(info):
            self._given |= names_given_in(line, depth=self._depth)
        opened = sum(line.count(mark) for mark in "([{") - sum(line.count(mark) for mark in ")]}")
        self._depth = max(0, self._depth + opened)
        exact = self._passages.place_of_line(line)
        return ([], [exact]) if exact is not None else self._judge(line, self._given)

    def span(self, code: str) -> tuple[list[str], list[int]]:
        """Return the same for code within a sentence."""
        exact = self._passages.place_of_line(code)
        return ([], [exact]) if exact is not None else self._judge(code, set())

    def unknown(self, lines: Sequence[str], info: str) -> list[str]:
        """Return the names and flags of a block, or of code within a sentence, that neither a passage nor the reader
        has, and that the code does not define. Values are no names, wherever they stand.
        """
        given: set[str] = set()
        depth = 0
        for line in lines:
            if not is_configuration(info):
                given |= names_given_in(line, depth=max(0, depth))
            depth += sum(line.count(mark) for mark in "([{") - sum(line.count(mark) for mark in ")]}")
        found: list[str] = []
        for line in lines:
            if self._passages.place_of_line(line) is None:
                found += self._unknown_of(line, given)
        return found

    def _unknown_of(self, line: str, given: set[str], *, is_inner: bool = False) -> list[str]:
        tokens = tokens_in(without_placeholders(line))[:MAX_TOKENS]
        found: list[str] = []
        for at, token in enumerate(tokens):
            if token.kind in ("mark", "number") or token.key in given or is_placeholder(token.key):
                continue
            if token.kind == "string" and not is_inner and " " in token.key and _COMMAND.search(token.key):
                found += self._unknown_of(token.text[1:-1], given, is_inner=True)
            elif (token.kind != "string" or _is_naming(tokens, at)) and not _is_chosen(tokens, at):
                is_known = self._passages.is_in_code(token.key) or self._places_of(token) != []
                if not is_known and not self._is_said(token):
                    found.append(token.text)
        return found

    def _judge(self, line: str, given: set[str], *, is_inner: bool = False) -> tuple[list[str], list[int]]:
        tokens = tokens_in(without_placeholders(line))[:MAX_TOKENS]
        keys = keys_of(tokens)
        count = sum(token.kind != "mark" for token in tokens)
        missing: list[str] = []
        places: list[int] = []
        for at, token in enumerate(tokens):
            if token.kind == "mark" or token.key in given or is_placeholder(token.key) or _is_chosen(tokens, at):
                continue
            if token.kind == "string" and " " in token.key and _COMMAND.search(token.key) and not is_inner:
                lost, inside = self._judge(token.text[1:-1], given, is_inner=True)
                missing += lost
                places += inside
                continue
            where = self._places_of(token)
            if where and count > 1 and not self._is_code(token, keys[at + 3]):
                where = []
                if keys[at + 3] == "=":
                    missing.append(token.text)  # that the reader used the word means nothing here
                    continue
            if (where is not None and not where and not self._is_said(token)) or self._is_slip(
                token, keys, at + 2, len(tokens)
            ):
                missing.append(token.text)
            elif where:
                places += where[:20]
        return missing, places

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
        if token.kind == "string":
            return self._places_of_string(key)
        if token.kind == "flag":
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
        if behind == "=":
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

    def _is_slip(self, token: Token, keys: Sequence[str], at: int, count: int) -> bool:
        """Return whether the passages have always something else here. ``at``: its place in ``keys``."""
        if count < 2:
            return False
        passages = self._passages
        before = passages.tokens_behind(keys[at - 2], keys[at - 1])
        both = passages.tokens_between(keys[at - 1], keys[at + 1])
        is_before = not before or keys[at] in before or len(before) > MAX_FILLERS
        is_between = not both or keys[at] in both or len(both) > MAX_FILLERS
        if token.kind == "number" or token.key in _LITERALS or (token.kind == "string" and not WORD.search(token.key)):
            return not is_before
        if at == FIRST + 1 and not is_between:
            return True  # what a command is to do
        return not is_before and not is_between


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
