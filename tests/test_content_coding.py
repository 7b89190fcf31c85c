"""Compressed request bodies unpack to what was packed, or are refused."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import BodyTooLarge, Invalid, UnsupportedMediaType
from service.runtime.content_coding import Unpacking, unpacked


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


GZIPPED = gzip.compress(b"x", mtime=0)  # the same for each process that collects the tests
PACKED = {"": bytes, "identity": bytes, "gzip": gzip.compress, " X-GZIP ": gzip.compress, "deflate": zlib.compress}


@given(st.sampled_from(sorted(PACKED)), st.binary(max_size=2_000), st.integers(1, 300), st.integers(1, 500))
def test_body_in_pieces_unpacks_to_what_was_packed(coding, data, repeats, size):
    whole, unpacking = data * repeats, Unpacking(coding, 1_000_000)
    packed = PACKED[coding](whole)
    got = b"".join(piece for at in range(0, len(packed), size) for piece in unpacking.feed(packed[at : at + size]))
    unpacking.end()
    assert got == whole


def test_deflate_without_its_header_is_unpacked():
    assert unpacked("deflate", raw_deflate(b"x" * 600_000), 1_000_000) == b"x" * 600_000


@pytest.mark.parametrize("coding", sorted(PACKED))
def test_body_beyond_its_limit_is_refused(coding):
    packed = PACKED[coding](bytes(1_000_001))
    assert len(unpacked(coding, packed, 1_000_001)) == 1_000_001
    with pytest.raises(BodyTooLarge):
        unpacked(coding, packed, 1_000_000)


@pytest.mark.parametrize("body", [GZIPPED[:-3], GZIPPED + b"y", b"x", b"\x1f\x8b"])
def test_body_that_is_not_packed_is_refused(body):
    with pytest.raises(Invalid):
        unpacked("gzip", body, 1_000)


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "x" * 5_000, "compress"])
def test_unknown_coding_is_refused(coding):
    with pytest.raises(UnsupportedMediaType):
        unpacked(coding, b"", 1_000)


def test_empty_body_is_empty_whatever_its_coding():
    assert unpacked("gzip", b"", 10) == b""
