"""Directions of words, learned from the text of one site: words that stand near the same words get near directions.

Each word begins with a random direction (by its hash, so that the same text always gives the same ones). Twice, its new
direction is the sum of the directions of the words within ``WINDOW`` places of it, where a common word counts less;
then what all words have in common is taken away. The second time brings words together that have neighbours of one
kind, as the first singular vectors do. Random indexing (Sahlgren, 2005), and its reflective form (Cohen et al., 2010).

All numbers of a vector are the 32-bit digits of one Python integer, so a sum of 256 numbers is one addition, and a
thousand words are learned in half a millisecond without a matrix library. No digit overflows: see ``_weights``.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import shake_256
from operator import mul, sub

DIMENSIONS = 256
WINDOW = 5
ROUNDS = 2
MAX_WORDS = 20_000
"""Words that are learned, the most frequent ones."""
LEAST_SECTIONS = 3
MOST_OF_SECTIONS = 0.25
"""A word in a greater part of the sections than this says nothing about one of them."""
MAX_LEARNED = 1_000_000
"""Words of running text that are read; of a longer text, sections at equal distances."""

_LANE = 4
_SIZE = _LANE * DIMENSIONS
_LEVELS = 15
"""Numbers are 0 to 15 while sums are made, so that these fit into 32 bits."""


def learn(sections: Sequence[Sequence[str]]) -> dict[str, tuple[float, bytes]]:
    """Return the words with their rarity and their direction, as ``DIMENSIONS`` bytes around 128."""
    counts = Counter(term for terms in sections for term in set(terms))
    most = max(LEAST_SECTIONS, MOST_OF_SECTIONS * len(sections))
    known = [
        term for term, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if LEAST_SECTIONS <= count <= most and len(term) > 1 and not term.isdigit()
    ][:MAX_WORDS]  # fmt: skip
    numbers = {term: number for number, term in enumerate(known)}
    text = _sampled(sections, numbers)
    directions = [_random(term) for term in known]
    weights = _weights(len(known), text)
    for _ in range(ROUNDS):
        directions = _centred(_neighbours(directions, weights, text))
    total = len(sections)
    return {
        term: (math.log(1 + total / counts[term]), _as_bytes(direction))
        for term, direction in zip(known, directions, strict=True)
    }


def direction_of(terms: Mapping[str, float], known: Mapping[str, tuple[float, bytes]]) -> list[float] | None:
    """Return the direction of a text whose terms have these weights; None where it has no known word."""
    total, weighed = 0, 0
    for term, weight in terms.items():
        found = known.get(term)
        if found is not None:
            factor = round(8 * weight * found[0])
            total += factor * _spread(found[1])
            weighed += factor
    if not weighed:
        return None
    return [number - 128 * weighed for number in _digits(total)]


def weights_of(terms: Iterable[str]) -> dict[str, float]:
    """Return the weight of each term of a section: the logarithm of its count, and one."""
    return {term: 1 + math.log(min(count, 1000)) for term, count in Counter(terms).items()}


def _sampled(sections: Sequence[Sequence[str]], numbers: Mapping[str, int]) -> list[list[int]]:
    total = sum(map(len, sections))
    step = max(1, -(-total // MAX_LEARNED))
    return [[numbers[term] for term in terms if term in numbers] for terms in sections[::step]]


def _random(term: str) -> list[float]:
    """Return a vector of ones and minus ones."""
    bits = int.from_bytes(shake_256(term.encode()).digest(DIMENSIONS // 8), "little")
    return [1.0 if bits >> bit & 1 else -1.0 for bit in range(DIMENSIONS)]


def _weights(words: int, text: Sequence[Sequence[int]]) -> list[int]:
    """Return the weight of each word as a neighbour: less for a common one, by the power of .75 of its count.

    A word is a neighbour in at most twice ``WINDOW`` places for each time that it is there, so no sum is greater than
    ``2 * WINDOW * _LEVELS`` times the weights of the whole text; they are scaled so that this is within 32 bits.
    """
    counts = Counter(number for terms in text for number in terms)
    bound = (1 << 32) // (2 * WINDOW * _LEVELS) // 2
    scale = min(1000.0, bound / max(1.0, sum(count**0.25 for count in counts.values()) + sum(counts.values()) / 1000))
    return [max(1, round(scale / max(1, counts[number]) ** 0.75)) for number in range(words)]


def _neighbours(
    directions: Sequence[Sequence[float]], weights: Sequence[int], text: Sequence[Sequence[int]]
) -> list[list[float]]:
    """Return the sums of the directions near each word."""
    weighted = [weight * _levels(direction) for weight, direction in zip(weights, directions, strict=True)]
    sums = [0] * len(directions)
    for numbers in text:
        vectors = [weighted[number] for number in numbers]
        near = sum(vectors[:WINDOW])
        for place, number in enumerate(numbers):
            if place + WINDOW < len(vectors):
                near += vectors[place + WINDOW]
            sums[number] += near - vectors[place]
            if place >= WINDOW:
                near -= vectors[place - WINDOW]
    return [_around_mean(_digits(total)) for total in sums]


def _levels(direction: Sequence[float]) -> int:
    """Return a direction as an integer of small digits."""
    middle, largest = _LEVELS / 2, max(map(abs, direction)) or 1.0
    # A few large numbers of a direction are cut, as most are within a third of the largest.
    scale = middle / largest * 1.5
    return int.from_bytes(
        array("I", [min(_LEVELS, max(0, round(middle + scale * number))) for number in direction]).tobytes(), "little"
    )


def _digits(total: int) -> "array[int]":
    return array("I", total.to_bytes(_SIZE, "little"))


def _around_mean(numbers: Sequence[float]) -> list[float]:
    """Return the numbers without their mean, which the levels have brought in, with length 1."""
    mean = sum(numbers) / DIMENSIONS
    centred = [number - mean for number in numbers]
    length = math.sqrt(sum(map(mul, centred, centred))) or 1.0
    return [number / length for number in centred]


def _centred(directions: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the directions without what all have in common."""
    mean = [sum(numbers) / max(1, len(directions)) for numbers in zip(*directions, strict=True)]
    return [_around_mean(list(map(sub, direction, mean))) for direction in directions]


def _as_bytes(direction: Sequence[float]) -> bytes:
    largest = max(map(abs, direction)) or 1.0
    return bytes([128 + round(127 * number / largest) for number in direction])


def _spread(direction: bytes) -> int:
    """Return the numbers of a direction, each as a digit of its own."""
    digits = bytearray(_SIZE)
    digits[::_LANE] = direction
    return int.from_bytes(digits, "little")
