"""Why a section has its place in a result: ``docsmith search --explain``."""

from service.ports.search_index import Explanation
from service.retrieval.index.copies import Copies
from service.retrieval.search.ranking import (
    HEADINGS,
    LINKS,
    NEXT_PART,
    NEXT_SECTIONS,
    TITLE,
    Candidate,
    Ranking,
    text_points,
)
from service.retrieval.search.reader import Reader
from service.retrieval.search.words import Words


def explained(
    words: Words, copies: Copies, ranking: Ranking, candidate: Candidate, section: int, reader: Reader
) -> Explanation:
    """Return what gave a section of a candidate its place."""
    page, weights = candidate.page, ranking.terms.weights
    found = ranking.sections.get(page, ())
    further = NEXT_PART * sum(hit.score for hit in found[1 : 1 + NEXT_SECTIONS])
    heading = HEADINGS * words.section_score(section, "heading", weights)
    own = next((hit.score for hit in found if hit.id == section), 0.0)
    return Explanation(
        points=round(candidate.score, 3),
        title=round(TITLE * words.page_score(page, "title", weights), 3),
        text=round(text_points(words.page_score(page, "text", weights), found), 3),
        links=round(LINKS * words.page_score(page, "link", weights), 3),
        heading=round(heading, 3),
        body=round(max(0.0, own - heading), 3),
        further_sections=round(further, 3),
        pairs=round(ranking.pairs.get(page, 0.0), 3),
        place=round(ranking.places.get(page, 1.0), 3),
        word_rank=candidate.word_rank,
        meaning_rank=candidate.meaning_rank,
        language=copies.kind_of(page).text,
        site_language=copies.kind_of(page).place,
        reader_language=reader.language,
        copies=copies.count(page),
        words=tuple(weights),
        corrected=ranking.terms.corrected,
    )
