"""How the words of a question order pages and sections: in the index of a site, and among texts in memory.

How pages are ordered, and what each step was worth, is in DESIGN ("Search"): any word may match; title, headings, what
other pages call this one, and body each have their own BM25; a page is its best section and a part of the next three;
adjacent words of the question found adjacent count a little more. The page as one text counts, too, where it has more
than its best section: a question whose words are spread over its sections is often about the page as such.
"""

import heapq
from collections.abc import Mapping, Sequence

from msgspec import Struct
from tantivy import Query

from service.retrieval.search.questions.question import Terms
from service.retrieval.search.words import PAGE_SHIFT, Hit, PageField, Words

TITLE, HEADINGS, LINKS, BODY, PAGE, PAIRS = 0.9, 0.65, 0.75, 1.0, 0.8, 0.25
"""Fitted, with ``COUNTED``, ``NEXT_PART`` and the weight of links (``index.site_index``), on ten corpora: on labelled,
our own and derived questions (``scripts/bench search``), and on headings in thirteen languages (``scripts/bench
languages``), for the smallest loss of any corpus against a ranking without whole pages and links, then for the best
mean. All these questions were seen. With one corpus left out the same weights are best for eight of ten; our
questions on the one left out then change by -.010 (redux) to +.024 (dbt).
"""
COUNTED = 0.3
"""The part of its best section's score that a page's whole text has to exceed: the same words do not count twice."""
ENTRY = 0.3
"""The weight of a term that is a row or an item by itself; among terms, rarity is the measure."""
NEXT_SECTIONS, NEXT_PART = 3, 0.2
OWN_HEADINGS, OWN_PAIRS = 0.5, 0.25
"""The weights where sections of some pages are compared, and not pages."""
PAIRED_PAGES = 20
SECTIONS_READ, PAGES_READ = 200, 200
"""That are ranked of one query, of each kind; a page beyond them is no answer."""
ROWS_RANKED, FEWEST_WORDS = 100_000, 2
"""Sections that are ranked at most, and words that are looked up in any case. On a large site, a common word costs much
and says little.
"""
MAX_OF_PAGE = 3
COVERED = 0.4
"""The part of a section's score that its coverage of the question makes, where sections of some pages are compared."""
FUSION = 10.0
"""The constant of reciprocal rank fusion (DESIGN, "Search")."""


class Candidate(Struct):
    page: int
    score: float
    sections: Sequence[Hit]
    """Best first; the top of the page when only its title or name matched."""
    word_rank: int
    meaning_rank: int = 0


class Ranking(Struct):
    """The findings of the steps so far."""

    terms: Terms
    sections: dict[int, list[Hit]] = {}
    """By page, best first."""
    scores: dict[int, float] = {}
    pairs: dict[int, float] = {}
    places: dict[int, float] = {}
    candidates: list[Candidate] = []
    versions: set[int] = set()
    """Other versions of pages that are among the candidates: they come last."""

    def add(self, other: "Ranking") -> None:
        """Add the scores of other pages."""
        self.sections |= other.sections
        self.scores |= other.scores
        self.pairs |= other.pairs

    def choose(self, first: list[int]) -> None:
        """Make these pages the candidates, in the order of their scores."""
        first.sort(key=lambda page: (-self.scores[page], page))
        self.candidates = [
            Candidate(
                page,
                self.scores[page],
                self.sections.get(page) or (Hit(self.scores[page], page << PAGE_SHIFT),),
                rank,
            )
            for rank, page in enumerate(first, start=1)
        ]

    def fuse(self) -> None:
        """Order the candidates by both ranks (reciprocal rank fusion). One without a second rank has its rank by words
        for both.
        """
        for candidate in self.candidates:
            second = candidate.meaning_rank or candidate.word_rank
            factor = self.places.get(candidate.page, 1.0)
            candidate.score = factor * (1 / (FUSION + candidate.word_rank) + 1 / (FUSION + second))
        self.candidates.sort(key=lambda candidate: (-candidate.score, candidate.word_rank))

    def lead(self, found: Mapping[int, Mapping[int, Hit]]) -> None:
        """Put pages before all others, by the best score of their sections in ``found``, and these sections first."""
        if not found:
            return
        known = {candidate.page: candidate for candidate in self.candidates}
        top = max((candidate.score for candidate in self.candidates), default=1.0)
        for page, sections in found.items():
            rank = len(self.candidates) + 1
            candidate = known.get(page) or Candidate(page, 0.0, (), rank)
            if page not in known:
                self.candidates.append(candidate)
            further = [hit for hit in candidate.sections if hit.id not in sections]
            best = max(hit.score for hit in sections.values())
            first = max((hit.score for hit in candidate.sections), default=0.0) + 1.0
            mine = [Hit(first * hit.score, hit.id) for hit in sections.values()]
            candidate.sections = (*sorted(mine, key=lambda hit: (-hit.score, hit.id)), *further)
            candidate.score += top * best
        self.candidates.sort(key=lambda candidate: (-candidate.score, candidate.word_rank))

    def lead_on_pages(self, sections: Sequence[int]) -> None:
        """Put sections before the others of their pages; of one page the first of them leads."""
        best = {section >> PAGE_SHIFT: section for section in reversed(sections)}
        for candidate in self.candidates if best else ():
            if (section := best.get(candidate.page)) is not None:
                score = max((hit.score for hit in candidate.sections), default=0.0)
                others = [hit for hit in candidate.sections if hit.id != section]
                candidate.sections = (Hit(score, section), *others)

    def put_first(self, page: int | None) -> None:
        """Put a page before all others, if it is one of the candidates."""
        candidate = next((each for each in self.candidates if each.page == page), None)
        if candidate is not None:
            candidate.score = max(each.score for each in self.candidates)
            self.candidates = [candidate, *(each for each in self.candidates if each is not candidate)]

    def best_sections(self, limit: int) -> list[tuple[float, int, Candidate]]:
        """Return the best section of each of the best pages, then further sections of the very best: score, section
        and candidate.
        """
        further = max(0, (limit - 5) // 3)
        candidates = self.candidates[:limit]
        rest = [
            (candidate.score * hit.score / candidate.sections[0].score, hit.id, candidate)
            for candidate in candidates[: limit - further]
            for hit in candidate.sections[1:MAX_OF_PAGE]
            if candidate.sections[0].score > 0
        ]
        best = heapq.nlargest(max(further, limit - len(candidates)), rest, key=lambda item: item[0])
        pages = candidates[: limit - len(best)]
        picked = [(candidate.score, candidate.sections[0].id, candidate) for candidate in pages]
        floor = picked[-1][0] if picked else 0.0
        return picked + [(min(score, floor), section, candidate) for score, section, candidate in best]


def rank_pages(
    words: Words, terms: Terms, *, only_sections: Query | None = None, only_pages: Query | None = None, count: int
) -> tuple[Ranking, list[int]]:
    """Return the scores by words, and at least ``count`` pages, if they match, best first."""
    ranking = Ranking(terms)
    body = {term: terms.weights[term] for term in _affordable(words, terms.weights)}
    for hit in words.best_sections({"body": (BODY, body), "heading": (HEADINGS, terms.weights)}, only_sections,
                                   SECTIONS_READ, entry_points(words, terms)):  # fmt: skip
        ranking.sections.setdefault(hit.id >> PAGE_SHIFT, []).append(hit)
    scores, sections = ranking.scores, ranking.sections
    for page, found in sections.items():
        score = found[0].score
        if len(found) > 1:
            score += NEXT_PART * sum([hit.score for hit in found[1 : 1 + NEXT_SECTIONS]])
        scores[page] = score
    of_pages: Mapping[PageField, tuple[float, Mapping[str, float]]] = {
        "title": (TITLE, terms.weights),
        "link": (LINKS, terms.weights),
    }
    for page, score in words.best_pages(of_pages, only_pages, PAGES_READ).items():
        scores[page] = scores.get(page, 0.0) + score
    whole = words.best_pages({"text": (1.0, body)}, only_pages, PAGES_READ) if not terms.is_unfinished else {}
    for page, score in whole.items():
        scores[page] = scores.get(page, 0.0) + text_points(score, sections.get(page))
    first = sorted(scores, key=scores.__getitem__, reverse=True)[: max(PAIRED_PAGES, count)]
    _reward_pairs(words, ranking, first[:PAIRED_PAGES])
    return ranking, first


def text_points(score: float, sections: Sequence[Hit] | None) -> float:
    """Return the points of a page's whole text. ``sections``: those of the page that were found, best first."""
    more = score - COUNTED * sections[0].score if sections else score
    return PAGE * more if more > 0 else 0.0


def entry_points(words: Words, terms: Terms) -> dict[str, float]:
    """Return the points of a section that explains a term of the question in a row or item of its own, by that term.

    BM25 cannot say it: one row's words are few among those of a long table.
    """
    after = dict(terms.pairs)
    runs: list[tuple[str, ...]] = [(term,) for term in terms.weights]
    runs += list(terms.pairs)
    runs += [(first, second, after[second]) for first, second in terms.pairs if second in after]
    return {
        key: ENTRY * sum(terms.weights[term] * words.rarity(term) for term in run)
        for run in runs
        if words.has_entry(key := " ".join(run))
    }


def _affordable(words: Words, weights: Mapping[str, float]) -> list[str]:
    """Return the words to look up in bodies: the rarest, until the sections that have them are many."""
    counts = {term: words.frequency(term) for term in weights}
    left, kept = ROWS_RANKED, list[str]()
    for term in sorted(counts, key=counts.__getitem__):
        left -= counts[term]
        if left < 0 and len(kept) >= FEWEST_WORDS:
            break
        kept.append(term)
    return kept


def _reward_pairs(words: Words, ranking: Ranking, first: Sequence[int]) -> None:
    best = {
        page: [hit.id for hit in ranking.sections[page][: 1 + NEXT_SECTIONS]]
        for page in first
        if page in ranking.sections
    }
    among = [section for sections in best.values() for section in sections]
    found = words.phrases(ranking.terms.pairs, among)
    for page, sections in best.items():
        ranking.pairs[page] = PAIRS * max(found.get(section, 0.0) for section in sections)
        ranking.scores[page] += ranking.pairs[page]


def score_sections(words: Words, terms: Terms, pages: Sequence[int], only: Query | None) -> dict[int, float]:
    """Return the scores of all sections of these pages that match, the best having about 1: by BM25 of body, headings
    and pairs, and by how much of the question a section has. The latter keeps a section that says one word often from
    going before the one that has them all.
    """
    if not pages:
        return {}
    found = words.sections_of_pages(
        {"body": (BODY, terms.weights), "heading": (OWN_HEADINGS, terms.weights)}, terms.pairs, OWN_PAIRS, pages, only
    )
    rarity = {term: weight * words.rarity(term) for term, weight in terms.weights.items()}
    covered = words.coverage_of_sections(rarity, pages, only)
    top = max(found.values(), default=1.0) or 1.0
    return {
        section: (1 - COVERED) * score / top + COVERED * covered.get(section, 0.0) for section, score in found.items()
    }


def coverage(words: Words, terms: Terms, page: int) -> float:
    """Return the part of the words that a page has, each weighed by how few sections have it: 0 .. 1."""
    rarity = {term: weight * words.rarity(term) for term, weight in terms.weights.items()}
    there = sum(rare for term, rare in rarity.items() if words.has(page, term))
    whole = sum(rarity.values())
    return min(1.0, there / whole) if whole else 0.0
