"""Between an application's events and the bytes that are stored.

An event is a frozen msgspec struct with an explicit tag. Its fields go to two JSON objects: those marked
``Meta(extra={"personal": replacement})`` to the part that is stored encrypted, the others to the part in
plain sight. The tag is stored once, in the event's ``type``, and is not repeated in the data: it is always the first
member that msgspec writes, so it is cut off by its length, and on reading the type picks the decoder.
Reading joins the two objects as bytes (``{"a":1`` + ``,`` + ``"b":2}``): no dictionary is built on this path.
"""

from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Struct, defstruct
from msgspec.inspect import Metadata as Annotation

from eventstore.errors import Undecodable, UnknownEventType
from eventstore.events import DEFAULT_METADATA, Metadata, NewEvent, RecordedEvent

E = TypeVar("E")

VERSION_MARK = "\x1f"
"""Between a type and its schema version in the keys of ``Codec.folders``. No tag has it."""

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
"""Turns an event's fields as one schema version had them into those of the next; may change its argument.

Of an erased or damaged event it sees the replacements under the current names of the personal fields only.
"""


class Codec(Generic[E]):
    """Encodes and decodes the events of one tagged union.

    ``upcasters`` has, for a tag, the functions from version 1 to 2, from 2 to 3, and so on; one more than their
    number is the tag's current schema version.

    Raises:
        TypeError: a type without a tag, a tag used twice, or a personal mark below the top of a field, where its
            text would be stored in plain sight.
    """

    def __init__(self, union_types: object, *, upcasters: Mapping[str, Sequence[Upcaster]] | None = None) -> None:
        upcasters = upcasters or {}
        self._by_class: dict[type, _Shape] = {}
        self._by_tag: dict[str, _Shape] = {}
        for struct in _members(union_types):
            shape = _Shape(struct, upcasters.get(_tag(struct), ()))
            if VERSION_MARK in shape.tag:
                raise TypeError(f"the tag {shape.tag!r} has the character U+001F: leave it out")
            if shape.tag in self._by_tag:
                raise TypeError(f"the tag {shape.tag} is used twice")
            self._by_class[struct] = self._by_tag[shape.tag] = shape
        self._types = frozenset(self._by_tag)
        if unknown := upcasters.keys() - self._types:
            raise TypeError(f"upcasters for unknown tags: {', '.join(sorted(unknown))}")
        self.decoders: Mapping[str, tuple[int, Callable[[bytes], E]]] = {
            tag: (shape.version, shape.decoder.decode) for tag, shape in self._by_tag.items()
        }
        """By tag: its current schema version, and what decodes data of that version without personal fields."""
        self.folders: Mapping[str, Callable[[bytes], E]] = {
            tag if shape.version == 1 else f"{tag}{VERSION_MARK}{shape.version}": shape.decoder.decode
            for tag, shape in self._by_tag.items()
        }
        """Decoders of data without personal fields, by type and schema version in one key: a type alone stands for
        version 1 of its shape.
        """

    @property
    def types(self) -> frozenset[str]:
        """Return the tags it knows."""
        return self._types

    def tags_of(self, *classes: type[Struct]) -> frozenset[str]:
        """Return the tags of some of its classes: for a reader that leaves events of other types undecoded."""
        return frozenset(self._by_class[one].tag for one in classes)

    @property
    def shapes(self) -> Mapping[str, tuple[int, type[Struct]]]:
        """Return, by tag, its current schema version and its class."""
        return {shape.tag: (shape.version, struct) for struct, shape in self._by_class.items()}

    def encode(
        self,
        event: E,
        metadata: Metadata = DEFAULT_METADATA,
        id: str = "",  # noqa: A002 - the field's name
    ) -> NewEvent:
        shape = self._by_class[type(event)]
        if shape.personal is None:
            data, personal = shape.encoder.encode(event)[shape.prefix :], None
            data = b"{" + data[1:] if data != b"}" else b"{}"
        else:
            data = shape.encoder.encode(shape.public(*[getattr(event, name) for name in shape.public_names]))
            personal = shape.encoder.encode(shape.personal(*[getattr(event, name) for name in shape.personal_names]))
            if personal == b"{}":  # every personal field has its default: nothing to hide
                personal = None
        return NewEvent(shape.tag, data, personal, shape.version, metadata, id)

    def decode(self, recorded: RecordedEvent) -> E:
        """Return the event that was recorded; of an erased or damaged one, with each personal field's replacement.

        Raises:
            UnknownEventType: no shape for its type, or a newer schema version than this program's.
            Undecodable: its data does not fit its shape.
        """
        known = self.decoders.get(recorded.type)
        try:
            if (
                known is not None
                and recorded.schema_version == known[0]
                and recorded.personal is None
                and not recorded.erased
                and not recorded.damaged
            ):
                return known[1](recorded.data)
            return self.decode_stored(
                recorded.type,
                recorded.schema_version,
                recorded.data,
                recorded.personal,
                recorded.erased,
                recorded.damaged,
            )
        except UnknownEventType as error:
            raise UnknownEventType(f"{error}, at position {recorded.position}") from None
        except (msgspec.MsgspecError, Undecodable) as error:
            raise Undecodable(f"{recorded.type} at position {recorded.position}: {error}") from error

    def decode_stored(
        self,
        type: str,  # noqa: A002 - the column's name
        schema_version: int,
        data: bytes,
        personal: bytes | None,
        erased: bool,
        damaged: bool = False,
    ) -> E:
        """Decode as ``decode`` does, from fields of a recorded event. Raise UnknownEventType or Undecodable."""
        shape = self._by_tag.get(type)
        if shape is None:
            raise UnknownEventType(type)
        if not 1 <= schema_version <= shape.version:
            raise UnknownEventType(f"{type} with version {schema_version} of its shape")
        try:
            if schema_version < shape.version:
                data = shape.upcast(schema_version, data, personal, erased, damaged)
            elif personal is not None:
                data = _joined(data, personal)
            elif damaged:
                data = _joined(data, shape.if_damaged)
            elif erased:
                data = _joined(data, shape.if_erased)
            event: E = shape.decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise Undecodable(str(error)) from error
        return event


class _Shape:
    """An event class, as the codec stores and reads it."""

    def __init__(self, struct: type[Struct], upcasters: Sequence[Upcaster]) -> None:
        self.tag = _tag(struct)
        self.upcasters = tuple(upcasters)
        self.version = len(self.upcasters) + 1
        self.encoder = msgspec.json.Encoder()
        self.decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(struct)
        self.prefix = len(msgspec.json.encode({struct.__struct_config__.tag_field: self.tag})) - 1
        public: list[tuple[Any, ...]] = []
        personal: list[tuple[Any, ...]] = []
        rename: dict[str, str] = {}
        self.replacements: dict[str, Any] = {}
        self.if_unreadable: dict[str, Any] = {}
        marks = {field.name: _personal_mark(field.type) for field in _inspected(struct)}
        for field in msgspec.structs.fields(struct):
            mark = marks[field.name]
            if field.default is not msgspec.NODEFAULT:
                definition: tuple[Any, ...] = (field.name, Any, field.default)
            elif field.default_factory is not msgspec.NODEFAULT:
                definition = (field.name, Any, msgspec.field(default_factory=field.default_factory))
            else:
                definition = (field.name, Any)
            rename[field.name] = field.encode_name
            if mark is None:
                public.append(definition)
            else:
                personal.append(definition)
                self.replacements[field.encode_name] = mark["personal"]
                self.if_unreadable[field.encode_name] = mark.get("damaged", mark["personal"])
        self.if_damaged = msgspec.json.encode(self.if_unreadable)
        self.if_erased = msgspec.json.encode(self.replacements)
        self.public_names = [definition[0] for definition in public]
        self.personal_names = [definition[0] for definition in personal]
        self.public: Any = None
        self.personal: Any = None
        if personal:
            omit_defaults = struct.__struct_config__.omit_defaults
            self.public = _part(f"{struct.__name__}Public", public, rename, omit_defaults)
            self.personal = _part(f"{struct.__name__}Personal", personal, rename, omit_defaults)

    def upcast(self, schema_version: int, data: bytes, personal: bytes | None, erased: bool, damaged: bool) -> bytes:
        """Return the JSON object of an older version's fields, as the current version has them."""
        fields: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
        replacements = self.if_unreadable if damaged else self.replacements if erased else {}
        fields |= replacements if personal is None else msgspec.json.decode(personal, type=dict[str, Any])
        for upcast in self.upcasters[schema_version - 1 :]:
            fields = upcast(fields)
        if personal is None:
            fields |= replacements
        return msgspec.json.encode(fields)


def _part(name: str, fields: list[tuple[Any, ...]], rename: dict[str, str], omit_defaults: bool) -> Any:
    # kw_only would allow any order of defaults; the parts keep the order of the fields, so theirs is allowed too,
    # except where a field without a default of a kw_only struct follows one with: hence the sort, which is stable.
    ordered = sorted(fields, key=lambda field: len(field) == 3)
    if ordered != fields:
        fields[:] = ordered
    return defstruct(name, fields, rename=rename, omit_defaults=omit_defaults, frozen=True, gc=False)


def _members(union_types: object) -> tuple[type[Struct], ...]:
    if isinstance(union_types, tuple):
        return tuple(member for part in union_types for member in _members(part))
    if get_origin(union_types) in {Union, UnionType}:
        return tuple(member for part in get_args(union_types) for member in _members(part))
    if isinstance(union_types, type) and issubclass(union_types, Struct):
        return (union_types,)
    raise TypeError(f"{union_types!r} is not a struct, nor a union of them")


def _tag(struct: type[Struct]) -> str:
    tag = struct.__struct_config__.tag
    if not isinstance(tag, str):
        raise TypeError(f"{struct.__name__} has no tag")
    return tag


def _inspected(struct: type[Struct]) -> tuple[msgspec.inspect.Field, ...]:
    info = msgspec.inspect.type_info(struct)
    assert isinstance(info, msgspec.inspect.StructType)
    return info.fields


def _personal_mark(annotation: msgspec.inspect.Type) -> dict[str, Any] | None:
    """Return the mark of a personal field, on the field or on a member of its union; None when it has none."""
    mark: dict[str, Any] | None = None
    match annotation:
        case Annotation(extra=dict() as extra) if "personal" in extra:
            return extra
        case Annotation(type=inner):
            return _personal_mark(inner)
        case msgspec.inspect.UnionType(types=members):
            for member in members:
                found = _personal_mark(member)
                mark = mark if found is None else found
            return mark
        case _:
            _refuse_marks_below(annotation, set())
            return None


def _refuse_marks_below(annotation: object, seen: set[type]) -> None:
    if isinstance(annotation, Annotation) and "personal" in (annotation.extra or {}):
        raise TypeError("a personal mark inside a field: mark the whole field, or its text would be stored unencrypted")
    if isinstance(annotation, msgspec.inspect.StructType):
        if annotation.cls in seen:
            return
        seen.add(annotation.cls)
    if isinstance(annotation, tuple):
        for item in annotation:
            _refuse_marks_below(item, seen)
    elif isinstance(annotation, (msgspec.inspect.Type, msgspec.inspect.Field)):
        for name in annotation.__struct_fields__:
            value = getattr(annotation, name)
            if isinstance(value, (tuple, msgspec.inspect.Type, msgspec.inspect.Field)):
                _refuse_marks_below(value, seen)


def _joined(left: bytes, right: bytes) -> bytes:
    """Return one JSON object of the members of two."""
    if left == b"{}":
        return right
    if right == b"{}":
        return left
    return b"%b,%b" % (left[:-1], right[1:])
