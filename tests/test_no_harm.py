"""Random jobs on random sites, as scripts/no-harm runs them: no harm."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.no_harm.kinds import vitepress_slug
from scripts.no_harm.reader import Rules, read

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_random_jobs_do_no_harm():
    command = [sys.executable, "-m", "scripts.no_harm_run", "--sites", "26", "--jobs", "104", "--seed", "7", "--show"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-2].split()[:3] == ["all", "26", "104"]


def test_reader_of_the_script_sees_a_link_that_breaks():
    rules = Rules((("", ""),), lambda inside, _text: f"/{inside}", vitepress_slug)
    files = {"a.md": "# A kite1\n\n[L1](b.md#two) [L2](b.md) [L3](b.md#one)\n", "b.md": "# Two\n\nkite2\n"}
    assert {name: ends.is_sound for name, ends in read(files, rules).ends.items()} == {
        "L1": True,
        "L2": True,
        "L3": False,
    }
    assert not any(ends.is_sound for ends in read({"a.md": files["a.md"]}, rules).ends.values())
