"""The answer of the embedded model: what is quoted of the passages, how sure that is, or that they do not say it."""

from collections.abc import Sequence

from msgspec import Struct

from service.adapters.builtin.choosing import Quote, choose, nearest
from service.adapters.builtin.pieces import taken_apart
from service.adapters.builtin.quoting import rendered
from service.adapters.builtin.replies import Replies, replies_in
from service.adapters.builtin.verdict import Verdict, judge
from service.adapters.builtin.wanted import Wanted, wanted
from service.adapters.builtin.weighing import lead, weigh
from service.markup.languages.detection import language_of
from service.markup.languages.small_talk import small_talk
from service.ports.model import Grounding

MAX_NAMED = 4
"""Words that no page has, of those that are named."""


class Extracted(Struct, frozen=True):
    text: str
    """Markdown with ``[n]`` citations; it begins with the marker ``[0]`` where it is no answer."""
    is_unsure: bool = False

    @property
    def is_answer(self) -> bool:
        return not self.text.startswith("[0]")


def extract(grounding: Grounding) -> Extracted:
    """Return the answer to a question: to the question alone, unless only the conversation makes one of it."""
    alone = _extract(grounding)
    if alone.is_answer or grounding.in_conversation is None:
        return alone
    together = _extract(grounding.in_conversation)
    return together if together.is_answer else alone


def _extract(grounding: Grounding) -> Extracted:
    site_language = language_of(" ".join(passage.text[:600] for passage in grounding.passages))
    language = grounding.language or language_of(grounding.question, expected=(site_language,))
    if (talk := small_talk(grounding.question)) is not None:
        replies = replies_in(language if grounding.language or language in talk.languages else talk.languages[0])
        return Extracted(replies.thanks if talk.kind == "thanks" else replies.greeting)
    replies = replies_in(language)
    is_another = bool(grounding.passages) and language != site_language
    asked = wanted(grounding, language, is_another=is_another)
    if not asked.stems:
        return Extracted(replies.greeting)
    in_another = f" {replies.documentation_in(site_language)}" if is_another else ""
    apart = taken_apart(grounding.passages, language, asked.kindred)
    weigh(apart, asked)
    quotes = choose(apart, asked)
    verdict = judge(asked, quotes, lead(apart))
    missing = "" if is_another else _missing(asked, replies)
    if verdict is Verdict.NOT_DOCUMENTED:
        said = " ".join(filter(None, [replies.nothing, missing]))
        return Extracted(f"[0] {said}{in_another}")
    if verdict is Verdict.UNSURE:
        quotes = nearest(apart, asked)
    untranslated = {quote.apart.passage.other_language for quote in quotes} - {"", language}
    if untranslated and not in_another:
        in_another = f" {replies.documentation_in(min(untranslated))}"
    if verdict is Verdict.ANSWERED:
        return Extracted(_joined(f"{replies.opening}{in_another}", quotes))
    said = " ".join(filter(None, [missing, replies.unsure]))
    return Extracted(_joined(f"[0] {said}{in_another}", quotes), is_unsure=True)


def _missing(asked: Wanted, replies: Replies) -> str:
    named = asked.unknown[:MAX_NAMED]
    return replies.no_page_has(named) if named else ""


def _joined(opening: str, quotes: Sequence[Quote]) -> str:
    return "\n\n".join([opening, *(rendered(quote) for quote in quotes)])
