"""Requests made up from the API's own description, sensible ones and others, and every answer held against it.

The normal run makes some 3,600 of them, always the same. ``FUZZ_SECONDS=600`` has Schemathesis go on for that long,
with other ones each time, and follow the links from one operation to the next, too; ``-s`` shows its figures.
``scripts/fuzz`` makes a number of them.
"""

import os

import pytest

from tests.end_to_end.fuzzing import UNLIMITED, fuzz
from tests.service_process import service_in, write_docs

pytestmark = pytest.mark.slow

pytest.importorskip("schemathesis")

SECONDS = int(os.environ.get("FUZZ_SECONDS", "0"))
SHARE = ("--phases", "examples,coverage,fuzzing", "--max-examples", "1", "--seed", "1")
WHOLE = ("--max-time", str(SECONDS), "--max-examples", "100")


def test_every_answer_is_in_the_description(tmp_path):
    with service_in(tmp_path, UNLIMITED) as service:
        service.set_up(write_docs(tmp_path / "docs"))
        service.start()
        done, statuses = fuzz(service, tmp_path, *(WHOLE if SECONDS else SHARE), seconds=SECONDS + 600)
        print(done.stdout)  # noqa: T201  (shown with -s, and of a run that failed)
        assert done.returncode == 0, done.stderr[-5_000:]
        assert sum(statuses.values()) > 500
        assert not [status for status in statuses if status >= "5" and status != "503"]
        assert "unhandled" not in service.log()
