"""How much a pack unpacks to is found out without unpacking it."""

import hashlib
import os
import struct
import time
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.adapters.hosted import pack_scan

BLOB, OFS_DELTA, REF_DELTA = 3, 6, 7


def number(value, first_bits=7, first=0):
    out, value = [first | (value & ((1 << first_bits) - 1))], value >> first_bits
    while value:
        out[-1] |= 0x80
        out.append(value & 0x7F)
        value >>= 7
    return bytes(out)


def entry(kind, size, data, between=b""):
    return number(size, 4, kind << 4) + between + data


def pack_of(*entries):
    pack = b"PACK" + struct.pack(">II", 2, len(entries)) + b"".join(entries)
    return pack + hashlib.sha1(pack).digest()


def refusal(tmp_path, pack, before=b"0000"):
    file = tmp_path / f"pack-{time.monotonic_ns()}"
    file.write_bytes(before + pack)
    with file.open("rb") as opened:
        opened.seek(len(before))
        found = pack_scan.refusal(opened)
        assert opened.tell() == len(before)
    return found


@given(
    st.lists(st.binary(max_size=1_000) | st.integers(0, 300_000).map(bytes) | st.integers(0, 300_000).map(os.urandom)),
    st.integers(0, 9),
)
def test_large_object_is_found_behind_others(tmp_path_factory, texts, level):
    folder = tmp_path_factory.mktemp("pack")
    entries = [entry(BLOB, len(text), zlib.compress(text, level)) for text in texts]
    assert refusal(folder, pack_of(*entries)) is None
    bomb = entry(BLOB, 1 << 30, zlib.compress(bytes(1_000)))
    assert refusal(folder, pack_of(*entries, bomb)) == b"object is larger than 100 MB"


def test_object_of_a_gigabyte_is_refused_unread(tmp_path):
    bomb = zlib.compress(bytes(1 << 20))
    assert refusal(tmp_path, pack_of(entry(BLOB, 1 << 30, bomb))) == b"object is larger than 100 MB"
    assert refusal(tmp_path, pack_of(entry(BLOB, 2**63, bomb))) == b"object is larger than 100 MB"


@pytest.mark.parametrize(("kind", "between"), [(OFS_DELTA, b"\x81\x05"), (REF_DELTA, b"x" * 20)])
def test_delta_counts_as_what_it_makes(tmp_path, kind, between):
    delta = number(100) + number(200_000_000) + b"\x01x"
    packed = entry(kind, len(delta), zlib.compress(delta), between)
    assert refusal(tmp_path, pack_of(packed)) == b"object is larger than 100 MB"


def test_many_large_objects_are_refused(tmp_path):
    delta = number(100) + number(90_000_000) + b"\x01x"
    packed = entry(REF_DELTA, len(delta), zlib.compress(delta), b"x" * 20)
    assert refusal(tmp_path, pack_of(*[packed] * 47)) is None
    assert refusal(tmp_path, pack_of(*[packed] * 48)) == b"the pack is larger than 4 GB unpacked"


@pytest.mark.parametrize(
    "pack",
    [b"", b"PACK", b"KCAP" + bytes(40), pack_of(b"\xff" * 30), pack_of(entry(BLOB, 5, b"no zlib")),
     pack_of(entry(BLOB, 5, zlib.compress(bytes(1_000)))), pack_of(entry(OFS_DELTA, 5, b"", b"\xff" * 50)),
     pack_of(entry(BLOB, 9, zlib.compress(bytes(9))[:-6])), os.urandom(500)],
)  # fmt: skip
def test_scan_leaves_malformed_packs_to_others(tmp_path, pack):
    assert refusal(tmp_path, pack) is None
