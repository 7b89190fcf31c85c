"""Our scripts for browsers, by Node's own test runner: each file of tests, and the sizes that pages rely on."""

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from service.web.ask.sdk import find_script

FOLDER = Path(__file__).parent
SCRIPTS = Path("service/web/scripts")
MAX_GZIP_BYTES = {"assistant.js": 8_000, "markdown.js": 8_000, "widget/highlight.js": 10_000}


@pytest.mark.parametrize("name", sorted(file.name for file in FOLDER.glob("*.test.mjs")))
def test_script_does_what_its_tests_say(name):
    if shutil.which("node") is None:
        pytest.skip("node is missing: install Node.js 20 or later")
    command = ["node", "--test", name]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr


@pytest.mark.parametrize("name", sorted(MAX_GZIP_BYTES))
def test_script_stays_small_and_stands_alone(name):
    served = find_script(name)
    body = served.body if served is not None else (SCRIPTS / name).read_bytes()
    assert len(gzip.compress(body, 9)) <= MAX_GZIP_BYTES[name]
    assert not re.search(rb"^\s*import |\bimport\(", body, re.MULTILINE)
    for forbidden in (b"innerHTML", b"outerHTML", b"insertAdjacentHTML", b"document.write", b"eval(", b"new Function"):
        assert forbidden not in body
    assert "/" in name or (SCRIPTS / name).with_suffix(".d.ts").is_file()
