"""The instructions that the builtin editor understands, found in what people write."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from msgspec import Struct

from service.markup.markdown import Markdown

EVERY_PAGE = "*"
"""In place of a path."""
MAX_QUOTED = 60
"""Limit for an added text that a title quotes, in characters."""
MAX_JOINED = 100
"""Limit for a title of several changes, in characters."""

Place = str
"""Where in a page: ``end``, ``top``, ``under`` or ``before`` a heading."""


class Replace(Struct, frozen=True):
    old: str
    new: str
    path: str = ""


class Add(Struct, frozen=True):
    text: str
    path: str
    heading: str = ""
    place: Place = "end"


class Create(Struct, frozen=True):
    path: str
    title: str = ""
    text: str = ""


class Rename(Struct, frozen=True):
    path: str
    to: str
    is_move: bool = False
    """Asked for as a move: into a folder, where there is one of this name."""


class Remove(Struct, frozen=True):
    path: str


class SetTitle(Struct, frozen=True):
    path: str
    title: str


class FixLinks(Struct, frozen=True):
    path: str = ""


Instruction = Replace | Add | Create | Rename | Remove | SetTitle | FixLinks

_TEXT = "\x00\\d+\x00"
_PATH = "(?:\x00\\d+\x00|[^\\s,;\x00]+|[^,;\x00]{1,200}?\\.(?:mdx?|markdown|rst|adoc|txt)(?=\\s|$))"
"""A path without quotes may have blanks where it ends in the suffix of a page."""
_PAGE_SUFFIX = r"/|\.(?:mdx?|markdown|rst|adoc|txt)$"
_PAGE_PATH = "[^\\s,;\x00]*(?:/[^\\s,;\x00]+|\\.(?:mdx?|markdown|rst|adoc|txt))"
_EVERY = r"(?:all|every|each|the\s+whole|the\s+entire|the)(?:\s+of)?(?:\s+the)?"
_PAGES = rf"{_EVERY}\s+(?:pages?|files?|docs|documentation|site)(?:\s+of\s+the\s+(?:docs|documentation|site))?"
_ANYWHERE = rf"(?:\s+(?:everywhere|throughout(?:\s+{_PAGES})?|in\s+{_PAGES}))?"
_KIND = r"(?:the\s+)?(?:page\s+|file\s+|folder\s+|directory\s+)?"
_HEADING = rf"(?:the\s+)?(?:heading\s+|section\s+|headline\s+)?(?P<heading>{_TEXT})(?:\s+(?:heading|section))?"
_PLACE = rf"(?:\s+(?P<place>under|below|after|before|above)\s+{_HEADING}|\s+at\s+the\s+(?P<top>top|start|beginning))"
_SECTION = rf"(?P<place>under|below|after|before|above|to|in|into)\s+{_HEADING}"
_ADD = (
    r"(?:add|append|insert|put|prepend)(?:\s+(?:the|a|an))?(?:\s+(?:following|new))?"
    r"(?:\s+(?:text|line|sentence|paragraph|note|block|section))?"
)
_INTO = r"\s+(?:to|in|into|on|at|of)\s+(?:the\s+)?(?:(?P<edge>end|bottom|top|start|beginning)\s+of\s+)?"
_WHICH = rf"(?:(?P<every>{_PAGES})|{_KIND}(?P<path>{_PATH}))"
_TITLE = rf"(?:,?\s+(?:with\s+(?:the\s+|a\s+)?title|titled|entitled)(?:\s+|\s*:\s*)(?P<title>{_TEXT}))?"
_BODY = (
    rf"(?:,?\s+(?:and\s+|with\s+|and\s+with\s+|containing\s+)?(?:the\s+)?(?:text|content|contents|body)(?:\s+|\s*:\s*)"
    rf"(?P<text>{_TEXT})|\s*:\s*(?P<block>{_TEXT}))?"
)

_RULES: tuple[tuple[type[Instruction], re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rule, re.IGNORECASE))
    for kind, rule in (
        (
            Replace,
            r"(?:replace|change|substitute|update|correct)\s+(?:(?:all|every|each)\s+)?(?:(?:the\s+)?(?:occurrences?|"
            rf"mentions?)\s+of\s+)?(?:the\s+)?(?:(?:text|word|words|phrase|term|name)\s+)?(?P<old>{_TEXT})"
            rf"\s+(?:with|by|to|into|for)\s+(?P<new>{_TEXT}){_ANYWHERE}(?:\s+(?:in|on|under|within|of)\s+{_WHICH})?"
            rf"{_ANYWHERE}",
        ),
        (Add, rf"{_ADD}\s+(?P<text>{_TEXT}){_INTO}{_WHICH}{_PLACE}?"),
        (Add, rf"{_ADD}\s+(?P<text>{_TEXT})\s+at\s+the\s+(?P<top>top|start|beginning)\s+of\s+{_WHICH}"),
        (Add, rf"{_ADD}\s+(?P<text>{_TEXT})\s+{_SECTION}\s+(?:in|on|of|to)\s+{_WHICH}"),
        (Add, rf"{_ADD}{_INTO}{_WHICH}{_PLACE}?\s*:\s*(?P<text>{_TEXT})"),
        (Add, rf"{_ADD}\s+{_SECTION}\s+(?:in|on|of|to)\s+{_WHICH}\s*:\s*(?P<text>{_TEXT})"),
        (
            Create,
            rf"(?:create|add|make|write)\s+(?:a\s+|the\s+)?(?:new\s+)?page\s+(?:at\s+|called\s+|named\s+)?(?P<path>{_PATH})"
            rf"{_TITLE}{_BODY}",
        ),
        (
            Rename,
            rf"(?:rename|(?P<move>move))\s+{_KIND}(?P<path>{_PATH})\s+(?:to|into|as)\s+{_KIND}(?P<to>{_PATH})"
            r"(?:,?\s+(?:and\s+)?(?:then\s+)?(?:fix|update|repair|correct)\s+(?:all\s+)?(?:the\s+)?(?:broken\s+)?links"
            r"(?:\s+to\s+\w+(?:\s+page)?)?)?",
        ),
        (
            Remove,
            rf"(?:remove|delete)\s+(?:the\s+)?(?:(?:page|file)\s+(?P<path>{_PATH})|(?P<bare>{_PAGE_PATH}|\x00\d+\x00))"
            r"(?:,?\s+(?:and|with)\s+(?:(?:all|any|the|its|links?|references?|navigation|entry|and|to|it)\s*+){1,9})?",
        ),
        (
            SetTitle,
            rf"(?:set|change|update|make)\s+(?:the\s+)?title\s+(?:of|for|on|in)\s+{_KIND}(?P<path>{_PATH})"
            rf"(?:\s*:|\s+(?:to|as):?)\s+(?P<title>{_TEXT})",
        ),
        (SetTitle, rf"give\s+{_KIND}(?P<path>{_PATH})\s+the\s+(?:new\s+)?title\s+(?P<title>{_TEXT})"),
        (
            FixLinks,
            r"(?:fix|repair|correct|mend)\s+(?:(?:all|any|every)\s+)?(?:of\s+)?(?:the\s+)?(?:broken\s+|dead\s+)?links?"
            rf"(?:\s+and\s+anchors)?(?P<to_it>\s+to\s+(?:it|them|this page|that page))?{_ANYWHERE}"
            rf"(?:\s+(?:in|on|under|within)\s+{_WHICH})?",
        ),
    )
)
_QUOTES = (
    r'(?<!\\)"((?:[^"\\]++|\\.)*+)"|“([^“”]*)”|„([^„“”]*)[“”]|«([^«»]*)»|»([^«»]*)«|\u2039([^\u2039\u203a]*)\u203a|「([^「」]*)」'
    r"|\u2018((?:[^\u2018\u2019]|\u2019(?=\w))*)\u2019|``([^\n]+?)``|`([^`\n]+)`|(?<!\w)'((?:[^'\n]|'(?=\w)){0,500})'(?!\w)"
)
_QUOTED = re.compile(_QUOTES, re.DOTALL)
_VERBS = (
    r"(?=(?:replace|change|add|append|insert|create|rename|move|remove|delete|give|set\s+(?:the\s+)?title|"
    r"fix\s+(?:all\s+)?(?:the\s+)?(?:broken|dead))\b)"
)
_PARTS = re.compile(
    rf"\s*(?:\n|;|,?\s+and\s+then\s+|,\s*then\s+|,?\s+and\s+(?:also\s+)?{_VERBS}|,\s*{_VERBS}|[.!?](?=\s|$))\s*",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"(?:(?:please|kindly|then|and|also|first|next|finally|now),?\s+)*"
    r"(?:(?:can|could|would)\s+you\s+(?:please\s+)?)?",
    re.IGNORECASE,
)
_COURTESY_ALONE = re.compile(
    r"(?:please|kindly|hello|hi|hey|dear\s+\w+|thanks|thank\s+you|many\s+thanks|cheers)(?:\s+(?:in\s+advance|very\s+much|there|all))?",
    re.IGNORECASE,
)
_IN_FRONT = re.compile(rf"(?:in|on|to)\s+{_KIND}(?P<path>{_PATH})\s*[,:]\s*(?P<rest>\S.*)", re.IGNORECASE | re.DOTALL)

_FRONT_COMMA = re.compile(rf"((?:^|[\n;.] ?)(?:please )?(?:in|on) {_KIND}{_PATH}) ?, ?{_VERBS}", re.IGNORECASE)
"""One that does not part instructions: "in PATH, replace …"."""


def without_quotes(text: str) -> tuple[str, list[str]]:
    """Return the text with a mark in place of each quotation and each closed block of code, and their contents."""
    quotes: list[str] = []
    blocks = iter([*_fences(text), (len(text), len(text), "")])
    begin, end, block = next(blocks)
    kept, at = list[str](), 0
    quote = _QUOTED.search(text)
    while True:
        if quote is not None and quote.start() < at:
            quote = _QUOTED.search(text, at)
        if quote is not None and quote.start() < begin:
            found = next((part for part in quote.groups() if part is not None), "")
            quotes.append(found.replace('\\"', '"') if quote[0].startswith('"') else found)
            start, after = quote.span()
        elif begin < len(text):
            quotes.append(block)
            start, after = begin, end
        else:
            return "".join([*kept, text[at:]]), quotes
        kept += [text[at:start], f"\x00{len(quotes) - 1}\x00"]
        at = after
        while begin < at:
            begin, end, block = next(blocks)


def _fences(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where each block of code that is closed begins and ends, and what is in it."""
    page = Markdown(text)
    for block in page.blocks:
        if block.kind == "fence" and (block is not page.blocks[-1] or page.unclosed_fence is None):
            start, end = page.place_of(block)
            begin = text.index(block.mark, start)
            yield begin, end - text.endswith("\n", start, end), block.text.removesuffix("\n")


Quotes = Callable[[str | None], str]


def parse(text: str) -> tuple[list[Instruction], list[str]]:
    """Return the instructions of known forms, and the sentences that are not instructions."""
    text = text.replace("\x00", "").replace("\r\n", "\n")
    outside, quotes = without_quotes(text)
    # White space in single characters: the patterns below would take quadratic time over long runs of it.
    outside = "\n".join(filter(None, (" ".join(line.split()) for line in outside.split("\n"))))
    outside = re.sub(r":\n(?=\x00)", ": ", outside)  # a block after a colon belongs to the line above
    outside = re.sub(r"^(?:[-*+•]|\d{1,2}[.)]) ", "", outside, flags=re.MULTILINE)  # marks of a list

    outside = _FRONT_COMMA.sub(r"\1: ", outside)

    def quoted(mark: str | None) -> str:
        found = re.fullmatch("\x00(\\d+)\x00", mark or "")
        return quotes[int(found[1])] if found else (mark or "")

    known: list[Instruction] = []
    unknown: list[str] = []
    for part in _PARTS.split(outside):
        clause = _COURTESY.sub("", part.strip(), count=1).strip(" ,:")
        if not clause or _COURTESY_ALONE.fullmatch(clause):
            continue
        found = _instruction(clause, quoted)
        if found == "to_it" and known and isinstance(known[-1], Rename):
            continue  # a renaming does that anyway
        if found is None or isinstance(found, str):
            unknown.append(re.sub("\x00\\d+\x00", lambda mark: f'"{quoted(mark[0])}"', clause))
        else:
            known.append(found)
    return known, unknown


def _instruction(clause: str, quoted: Quotes, *, may_begin_with_place: bool = True) -> Instruction | str | None:
    """Return None for none; ``to_it`` for the links to what the instruction before was about."""
    for kind, rule in _RULES:
        match = rule.fullmatch(clause)
        if match is not None and (kind is not Replace or quoted(match["old"])):
            named = match.groupdict()
            if named.get("to_it"):
                return "to_it"
            return _made(kind, {name: quoted(value) for name, value in named.items()})
    front = _IN_FRONT.fullmatch(clause) if may_begin_with_place else None
    if front is None:
        return None
    for word in ("in", "to"):
        clause = f"{front['rest'].strip()} {word} {front['path']}"
        found = _instruction(clause, quoted, may_begin_with_place=False)  # twice for each place would be exponential
        if found is not None:
            return found
    return None


def _made(kind: type[Instruction], named: dict[str, str]) -> Instruction | None:
    path = EVERY_PAGE if named.get("every") else named.get("path", "")
    if kind is Replace:
        return Replace(named["old"], named["new"], "" if path == EVERY_PAGE else path)
    if kind is Add:
        return Add(named["text"], path, named.get("heading", "").lstrip("# "), _place(named)) if named["text"] else None
    if kind is Create:
        return Create(path, named["title"], named["text"] or named["block"])
    if kind is Rename:
        return Rename(path, named["to"], bool(named["move"]))
    if kind is Remove:
        return Remove(path or named["bare"]) if path or re.search(_PAGE_SUFFIX, named["bare"]) else None
    if kind is SetTitle:
        return SetTitle(path, named["title"]) if named["title"].strip() else None
    return FixLinks("" if path == EVERY_PAGE else path)


def _place(named: dict[str, str]) -> Place:
    if named.get("heading"):
        return "before" if named["place"].lower() in ("before", "above") else "under"
    is_top = named.get("top") or named.get("edge", "").lower() in ("top", "start", "beginning")
    return "top" if is_top else "end"


def title_of(instruction: Instruction) -> str:
    match instruction:
        case Replace(old=old, new=new, path=path):
            return f"Replace {short(old)} with {short(new)}{f' in {path}' if path else ''}"
        case Add(text=text, path=path, heading=heading, place=place):
            where = f" {place} {short(heading)}" if heading else ""
            what = short(text) if len(text) <= MAX_QUOTED and "\n" not in text.strip() else "text"
            return f"Add {what} to {'every page' if path == EVERY_PAGE else path}{where}"
        case Create(path=path):
            return f"Create the page {path}"
        case Rename(path=path, to=to):
            return f"Rename {path} to {to}"
        case Remove(path=path):
            return f"Remove {path}"
        case SetTitle(path=path, title=title):
            return f"Set the title of {path} to {short(title)}"
        case FixLinks(path=path):
            return f"Fix broken links{f' in {path}' if path else ''}"
        case _:
            assert_never(instruction)


def title_of_all(instructions: Sequence[Instruction]) -> str:
    """Return a title for what several instructions changed: ``Replace "a" with "b" and "c" with "d"``."""
    phrases: list[str] = []
    last = ""
    for title in dict.fromkeys(map(title_of, instructions)):
        verb, _, rest = title.partition(" ")
        phrases.append(title if not phrases else rest if verb == last else f"{verb.lower()} {rest}")
        last = verb
    if len(phrases) == 1:
        return phrases[0]
    joined = f"{', '.join(phrases[:-1])} and {phrases[-1]}"
    if len(joined) <= MAX_JOINED:
        return joined
    more = len(phrases) - 1
    return f"{phrases[0]} and {more} more {'change' if more == 1 else 'changes'}"


def short(text: str, width: int = 60) -> str:
    """On one line and in quotes."""
    line = " ".join(text.split())
    return f'"{line if len(line) <= width else line[: width - 1].rstrip() + "…"}"'
