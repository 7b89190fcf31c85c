"""The one row, option or definition of a section that a question names: shown alone, with its own lines.

A section with a long table is found by one of its rows, and no reader wants the other ninety-nine.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from service.ports.search_index import Section
from service.retrieval.readers.entries import Entry
from service.retrieval.search.questions.question import Terms
from service.retrieval.search.words import Words

LEAST_MEANT, LEAST_OF_A_NAME = 0.5, 0.25
"""The part of the question, by rarity, that an entry's term must be to be shown alone; and a term of several parts,
such as ``max_retries``, which is hardly meant by chance.
"""


def entry_named(entries: Sequence[Entry], section: Section, terms: Terms, words: Words) -> Entry | None:
    """Return the entry that a question names; None where it is about the section."""
    if not entries:
        return None
    known = terms.weights.keys()
    named = [(entry, own) for entry in entries if (own := set(words.name_terms(entry.term))) and known >= own]
    if not named:
        return None
    whole = sum(weight * words.rarity(term) for term, weight in terms.weights.items()) or 1.0
    above = {form for text in (section.title, *section.heading_path) for form in words.terms(text)}
    best: tuple[float, Entry | None] = (0.0, None)
    for entry, own in named:
        if own <= above:
            continue
        part = sum(terms.weights[term] * words.rarity(term) for term in own) / whole
        is_name = len(own) > 1 and " " not in entry.term
        if part > best[0] and part >= (LEAST_OF_A_NAME if is_name else LEAST_MEANT):
            best = (part, entry)
    return best[1]


def narrowed(section: Section, entry: Entry) -> Section:
    """Return the section with nothing but one entry; a row comes with the header of its table."""
    lines = section.text.split("\n")
    text = lines[entry.head : entry.head + 2] if entry.head >= 0 else []
    return replace(
        section,
        heading=entry.term,
        heading_path=(*section.heading_path, entry.term),
        text="\n".join([*text, *lines[entry.first : entry.after]]).strip("\n"),
        start_line=entry.start_line or section.start_line,
        end_line=entry.end_line or section.end_line,
    )
