"""Schemathesis against a running service: how it is asked, and what it may be answered."""

import json
import os
import subprocess
import sys
from pathlib import Path

from service.runtime.settings.settings import LimitsSection
from tests.service_process import Service

UNLIMITED = {f"DOCSMITH_LIMITS__{name}".upper(): "0" for name in LimitsSection.__struct_fields__}
"""Settings without limits: no answer has the fields of one."""

REFUSED = {
    "createJob": (422, "a key of an earlier request with another one"),
    "messageJob": (422, "as before"),
    "createJobV1": (400, "a model that the settings do not name"),
    "ask": (400, "a chat whose last message of its user has no text"),
    "askV1": (400, "as before"),
    "listConversations": (400, "a period that ends before it begins"),
    "listUnanswered": (400, "as before"),
    "summarizeChecks": (400, "as before"),
    "evaluateSearch": (400, "a question with both pages and facts, or neither"),
    "listFeedback": (400, "as before"),
    "listQuestions": (400, "a period that ends before it begins"),
    "listGaps": (400, "as before"),
    "dismissGap": (400, "as before"),
    "getAnalytics": (400, "as before"),
    "addPerson": (400, "an address of no form"),
    "updateProject": (400, "a token for an address without https"),
    "changeSiteAccess": (400, "an origin of no form"),
    "changeSiteWidget": (400, "a colour of no form"),
    "createWebhook": (400, "an address of no form"),
    "createKey": (400, "a site that is not there"),
    "createProject": (400, "a token with a line break"),
    "uploadProject": (400, "a body that is no zip archive"),
    "uploadVersion": (400, "as before"),
}
"""What a schema cannot say: what else an operation may answer to a request that fits its schema, and to which."""


OWN_KEY = ("changeKey", "revokeKey")
"""They find the fuzzer's own key in the list of keys, and end or bind it: what comes later would only be refused."""
ALSO = {"createJobV1": ("422",), "createProject": ("503",)}
"""503: it looks at an address of others, which is out of reach here."""


def configuration(service: Service) -> str:
    lines = [
        "request-timeout = 30",
        "continue-on-failure = true",
        f'[auth.openapi.admin]\nbearer = "{service.admin_key}"',
        f'[auth.openapi.assistant]\nbearer = "{service.assistant_key}"',
        '[checks]\nnegative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413",'
        ' "415", "422", "428", "429", "431", "5xx"]',  # 431: a query in the address that is longer than a head may be
        f'[parameters]\n"path.projectId" = "{service.project_id}"\n"path.domain" = "{service.domain}"',
    ]
    for operation, (status, _) in REFUSED.items():
        taken = ["2xx", "304", "403", "404", "409", str(status), *ALSO.get(operation, ())]
        lines.append(
            f'[[operations]]\ninclude-operation-id = "{operation}"\n'
            f"checks.positive_data_acceptance.expected-statuses = {json.dumps(taken)}"
            + (
                '\nchecks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "503"]'
                if "503" in ALSO.get(operation, ())
                else ""
            )
        )
    lines += [f'[[operations]]\ninclude-operation-id = "{operation}"\nenabled = false' for operation in OWN_KEY]
    return "\n\n".join(lines) + "\n"


def fuzz(
    service: Service, folder: Path, *options: str, seconds: float = 600
) -> tuple["subprocess.CompletedProcess[str]", dict[str, int]]:
    """Run Schemathesis; return how that ended, and how many answers there were of each status."""
    (folder / "schemathesis.toml").write_text(configuration(service), encoding="utf-8")
    counts = folder / "counts.json"
    counts.write_text("{}")
    done = subprocess.run(
        [
            Path(sys.executable).with_name("schemathesis"),
            *("--config-file", "schemathesis.toml", "run", f"{service.url}/openapi.json"),
            *options,
            *("--no-shrink", "--warnings", "off"),
        ],
        cwd=folder,
        env=os.environ
        | {
            "PYTHONPATH": str(Path(__file__).parent),
            "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
            "FUZZ_COUNTS": str(counts),
        },
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return done, json.loads(counts.read_text())
