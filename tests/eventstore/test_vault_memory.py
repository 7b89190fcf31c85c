"""What a service keeps of every thread that was ever talked in has to be small."""

import os
import re
from pathlib import Path

import pytest

from eventstore.vault import Key

STATUS = Path("/proc/self/status")


def held():
    """Bytes, those of libraries in C included."""
    return int(re.findall(r"RssAnon:\s+(\d+) kB", STATUS.read_text(encoding="utf-8"))[0]) * 1024


@pytest.mark.skipif(not STATUS.exists(), reason="asks Linux what a process holds")
def test_a_key_that_is_kept_takes_little():
    Key(os.urandom(8), os.urandom(32)).seal(b"text", b"stream", 1, b"id")
    before = held()
    keys = [Key(os.urandom(8), os.urandom(32)) for _ in range(5_000)]
    sealed = [key.seal(b"text", b"stream", 1, b"id") for key in keys]
    assert held() - before < 5_000 * 1_000
    assert keys[-1].open(sealed[-1], b"stream", 1, b"id") == b"text"
