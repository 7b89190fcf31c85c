"""From ``docsmith login`` to a key that works in curl, by keyboard alone."""

import json
import shutil
import subprocess

import pytest

from tests.dashboard.keyboard import create_key

pytestmark = pytest.mark.slow


def test_key_that_works_in_curl_by_keyboard_alone(service, browsing):
    if shutil.which("curl") is None:
        pytest.skip("asks with curl; install curl to run it")
    link = service.cli("login", "--person", "owner@example.com")["link"]
    with browsing.opened() as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        key, command = create_key(page, link)
    assert key.startswith("docsmith_")
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert isinstance(json.loads(done.stdout)["jobs"], list), done
