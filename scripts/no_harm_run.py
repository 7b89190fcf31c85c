"""Random jobs of the builtin editor on random sites of all generators: what harm did they do? ``scripts/no-harm``

Each site has pages with odd names, drafts, versions, translations, parts that pages show, redirects, and links in all
forms of its generator; each job is one of rename, move, remove, fix broken links, set title, create and replace. A
reader that shares nothing with Docsmith's own (``scripts/no_harm/reader.py``) says where each link led before and leads
after.
With ``--builds N`` the generators themselves make N sites of each kind that can be had, before and after two jobs: then
they say where links lead, and how often the reader is wrong.

The same ``--seed`` makes the same sites and jobs; ``--kind`` chooses generators, ``--only SITE`` one site of them, and
``--show`` prints every harm with the job that did it. It ends with 1 where there was harm.
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random

from scripts.no_harm.builds import BUILDERS, build, with_ends
from scripts.no_harm.jobs import HARMS, Harm, Task, harms, make_task
from scripts.no_harm.kinds import KINDS
from scripts.no_harm.reader import Reading, read
from scripts.no_harm.sites import Made, make_site
from tests.adapters.site_jobs import Done, done

WRONG = "reader wrong"
"""Links of which the reader says otherwise than the generator."""
BUILT_JOBS = 2
"""Jobs of a site whose outcome is built."""


def main() -> int:
    return asyncio.run(_run(_options()))


async def _run(options: argparse.Namespace) -> int:
    kinds = options.kind or list(KINDS)
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    began = time.process_time()
    for number in range(options.sites):
        kind = kinds[number % len(kinds)]
        random = Random(f"{options.seed} {kind} {number}")
        made = make_site(kind, random)
        share = options.jobs // options.sites + (number < options.jobs % options.sites)
        tasks = [make_task(made, random) for _ in range(share)]
        if options.only in (None, number):
            await _work(made, tasks, number, counts[kind], options)
    _print(counts)
    print(f"{time.process_time() - began:.0f} s of a core")
    return 1 if any(count[harm] for count in counts.values() for harm in HARMS) else 0


async def _work(made: Made, tasks: list[Task], number: int, count: Counter[str], options: argparse.Namespace) -> None:
    before = read(made.files, made.sample.rules)
    is_built = made.kind in BUILDERS and count["sites"] < options.builds
    count.update(sites=1, links=len(before.links), sound=sum(ends.is_sound for ends in before.ends.values()))
    built = _built(made, made.files, before, count, options) if is_built else None
    left = BUILT_JOBS if built is not None else 0
    for task in tasks:
        ended = await done(made.files, task.instruction)
        after = read(ended.files, made.sample.rules)
        found = harms(made, task, before, after, ended)
        count.update(jobs=1, changed=bool(ended.changed))
        if built is not None and left and ended.changed:
            left -= 1
            then = _built(made, ended.files, after, count, options)
            found = harms(made, task, built, then, ended) if then is not None else found
        count.update(harm.kind for harm in found)
        if found and options.show:
            _show(made.kind, number, task.instruction, found, ended)


def _built(
    made: Made, files: Mapping[str, str], site: Reading, count: Counter[str], options: argparse.Namespace
) -> Reading | None:
    """Return the site with the ends of its links as it is built; None where the generator refuses it."""
    try:
        found = build(made.kind, files, made.sample.rules.base, options.work)
    except SystemExit as refused:
        count["refused"] += 1
        print(f"{made.kind}: {str(refused)[-1500:]}", file=sys.stderr, flush=True)
        return None
    count["built"] += 1
    for name, ends in found.ends.items():
        told = site.ends.get(name)
        if told is not None and (told.is_sound != ends.is_sound or (told.is_sound and told.own != ends.own)):
            count[WRONG] += 1
            seen = site.links[name]
            print(
                f"{made.kind}: {name} on {seen.path}: {seen.target}: {told}, built {ends}", file=sys.stderr, flush=True
            )
    return with_ends(site, found)


def _show(kind: str, number: int, instruction: str, found: list[Harm], ended: Done) -> None:
    print(f"{kind} {number}: {instruction}")
    for harm in found:
        print(f"  {harm.kind}: {harm.said}")
    print("".join(f"    | {line}\n" for line in ended.message.splitlines()), flush=True)


def _print(counts: Mapping[str, Counter[str]]) -> None:
    columns = ["sites", "jobs", "changed", "links", "sound", *HARMS]
    if any(count["built"] + count["refused"] for count in counts.values()):
        columns += ["built", "refused", WRONG]
    rows = [[kind, *(str(count[column]) for column in columns)] for kind, count in counts.items()]
    total = sum(counts.values(), Counter())
    rows = [["", *columns], *rows, ["all", *(str(total[column]) for column in columns)]]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/no-harm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sites", type=int, default=50, help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=200, help="on all sites together (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="a generator; repeatable")
    parser.add_argument("--only", type=int, metavar="SITE", help="the number of one site")
    parser.add_argument("--show", action="store_true", help="print each harm")
    parser.add_argument("--builds", type=int, default=0, metavar="N", help="sites of each kind that are built")
    parser.add_argument("--work", type=Path, default=Path("build/generators"), help="folder of the generators")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
