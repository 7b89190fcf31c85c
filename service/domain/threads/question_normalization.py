"""The form that two questions share when they ask the same in slightly different words."""

import re

from service.domain.texts.unicode_forms import normalized

MAX_WORDING_CHARACTERS = 200

_WORD = re.compile(r"[^\W_]+(?:[-.'’/][^\W_]+)*")  # noqa: RUF001
_EMPTY = frozenset(
    """
    a am an and any are be been being can could did do does doing for get have hello hey hi how i i'd i'm in is it its
    just know like me my of on or our please should so tell thank thanks that the there these this to us use using want
    was we were what what's when where which who why will with would you your
    ich der die das ein eine ist wie was kann man und zu mit für
    le la les un une est comment que je pour dans avec et de
    el los las una es cómo qué puedo para en con y del
    """.split()  # noqa: SIM905  (a list would be a line for each)
)


def wording(question: str) -> str:
    """Return the words that carry its meaning, in their order and without their endings: equal for "How do I install
    Kite?" and "install kite". Of a question that has only empty words, all of them.
    """
    words = _WORD.findall(normalized("NFKC", question).casefold())
    said = [word for word in words if word not in _EMPTY] or words
    return " ".join(dict.fromkeys(said))[:MAX_WORDING_CHARACTERS]
