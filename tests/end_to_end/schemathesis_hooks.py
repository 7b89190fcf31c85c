"""What the API's description promises beyond what Schemathesis looks for by itself; loaded by its command line."""

import atexit
import json
import os
from collections import Counter
from pathlib import Path

import schemathesis


@schemathesis.check
def code_is_documented(ctx, response, case):
    """The ``code`` of an error is one of those that the description names for its status."""
    answers = case.operation.definition.raw["responses"]
    codes = answers.get(str(response.status_code), {}).get("x-codes")
    if codes is not None and "application/problem+json" in str(response.headers.get("content-type")):
        told = json.loads(response.content)
        assert told["code"] in codes, f"{told['code']} is none of {codes}"
        assert (told["status"], told["error"]) == (response.status_code, told["detail"])
        assert response.headers["x-request-id"] == [told["requestId"]]


_statuses: Counter[str] = Counter()


@schemathesis.hook
def after_call(context, case, response):
    _statuses[str(response.status_code)] += 1


def _write_counts(file):
    Path(file).write_text(json.dumps(_statuses))


if "FUZZ_COUNTS" in os.environ:
    atexit.register(_write_counts, os.environ["FUZZ_COUNTS"])
