"""Faults of disk, memory, descriptors, clock, network and processes, many of each: what did they cost?

After each round everything that was acknowledged must be there: a job with one pull request, an answer on its thread,
the log whole. At the end nothing may be left behind that was only there while something was written. ``--only NAME``
runs one fault, ``--list`` names all.
"""

import argparse
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from scripts.bench_table import report
from scripts.outages.instances import PAUSE_SECONDS
from scripts.outages.kinds import FAULTS, Count, Fault, pause_instance
from scripts.outages.site import Lost


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of each fault (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=list(FAULTS), help="this fault; repeatable")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (default: %(default)s)")
    parser.add_argument(
        "--pause-seconds", type=float, default=PAUSE_SECONDS, metavar="SECONDS",
        help="of pause-instance, longer than a lease (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="name the faults")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.list:
        for name, fault in FAULTS.items():
            print(f"{name:<14} {(fault.__doc__ or '').strip().splitlines()[0]}")
        return 0
    faults: dict[str, Fault] = {
        **FAULTS, "pause-instance": partial(pause_instance, pause_seconds=options.pause_seconds)
    }  # fmt: skip
    rows, goals = [], []
    for name in options.only or FAULTS:
        began, count, problem = time.monotonic(), Count(), ""
        with tempfile.TemporaryDirectory(prefix="docsmith-faults-") as folder:
            try:
                faults[name](Path(folder), options.rounds, random.Random(f"{options.seed} {name}"), count)
            except Lost as error:
                problem = str(error)
        row = {"fault": name, "rounds": count.rounds, "acknowledged": count.acknowledged, "refused": count.refused}
        rows.append({**row, "seconds": round(time.monotonic() - began)})
        goals.append(
            {
                "name": name,
                "goal": "nothing lost, doubled or left",
                "measured": problem or "nothing",
                "met": not problem,
            }
        )
        print(f"{name}: {rows[-1]} {problem}", file=sys.stderr, flush=True)
    report("faults", rows, goals, as_json=options.json)
    return 0 if all(goal["met"] for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
