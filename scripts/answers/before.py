"""The context of an answer as it was before passages were chosen by a budget of tokens: what the new one is held
against.

One section of each of the best pages, five passages, each cut at 6,000 characters; a follow-up is searched with the
words of the question before it when it has few of its own.
"""

import re

from service.markup.languages.stop_words import question_words
from service.ports.search_index import SearchIndex

PASSAGES = 5
MAX_PASSAGE_CHARACTERS = 6_000
MAX_QUERY_CHARACTERS = 600
MAX_EARLIER_WORDS = 12
FEW_WORDS = 3

_WORD = re.compile(r"[^\W_](?:[\w.:/@#+-]*[\w+#])?")
_LEANS = re.compile(
    r"\A\s*(?:and|or|but|also|what about|how about|what if|why|then|same|und|oder|et|ou|y|e|o)\b"
    r"|\b(?:it|its|that|those|them|they|one|ones|this|these|there|instead|above|second|first|last)\b",
    re.IGNORECASE,
)


async def passages_before(index: SearchIndex, domain: str, question: str, earlier: list[str]) -> list[str]:
    """Return the passages as they stood in the prompt."""
    found = await index.search(domain, _query(question, earlier), limit=PASSAGES)
    return [
        f"{one.title} {' '.join(one.heading_path)} {one.url}\n{one.text[:MAX_PASSAGE_CHARACTERS]}"
        for one in found.sections
    ]


def _query(question: str, earlier: list[str]) -> str:
    query = " ".join(question.split())[:MAX_QUERY_CHARACTERS]
    words = _content_words(query)
    if not earlier or not (len(words) <= 1 or (len(words) <= FEW_WORDS and _LEANS.search(query))):
        return query
    known, added = {word.casefold() for word in words}, list[str]()
    for one in reversed(earlier[-3:]):
        added += [word for word in _content_words(one) if word.casefold() not in known]
        known.update(word.casefold() for word in added)
        if len(added) > FEW_WORDS:
            break
    return " ".join([query, *added[:MAX_EARLIER_WORDS]])


def _content_words(text: str) -> list[str]:
    words = [word for word in _WORD.findall(text) if word.casefold() not in question_words()]
    return list({word.casefold(): word for word in words}.values())
