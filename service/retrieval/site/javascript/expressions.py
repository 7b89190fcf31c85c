"""Expressions of JavaScript, read from tokens as values, for ``script``."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from service.retrieval.site.javascript.tokens import MAX_DEPTH, Template, Text, Token, Tokens, is_word, names_in
from service.retrieval.site.javascript.values import UNKNOWN, Unknown, joined, path_of

Names = Mapping[str, object]
NO_NAMES: Names = {}
Parameter = str | tuple[str, ...]
"""The name of a parameter; names where it is an object that is taken apart."""
Span = tuple[int, int]
"""The places of a function's first token and of the one behind its last."""
MAX_TYPES = 40
"""Tokens of the types in a call."""
_IN_TYPES = frozenset((".", ",", "[", "]", "|", "&", "<"))


class Scope(Protocol):
    """A file, as its expressions see it."""

    tokens: Tokens

    def value(self, name: str, depth: int) -> object:
        """Return the value of a name of the file."""

    def declared(self, name: str) -> int:
        """Return the place of the value that a name is declared with; -1 where there is none."""

    def required(self, target: str, depth: int) -> object:
        """Return what another file exports."""

    def count(self, steps: int) -> None:
        """Raise TooMuch when all steps together are too many."""


class Function(Unknown):
    """A function; its value is what it returns when it is called."""

    def __init__(
        self, scope: Scope, tokens: Tokens, parameters: Sequence[Parameter], span: Span, names: Names,
        *, is_block: bool,
    ) -> None:  # fmt: skip
        self._scope, self._tokens, self._parameters, self._span = scope, tokens, parameters, span
        self._names, self._is_block = names, is_block

    def call(self, given: Sequence[object], depth: int) -> object:
        """Return what the function returns, at its last ``return``, for these arguments."""
        if depth > MAX_DEPTH:
            return UNKNOWN
        names: dict[str, object] = {**self._names}
        for number, parameter in enumerate(self._parameters):
            value = given[number] if number < len(given) else UNKNOWN
            if isinstance(parameter, str):
                names[parameter] = value
            else:
                names |= {name: value.get(name, UNKNOWN) if isinstance(value, dict) else UNKNOWN for name in parameter}
        begin = self._last_return() if self._is_block else self._span[0]
        return (
            UNKNOWN
            if begin is None
            else Expression(self._scope, self._tokens, begin, names, self._span).value(depth + 1)
        )

    def _last_return(self) -> int | None:
        first, after = self._span
        self._scope.count(after - first)
        found: int | None = None
        level = 0
        for at in range(first, after):
            piece = self._tokens[at]
            if isinstance(piece, Text):
                continue
            level += 1 if piece in ("{", "(", "[") else -1 if piece in ("}", ")", "]") else 0
            if piece == "return" and level == 1:
                found = at + 1
        return found


def _called(value: object, given: Sequence[object], depth: int) -> object:
    """Return what a call gives; of an unknown function the first list or object, or what its first function returns."""
    if isinstance(value, Function):
        return value.call(given, depth)
    if not isinstance(value, Unknown):
        return value
    found = next((each for each in given if isinstance(each, list | dict | Function)), UNKNOWN)
    return found.call((), depth) if isinstance(found, Function) else found


class Expression:
    """Reads one expression, from a place among tokens."""

    def __init__(self, scope: Scope, tokens: Tokens, at: int, names: Names = NO_NAMES, span: Span = (0, 0)) -> None:
        self._scope, self._tokens, self._at = scope, tokens, at
        self._names, self._span = names, span

    def value(self, depth: int) -> object:
        """Return the value; the place is then behind it. Of ``a || b`` and ``c ? a : b`` what is known first is it."""
        value = self._one(depth)
        while True:
            match self._peek():
                case "||" | "??":
                    self._at += 1
                    other = self._one(depth)
                    value = other if isinstance(value, Unknown) or value in ("", None, False) else value
                case "&&":
                    self._at += 1
                    other = self._one(depth)
                    value = other if isinstance(value, Unknown) or value else value
                case "+":
                    self._at += 1
                    other = self._one(depth)
                    value = joined([value, other])
                case "?":
                    self._at += 1
                    one = self.value(depth + 1)
                    if self._peek() != ":":
                        return UNKNOWN
                    self._at += 1
                    other = self.value(depth + 1)
                    chosen, beside = (other, one) if value in (False, None, "") else (one, other)
                    return beside if isinstance(chosen, Unknown) else chosen
                case "as" | "satisfies":
                    self._at += 1
                    self._skip_type()
                case "===" | "!==" | "==" | "!=" | "-" | "*" | "/" | "%" | "<" | ">" | "in" | "instanceof":
                    self._at += 1
                    self._one(depth)
                    value = UNKNOWN
                case _:
                    return value

    def _one(self, depth: int) -> object:
        self._scope.count(1)
        piece = self._next()
        if depth > MAX_DEPTH:
            return UNKNOWN
        value: object = UNKNOWN
        if isinstance(piece, Text):
            value = str(piece)
        elif isinstance(piece, Template):
            value = self._text(piece, depth)
        elif isinstance(piece, float):
            value = int(piece) if piece.is_integer() else piece
        elif piece == "[":
            value = self._list(depth)
        elif piece == "{":
            value = self._object(depth)
        elif piece == "(":
            value = self._in_parentheses(depth)
        elif piece in ("await", "new"):
            return self._one(depth + 1)
        elif piece in ("!", "-", "+", "typeof", "void"):
            self._one(depth + 1)
            return UNKNOWN
        elif piece in ("function", "async"):
            value = self._function()
        elif piece in ("true", "false"):
            value = piece == "true"
        elif piece in ("null", "undefined"):
            value = None
        elif piece == "import":
            value = UNKNOWN
        elif piece == "require" and self._peek() == "(":
            value = self._required(depth)
        elif piece in ("resolve", "join") and self._peek() == "(":
            value = path_of(self._arguments(depth))
        elif is_word([piece], 0):
            is_function = self._peek() == "=>"  # of one argument
            value = self._arrow([str(piece)]) if is_function else self._value_of(str(piece), depth)
        return self._used(value, depth)

    def _used(self, value: object, depth: int) -> object:
        """Return what becomes of a value by the members and calls that follow it."""
        while True:
            match self._peek():
                case "." | "?.":
                    self._at += 1
                    name = self._next()
                    if self._peek() == "(":  # a method, of which a list remains what it is: ``filter``, ``concat``
                        value = self._of_method(value, name, self._arguments(depth), depth)
                    else:
                        value = value.get(str(name), UNKNOWN) if isinstance(value, dict) else UNKNOWN
                case "[":
                    self._at += 1
                    key = self.value(depth + 1)
                    self._skip_to("]")
                    value = value.get(key, UNKNOWN) if isinstance(value, dict) and isinstance(key, str) else UNKNOWN
                case "(":
                    value = _called(value, self._arguments(depth), depth)
                case "<" if (after := self._behind_types()) is not None:
                    self._at = after
                case "!":
                    self._at += 1
                case _:
                    return value

    def _of_method(self, value: object, name: Token, given: Sequence[object], depth: int) -> object:
        """Return what a method gives: a list remains what it is by most of those that configurations use."""
        if isinstance(value, dict):
            return _called(value.get(str(name), UNKNOWN), given, depth)
        if not isinstance(value, list):
            return path_of(given) if name in ("resolve", "join") else UNKNOWN
        if name == "map" and given and isinstance(given[0], Function):
            return [given[0].call([each], depth) for each in value]
        return value if name in ("filter", "concat", "flat") else UNKNOWN

    def _behind_types(self) -> int | None:
        """Return the place of the bracket that opens a call, behind the types of it; None where this is no call."""
        for at in range(self._at + 1, min(self._at + MAX_TYPES, len(self._tokens) - 1)):
            piece = self._tokens[at]
            if piece == ">" and self._tokens[at + 1] == "(":
                return at + 1
            if not (isinstance(piece, Text) or is_word([piece], 0) or piece in _IN_TYPES):
                return None
        return None

    def _value_of(self, name: str, depth: int) -> object:
        """Return the value of a name: of an argument, of what the function declares, of the file."""
        if name in self._names:
            return self._names[name]
        declared = self._scope.declared(name)
        if self._scope.tokens is self._tokens and self._span[0] <= declared < self._span[1]:
            names = {**self._names, name: UNKNOWN}  # it may be made from itself
            return Expression(self._scope, self._tokens, declared, names, self._span).value(depth + 1)
        return self._scope.value(name, depth)

    def _text(self, template: Template, depth: int) -> object:
        texts: list[object] = []
        for part in template.parts:
            if isinstance(part, str):
                texts.append(part)
            else:
                texts.append(Expression(self._scope, part, 0, self._names).value(depth + 1))
        return joined(texts)

    def _list(self, depth: int) -> object:
        values: list[object] = []
        while self._peek() not in ("]", ""):
            if self._peek() == ",":
                self._at += 1
                continue
            spread = self._peek() == "..."
            self._at += spread
            value = self.value(depth + 1)
            if not spread:
                values.append(value)
            elif isinstance(value, list):
                values += value
            self._skip_to(",", "]", keep=True)
        self._at += 1
        self._check_size(len(values))
        return values

    def _object(self, depth: int) -> object:
        values: dict[str, object] = {}
        while self._peek() not in ("}", ""):
            piece = self._next()
            if piece == ",":
                continue
            if piece == "...":
                value = self.value(depth + 1)
                values |= value if isinstance(value, dict) else {}
            elif piece == "[":
                key = self.value(depth + 1)
                self._skip_to("]")
                self._property(values, key, depth)
            elif piece in ("async", "get") and self._peek() not in (":", ",", "}", "("):
                continue
            else:
                self._property(values, f"{piece:g}" if isinstance(piece, float) else str(piece), depth)
            self._skip_to(",", "}", keep=True)
        self._at += 1
        self._check_size(len(values))
        return values

    def _property(self, values: dict[str, object], key: object, depth: int) -> None:
        value: object = UNKNOWN
        if self._peek() == ":":
            self._at += 1
            value = self.value(depth + 1)
        elif self._peek() == "(":
            value = self._method()
        elif isinstance(key, str):
            value = self._value_of(key, depth + 1)
        if isinstance(key, str):
            values[key] = value

    def _in_parentheses(self, depth: int) -> object:
        """Return the value in parentheses, or the function that they begin."""
        opened, after = self._at - 1, self._tokens.closed(self._at - 1)
        if self._is_arrow(after):
            self._at = after
            return self._arrow(self._parameters(opened, after))
        value = self.value(depth + 1)
        self._at = after
        return value

    def _is_arrow(self, after: int) -> bool:
        """Return whether ``=>`` follows, a type of what is returned left out."""
        follows = self._tokens[after] if after < len(self._tokens) else ""
        if follows != ":":
            return follows == "=>"
        stop = next((at for at in range(after, min(after + 40, len(self._tokens))) if self._tokens[at] == "=>"), 0)
        return bool(stop) and not any(piece in (",", ";", "?") for piece in self._tokens[after:stop])

    def _parameters(self, opened: int, after: int) -> list[Parameter]:
        """Return the names of each parameter: several for an object that is taken apart."""
        found: list[Parameter] = []
        at = opened + 1
        while at < after - 1:
            piece = self._tokens[at]
            if piece == "{":
                found.append(tuple(own for own, _ in names_in(self._tokens, at)[0]))
            elif is_word([piece], 0):
                found.append(str(piece))
            while at < after - 1 and self._tokens[at] != ",":
                at = self._tokens.closed(at) if self._tokens[at] in ("(", "[", "{") else at + 1
            at += 1
        return found

    def _arrow(self, parameters: Sequence[Parameter]) -> object:
        while self._peek() not in ("=>", ""):
            self._at += 1
        self._at += 1
        if self._peek() == "{":
            return self._body(parameters)
        begin = self._at
        self._skip_to(",", keep=True)
        return Function(self._scope, self._tokens, parameters, (begin, self._at), self._names, is_block=False)

    def _function(self) -> object:
        while self._peek() not in ("(", "{", "") and self._peek() != "=>":
            self._at += 1
        return self._method()

    def _method(self) -> object:
        parameters: Sequence[Parameter] = ()
        if self._peek() == "(":
            opened, self._at = self._at, self._tokens.closed(self._at)
            parameters = self._parameters(opened, self._at)
        if self._peek() == ":":
            while self._peek() not in ("{", "=>", ""):
                self._at += 1
        if self._peek() == "=>":
            return self._arrow(parameters)
        return self._body(parameters) if self._peek() == "{" else UNKNOWN

    def _body(self, parameters: Sequence[Parameter]) -> object:
        begin, self._at = self._at, self._tokens.closed(self._at)
        return Function(self._scope, self._tokens, parameters, (begin, self._at), self._names, is_block=True)

    def _arguments(self, depth: int) -> Sequence[object]:
        after = self._tokens.closed(self._at)
        self._at += 1
        given: list[object] = []
        while self._at < after - 1:
            given.append(self.value(depth + 1))
            self._skip_to(",", ")")
            if len(given) > 20:
                break
        self._at = after
        return given

    def _required(self, depth: int) -> object:
        given = self._arguments(depth)
        target = given[0] if given else None
        return self._scope.required(target, depth) if isinstance(target, str) else UNKNOWN

    def _skip_type(self) -> None:
        """Step over a type: words, dots, brackets and what is in them."""
        while True:
            piece = self._peek()
            if piece in ("[", "{", "("):
                self._at = self._tokens.closed(self._at)
            elif piece == "<":
                while self._peek() not in (">", ""):
                    self._at += 1
                self._at += 1
            elif piece in (".", "|", "&") or (is_word([piece], 0) and piece not in ("as", "satisfies")):
                self._at += 1
            else:
                return

    def _skip_to(self, *marks: str, keep: bool = False) -> None:
        """Step behind the next of these marks outside brackets; before it, if it is to be kept."""
        while self._at < len(self._tokens):
            piece = self._tokens[self._at]
            if not isinstance(piece, Text) and piece in marks:
                self._at += not keep
                return
            if not isinstance(piece, Text) and piece in ("(", "[", "{"):
                self._at = self._tokens.closed(self._at)
                continue
            if not isinstance(piece, Text) and piece in (")", "]", "}", ";"):
                return
            self._at += 1

    def _check_size(self, size: int) -> None:
        self._scope.count(size)

    def _peek(self) -> Token:
        piece = self._tokens[self._at] if self._at < len(self._tokens) else ""
        return piece if not isinstance(piece, Text) else f"'{piece}"

    def _next(self) -> Token:
        piece = self._tokens[self._at] if self._at < len(self._tokens) else ""
        self._at += 1
        return piece
