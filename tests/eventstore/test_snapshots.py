"""States of long streams are kept within bounds, and only while they may be."""

import pytest

from eventstore.snapshots import Snapshot, Snapshots
from tests.eventstore.shapes import CODEC, evolve

INITIAL = object()


def where(stream: str):
    return stream, CODEC, evolve


def of(version: int) -> Snapshot:
    return Snapshot(INITIAL, "state", version, version, None)


@pytest.fixture
def snapshots() -> Snapshots:
    return Snapshots(min_events=10, max_streams=3, max_events=100)


def put(snapshots: Snapshots, stream: str, version: int) -> None:
    snapshots.put(where(stream), of(version), dropped=snapshots.dropped)


def test_a_state_is_found_by_its_stream_fold_and_beginning(snapshots):
    put(snapshots, "a", 10)
    assert snapshots.get(where("a"), INITIAL) == of(10)
    assert snapshots.get(where("b"), INITIAL) is None
    assert snapshots.get(where("a"), object()) is None
    assert snapshots.get(("a", CODEC, max), INITIAL) is None


def test_short_and_huge_streams_are_not_kept(snapshots):
    put(snapshots, "short", 9)
    put(snapshots, "huge", 101)
    assert (len(snapshots), snapshots.events) == (0, 0)


def test_least_recently_used_snapshot_goes_first(snapshots):
    for stream in "abc":
        put(snapshots, stream, 10)
    snapshots.get(where("a"), INITIAL)
    put(snapshots, "d", 11)
    assert [stream for stream in "abcd" if snapshots.get(where(stream), INITIAL)] == ["a", "c", "d"]
    put(snapshots, "e", 80)
    assert [stream for stream in "acde" if snapshots.get(where(stream), INITIAL)] == ["d", "e"]
    assert snapshots.events == 91


def test_a_fold_that_began_before_an_erasure_is_not_kept(snapshots):
    put(snapshots, "a", 10)
    dropped = snapshots.dropped
    snapshots.drop("a")
    snapshots.put(where("a"), of(10), dropped=dropped)
    assert (len(snapshots), snapshots.events) == (0, 0)
    put(snapshots, "a", 10)
    snapshots.clear()
    assert (len(snapshots), snapshots.events) == (0, 0)
