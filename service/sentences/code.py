"""Code taken apart: the names, flags, values and the order in which they stand."""

import re
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

_TOKEN = re.compile(
    r"(?P<comment>(?:(?<=\s)|^)(?:#(?!!)|//)\s.{0,5000}|/\*.{0,5000}?(?:\*/|$)|<!--.{0,5000}?(?:-->|$))"
    r"|(?P<string>[fbru]{0,2}\"(?:[^\"\\\n]|\\.){0,300}\"|[fbru]{0,2}'(?:[^'\\\n]|\\.){0,300}'|`[^`\n]{0,300}`)"
    r"|(?P<flag>(?<![\w-])--?[A-Za-z][\w-]{0,80})"
    r"|(?P<name>[^\W\d][\w$]{0,80}(?:-[^\W_][\w]{0,40}){0,8})"
    r"|(?P<number>\d[\w.]{0,40}%?)"
    r"|(?P<mark>[^\s\w])"
)
_PLACEHOLDER = re.compile(
    r"(?:my|your|our|the|some|a|an)[-_].*|.*(?:your|example|placeholder|changeme|xxx|foobar).*|(?:YOUR|MY)[A-Z_]*"
    r"|(?-i:my[A-Z]\w*)|your[A-Z]\w*|foo|bar|baz|qux|acme|test|demo|hello|world|user|username|alice|bob|value|key|\.\.\.|…",
    re.IGNORECASE,
)
_ANGLED = re.compile(
    r"<(?:[a-z][\w. -]{0,60}|[A-Z][A-Z0-9_. -]{0,60})>|\{\{[^{}\n]{1,60}\}\}|\{[\w.-]{1,60}\}"
    r"|\$\{?[A-Z_][A-Z0-9_]{0,60}\}?|\[[A-Z_ -]{3,40}\]"
)
NAME_KEYS = frozenset(
    """
    name id title description label user username password email host hostname url uri path file filename image
    namespace message text comment author version tag token secret key value summary content domain region bucket
    database db table account project app cwd dir directory folder placeholder slug
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
COMMON = frozenset(
    """
    if else elif elseif fi then end do done for foreach while in of not and or is as with from import export default
    const let var def function fn func return class interface type extends implements new this self super async await
    try catch except finally raise throw throws print println console log true false none null undefined nil yes no on
    off int str string bool boolean float list dict tuple set array object number any void public private static final
    pass break continue lambda yield switch case match struct enum package module require echo cd ls cat mkdir touch
    rm cp mv sudo export source bash sh zsh shell python python3 node cmd html head body div span p a ul li h1 h2 h3
    len range map filter main args kwargs props state item items data result res req response request err error e i
    j k v x y n f s env index name id key value todo example https http www com org
    """.split()  # noqa: SIM905
)
"""Words of programming languages and shells, and names that anyone gives."""
METHODS = frozenset(
    """
    join split append push pop map filter reduce forEach foreach get keys values items strip trim format replace lower
    upper toLowerCase toUpperCase tolowercase touppercase includes startsWith startswith endswith toString tostring then
    stringify parse slice concat sort length read write close
    """.split()  # noqa: SIM905
)
"""Methods that texts and lists have in every language."""
OPENING, CLOSING = frozenset("([{"), frozenset(")]}")
_LOCAL = (
    re.compile(r"\b(?:const|let|var|def|class|function|fn|func|type|interface|for|as|catch|except|struct|enum)\s+([A-Za-z_$][\w$]*)"),
    re.compile(r"^\s*([A-Za-z_$][\w$]*)\s*(?::[^=\n]{1,60})?=(?![=>])"),
    re.compile(r"^\s*+(?:(?:const|let|var)\b\s*+)?[\[({]\s*+([\w$,:][\w$,\s:]{0,199})[\])}]\s*+=(?!=)"),
    re.compile(r"(?:\b(?:def|function|fn)\s*+\w*+\s*+|=\s*+(?:async\s*+)?)\(([\w$,\s:=.*\[\]|]{0,200})\)\s*+(?:=>|:|\{|->)"),
    re.compile(r"(?<![\w$])([A-Za-z_$][\w$]*+)\s*+=>"),
)  # fmt: skip
_CONFIGURATION = ("toml", "ini", "conf", "cfg", "env", "yaml", "yml", "json", "jsonc", "json5", "properties", "hcl")
_LITERAL = re.compile(r"=\s*(?:[\"'].{0,200}[\"']|[\d.]+|true|false|True|False|None|null)\s*+(?:[;,]\s*+)?$")


class Token(Struct, frozen=True):
    kind: str
    """``string``, ``flag``, ``name``, ``number`` or ``mark``."""
    text: str
    line: int = 0
    """Its line in the block, from 0."""

    @property
    def key(self) -> str:
        return self.text.strip("\"'`").casefold() if self.kind == "string" else self.text.casefold()


def tokens_in(line: str) -> list[Token]:
    """Return the tokens of a line of code, without its comment."""
    found: list[Token] = []
    for match in _TOKEN.finditer(line):
        kind = match.lastgroup or "mark"
        if kind != "comment":
            found.append(Token(kind, match[0]))
    return found


def statements_in(lines: Iterable[str]) -> list[list[Token]]:
    """Return the tokens of a block by statements: within brackets a line's end means nothing. Commas before a closing
    bracket and semicolons at a line's end are left out, so that code is the same however it is spread over lines.
    """
    found: list[list[Token]] = []
    statement: list[Token] = []
    depth = 0
    for number, line in enumerate(lines):
        for token in tokens_in(line):
            if token.text in CLOSING:
                depth = max(0, depth - 1)
                if statement and statement[-1].text == ",":
                    statement.pop()
            elif token.text in OPENING:
                depth += 1
            statement.append(replace(token, line=number))
        if statement and statement[-1].text == ";":
            statement.pop()
        if statement and not depth:
            found.append(statement)
            statement = []
    return [*found, statement] if statement else found


def is_placeholder(text: str) -> bool:
    """Return whether it stands for something that the reader puts there."""
    return _PLACEHOLDER.fullmatch(text) is not None or _ANGLED.search(text) is not None


def without_placeholders(line: str) -> str:
    return _ANGLED.sub(" … ", line)


def is_configuration(info: str) -> bool:
    return info.split(" ", 1)[0].split(":", 1)[0].strip("{}.") in _CONFIGURATION


def names_given_in(line: str, *, depth: int) -> set[str]:
    """Return the names that a line of a program defines itself. ``depth``: open brackets before it."""
    names: set[str] = set()
    for at, pattern in enumerate(_LOCAL):
        if at == 1 and (depth > 0 or (_LITERAL.search(line) and re.match(r"\s*[A-Z][A-Z0-9_]*\s*=", line))):
            continue  # an argument by its name, or a setting
        for match in pattern.finditer(line[:1000]):
            names.update(word.casefold() for word in re.findall(r"[A-Za-z_$][\w$]*", match[1]))
    return names
