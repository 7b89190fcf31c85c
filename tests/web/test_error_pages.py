"""Every code that a problem can carry has a page."""

import ast
import re
from pathlib import Path

import pytest

from service.web.pages.manual import explained_errors

SERVICE = Path(__file__).parent.parent.parent / "service"
NOT_OVER_HTTP = {
    "already_served", "bad_settings", "bad_store", "data_of_another_user", "data_read_only",  # the command line's own
    "diverged", "store_differs", "store_needed", "log_lost", "log_missing", "newer_format", "no_data", "vault_missing",
    "bad_author", "bad_message", "bad_path", "bad_text", "bad_time", "no_such_file",  # answered to the model, or to us
    "index_broken", "text_refused",  # of embeddings and of an index that is made again; no request meets them
    "commit_differs", "commit_not_found", "not_limited", "process_died",  # told by their sentence alone
    "project_unknown",
    "bad_role", "bad_vault_secret", "not_wrapped", "wrapping_key_missing",  # of commands, and of a start
    "claimed",  # between instances
}  # fmt: skip


def codes() -> set[str]:
    found = set()
    for file in SERVICE.glob("**/*.py"):
        text = file.read_text(encoding="utf-8")
        if not re.search(r"\bcode\b[^=\n]*=", text) and not file.match("ports/code_host.py"):
            continue  # five of six modules, whose parsing each process that collects the tests would wait for
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.keyword) and node.arg == "code" and isinstance(node.value, ast.Constant):
                found.add(node.value.value)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                found.update(node.value.value for target in node.targets if getattr(target, "id", "") == "code")
                if file.match("ports/code_host.py"):  # whose constants are codes
                    found.add(node.value.value)
    return {code for code in found if isinstance(code, str)}


@pytest.mark.parametrize("code", sorted(codes() - NOT_OVER_HTTP))
def test_a_code_is_explained(code):
    explained = explained_errors()[code]
    assert explained.title
    assert explained.html.endswith(".</p>\n")
