"""The sides of a comparison: "Deployment vs StatefulSet" asks for two things, and each needs its own passages."""

import re

MAX_QUESTION = 300
MAX_SIDE_WORDS = 8
_BOUNDS = re.compile(r"[?!;,:()\n]|\.(?=\s|$)")
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:difference|differences|distinction|choose|choosing|decide|compare|comparison|trade-?offs?)\b.{0,30}?"
        r"\b(?:between|of) (?P<one>.{1,200}?) (?:and|or|vs\.?|versus) (?P<two>.{1,200})",
        r"\bcompar(?:e|ing|ison of) (?P<one>.{1,200}?) (?:and|to|with|against|vs\.?|versus) (?P<two>.{1,200})",
        r"(?P<one>.{1,200}?) (?:vs\.?|versus|compared (?:to|with)|as opposed to|instead of|rather than|differs? from"
        r"|different from|over) (?P<two>.{1,200})",
        r"\bunterschied(?:e)?\b.{0,20}?\bzwischen (?P<one>.{1,200}?) und (?P<two>.{1,200})",
        r"\bdifférences?\b.{0,20}?\bentre (?P<one>.{1,200}?) et (?P<two>.{1,200})",
        r"\bdiferencias?\b.{0,20}?\bentre (?P<one>.{1,200}?) y (?P<two>.{1,200})",
        r"\bdiferenças?\b.{0,20}?\bentre (?P<one>.{1,200}?) e (?P<two>.{1,200})",
        r"^(?!(?:how|what|where|when|why|who|can|could|does|is|are|will|has|have)\b)"
        r"(?P<one>\S{1,60}(?: \S{1,60}){0,2}?) or (?P<two>\S.{0,200})",
        r"\b(?:should i|do i|shall i|better|which)\b.{0,40}?(?P<one>\S{1,60}(?: \S{1,60}){0,3}?) or (?P<two>.{1,200})",
    )
)
_LEAD = re.compile(
    r"^(?:(?:what|which|when|why|how|is|are|the|a|an|should|would|do|does|i|we|you|to|use|using|one|choose|prefer"
    r"|can|it|better|between|difference|explain|ein|eine[mnrs]?|der|die|das|de[mns]|le|la|les|un|une|el|los|las|uma?|o|os)\s+)+",
    re.IGNORECASE,
)


def sides_of(question: str) -> tuple[str, ...]:
    """Return what a question compares, two texts; nothing when it compares nothing."""
    if len(question) > MAX_QUESTION:
        return ()
    for sentence in map(str.split, _BOUNDS.split(question)):
        words = " ".join(sentence)
        for pattern in _PATTERNS:
            found = pattern.search(words)
            if found is None:
                continue
            sides = tuple(_side(found[name], last=name == "one") for name in ("one", "two"))
            if all(sides) and sides[0].casefold() != sides[1].casefold():
                return sides
    return ()


def _side(text: str, *, last: bool) -> str:
    """Return the words of one side: those next to the word that compares."""
    words = _LEAD.sub("", f"{text.strip()} ").split()
    return " ".join(words[-MAX_SIDE_WORDS:] if last else words[:MAX_SIDE_WORDS])
