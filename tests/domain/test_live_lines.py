"""Lines by which one instance sends another a reply."""

import pytest

from service.domain.threads.live_lines import MAX_LINE_BYTES, SILENCE, LineReader, encoded_line


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_lines_are_read_from_pieces_of_any_size(size):
    sent, reader = encoded_line(1, []) + SILENCE + encoded_line(2, []) + b"[3,", LineReader()
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    assert [line.published for piece in pieces for line in reader.read(piece)] == [1, 2]
    assert [line.published for line in reader.read(b"[]]\n")] == [3]


def test_line_without_an_end_is_given_up():
    reader, piece = LineReader(), b" " * MAX_LINE_BYTES
    assert list(reader.read(piece)) == []
    with pytest.raises(ValueError, match="more than"):
        reader.read(b" ")
