"""The order by words joined with nearness in meaning: a sum of two scores, each put on one scale for each question.

A page's words count as a part of the best page's, its meaning by its place between the farthest and the nearest page
that the words found: what a cosine of .4 says differs from model to model, and from question to question.

Chosen on 373 labelled questions of four sites and 450 of nine that we wrote, with the vectors of all-MiniLM-L6-v2, of
which every choice that leaves one site out picks the same weight. Mean nDCG@10 over the sites, against words alone:
+.037 and +.042, no site lower by more than .003. Reciprocal rank fusion with 10 gives +.026 and +.028, with 60 +.017
and +.026: it knows the order, and not by how much. Pages that only their meaning finds add .002, and would cost a
comparison with every section.

Turned down: vectors of words learned from a site's own text (random indexing, two rounds over the five neighbours on
either side), added with a weight of .15. They gave +.005 beside an earlier ranking by words, and nothing beside a later
one: from -.014 to +.008 on eight sites, for 1 ms a question.
"""

from collections.abc import Mapping

from service.retrieval.search.ranking import Ranking

MEANING = 1.25
"""The weight of the meaning; that of the words is 1. From 1 to 2 the sum hardly changes."""
LEAST_SPREAD = 0.1
"""A difference of cosines that decides; among few pages of one meaning a smaller one is chance."""


def join_meaning(ranking: Ranking, near: Mapping[int, float], weight: float = MEANING) -> None:
    """Order the candidates by words and by meaning. ``near``: the nearest cosine of a page's sections; a page that has
    none (it is not embedded yet) counts by its words for both. Words alone decide until half of the pages have one.
    """
    known = sorted(
        (candidate for candidate in ranking.candidates if candidate.page in near),
        key=lambda candidate: -near[candidate.page],
    )
    top = max((candidate.score for candidate in ranking.candidates), default=0.0)
    if 2 * len(known) < len(ranking.candidates) or not known or top <= 0:
        return
    for rank, candidate in enumerate(known, start=1):
        candidate.meaning_rank = rank
    low = near[known[-1].page]
    spread = max(near[known[0].page] - low, LEAST_SPREAD)
    for candidate in ranking.candidates:
        words = candidate.score / top
        if candidate.meaning_rank:
            factor = ranking.places.get(candidate.page, 1.0)
            candidate.score = words + weight * factor * (near[candidate.page] - low) / spread
        else:
            candidate.score = words + weight * words
    last = ranking.versions
    ranking.candidates.sort(key=lambda one: (one.page in last, -one.score, one.word_rank))
