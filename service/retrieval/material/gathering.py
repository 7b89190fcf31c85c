"""The material for a prompt, from the index of one site.

Pages are ranked as for a search, for each query. Of the best ones every section is scored against the question, and
``filling`` takes the best that the budget holds. A page of the budget's first half is rarely wrong, but the section
that answers is often not the best by words alone: so a section is judged with its page and its neighbours.
"""

from collections.abc import Mapping, Sequence, Set

from service.domain.search import Source
from service.ports.search_index import Material, MaterialRequest, Section
from service.retrieval.index.site_index import SiteIndex
from service.retrieval.material import boilerplate
from service.retrieval.material.asked import Asked
from service.retrieval.material.filling import MAX_SECTIONS_A_PAGE, Piece, fill
from service.retrieval.material.lacking import FAR, LEAST_SCORE, lacking_part, lacking_words
from service.retrieval.search.questions.named import signs_of, titles_of
from service.retrieval.search.ranking import Ranking
from service.retrieval.search.reader import Reader
from service.retrieval.search.words import PAGE_SHIFT

LEAST_PAGES, MOST_PAGES = 12, 60
PAGES_A_PAGE = 3
"""Pages that are looked at for each one that was asked for."""
LONG_PAGE = 60
"""Sections; of a longer page, such as a reference, only those with a word of the question are read."""
EXPECTED_PAGE = 0.9
"""The least score of a page that is expected to answer; the best page has 1."""
EXACT, TERM = 1.2, 1.5
"""The scores of a section that says several words of the question in a row, and of the one that explains the term which
it asks for; the best other one has 1.
"""
FEW_PAGES = 12
"""Pages of a site that is small enough to leave out none of them, as far as the budget goes."""
MAX_OF_A_TERM = 4
"""Sections of one term that are taken before others: a setting may be explained on a page for each of its uses."""
SAYS_LITTLE = 0.85
"""What is left of a short section's score."""


def gather(index: SiteIndex, request: MaterialRequest, asked: Sequence[Asked]) -> Material:
    """Return the material. ``asked``: as ``queries_of`` has them."""
    pages = min(MOST_PAGES, max(LEAST_PAGES, PAGES_A_PAGE * request.page_size))
    reader = index.reader(asked[0].text if asked else "", request.filter, request.current_path)
    rankings = [
        ranking
        for one in asked
        if (ranking := index.ranking(one.text, reader, request.current_path, one.nearness, count=pages))
    ]
    scores = _scores(rankings, pages)
    expected = _expect(index, request, reader, scores)
    first = index.page_id(request.whole_page, request.filter.groups) if request.whole_page else None
    if first is not None:
        scores[first] = 1.0
    exact = _exact(index, request, reader, scores)
    terms = _terms(index, request, reader, scores)
    named = _named(index, request, [one.text for one in asked], reader, scores)
    words = index.query_words(asked[0].text, rankings[0] if rankings else None, reader) if asked else ()
    scores = {page: scores[page] for page in _shown(index, reader, scores, first) if page in scores}
    title = index.start_title(request.filter.groups)
    if not scores:
        return Material(index.commit, (), index.instructions, 0.0, reader.language, words, site_title=title)
    own = [index.section_scores(ranking, list(scores), reader) for ranking in rankings]
    pieces = _pieces(index, request, own, scores, {**dict.fromkeys(exact, EXACT), **terms}, first)
    is_sure = bool(exact or terms or named or expected) or first is not None
    for piece in pieces:
        piece.is_expected = piece.page in expected
        if piece.page in named:  # its first section that says something
            named.remove(piece.page)
            piece.own_scores = (max(1.0, piece.own_scores[0]), *piece.own_scores[1:])
    question = request.queries[0] if request.queries else ""
    lacking = lacking_words(question, words, (piece.section.text for piece in pieces))
    is_far = bool(lacking) and not is_sure and lacking_part(words) >= FAR
    is_small = len({piece.page for piece in pieces}) <= max(request.page_size, FEW_PAGES)
    least = 0.0 if is_small or first is not None else LEAST_SCORE
    sections = fill(
        pieces, request.budget_tokens, most=MAX_SECTIONS_A_PAGE * request.page_size,
        first_page=-1 if first is None else first, few=max(request.page_size, FEW_PAGES),
    )  # fmt: skip
    coverage = index.coverage(rankings[0], max(scores, key=scores.__getitem__)) if rankings else 0.0
    return Material(
        index.commit, sections, index.instructions, coverage, reader.language, words, lacking, is_far, title, least
    )


def _scores(rankings: Sequence[Ranking], count: int) -> dict[int, float]:
    """Return the best pages of each ranking, the best having 1."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        top = ranking.candidates[0].score if ranking.candidates else 0.0
        for candidate in ranking.candidates[: count if ranking is rankings[0] else count // 2]:
            if top > 0:
                scores[candidate.page] = max(scores.get(candidate.page, 0.0), candidate.score / top)
    return scores


def _expect(index: SiteIndex, request: MaterialRequest, reader: Reader, scores: dict[int, float]) -> Set[int]:
    """Add the pages that are expected to answer, and return them."""
    pages = index.named_pages(request.pages, reader)
    for page in pages:
        scores[page] = max(scores.get(page, 0.0), EXPECTED_PAGE)
    return frozenset(pages)


def _named(
    index: SiteIndex, request: MaterialRequest, asked: Sequence[str], reader: Reader, scores: dict[int, float]
) -> set[int]:
    """Add the pages that the question names itself, and return them. ``asked``: as ``queries_of`` has them."""
    question = request.queries[0] if request.queries else ""
    found: set[int] = set()
    for side in asked[1:] if len(request.queries) == 1 else ():
        for title in titles_of(side):
            found.update(index.titled_pages(title, reader))
    signed = {page for sign in signs_of(question) for page in index.pages_with_sign(sign, reader)}
    if signed:  # it has no other words that say something
        scores.clear()
    found |= signed
    scores.update(dict.fromkeys(found, 1.0))
    return found


def _exact(index: SiteIndex, request: MaterialRequest, reader: Reader, scores: dict[int, float]) -> frozenset[int]:
    """Return the sections that say several words of the question in a row; their pages are among the best."""
    sections = index.sections_with_run(request.queries[0], reader) if request.queries else []
    shown = index.shown([section >> PAGE_SHIFT for section in sections], reader)
    scores.update(dict.fromkeys(shown, 1.0))
    return frozenset(section for section in sections if section >> PAGE_SHIFT in shown)


def _terms(index: SiteIndex, request: MaterialRequest, reader: Reader, scores: dict[int, float]) -> Mapping[int, float]:
    """Return the best sections of the term that the question asks for; their pages are among the best."""
    found = index.term_sections(request.queries[0], reader) if request.queries else []
    best = [each.id for each in found if each.leads and each.place == found[0].place]
    if not best:  # a heading of plain words: where its page is among the best
        return {each.id: EXACT for each in found if each.id >> PAGE_SHIFT in scores}
    best.sort(key=lambda section: (-scores.get(section >> PAGE_SHIFT, 0.0), section))
    del best[MAX_OF_A_TERM:]
    scores.update((section >> PAGE_SHIFT, 1.0) for section in best)
    return {section: TERM if section == best[0] else EXACT for section in best}


def _shown(index: SiteIndex, reader: Reader, scores: Mapping[int, float], first: int | None) -> list[int]:
    """Return the pages without copies of one another: two queries may have found two versions of a page."""
    shown = index.shown(sorted(scores, key=lambda page: -scores[page]), reader)
    return shown if first is None or first in shown else [first, *shown]


def _pieces(
    index: SiteIndex, request: MaterialRequest, own: Sequence[Mapping[int, float]], scores: Mapping[int, float],
    exact: Mapping[int, float], first: int | None,
) -> list[Piece]:  # fmt: skip
    tops = [max(found.values(), default=0.0) or 1.0 for found in own]
    matched = {section for found in own for section in found} | exact.keys()
    question = request.queries[0] if request.queries else ""
    pieces: list[Piece] = []
    little: list[Piece] = []
    asked, of_history = question.casefold(), boilerplate.asks_for_history(question)
    for read in index.sections_of(list(scores), matched, LONG_PAGE):
        id_, section, page = read.id, read.section, read.id >> PAGE_SHIFT
        is_known = (section.path, section.start_line) in request.known
        factor = SAYS_LITTLE if len(section.text) < boilerplate.SHORT else 1.0
        each = [factor * found.get(id_, 0.0) / top for found, top in zip(own, tops, strict=True)] or [0.0]
        if id_ in exact:
            each[0] = exact[id_]
        is_little = (
            page != first
            and not is_known
            and exact.get(id_) != TERM
            and read.traits.say_little(asked, of_history=of_history)
        )
        piece = Piece(id_, page, section, scores[page], tuple(each), is_known, tokens=read.tokens, key=read.key)
        (little if is_little else pieces).append(piece)
    return pieces or little


def sections_at(
    index: SiteIndex, sources: Sequence[Source], readers: Sequence[str] | None
) -> tuple[Section | None, ...]:
    """Return what ``SearchIndex.sections_at`` promises."""
    held: dict[str, Sequence[Section]] = {}
    found: list[Section | None] = []
    for source in sources:
        if source.path not in held:
            page = index.page_id(source.path, readers)
            held[source.path] = index.sections_of_page(page) if page is not None else []
        found.append(same_section(held[source.path], source, index.commit))
    return tuple(found)


def same_section(sections: Sequence[Section], source: Source, commit: str) -> Section | None:
    """Return the section of a page that was recorded as a source."""
    same = [each for each in sections if each.path == source.path and each.heading == source.heading]
    if source.commit == commit:
        same = [each for each in same if each.start_line == source.start_line]
    return min(same, key=lambda each: abs(each.start_line - source.start_line), default=None)
