"""Which pieces of the best passages are quoted, within what a reader sees at once.

The best passage is quoted whole where it is short enough; of a longer one, its best unit and what stands around it. A
lead-in is never quoted without what it leads to, code never in part, a procedure from its first step on.
"""

import re
from collections.abc import Collection, Sequence

from msgspec import Struct

from service.adapters.builtin.pieces import Apart, Piece, total
from service.adapters.builtin.wanted import Wanted
from service.adapters.builtin.weighing import exactness

FIRST_ROOM, NEXT_ROOM = 1_500, 500
"""Characters of the best passage, and of each further one."""
STEPS_ROOM = 2_200
"""Characters of the best passage when it has the steps that are asked for."""
WHOLE_ROOM = 3_000
"""Characters of all quotes together."""
ENOUGH = 500
"""Characters; a quote that is shorter goes on with what follows on the page."""
FOLLOWED_ROOM = 1_200
"""Characters of a quote that was too short, with the sections that follow it."""
MAX_PASSAGES = 5
NEAREST, NEXT_NEAREST_ROOM = 3, 600
"""Passages that are shown where none surely answers, and characters of each but the first."""
MIN_PART, MIN_PART_OF_DEFINITION = 0.5, 0.75
"""Part of the best passage's score; passages below it are not quoted. One definition is enough."""
MAX_CODE_LINES = 60
"""Code is quoted whole, or not at all: half of it would be copied and run."""
GOOD_PIECE = 0.7
"""Part of the best piece's score, above which a further piece of a unit that is too long is quoted."""
GOOD_UNIT = 0.6
"""Part of the best unit's score; a unit above it is quoted as well."""
_SOLUTION = re.compile(
    r"(?:solutions?|answers?|fix(?:es)?|resolutions?|remed(?:y|ies)|workarounds?|lösung(?:en)?|antwort(?:en)?"
    r"|réponses?|soluci[óo]n(?:es)?|respuestas?|soluç(?:ão|ões)|respostas?|soluzion[ei]|rispost[ae]|oplossing(?:en)?)\b"
    r"|解決|解决|回答|答案",
    re.IGNORECASE,
)


class Quote(Struct):
    apart: Apart
    chosen: set[int]

    @property
    def size(self) -> int:
        return total(self.apart.pieces, self.chosen)


def choose(apart: Sequence[Apart], wanted: Wanted) -> list[Quote]:
    """Return what to quote, best first. The passages have their scores."""
    ranked = sorted(apart, key=lambda one: (-one.score, one.passage.number))
    if not ranked or ranked[0].score <= 0:
        return []
    picked = _sides(ranked, wanted) or _best(ranked, wanted)
    left = WHOLE_ROOM
    quotes: list[Quote] = []
    for rank, one in enumerate(picked):
        room = FIRST_ROOM if rank == 0 or wanted.sides else NEXT_ROOM
        if rank == 0 and wanted.steps:
            room = STEPS_ROOM
        quote = Quote(one, _within(one, min(room, left), wanted))
        if not quote.chosen or (quotes and (quote.size > left or _only_leads(quote))):
            continue
        quotes.append(quote)
        left -= quote.size
        if rank == 0 and not wanted.sides:
            for follower in _followers(quote, apart, wanted, room):
                quotes.append(follower)
                left -= follower.size
        if left < 200:
            break
    return _without_repeats(quotes)


def nearest(apart: Sequence[Apart], wanted: Wanted) -> list[Quote]:
    """Return what to show where no passage surely answers: the best few."""
    ranked = sorted(apart, key=lambda one: (-one.score, one.passage.number))
    quotes = [
        Quote(one, _within(one, NEXT_NEAREST_ROOM if rank else FIRST_ROOM, wanted))
        for rank, one in enumerate(ranked[:NEAREST])
    ]
    return _without_repeats([quote for quote in quotes if quote.chosen])


def _only_leads(quote: Quote) -> bool:
    """Return whether all that is quoted leads to what is not."""
    return all(quote.apart.pieces[at].leads for at in quote.chosen)


def _best(ranked: Sequence[Apart], wanted: Wanted) -> list[Apart]:
    part = MIN_PART_OF_DEFINITION if wanted.definition else MIN_PART
    return [one for one in ranked[:MAX_PASSAGES] if one.score >= part * ranked[0].score]


def _sides(ranked: Sequence[Apart], wanted: Wanted) -> list[Apart]:
    """Return, for a comparison, the passage that has both sides near each other, and the best one of each side."""
    if not wanted.sides:
        return []
    picked: list[Apart] = []
    one, other = (set(side) for side in wanted.sides)
    words = set(wanted.stems)
    both = [each for each in ranked if any(one & set(p.stems) and other & set(p.stems) for p in each.pieces)]
    if both and both[0].score >= 0.7 * ranked[0].score:
        picked.append(both[0])
    page = ranked[0].page
    for side, against in ((one, other), (other, one)):
        own = [each for each in ranked if _part(side, each.own) > _part(against, each.own)]
        own = own or [each for each in ranked if _part(side, each.title) > _part(against, each.title)]
        if own:
            best = max(own, key=lambda each: each.score + 1.5 * exactness(words, each.own) + (each.page == page))
            picked += [best] if best not in picked else []
    return picked


def _part(side: Collection[str], heading: Sequence[str]) -> float:
    """Return the part of a side's words in a heading: "the timestamp and the check strategy" shares the last word."""
    return sum(1 for stem in side if stem in heading) / len(side)


def _within(one: Apart, room: int, wanted: Wanted) -> set[int]:
    """Return the places of the pieces to quote."""
    pieces = one.pieces
    kept = {at for at, piece in enumerate(pieces) if not _is_too_long(piece)}
    if total(pieces, kept) <= room:
        return _complete(pieces, kept, room)
    if _solves(one) and (opening := _opening(one, kept, room)):
        return _complete(pieces, opening, room)
    scored = [(max(pieces[at].score for at in unit), number) for number, unit in enumerate(one.units)]
    best_score, best = max(scored, key=lambda each: (each[0], -each[1]))
    chosen = _trimmed(pieces, one.units[best], room, wanted)
    for score, number in sorted(scored, key=lambda each: (-each[0], each[1])):
        unit = [at for at in one.units[number] if at in kept]
        if score < GOOD_UNIT * best_score:
            break
        if not chosen.intersection(unit) and total(pieces, chosen) + total(pieces, unit) <= room:
            chosen.update(unit)
    for number in [*range(best + 1, len(one.units)), *range(best - 1, -1, -1)]:
        if total(pieces, chosen) >= ENOUGH:
            break
        unit = [at for at in one.units[number] if at in kept]
        if total(pieces, chosen) + total(pieces, unit) <= room:
            chosen.update(unit)
        elif number > best:
            continue
    return _complete(pieces, chosen & kept, room)


def _solves(one: Apart) -> bool:
    """Return whether the nearest heading says that a solution follows."""
    return _SOLUTION.match(one.passage.heading.rpartition(" › ")[2]) is not None  # noqa: RUF001


def _opening(one: Apart, kept: set[int], room: int) -> set[int]:
    """Return the first units that there is room for: a solution seldom has the words of its problem."""
    chosen: set[int] = set()
    for unit in one.units:
        fitting = kept.intersection(unit)
        if total(one.pieces, chosen) + total(one.pieces, fitting) > room:
            break
        chosen |= fitting
    return chosen


def _trimmed(pieces: Sequence[Piece], unit: range, room: int, wanted: Wanted) -> set[int]:
    """Return as much of a unit as there is room for: its lead-in; its steps from the first one, or its best parts."""
    if total(pieces, unit) <= room:
        return set(unit)
    best = max(unit, key=lambda at: (pieces[at].score, -at))
    is_procedure = wanted.steps and any(pieces[at].kind == "item" and pieces[at].text[:1].isdigit() for at in unit)
    order = list(unit) if is_procedure else sorted(unit, key=lambda at: (-pieces[at].score, at))
    chosen = {at for at in (unit.start,) if pieces[at].leads}
    chosen.add(unit.start if is_procedure else best)
    for at in order:
        if not is_procedure and pieces[at].score < GOOD_PIECE * pieces[best].score:
            break
        if total(pieces, {*chosen, at}) > room:
            if is_procedure:
                break
            continue
        chosen.add(at)
    return chosen


def _complete(pieces: Sequence[Piece], chosen: set[int], room: int) -> set[int]:
    """Return the pieces with what their lead-ins lead to; without those lead-ins that lead nowhere, and without links
    at the end.
    """
    done = set(chosen)
    for at in sorted(chosen):
        if not pieces[at].leads or at + 1 >= len(pieces) or at + 1 in done or pieces[at + 1].kind == "sentence":
            continue
        block = [place for place in range(at + 1, len(pieces)) if pieces[place].block == pieces[at + 1].block]
        fitting: list[int] = []
        for place in block:
            if _is_too_long(pieces[place]) or total(pieces, [*fitting, place]) > room:
                break
            fitting.append(place)
        done.update(fitting)
    for at in sorted(done, reverse=True):
        dangles = pieces[at].leads and at + 1 not in done
        if len(done) > 1 and (dangles or (pieces[at].is_link and at == max(done))):
            done.discard(at)
    return done


def _is_too_long(piece: Piece) -> bool:
    return piece.kind == "code" and piece.text.rstrip("\n").count("\n") >= MAX_CODE_LINES


def _followers(quote: Quote, apart: Sequence[Apart], wanted: Wanted, room: int) -> list[Quote]:
    """Return the sections that follow on the page where a quote only leads to them, or a solution follows."""
    left = (room if wanted.steps else FOLLOWED_ROOM) - quote.size
    followers: list[Quote] = []
    at = next(place for place, one in enumerate(apart) if one is quote.apart)
    following = apart[at + 1 :]
    if quote.size >= ENOUGH or not _only_leads(quote):
        following = [one for one in following[:1] if _solves(one)]
        left = NEXT_ROOM
    for one in following:
        if one.page != quote.apart.page or left < 100 or len(followers) >= 2:
            break
        chosen = _within(one, min(left, room), wanted)
        if chosen:
            followers.append(Quote(one, chosen))
            left -= followers[-1].size
    return followers


def _without_repeats(quotes: Sequence[Quote]) -> list[Quote]:
    kept: list[Quote] = []
    seen: set[str] = set()
    for quote in quotes:
        if any(quote.apart is other.apart for other in kept):
            continue
        fresh = {at for at in quote.chosen if quote.apart.pieces[at].text not in seen}
        if fresh and len(fresh) * 2 >= len(quote.chosen):
            kept.append(quote)
            seen.update(quote.apart.pieces[at].text for at in quote.chosen)
    return kept
