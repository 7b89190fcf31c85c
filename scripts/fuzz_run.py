"""Requests made up from the API's description, and raw malformed ones, at a service of its own; counted by status.

The first are Schemathesis's, in rounds with other seeds until the number asked for is reached; each answer must be
one that the description has. The others are ``tests/end_to_end/malformed.py``'s: whatever is sent, no answer is a 5xx
but 503. And ``tests/mcp/fuzzing.py``'s, to each of the two servers for agents: no answer is a 5xx.

``--streams`` reads broken streams of models' providers, ``tests/adapters/stream_fuzzing.py``'s, of each protocol: they
end as the table of failures says, memory is bounded, and no turn of the event loop takes over 10 ms of processor time,
where we read them: a chunk that litellm reads takes as long as its objects take.
"""

import argparse
import asyncio
import gc
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from scripts.bench_table import report
from tests.adapters.stream_fuzzing import MOST_SECONDS, PROTOCOLS, READERS, Protocol, read_all
from tests.end_to_end.fuzzing import UNLIMITED, fuzz
from tests.end_to_end.malformed import QUICK, send_malformed
from tests.mcp.fuzzing import ADMIN_CALLS, CALLS, send_all
from tests.service_process import service_in, write_docs

MAX_SHOWN = 10


def described(folder: Path, requests: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Schemathesis: the statuses, and what it found wrong."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with service_in(folder, UNLIMITED) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        while counts.total() < requests:
            done, statuses = fuzz(
                service, folder,
                *("--phases", "examples,coverage,fuzzing", "--max-examples", "25", "--seed", str(seed)),
                seconds=3600,
            )  # fmt: skip
            counts.update(statuses)
            seed += 1
            print(f"schemathesis: {counts.total()} requests", file=sys.stderr)
            if done.returncode != 0:
                wrong.append(done.stdout[-20_000:])
            if not statuses:
                raise SystemExit(done.stdout + done.stderr)
        if "unhandled" in service.log():
            wrong.append("the service logged an unhandled error")
    return counts, wrong


def malformed(folder: Path, requests: int, seed: int) -> tuple[Counter[str], list[str]]:
    with service_in(folder, UNLIMITED | QUICK) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        counts, wrong = asyncio.run(send_malformed(service, number=requests, seed=seed))
        found = [repr(sent[:600]) for sent in wrong]
        if "unhandled" in service.log():
            found.append("the service logged an unhandled error")
    return counts, found


def mcp(folder: Path, requests: int, seed: int) -> tuple[Counter[str], list[str]]:
    with service_in(folder, UNLIMITED | QUICK) as service:
        service.set_up(write_docs(folder / "docs"))
        service.start()
        counts: Counter[str] = Counter()
        found: list[str] = []
        servers = ((f"mcp/{service.domain}", CALLS, service.assistant), ("mcp", ADMIN_CALLS, service.admin))
        for path, calls, key in servers:
            statuses, wrong = asyncio.run(send_all(f"{service.url}/{path}", seed, requests, calls, **key))
            counts.update({str(status): count for status, count in statuses.items()})
            found += [one[:600] for one in wrong]
        if "unhandled" in service.log():
            found.append("the service logged an unhandled error")
    return counts, found


Goal = dict[str, Any]
MOST_MEBIBYTES = 64
"""Memory while one stream is read, besides the stream: what is kept has 4 MiB at most, and is read several times."""
_WARMED_BY = 500


def streams(protocol: Protocol, number: int, seed: int) -> tuple[Counter[str], list[Goal], list[str]]:
    """Read streams: their ends, what is to hold, and those for which something does not."""
    asyncio.run(read_all(protocol, seed=seed, count=_WARMED_BY))  # what is imported late
    gc.collect()
    gc.freeze()
    found = asyncio.run(read_all(protocol, seed=seed + 1, count=number))
    ends, held = found.ends, found.most_bytes // (1 << 20)
    goals = [
        goal(f"{protocol}: exceptions and broken promises", "none", len(found.wrong), met=not found.wrong),
        goal(
            f"{protocol}: most memory for one stream, MiB, of {found.measured} measured",
            f"<= {MOST_MEBIBYTES}",
            held,
            met=held <= MOST_MEBIBYTES,
        ),
    ]
    if protocol not in READERS:  # litellm's objects
        ends["a turn took over 10 ms, in litellm"] = len(found.slow)
        return ends, goals, found.wrong
    goals += [
        goal(
            f"{protocol}: longest turn, ms of processor time",
            f"<= {1000 * MOST_SECONDS:.0f}",
            round(1000 * found.most_seconds, 1),
            met=found.most_seconds <= MOST_SECONDS,
        ),
        goal(f"{protocol}: longer turns", "none", len(found.slow), met=not found.slow),
    ]
    return ends, goals, found.wrong + found.slow


def goal(name: str, wanted: str, measured: float, *, met: bool) -> Goal:
    return {"name": name, "goal": wanted, "measured": str(measured), "met": met}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2_000, help="of Schemathesis, at least")
    parser.add_argument("--malformed", type=int, default=1_000, help="raw ones")
    parser.add_argument("--mcp", type=int, default=2_000, help="messages to each server for agents")
    parser.add_argument("--streams", type=int, default=0, help="broken streams of models, of each protocol")
    parser.add_argument("--protocol", choices=PROTOCOLS, help="of the streams; all if it is left out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows, goals, shown = [], [], []
    kinds = (
        ("described", described, options.requests),
        ("malformed", malformed, options.malformed),
        ("mcp", mcp, options.mcp),
    )
    for name, run, number in kinds:
        if not number:
            continue
        with tempfile.TemporaryDirectory(prefix="docsmith-fuzz-") as folder:
            counts, wrong = run(Path(folder), number, options.seed)
        rows += [{"kind": name, "answer": status, "count": count} for status, count in sorted(counts.items())]
        errors = sum(
            count for status, count in counts.items() if status >= "5" and status.isdigit() and status != "503"
        )
        goals += [
            {"name": f"{name}: 5xx but 503", "goal": "none", "measured": str(errors), "met": errors == 0},
            {"name": f"{name}: wrong answers", "goal": "none", "measured": str(len(wrong)), "met": not wrong},
        ]
        shown += wrong[:MAX_SHOWN]
    for protocol in PROTOCOLS if options.streams else ():
        if options.protocol in (None, protocol):
            counts, held, wrong = streams(protocol, options.streams, options.seed)
            rows += [{"kind": protocol, "answer": end, "count": count} for end, count in sorted(counts.items())]
            goals += held
            shown += wrong[:MAX_SHOWN]
    report("fuzz", rows, goals, as_json=options.json)
    for one in shown:
        print(one, file=sys.stderr)
    return 0 if all(goal["met"] for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
