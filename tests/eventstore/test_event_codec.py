"""Codec: what is personal never lies in plain sight, and decoding undoes encoding."""

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from eventstore import DEFAULT_METADATA, Codec, Metadata, NewEvent, RecordedEvent, Undecodable, UnknownEventType
from tests.eventstore.shapes import Event, PersonalText

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Source(Struct, frozen=True):
    path: str
    line: int


class Plain(Event, frozen=True, tag="plain"):
    number: int
    name: str = "nobody"


class Empty(Event, frozen=True, tag="empty"):
    pass


class Asked(Event, frozen=True, tag="asked", rename="camel"):
    """Every way to be personal, among fields that are not."""

    thread_id: str
    question_text: PersonalText
    asked_at: datetime
    address: Annotated[str | None, Meta(extra={"personal": "[erased]"})] = None
    sources: Annotated[tuple[Source, ...], Meta(extra={"personal": []})] = ()
    nickname: PersonalText | None = None
    count: int = 0


CODEC: Codec[Plain | Empty | Asked] = Codec(Plain | Empty | Asked)

texts = st.text(max_size=40)
plain = st.builds(Plain, number=st.integers(-(2**60), 2**60), name=texts)
asked = st.builds(
    Asked,
    thread_id=texts,
    question_text=texts,
    asked_at=st.datetimes(timezones=st.just(UTC)),
    address=st.none() | texts,
    sources=st.lists(st.builds(Source, texts, st.integers(0, 9)), max_size=3).map(tuple),
    nickname=st.none() | texts,
    count=st.integers(0, 3),
)


def recorded(new: NewEvent, *, erased: bool = False) -> RecordedEvent:
    erased = erased and new.personal is not None
    personal = None if erased else new.personal
    return RecordedEvent(
        1, "s-1", 1, new.type, new.data, personal, erased, new.schema_version, new.metadata, "id", NOW, b""
    )  # fmt: skip


@given(plain | asked | st.just(Empty()))
def test_decoding_undoes_encoding(event):
    assert CODEC.decode(recorded(CODEC.encode(event))) == event


@given(asked)
def test_the_parts_are_json_objects_that_share_no_field(event):
    new = CODEC.encode(event)
    data = msgspec.json.decode(new.data, type=dict[str, Any])
    personal = msgspec.json.decode(new.personal or b"{}", type=dict[str, Any])
    assert data.keys() <= {"threadId", "askedAt", "count"}
    assert personal.keys() <= {"questionText", "address", "sources", "nickname"}


@given(asked)
def test_an_erased_event_has_the_replacements_and_all_else(event):
    expected = msgspec.structs.replace(
        event, question_text="[erased]", address="[erased]", sources=(), nickname="[erased]"
    )
    assert CODEC.decode(recorded(CODEC.encode(event), erased=True)) == expected


def test_the_tag_is_the_type_and_not_in_the_data():
    new = CODEC.encode(Plain(1), Metadata(actor="me"))
    assert (new.type, new.data, new.personal, new.schema_version) == ("plain", b'{"number":1}', None, 1)
    assert new.metadata.actor == "me"
    assert CODEC.encode(Empty()) == NewEvent("empty", b"{}", None, 1, DEFAULT_METADATA)


def test_personal_fields_with_only_defaults_need_no_sealing():
    class Maybe(Event, frozen=True, tag="maybe"):
        text: PersonalText = ""

    assert Codec[Maybe](Maybe).encode(Maybe()).personal is None


def test_unknown_fields_are_ignored_and_unknown_types_reported():
    assert CODEC.decode(recorded(NewEvent("plain", b'{"number":1,"later":[{}]}'))) == Plain(1)
    with pytest.raises(UnknownEventType):
        CODEC.decode(recorded(NewEvent("unheard-of", b"{}")))
    with pytest.raises(UnknownEventType):
        CODEC.decode(recorded(NewEvent("plain", b'{"number":1}', schema_version=2)))


def test_data_that_does_not_fit_is_reported_with_its_place():
    with pytest.raises(Undecodable, match="plain at position 1"):
        CODEC.decode(recorded(NewEvent("plain", b'{"number":"one"}')))


def test_old_shapes_are_upcast_step_by_step():
    def number_from_text(fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "number": int(fields["number"])}

    def name_from_title(fields: dict[str, Any]) -> dict[str, Any]:
        fields["name"] = fields.pop("title")
        return fields

    codec: Codec[Plain] = Codec(Plain, upcasters={"plain": [number_from_text, name_from_title]})
    assert codec.encode(Plain(1)).schema_version == 3
    assert codec.decode(recorded(NewEvent("plain", b'{"number":"1","title":"a"}', None, 1))) == Plain(1, "a")
    assert codec.decode(recorded(NewEvent("plain", b'{"number":1,"title":"a"}', None, 2))) == Plain(1, "a")
    assert codec.decode(recorded(NewEvent("plain", b'{"number":1,"name":"a"}', None, 3))) == Plain(1, "a")


def test_upcasting_an_erased_event_keeps_it_erased():
    class Said(Event, frozen=True, tag="said"):
        words: PersonalText

    codec: Codec[Said] = Codec(Said, upcasters={"said": [lambda fields: {"words": fields.pop("text", "?")}]})
    old = NewEvent("said", b"{}", b'{"text":"hello"}', 1)
    assert codec.decode(recorded(old)) == Said("hello")
    assert codec.decode(recorded(old, erased=True)) == Said("[erased]")


def test_field_that_became_personal_is_read_from_its_old_place():
    class Said(Event, frozen=True, tag="said"):
        words: PersonalText

    assert Codec[Said](Said).decode(recorded(NewEvent("said", b'{"words":"hello"}'))) == Said("hello")


class Inner(Struct, frozen=True):
    text: PersonalText


class HidesInAStruct(Event, frozen=True, tag="hides"):
    inner: Inner


class HidesInAList(Event, frozen=True, tag="hides"):
    texts: tuple[PersonalText, ...]


class HidesInADict(Event, frozen=True, tag="hides"):
    texts: dict[str, list[Inner]] | None


@pytest.mark.parametrize("shape", [HidesInAStruct, HidesInAList, HidesInADict])
def test_a_personal_mark_that_would_not_be_honoured_is_refused(shape):
    with pytest.raises(TypeError, match="personal"):
        Codec(shape)


def test_shapes_need_a_tag_of_their_own():
    class Untagged(Struct, frozen=True):
        pass

    class Again(Event, frozen=True, tag="plain"):
        pass

    for shapes in (Untagged, (Plain, Again), int, Plain | int):
        with pytest.raises(TypeError):
            Codec(shapes)
    with pytest.raises(TypeError, match="upcasters"):
        Codec(Plain, upcasters={"other": []})
    with pytest.raises(TypeError, match=r"U\+001F"):
        Codec(msgspec.defstruct("Marked", [], tag="plain\x1f2", frozen=True))
    assert Codec((Plain, Empty | Asked)).types == {"plain", "empty", "asked"}
