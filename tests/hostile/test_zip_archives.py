"""Archives that are made to do harm: what is unpacked, and what is refused before a file is written."""

import io
import stat
import struct
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import Invalid, ServiceError
from service.runtime import zip_files
from service.runtime.zip_files import unpack_zip

PAGE = "# Retries\n\nA job is retried.\n"


def archive(folder: Path, files, *, method=zipfile.ZIP_DEFLATED) -> Path:
    """Write an archive of (name or entry, content) pairs."""
    file = folder / "sent.zip"
    with zipfile.ZipFile(file, "w", method) as made:
        for name, content in files:
            made.writestr(name, content)
    return file


def entry(name: str, mode: int) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.create_system, made.external_attr = 3, mode << 16
    return made


def unpacked(folder: Path, file: Path) -> dict[str, str]:
    target = folder / "files"
    target.mkdir()
    unpack_zip(file, target)
    return {
        str(path.relative_to(target)): path.read_text(encoding="utf-8") for path in target.rglob("*") if path.is_file()
    }


def refusal(folder: Path, file: Path) -> ServiceError:
    """Return the error, once nothing was written inside the folder or beside it."""
    target = folder / "target"
    target.mkdir()
    with pytest.raises(Invalid) as raised:
        unpack_zip(file, target)
    assert list(target.rglob("*")) == []
    assert {path.name for path in folder.iterdir()} == {"sent.zip", "target"}
    return raised.value


def test_files_are_unpacked_as_they_are(tmp_path):
    sent = archive(tmp_path, [("mkdocs.yml", "site_name: Kite\n"), ("docs/", ""), ("docs/retries.md", PAGE)])
    assert unpacked(tmp_path, sent) == {"mkdocs.yml": "site_name: Kite\n", "docs/retries.md": PAGE}


def test_one_folder_around_everything_is_left_away(tmp_path):
    sent = archive(tmp_path, [("kite-main/docs/retries.md", PAGE), ("kite-main/README.md", "Kite\n")])
    assert unpacked(tmp_path, sent) == {"docs/retries.md": PAGE, "README.md": "Kite\n"}


def test_backslashes_part_folders_as_some_packers_write_them(tmp_path):
    sent = archive(tmp_path, [("docs/a.md", PAGE), ("README.md", PAGE)])
    content = sent.read_bytes().replace(b"docs/a.md", b"docs\\a.md")
    sent.write_bytes(content)
    assert unpacked(tmp_path, sent) == {"docs/a.md": PAGE, "README.md": PAGE}


def test_unmarked_utf8_names_are_read_as_utf8(tmp_path):
    sent = archive(tmp_path, [("über.md", PAGE), ("b.md", PAGE)])
    content = bytearray(sent.read_bytes())
    for mark in (b"PK\x03\x04", b"PK\x01\x02"):
        at = content.find(mark)
        flags = at + (6 if mark[2] == 3 else 8)
        content[flags + 1] &= ~0x08
    sent.write_bytes(content)
    assert set(unpacked(tmp_path, sent)) == {"über.md", "b.md"}


def test_litter_and_git_folders_are_left_away(tmp_path):
    files = [
        ("__MACOSX/._a.md", "x"),
        (".DS_Store", "x"),
        (".git/config", "x"),
        ("sub/.GIT/hooks/x", "x"),
        ("a.md", PAGE),
    ]
    assert unpacked(tmp_path, archive(tmp_path, files)) == {"a.md": PAGE}


def test_links_and_devices_are_never_made(tmp_path):
    files = [
        (entry("docs/passwords", stat.S_IFLNK | 0o777), "/etc/passwd"),
        (entry("docs/pipe", stat.S_IFIFO | 0o666), ""),
        (entry("docs/disk", stat.S_IFBLK | 0o666), ""),
        ("docs/a.md", PAGE),
        ("README.md", PAGE),
    ]
    target = tmp_path / "files"
    target.mkdir()
    done = unpack_zip(archive(tmp_path, files), target)
    assert done.left_out == ("docs/passwords", "docs/pipe", "docs/disk")
    assert sorted(path.name for path in target.rglob("*")) == ["README.md", "a.md", "docs"]


def test_nothing_is_written_through_a_link(tmp_path):
    files = [(entry("docs", stat.S_IFLNK | 0o777), str(tmp_path)), ("docs/own.md", PAGE), ("b.md", PAGE)]
    assert unpacked(tmp_path, archive(tmp_path, files)) == {"docs/own.md": PAGE, "b.md": PAGE}
    assert not (tmp_path / "own.md").exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("../evil.md", "leads out"),
        ("docs/../../evil.md", "leads out"),
        ("docs\\..\\..\\evil.md", "leads out"),
        ("/etc/cron.d/evil", "absolute"),
        ("\\\\server\\share\\evil", "absolute"),
        ("C:\\evil.md", "absolute"),
        ("c:evil.md", "absolute"),
        ("./", "empty"),
        ("docs/a\nb.md", "cannot be shown"),
        ("docs/\u202egnp.md", "cannot be shown"),
        ("a/" * 41 + "b.md", "nested"),
        ("a" * 256, "bytes"),
        ("/".join(["a" * 200] * 6), "bytes"),
    ],
)
def test_bad_names_refuse_the_archive(tmp_path, name, says):
    error = refusal(tmp_path, archive(tmp_path, [("good.md", PAGE), (name, "x")]))
    assert (error.code, says in str(error)) == ("bad_archive", True)


def test_a_name_that_hides_another_behind_a_zero_is_refused(tmp_path):
    sent = archive(tmp_path, [("good.md", PAGE), ("docs/a.mdXexe", "x")])
    sent.write_bytes(sent.read_bytes().replace(b"a.mdXexe", b"a.md\0exe"))
    assert refusal(tmp_path, sent).code == "bad_archive"


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("names", [("a.md", "a.md"), ("a.md", "./a.md"), ("a//b.md", "a/b.md"), ("a", "a/b.md")])
def test_names_that_collide_refuse_the_archive(tmp_path, names):
    error = refusal(tmp_path, archive(tmp_path, [("good.md", PAGE), *((name, "x") for name in names)]))
    assert error.code == "bad_archive"


def test_a_file_of_nothing_but_zeros_is_a_bomb(tmp_path):
    sent = archive(tmp_path, [("bomb.md", bytes(32 * 1024 * 1024))])
    assert sent.stat().st_size < 64 * 1024
    assert "100 times" in str(refusal(tmp_path, sent))


def test_a_file_larger_than_allowed_is_refused(tmp_path):
    sent = archive(tmp_path, [("a.md", PAGE)])
    _say_size(sent, zip_files.MAX_FILE_BYTES + 1)
    assert refusal(tmp_path, sent).code == "too_large"


def test_sizes_that_lie_do_not_let_more_out(tmp_path):
    """The directory says 10 bytes of what unpacks to 32 MiB: no more than that is ever unpacked."""
    sent = archive(tmp_path, [("bomb.md", bytes(32 * 1024 * 1024))])
    _say_size(sent, 10)
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(Invalid):
        unpack_zip(sent, target)
    assert sum(path.stat().st_size for path in target.rglob("*")) <= 10


def test_entries_that_share_their_bytes_are_a_bomb(tmp_path):
    """Fifield's: many entries of the directory over the same packed bytes."""
    sent = archive(tmp_path, [("a.md", bytes(range(256)) * 400)], method=zipfile.ZIP_STORED)
    content = sent.read_bytes()
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    one = content[start:end]
    many = b"".join(one.replace(b"a.md", b"%04d" % number) for number in range(500))
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 500, 500, len(many), start, 0)
    sent.write_bytes(content[:start] + many + tail)
    assert refusal(tmp_path, sent).code == "too_large"


def test_a_huge_directory_is_refused_before_it_is_read(tmp_path):
    sent = archive(tmp_path, [("a.md", PAGE)])
    content = sent.read_bytes()
    start, end = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    size = zip_files.MAX_DIRECTORY_BYTES + 1
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, size, start, 0)
    with sent.open("wb") as made:
        made.write(content[:end])
        made.truncate(start + size)
        made.seek(0, io.SEEK_END)
        made.write(tail)
    assert "entries" in str(refusal(tmp_path, sent))


def test_too_many_entries_are_refused(tmp_path):
    sent = tmp_path / "sent.zip"
    with zipfile.ZipFile(sent, "w") as made:
        for number in range(zip_files.MAX_ENTRIES + 1):
            made.writestr(f"{number}/", "")
    assert "entries" in str(refusal(tmp_path, sent))


def test_an_archive_larger_than_allowed_is_refused(tmp_path):
    sent = archive(tmp_path, [("a.md", PAGE)])
    with sent.open("r+b") as grown:
        grown.truncate(zip_files.MAX_ARCHIVE_BYTES + 1)
    assert refusal(tmp_path, sent).code == "too_large"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_want_much_memory_are_refused(tmp_path, method):
    assert "deflate" in str(refusal(tmp_path, archive(tmp_path, [("a.md", PAGE * 100)], method=method)))


def test_encrypted_files_are_refused(tmp_path):
    sent = archive(tmp_path, [("a.md", PAGE)])
    content = bytearray(sent.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    sent.write_bytes(content)
    assert "password" in str(refusal(tmp_path, sent))


def test_an_archive_without_files_is_refused(tmp_path):
    assert "no files" in str(refusal(tmp_path, archive(tmp_path, [("docs/", "")])))


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "sent.zip").write_bytes(b"# A page, and no archive\n" * 100)
    assert refusal(tmp_path, tmp_path / "sent.zip").code == "bad_archive"


SAMPLE = io.BytesIO()
with zipfile.ZipFile(SAMPLE, "w", zipfile.ZIP_DEFLATED) as written:
    for number in range(5):
        written.writestr(f"docs/{number}.md", PAGE * (number + 1))


@given(st.integers(0, len(SAMPLE.getvalue()) - 1))
def test_truncated_archives_are_refused(tmp_path_factory, length):
    folder = tmp_path_factory.mktemp("cut")
    (folder / "sent.zip").write_bytes(SAMPLE.getvalue()[:length])
    (folder / "target").mkdir()
    with pytest.raises(Invalid):
        unpack_zip(folder / "sent.zip", folder / "target")


@given(st.lists(st.tuples(st.integers(0, len(SAMPLE.getvalue()) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_damaged_archives_stay_within_the_folder(tmp_path_factory, changes):
    folder = tmp_path_factory.mktemp("damaged")
    content = bytearray(SAMPLE.getvalue())
    for place, value in changes:
        content[place] = value
    (folder / "sent.zip").write_bytes(content)
    (folder / "target").mkdir()
    with suppress(Invalid):
        unpack_zip(folder / "sent.zip", folder / "target")
    assert {path.name for path in folder.iterdir()} == {"sent.zip", "target"}
    assert not any(path.is_symlink() for path in folder.rglob("*"))


def _say_size(sent: Path, size: int) -> None:
    """Change the unpacked size that the directory gives for the first entry."""
    content = bytearray(sent.read_bytes())
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = struct.pack("<L", size)
    sent.write_bytes(content)


def test_an_entry_before_the_archive_is_refused(tmp_path):
    sent = archive(tmp_path, [("a.md", PAGE)])
    content = bytearray(sent.read_bytes())
    at = content.index(b"PK\x05\x06") + 16
    content[at : at + 4] = struct.pack("<L", struct.unpack_from("<L", content, at)[0] + 1)
    sent.write_bytes(content)
    assert refusal(tmp_path, sent).code == "bad_archive"
