"""The order by words joined with nearness in meaning: a sum of two scores, each put on one scale for each question.

A page's words count as a part of the best page's, its meaning by its place between the farthest and the nearest page
that the words found: what a cosine of .4 says differs from model to model, and from question to question.

Chosen on 373 labelled questions of four sites and 450 of nine that we wrote, with the vectors of all-MiniLM-L6-v2, of
which every choice that leaves one site out picks the same weight. Mean nDCG@10 over the sites, against words alone:
+.037 and +.042, no site lower by more than .003. Reciprocal rank fusion with 10 gives +.026 and +.028, with 60 +.017
and +.026: it knows the order, and not by how much. Pages that only their meaning finds add .002, and would
cost a comparison with every section.
"""

from collections.abc import Mapping

from service.retrieval.search.ranking import Ranking

MEANING = 1.25
"""The weight of the meaning; that of the words is 1. From 1 to 2 the sum hardly changes."""
OWN = 0.15
"""The weight of a cosine of the site's own vectors; see ``join_own``."""
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


def join_own(ranking: Ranking, near: Mapping[int, float], weight: float = OWN) -> None:
    """Order the candidates by words and a little by the site's own vectors, which know less than a model's: as they
    are, cosines of a page with a question add up to a seventh of the best page's score.

    On the questions above, with .15: +.004 on labelled and +.006 on written ones, 56 better and
    21 worse (p < .001), no site lower by more than .002. The weight of .2, which every choice that leaves one site out
    picks, gives +.006 and +.006 and lowers one site by .007.
    """
    top = max((candidate.score for candidate in ranking.candidates), default=0.0)
    known = [near[candidate.page] for candidate in ranking.candidates if candidate.page in near]
    if not known or top <= 0:
        return
    usual = sum(known) / len(known)
    for candidate in ranking.candidates:
        factor = ranking.places.get(candidate.page, 1.0)
        candidate.score = candidate.score / top + weight * factor * max(0.0, near.get(candidate.page, usual))
    order = sorted(near, key=lambda page: -near[page])
    ranks = {page: rank for rank, page in enumerate(order, start=1)}
    for candidate in ranking.candidates:
        candidate.meaning_rank = ranks.get(candidate.page, 0)
    last = ranking.versions
    ranking.candidates.sort(key=lambda one: (one.page in last, -one.score, one.word_rank))
