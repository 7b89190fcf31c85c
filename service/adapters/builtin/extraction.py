"""The answer of the embedded model: what is quoted of the passages, or that they do not say it."""

from service.adapters.builtin.choosing import choose
from service.adapters.builtin.pieces import taken_apart
from service.adapters.builtin.quoting import rendered
from service.adapters.builtin.replies import replies_in
from service.adapters.builtin.verdict import is_answered
from service.adapters.builtin.wanted import wanted
from service.adapters.builtin.weighing import weigh
from service.markup.languages.detection import language_of
from service.ports.model import Grounding


def extract(grounding: Grounding) -> str:
    """Return the answer as Markdown with ``[n]`` citations, or the marker ``[0]`` with the sentence for no answer."""
    site_language = language_of(" ".join(passage.text[:600] for passage in grounding.passages))
    language = grounding.language or language_of(grounding.question, expected=(site_language,))
    replies = replies_in(language)
    is_another = bool(grounding.passages) and language != site_language
    asked = wanted(grounding, language, is_another=is_another)
    if not asked.stems:
        return replies.greeting
    in_another = f" {replies.documentation_in(site_language)}" if is_another else ""
    apart = taken_apart(grounding.passages, language)
    weigh(apart, asked)
    quotes = choose(apart, asked)
    if not quotes or not is_answered(asked, apart):
        return f"[0] {replies.nothing}{in_another}"
    untranslated = {quote.apart.passage.other_language for quote in quotes} - {"", language}
    if untranslated and not in_another:
        in_another = f" {replies.documentation_in(min(untranslated))}"
    return "\n\n".join([f"{replies.opening}{in_another}", *(rendered(quote) for quote in quotes)])
