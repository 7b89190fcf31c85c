"""An index goes from one instance to another as a stream, and arrives whole or not at all."""

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.retrieval.index.atomic_folder import building, digest_of, is_whole, seal
from service.retrieval.index.transfer import BadArchive, Unpacking, packed

FILES = {
    "whole.db": b"w" * 1024,
    "pages.db": b"p" * 1_500_000,
    "sections/a.store": b"",
    "sections/b.idx": bytes(range(256)) * 5,
}


@pytest.fixture
def index(tmp_path):
    folder = tmp_path / "made"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    seal(folder)
    return folder


def unpack(pieces, target, digest, **limits):
    with building(target) as folder, Unpacking(folder, digest, **limits) as unpacking:
        for piece in pieces:
            unpacking.feed(piece)
        unpacking.finish()


def test_index_arrives_as_it_was(index, tmp_path):
    unpack(packed(index), tmp_path / "there" / "one", digest_of(index))
    assert is_whole(tmp_path / "there" / "one")
    assert digest_of(tmp_path / "there" / "one") == digest_of(index)
    assert {name: (tmp_path / "there" / "one" / name).read_bytes() for name in FILES} == FILES


def test_no_piece_of_an_archive_is_empty(index):
    assert all(packed(index))


def test_archive_is_plain_tar(index):
    with tarfile.open(fileobj=io.BytesIO(b"".join(packed(index)))) as archive:
        assert sorted(archive.getnames()) == sorted(["sums.json", *FILES])


@given(st.lists(st.integers(1, 4_000), min_size=1, max_size=20))
def test_pieces_may_have_any_size(tmp_path_factory, sizes):
    folder = tmp_path_factory.mktemp("index")
    (folder / "made").mkdir()
    (folder / "made" / "pages.db").write_bytes(b"x" * 700)
    seal(folder / "made")
    whole, pieces, at = b"".join(packed(folder / "made")), [], 0
    while at < len(whole):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(whole[at : at + size])
        at += size
    unpack(pieces, folder / "there", digest_of(folder / "made"))
    assert is_whole(folder / "there")


def member(name, content=b"", kind=tarfile.REGTYPE, size=None):
    info = tarfile.TarInfo(name)
    info.size, info.type = len(content) if size is None else size, kind
    return (
        info.tobuf(tarfile.USTAR_FORMAT if size is None else tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)
    )


SUMS = member("sums.json", b'{"a": "' + b"0" * 64 + b'"}')


@pytest.mark.parametrize(
    ("archive", "why"),
    [
        (b"", "cut off"),
        (SUMS, "cut off"),
        (SUMS + bytes(1024), "lacks a"),
        (SUMS + member("a", b"other") + bytes(1024), "not what its sum says"),
        (SUMS + member("b", b"more") + bytes(1024), "not listed"),
        (SUMS + bytes(1024) + member("a"), "after its end"),
        (member("a", b"first"), "begin with the list"),
        (SUMS + member("../a", b"up"), "in it"),
        (SUMS + member("/a", b"up"), "in it"),
        (SUMS + member("a", kind=tarfile.SYMTYPE), "in it"),
        (member("sums.json", b"[]"), "cannot be read"),
        (member("sums.json", b"{"), "cannot be read"),
        (b"\xff" * 512, "unreadable"),
        (member("sums.json", b"x" * 512, size=-5), "negative"),
        (SUMS + member("a", b"x" * 512, size=-5), "negative"),
    ],
)
def test_other_archives_leave_nothing(tmp_path, archive, why):
    with pytest.raises(BadArchive, match=why):
        unpack([archive], tmp_path / "there" / "one", "")
    assert list((tmp_path / "there").iterdir()) == []


def test_list_of_sums_must_be_that_of_the_log(index, tmp_path):
    with pytest.raises(BadArchive, match="in the log"):
        unpack(packed(index), tmp_path / "there" / "one", "0" * 64)


def test_archive_has_a_limit(index, tmp_path):
    with pytest.raises(BadArchive, match="more than"):
        unpack(packed(index), tmp_path / "there" / "one", digest_of(index), max_bytes=1_000_000)


def test_changed_byte_is_noticed_anywhere(index, tmp_path):
    whole = bytearray(b"".join(packed(index)))
    whole[len(whole) // 2] ^= 1
    with pytest.raises(BadArchive, match="sum"):
        unpack([bytes(whole)], tmp_path / "there" / "one", digest_of(index))
