"""One service, two organizations: A attacks it in each way that is known, and B says what it feels of that.

Each attack has a service of its own, with the same data. B loads it all the time with a request of each kind after the
other; what its requests take is compared with how long they took in the calm before, at the same service, since other
work on the machine comes and goes. Processor time is the service's and its children's from the attack's beginning until
they are idle again; what B costs is in it.
"""

import argparse
import asyncio
import contextlib
import json
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.attacks.all import ATTACKS
from scripts.attacks.attack import Attack
from scripts.attacks.ground import Elsewhere, Ground
from scripts.attacks.neighbour import PAUSES, Neighbour, percentile
from scripts.bench_table import report
from scripts.soak_run import RealService

MAX_MILLISECONDS = 250
MAX_TIMES = 3
MAX_PROCESSOR_SECONDS = 60
SETTLE_SECONDS = 120
"""How long what an attack has left behind is waited for."""


@dataclass
class Felt:
    """B's figures in one attack, and the service's meanwhile."""

    name: str
    p50: dict[str, float] = field(default_factory=dict)
    """Milliseconds by kind of request."""
    p99: dict[str, float] = field(default_factory=dict)
    calm: dict[str, float] = field(default_factory=dict)
    """The p99 before the attack."""
    failures: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    wrong_answers: list[str] = field(default_factory=list)
    processor_seconds: float = 0.0
    errors: int = 0
    """Answers of 5xx but 503, to anyone."""
    readiness: Counter[str] = field(default_factory=Counter)
    died: bool = False

    def slow(self) -> list[str]:
        """The kinds of requests that took longer than they should."""
        return [kind for kind, took in self.p99.items() if took > max(MAX_MILLISECONDS, MAX_TIMES * self.calm[kind])]

    def is_readiness_true(self) -> bool:
        """Where B was not served, somebody must have been able to see it."""
        return not self.failures or any(state != "ready" for state in self.readiness)


class Siege:
    def __init__(self, ground: Ground, folder: Path, seconds: float, scale: float) -> None:
        self._ground, self._folder, self._seconds, self._scale = ground, folder, seconds, scale

    async def prepare(self) -> None:
        await self._ground.set_up(self._folder)
        await asyncio.to_thread(self._ground.service.stop)
        shutil.copytree(self._ground.service.data, self._folder / "pristine")

    async def felt(self, attack: Attack) -> Felt:
        """Make an attack at a service that has seen none before."""
        service = self._ground.service
        service.kill()
        shutil.rmtree(service.data)
        shutil.copytree(self._folder / "pristine", service.data)
        self._ground.elsewhere.mood = ""
        await self._ground.restart()
        await Neighbour(service.url, self._ground.b).once()  # what the first one costs is no attack's doing
        calm = Neighbour(service.url, self._ground.b)
        await calm.run(self._seconds / 2)
        neighbour = Neighbour(service.url, self._ground.b)
        log, spent = len(service.log()), self._ground.processor_seconds()
        self._ground.elsewhere.mood = attack.mood
        attacking = asyncio.create_task(self._attacked(attack))
        await neighbour.run(self._seconds)
        felt = Felt(attack.name, failures=neighbour.failures, readiness=neighbour.readiness)
        felt.calm = {kind: percentile(found, 0.99) * 1000 for kind, found in calm.seconds.items()}
        felt.p50 = {kind: percentile(found, 0.5) * 1000 for kind, found in neighbour.seconds.items()}
        felt.p99 = {kind: percentile(found, 0.99) * 1000 for kind, found in neighbour.seconds.items()}
        felt.answers = await attacking
        felt.wrong_answers = sorted(set(felt.answers) - attack.answers)
        felt.died = service.process is None or service.process.poll() is not None
        if not felt.died:
            await self._settle()
            felt.processor_seconds = self._ground.processor_seconds() - spent
        statuses = re.findall(r'"status":(\d+)', service.log()[log:])
        felt.errors = sum(status >= "500" and status != "503" for status in statuses)
        return felt

    async def _attacked(self, attack: Attack) -> Counter[str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "scripts.attacks.all", attack.name, "--seconds", str(self._seconds),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(self._seconds * 3 + 60):
                target = self._ground.target(self._scale).as_json()
                out, err = await process.communicate(target.encode() + b"\n")
        except TimeoutError:
            process.kill()
            return Counter({"attacker did not end": 1})
        if process.returncode != 0:
            print(err.decode()[-3_000:], file=sys.stderr)
            return Counter({"attacker failed": 1})
        return Counter(json.loads(out))

    async def _settle(self) -> None:
        """Wait until the service has nothing more to do, or for as long as is waited for that."""
        ends, before = time.monotonic() + SETTLE_SECONDS, self._ground.processor_seconds()
        while time.monotonic() < ends:
            await asyncio.sleep(2)
            now = self._ground.processor_seconds()
            if now - before < 0.3:
                return
            before = now


def row(felt: Felt) -> dict[str, Any]:
    """A line of the table: of each kind of request p50, p99, and p99 in calm."""
    cells: dict[str, Any] = {"attack": felt.name}
    for kind in PAUSES:
        mark = "!" if kind in felt.slow() else ""
        cells[f"{kind} ms"] = f"{felt.p50[kind]:.0f} {felt.p99[kind]:.0f}{mark} ({felt.calm[kind]:.0f})"
    answers = ", ".join(f"{count} of {status}" for status, count in sorted(felt.answers.items()))
    return {
        **cells, "B failed": felt.failures.total(), "A's answers": answers,
        "processor s": f"{felt.processor_seconds:.1f}", "5xx": felt.errors, "readyz": ", ".join(felt.readiness),
    }  # fmt: skip


def goals_of(all_felt: list[Felt]) -> list[dict[str, Any]]:
    found = {
        "B's p99": (
            f"at most {MAX_TIMES} times calm, or {MAX_MILLISECONDS} ms",
            [
                f"{one.name}: {', '.join(f'{kind} {one.p99[kind]:.0f} ms' for kind in slow)}"
                for one in all_felt
                if (slow := one.slow())
            ],
        ),
        "B's requests": (
            "all answered",
            [f"{one.name}: {', '.join(one.failures)}" for one in all_felt if one.failures],
        ),
        "processor": (
            f"at most {MAX_PROCESSOR_SECONDS} s for an attack",
            [
                f"{one.name}: {one.processor_seconds:.0f} s"
                for one in all_felt
                if one.processor_seconds > MAX_PROCESSOR_SECONDS
            ],
        ),
        "5xx but 503": ("none", [f"{one.name}: {one.errors}" for one in all_felt if one.errors]),
        "A's answers": (
            "as expected",
            [f"{one.name}: {', '.join(one.wrong_answers)}" for one in all_felt if one.wrong_answers],
        ),
        "/readyz": ("true to the state", [one.name for one in all_felt if not one.is_readiness_true()]),
        "the process": ("lives", [one.name for one in all_felt if one.died]),
    }
    return [
        {"name": name, "goal": goal, "measured": "; ".join(missed) or goal, "met": not missed}
        for name, (goal, missed) in found.items()
    ]


async def besiege(names: list[str], seconds: float, scale: float) -> list[Felt]:
    all_felt = []
    with tempfile.TemporaryDirectory(prefix="docsmith-siege-", ignore_cleanup_errors=True) as folder:
        service = RealService(Path(folder) / "data")
        async with Elsewhere().open() as elsewhere:
            ground = Ground(service, elsewhere)
            siege = Siege(ground, Path(folder), seconds, scale)
            try:
                await siege.prepare()
                for name in names:
                    all_felt.append(await siege.felt(ATTACKS[name]))
                    print(json.dumps(row(all_felt[-1]), ensure_ascii=False), file=sys.stderr, flush=True)
            finally:
                service.kill()
                await ground.close()
    return all_felt


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the attacks, and do nothing")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this attack; repeatable")
    parser.add_argument("--seconds", type=float, default=20, help="for each attack")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers and sizes of each attack")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.list:
        for one in ATTACKS.values():
            print(f"{one.name:24}{one.what}")
        return 0
    unknown = sorted(set(options.only or ()) - set(ATTACKS))
    if unknown:
        parser.error(f"unknown attack {unknown[0]}; scripts/siege --list names them")
    with contextlib.suppress(KeyboardInterrupt):
        felt = asyncio.run(besiege(options.only or list(ATTACKS), options.seconds, options.scale))
        goals = goals_of(felt)
        report("siege", [row(one) for one in felt], goals, as_json=options.json)
        return 0 if all(goal["met"] for goal in goals) else 1
    return 1


if __name__ == "__main__":
    sys.exit(main())
