"""Requests made up from the API's own description, sensible ones and others, and every answer held against it.

The normal run makes some 1,500 of them, always the same. ``FUZZ_SECONDS=600`` has Schemathesis go on for that long,
with other ones each time, and follow the links from one operation to the next, too; ``-s`` shows its figures.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service_process import service_in, write_docs

pytest.importorskip("schemathesis")

SECONDS = int(os.environ.get("FUZZ_SECONDS", "0"))
SHARE = ("--phases", "examples,coverage,fuzzing", "--max-examples", "2", "--seed", "1")
WHOLE = ("--max-time", str(SECONDS), "--max-examples", "100")

UNLIMITED = {
    f"DOCSMITH_LIMITS__{name}": "1000000000"
    for name in ("PROJECT_HOUR", "ASSISTANT_KEY_MONTH", "ORGANIZATION_HOUR", "ADDRESS_DAY")
}

REFUSED = {
    "createJob": (422, "a key of an earlier request with another one"),
    "messageJob": (422, "as before"),
    "createJobV1": (400, "a model that the settings do not name, or nothing but blanks"),
    "ask": (400, "a chat without words of its user"),
    "askV1": (400, "as before"),
    "listJobs": (400, "a cursor that no answer gave"),
    "listConversations": (400, "a period that ends before it begins"),
    "listUnanswered": (400, "as before"),
    "listFeedback": (400, "as before"),
}
"""What a schema cannot say: what else an operation may answer to a request that fits its schema, and to which."""


def configuration(service):
    lines = [
        "request-timeout = 30",
        "continue-on-failure = true",
        f'[auth.openapi.admin]\nbearer = "{service.admin_key}"',
        f'[auth.openapi.assistant]\nbearer = "{service.assistant_key}"',
        f'[parameters]\n"path.projectId" = "{service.project_id}"\n"path.domain" = "{service.domain}"',
    ]
    for operation, (status, _) in REFUSED.items():
        taken = ["2xx", "304", "403", "404", "409", str(status), *(["422"] if operation == "createJobV1" else [])]
        lines.append(
            f'[[operations]]\ninclude-operation-id = "{operation}"\n'
            f"checks.positive_data_acceptance.expected-statuses = {json.dumps(taken)}"
        )
    return "\n\n".join(lines) + "\n"


def test_no_request_gets_an_answer_that_the_description_does_not_have(tmp_path):
    with service_in(tmp_path, UNLIMITED) as service:
        service.set_up(write_docs(tmp_path / "docs"))
        service.start()
        (tmp_path / "schemathesis.toml").write_text(configuration(service), encoding="utf-8")
        done = subprocess.run(
            [
                Path(sys.executable).with_name("schemathesis"),
                *("--config-file", "schemathesis.toml", "run", f"{service.url}/openapi.json"),
                *(WHOLE if SECONDS else SHARE),
                *("--no-shrink", "--warnings", "off"),
            ],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parent), "SCHEMATHESIS_HOOKS": "schemathesis_hooks"},
            capture_output=True,
            text=True,
            timeout=SECONDS + 600,
            check=False,
        )
        print(done.stdout)  # noqa: T201  (shown with -s, and of a run that failed)
        assert done.returncode == 0, done.stderr[-5_000:]
        assert "unhandled" not in service.log()
