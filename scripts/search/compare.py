"""Two runs of ``bench search`` compared, question by question: which one is better, and whether that may be chance.

``keep`` writes the outcomes of a run, a file for each corpus; ``compared`` reads those of another tree's run. The test
is Fisher's randomization test of paired differences, which asks how often a difference as large comes about when the
two outcomes of each question are swapped by chance; it needs no shape of distribution, and of all tests in use for
rankings it and the t-test are the ones that hold (Smucker and others, "A Comparison of Statistical Significance Tests
for Information Retrieval Evaluation", 2007).
"""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SWAPS = 5_000
"""Random swaps: the probability is right to about .006."""

Outcomes = Mapping[str, Mapping[str, float]]
"""nDCG@10 by kind of question and question."""


def keep(folder: Path, corpus: str, outcomes: Outcomes) -> None:
    """Write the outcomes of a corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{corpus}.json").write_text(json.dumps(outcomes, ensure_ascii=False, indent=0), encoding="utf-8")


def kept(folder: Path, corpus: str) -> Outcomes:
    """Return the outcomes of a corpus that ``keep`` has written; empty when there are none."""
    file = folder / f"{corpus}.json"
    found: Outcomes = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found


def compared(before: Mapping[str, Outcomes], now: Mapping[str, Outcomes]) -> list[dict[str, Any]]:
    """Return a row for each corpus and kind, for each kind, and for all. Questions that one run lacks are left out.

    ``before`` and ``now``: outcomes by corpus. A mean over corpora counts each corpus alike.
    """
    rows: list[dict[str, Any]] = []
    pairs: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for corpus, kinds in now.items():
        for kind, scores in kinds.items():
            known = before.get(corpus, {}).get(kind, {})
            both = [(known[query], score) for query, score in scores.items() if query in known]
            if both:
                pairs.setdefault(kind, {})[corpus] = both
                rows.append(_row(corpus, kind, [both]))
    rows += [_row("mean", kind, list(of_kind.values())) for kind, of_kind in sorted(pairs.items())]
    if rows:
        rows.append(_row("mean", "all", [both for of_kind in pairs.values() for both in of_kind.values()]))
    return rows


def _row(corpus: str, kind: str, groups: Sequence[Sequence[tuple[float, float]]]) -> dict[str, Any]:
    first, second = (
        sum(sum(pair[at] for pair in group) / len(group) for group in groups) / len(groups) for at in (0, 1)
    )
    return {
        "corpus": corpus, "kind": kind, "questions": sum(map(len, groups)), "before": round(first, 3),
        "now": round(second, 3), "difference": round(second - first, 4), "p": round(chance_of(groups), 3),
        "better": sum(now > before for group in groups for before, now in group),
        "worse": sum(now < before for group in groups for before, now in group),
    }  # fmt: skip


def chance_of(groups: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Return the probability of a difference of means at least this large, either way, if both runs were alike.

    The difference is the mean of the groups' mean differences.
    """
    differences = [
        (now - before) / len(group) / len(groups) for group in groups for before, now in group if now != before
    ]
    seen = abs(sum(differences)) - 1e-12
    if not differences or seen <= 0:
        return 1.0
    chance, larger, count = random.Random(5), 0, len(differences)
    for _ in range(SWAPS):
        signs = chance.getrandbits(count)
        total = 0.0
        for difference in differences:
            total += difference if signs & 1 else -difference
            signs >>= 1
        larger += abs(total) >= seen
    return (larger + 1) / (SWAPS + 1)
