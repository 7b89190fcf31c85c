"""All attacks, and the process of its own in which one of them is made: ``python -m scripts.attacks.all NAME``.

It reads its target from standard input, and prints what it was answered when its time is over.
"""

import argparse
import asyncio
import contextlib
import json
import sys
from collections import Counter

from scripts.attacks import http, packs, pages, work
from scripts.attacks.attack import Answers, Attack
from scripts.attacks.ground import Target

ATTACKS: dict[str, Attack] = {
    one.name: one
    for one in (*http.ATTACKS, *packs.ATTACKS, *pages.ATTACKS, *work.ATTACKS)
}  # fmt: skip


async def make(attack: Attack, target: Target, seconds: float) -> Answers:
    """Attack for so long, and return what was answered."""
    answers: Answers = Counter()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await attack.run(target, answers)
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(ATTACKS))
    parser.add_argument("--seconds", type=float, default=15)
    options = parser.parse_args()
    target = Target.of_json(sys.stdin.readline())
    print(json.dumps(asyncio.run(make(ATTACKS[options.name], target, options.seconds))))


if __name__ == "__main__":
    main()
