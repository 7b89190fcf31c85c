"""From a question to the words that are searched for. No model, no waiting.

- A follow-up such as "and on Windows?" means little by itself: words of the question before it are added.
- "this page" is the page that the reader has open: its title is added, and the page itself becomes a passage.
- What the reader selected adds its rarest-looking words.
"""

import re
from collections.abc import Iterable, Sequence

from service.domain.threads.threads import ContextItem

MAX_QUERY_CHARACTERS = 600
MAX_EARLIER_WORDS = 12
MAX_CONTEXT_WORDS = 12
FEW_WORDS = 3
"""Words with a meaning of their own; a question with no more of them may refer to the one before."""

_WORD = re.compile(r"[^\W_](?:[\w.:/@#+-]*[\w+#])?")
_STOP_WORD_LIST = """
a about also am an and any are as at be been but by can could did do does doing for from get had has have how i if
in into is it its just like make me my need not of on one or our please should so some tell than that the their
them then there these they this those to too use used using want was we were what when where which who why will
with would you your
der das ein eine und oder ist wie was kann ich mit für auf von zu den dem im wo warum
le la les un une des et ou est que qui pour dans avec sur je du de puis pourquoi
el los las una y o es cómo como qué para en con por del se puedo
"""
_STOP_WORDS = frozenset(_STOP_WORD_LIST.split())
_GREETING_LIST = """
hello hi hey thanks thank thx ok okay bye goodbye great cheers hallo danke moin tschüss bonjour salut merci hola gracias
adiós olá obrigado obrigada ciao grazie hoi bedankt こんにちは ありがとう 你好 谢谢
"""
_GREETINGS = frozenset(_GREETING_LIST.split())
_BESIDE_GREETINGS = frozenset(["you", "there", "very", "much", "so", "a", "lot", "all", "vielen", "dir", "beaucoup"])
_LEANS = re.compile(
    r"\A\s*(?:and|or|but|also|what about|how about|what if|why|then|same|und|oder|et|ou|y|e|o)\b"
    r"|\b(?:it|its|that|those|them|they|one|ones|this|these|there|instead|above|second|first|last)\b",
    re.IGNORECASE,
)
_THIS_PAGE = re.compile(
    r"\b(?:this|the current|on this)\s+(?:page|article|document|doc|guide|tutorial|section|topic)\b"
    r"|\b(?:diese[rsmn]?|der aktuellen)\s+(?:seite|artikel|anleitung)\b"
    r"|\bcette\s+page\b|\bcet\s+article\b|\best[ae]\s+(?:página|artículo|artigo)\b|\bquesta\s+pagina\b"
    r"|\bdeze\s+pagina\b|このページ|这个?页面|本页|이 페이지",
    re.IGNORECASE,
)


def is_small_talk(text: str) -> bool:
    """A greeting or thanks: it asks nothing."""
    words = [word.casefold() for word in _WORD.findall(text[:200])]
    greets = any(word in _GREETINGS for word in words)
    return greets and len(text) <= 200 and all(word in _GREETINGS or word in _BESIDE_GREETINGS for word in words)


def is_about_this_page(question: str) -> bool:
    return _THIS_PAGE.search(question) is not None


def query_for(
    question: str,
    *,
    earlier_questions: Sequence[str] = (),
    context: Sequence[ContextItem] = (),
    page_title: str = "",
) -> str:
    """Return the words to search for; ``page_title`` is that of the page that the question calls "this page"."""
    asked = _THIS_PAGE.sub(" ", question) if page_title else question
    query = " ".join(asked.split())[:MAX_QUERY_CHARACTERS]
    words = _content_words(query)
    added: list[str] = []
    if page_title:
        added.append(page_title)
    elif earlier_questions and _leans_on_earlier(query, words):
        added += _earlier_words(earlier_questions, words)
    for item in context:
        added += _selected_words(item, {*map(str.casefold, words), *map(str.casefold, added)})
    return " ".join([query, *added[: MAX_EARLIER_WORDS + MAX_CONTEXT_WORDS]]).strip()


def _leans_on_earlier(query: str, words: Sequence[str]) -> bool:
    return len(words) <= 1 or (len(words) <= FEW_WORDS and _LEANS.search(query) is not None)


def _earlier_words(questions: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return words of the question before; while they are few, also of those before it."""
    known = {word.casefold() for word in words}
    found: list[str] = []
    for question in reversed(questions[-3:]):
        found += [word for word in _content_words(question[:MAX_QUERY_CHARACTERS]) if word.casefold() not in known]
        known.update(word.casefold() for word in found)
        if len(found) > FEW_WORDS:
            break
    return found[:MAX_EARLIER_WORDS]


def _selected_words(item: ContextItem, known: set[str]) -> list[str]:
    """Longest first within a selection: in code and prose alike those are the names of things."""
    words = [word for word in _content_words(item.value[:4_000]) if len(word) > 3 and word.casefold() not in known]
    few = set(sorted(words, key=len, reverse=True)[:MAX_CONTEXT_WORDS])
    return [word for word in words if word in few]


def _content_words(text: str) -> list[str]:
    return list(_unique(word for word in _WORD.findall(text) if word.casefold() not in _STOP_WORDS))


def _unique(words: Iterable[str]) -> Iterable[str]:
    return {word.casefold(): word for word in words}.values()
