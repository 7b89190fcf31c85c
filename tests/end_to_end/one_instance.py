"""Tests that cannot apply to several instances behind a round robin, by the beginning of their names, and why.

``conftest`` skips them where DOCSMITH_TESTS_INSTANCES is set.
"""

FILE = "reads or damages the files of a log, which is in PostgreSQL here; tests/cli/test_store.py has the like"
ONE_PROCESS = "limits, signals or measures the one process of a service; each instance is such a process"
ONE_FOLDER = "changes or searches the one data folder of a service; here each instance has its own"
KILLED = "kills the service at events that it reads in the log's file; scripts/faults --only kill-instance does so here"

REASONS = {
    "test_faults.py": FILE,
    "test_erasure.py": FILE,
    "test_job_kills.py": KILLED,
    "test_unwritable_data.py": ONE_PROCESS,
    "test_descriptors.py": ONE_PROCESS,
    "test_index_files.py": ONE_FOLDER,
}


def reason_for(node: str) -> str | None:
    """Return why a test, named as pytest does, cannot apply; None where it can."""
    name = node.rpartition("/")[2]
    return next((reason for beginning, reason in REASONS.items() if name.startswith(beginning)), None)
