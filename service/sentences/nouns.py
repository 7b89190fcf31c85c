"""Nouns of a sentence that the passages should have, if they speak of the same."""

import re
from collections.abc import Iterator

from service.sentences.words import ENGLISH, STOP

_NOUN = re.compile(
    r"\b(?:an?|the|of|in|on|from|into|as|with|by|through|called|via|per|your|its|each|every|any)[ ]"
    r"(?P<noun>[a-z]{4,30})\b"
)
_NO_NOUN = re.compile(r".*(?:ly|ing|ed|wise|wards?|self|selves|ever|n't|less|able|ible|ful)")
_PLAIN = frozenset(
    """
    above access account action addition address advance advantage afresh afterwards amount answer anything anyway app
    application approach apps area argument arguments author aware background bare basis beginning behavior behaviour
    best better between beyond bigger blank block body bottom bracket brackets browser bug built button call caller
    cannot case cases cause certain chain chance character characters choice class clause client code colon column
    columns comma command commands comment common community company computer condition conditions config configuration
    content contents context control conversion copy correct count course current custom data database date
    declaration deeper default definition dependencies dependency description detail details developer developers
    device difference different digit digits directory disk docs documentation documents dot double down drawback
    early easier editor effect effort either element elements else elsewhere empty end entries entry environment error
    errors event everyone exact exactly example exception execution existing expression extra fact false family
    feature features few field fields figure final fine five flag flags folder folders following form format former
    four free fresh front full function functions further future general given goal good great group groups guide half
    hand handful handler header help high hood host idea image impact important information inner input inside instance
    instruction integer interface interval issue item items just key keys keyword kind kinds known language large last
    later latter layer least left legal length letter letters level levels library life like limit list little load
    local location log logic long longer loop lower machine main manner manual many mark meaning meantime mechanism
    member memory message method methods middle mind minimum mistake mode model module moment more most name named
    names native need needed neither network newest newly node none normal note notice object objects odd official old
    older once one ones only operation opposite order ordinary origin original other others outer output outside
    overview owner package pair parameter parameters parent part parts past path paths pattern people performance
    period permission person phase piece place places plain plan platform plus point points position possible power
    practice present previous price problem process product production program programs project prompt proper property
    public purpose quality question quick quote quotes range rate rather raw reader readers real reason recent record
    reference regular release remainder repository request resource response rest result results return right risk
    role root round row rows rule rules run runtime same sample script second section sections sense separate sequence
    series service session setting settings setup several shape shell short shown side sign similar simple single site
    sites situation six size slash slow small snippet something source sources space special specific speed standard
    start state statement status stay stays step steps still string strings structure style sub such suffix summary
    support syntax system table taken task tasks team template term test tests text third thread time times title
    today together token tool tools top total true turn turns type types unique unit update usage usual value values
    variable variables various version versions very view visitor visitors warning website well whatever whole wide
    width window word words work world written wrong year zero
    """.split()  # noqa: SIM905  (a list would be a line for each)
)
"""Words that anyone may put in who says the same in other words."""


_REASON = re.compile(r"\b(?:because|since|so that|in order to|due to)\b([^.;:]{0,300})")
_WORD = re.compile(r"[a-z]{3,30}", re.IGNORECASE)
LEAST_REASON = 3
"""Words with a meaning that a reason has, from which they are counted."""


def reasons_in(words: str) -> Iterator[list[str]]:
    """Yield the words of each reason that a sentence gives."""
    for match in _REASON.finditer(words):
        reason = [word for word in _WORD.findall(match[1]) if word.lower() not in STOP]
        if len(reason) >= LEAST_REASON:
            yield reason


def nouns_in(words: str) -> Iterator[str]:
    """Yield the words in places where nouns stand, that say something of their own."""
    for match in _NOUN.finditer(words):
        word = match["noun"]
        if word not in ENGLISH and word not in _PLAIN and not _NO_NOUN.fullmatch(word):
            yield word
