"""Rules of the house that a machine can count; scripts/survey prints the figures."""

import functools
from collections import Counter
from pathlib import Path

from scripts.survey_run import broad_excepts, cycles, fence_detectors, imports, modules

ROOT = Path(__file__).parent.parent
EDGES = {
    "eventstore/threads.py": 1,
    "service/adapters/models/litellm_model.py": 2,
    "service/retrieval/readers/sphinx/rst.py": 1,
    "service/retrieval/site/pages.py": 1,
    "service/runtime/processes.py": 4,
    "service/workers/indexing/indexer.py": 1,
    "service/workers/jobs/runner.py": 1,
    "service/workers/replies/replier.py": 1,
    "service/workers/reviews/schedule.py": 1,
    "service/workers/webhooks.py": 2,
}
"""Clauses that catch everything, by module: each is where a process, a request, a job or a thread ends."""


@functools.cache
def found():
    """Return the modules, read where a test runs: not by each process that collects the tests."""
    return modules(ROOT)


def test_no_modules_import_each_other():
    assert cycles(imports(found())) == []


def test_markdown_fences_are_looked_for_in_one_package():
    assert {name for name in fence_detectors(found()) if not name.startswith("service/markup/")} == set()


def test_no_module_waits_by_wait_for():
    """Until Python 3.12 it drops a cancellation that comes as its awaitable ends: the task goes on, a stop hangs."""
    files = [file for folder in ("service", "eventstore") for file in sorted((ROOT / folder).rglob("*.py"))]
    assert [file for file in files if "asyncio.wait_for(" in file.read_text(encoding="utf-8")] == []


def test_every_broad_except_is_a_listed_edge():
    assert Counter(place.rpartition(":")[0] for place in broad_excepts(found())) == EDGES
