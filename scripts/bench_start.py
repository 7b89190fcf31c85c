"""How soon the service takes requests, from its source, and how long small commands take.

    scripts/bench start [--runs N] [--json]

On a data folder with one site of 1,000 generated pages. Each start is a new process, all after one that is not counted:
it compiles the modules. Processor time is that of the process and its threads up to the line that it prints, so that it
says the same on a machine that is busy with other work.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts.bench_streaming import command, generated
from scripts.bench_table import report

START_MS = 400
TICKS = os.sysconf("SC_CLK_TCK")
MB = 1 << 20


class Run(NamedTuple):
    elapsed_ms: float
    processor_ms: float
    memory_mb: float
    """0 for a command that has ended."""


def start(data: Path) -> Run:
    """Start the service, stop it when it listens."""
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "service", "serve", "--port", "0", "--data", str(data)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        elapsed = time.perf_counter() - began
        fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        process.terminate()
    user, system, pages = int(fields[11]), int(fields[12]), int(fields[21])
    return Run(elapsed * 1000, (user + system) / TICKS * 1000, pages * os.sysconf("SC_PAGE_SIZE") / MB)


def run_command(*arguments: str) -> Run:
    began, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-m", "service", *arguments], stdout=subprocess.DEVNULL, check=True)
    elapsed, after = time.perf_counter() - began, os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(elapsed * 1000, spent * 1000, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--pages", type=int, default=1000)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each start compiles all modules again
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        command(data, "organization", "create", "--name", "Bench")
        docs = generated(Path(folder) / "docs", options.pages)
        command(data, "project", "create", "--name", "Bench", "--repository", str(docs), "--domain", "bench")
        command(data, "index", "bench")
        start(data)
        found = {"start to listening": [start(data) for _ in range(options.runs)]}
        for arguments in (["--version"], ["key", "list", "--data", str(data)]):
            name = f"docsmith {' '.join(word for word in arguments if word not in ('--data', str(data)))}"
            found[name] = [run_command(*arguments) for _ in range(options.runs)]
    rows = [
        {
            "what": name,
            "median ms": round(median(one.elapsed_ms for one in runs)),
            "best ms": round(min(one.elapsed_ms for one in runs)),
            "processor ms": round(median(one.processor_ms for one in runs)),
            "MB": round(median(one.memory_mb for one in runs)) or "",
            "times": len(runs),
        }
        for name, runs in found.items()
    ]
    measured = median(one.elapsed_ms for one in found["start to listening"])
    goal = {
        "name": "start to listening, from source, median", "goal": f"at most {START_MS} ms",
        "measured": f"{measured:.0f} ms", "met": measured <= START_MS,
    }  # fmt: skip
    report("start", rows, [goal], as_json=options.json)


if __name__ == "__main__":
    main()
