"""Every shape in which an event was ever stored still means what it meant.

``tests/samples/events/<tag>.v<schema version>.json`` is an event as it was stored, the value that it stands for, and
the shape of its class then; ``<tag>.v<schema version>.2.json`` is another of the same version, and so on. A sample is
never changed or deleted: there may be logs with events like it.

For a new event, a new schema version or a new field with a default, run

    python -m tests.test_event_samples

which writes a sample of each shape that has none, and commit what it wrote. Any other change of a stored shape needs a
new schema version, and an upcaster given to its codec in service/streams.py.
"""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Struct, inspect

from eventstore import Codec, Decider
from service import streams

SAMPLES = Path(__file__).parent / "samples" / "events"
TIME = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

Shape = dict[str, Any]


class Sample(Struct, frozen=True, kw_only=True):
    type: str
    schema_version: int
    data: msgspec.Raw
    personal: msgspec.Raw
    """JSON null when it has none."""
    value: dict[str, Any]
    """Each field, those with their default too."""
    shape: Shape


def codecs() -> dict[str, Codec[Any]]:
    """The codec of each tag."""
    deciders = [value for value in vars(streams).values() if isinstance(value, Decider)]
    return {tag: decider.codec for decider in deciders for tag in decider.codec.types}


def current() -> dict[str, tuple[int, type[Struct]]]:
    return {tag: codec.shapes[tag] for tag, codec in codecs().items()}


def stored() -> dict[str, Sample]:
    return {file.name: msgspec.json.decode(file.read_bytes(), type=Sample) for file in sorted(SAMPLES.glob("*.json"))}


# Shapes


def shape_of(kind: inspect.Type) -> Shape:
    """What matters of a type to those who have to read it again, as JSON."""
    match kind:
        case inspect.Metadata(type=inner):
            return shape_of(inner)
        case inspect.StructType(cls=struct, fields=fields):
            described = {
                field.encode_name: {
                    "of": shape_of(field.type),
                    **({} if field.required else {"default": plain(default_of(field))}),
                    **personal_mark(field.type),
                }
                for field in fields
            }
            tag = struct.__struct_config__.tag
            return {"struct": described} | ({"tag": tag} if tag is not None else {})
        case inspect.UnionType(types=types):
            return {"union": sorted((shape_of(one) for one in types), key=str)}
        case inspect.LiteralType(values=values):
            return {"literal": sorted(values, key=str)}
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return {"array": shape_of(item)}
        case inspect.TupleType(item_types=items):
            return {"tuple": [shape_of(item) for item in items]}
        case inspect.DictType(key_type=key, value_type=value):
            return {"object": [shape_of(key), shape_of(value)]}
        case _:
            return {"plain": type(kind).__name__.removesuffix("Type")}


def default_of(field: inspect.Field) -> object:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


def personal_mark(kind: inspect.Type) -> Shape:
    if isinstance(kind, inspect.Metadata) and "personal" in (kind.extra or {}):
        return {"personal": kind.extra["personal"]}
    if isinstance(kind, inspect.UnionType):
        return next((mark for one in kind.types if (mark := personal_mark(one))), {})
    return {}


def broken(old: Shape, new: Shape, path: str = "") -> Iterator[str]:
    """Why what was stored in the old shape may not be read in the new one as what it was."""
    if "struct" in old and "struct" in new and old.get("tag") == new.get("tag"):
        for name, before in old["struct"].items():
            if (after := new["struct"].get(name)) is None:
                yield f"{path}{name} is gone"
                continue
            yield from broken(before["of"], after["of"], f"{path}{name}.")
            if "default" in before and ("default" not in after or after["default"] != before["default"]):
                yield f"{path}{name} has another default"
            if before.get("personal") != after.get("personal"):
                yield f"{path}{name} is personal otherwise"
        for name in new["struct"].keys() - old["struct"].keys():
            if "default" not in new["struct"][name]:
                yield f"{path}{name} is new and has no default"
    elif "union" in old or "union" in new:
        news = new.get("union", [new])
        for one in old.get("union", [old]):
            if all(any(broken(one, other)) for other in news):
                yield f"{path[:-1]} may no longer be {one}"
    elif "literal" in old and "literal" in new:
        for value in set(old["literal"]) - set(new["literal"]):
            yield f"{path[:-1]} may no longer be {value!r}"
    elif "array" in old and "array" in new:
        yield from broken(old["array"], new["array"], path)
    elif "object" in old and "object" in new:
        for before, after in zip(old["object"], new["object"], strict=True):
            yield from broken(before, after, path)
    elif old != new and (old, new) != ({"plain": "Int"}, {"plain": "Float"}):
        yield f"{path[:-1]} was {old} and is {new}"


# Values


def plain(value: object) -> Any:
    """A value as JSON has it, with every field of its structs."""
    match value:
        case Struct():
            fields = {field.encode_name: getattr(value, field.name) for field in msgspec.structs.fields(type(value))}
            return {name: plain(field) for name, field in fields.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case _:
            return msgspec.to_builtins(value)


def made(kind: inspect.Type, name: str, *, full: bool) -> Any:
    """A value of a type: with all of its fields, or only with those that it must have."""
    match kind:
        case inspect.Metadata(type=inner):
            return made(inner, name, full=full)
        case inspect.StructType(cls=struct, fields=fields):
            given = [field for field in fields if full or field.required]
            return struct(**{field.name: made(field.type, field.name, full=full) for field in given})
        case inspect.UnionType(types=types):
            return made(next(one for one in types if not isinstance(one, inspect.NoneType)), name, full=full)
        case inspect.LiteralType(values=values):
            return values[-1]
        case inspect.VarTupleType(item_type=item):
            return tuple(made(item, f"{name} {number}", full=full) for number in range(2 if full else 0))
        case inspect.TupleType(item_types=items):
            return tuple(made(item, f"{name} {number}", full=full) for number, item in enumerate(items))
        case inspect.DictType(value_type=value):
            return {f"key of {name}": made(value, name, full=full)} if full else {}
        case inspect.StrType():
            return f"{name} ä\n\U0001f9ea"
        case inspect.IntType():
            return 100 + len(name)
        case inspect.FloatType():
            return len(name) + 0.25
        case inspect.BoolType():
            return True
        case inspect.DateTimeType():
            return TIME + timedelta(days=len(name))
        case inspect.NoneType():
            return None
    raise NotImplementedError(f"say how a sample of {kind} is made")


def sample_of(tag: str, *, full: bool) -> Sample:
    codec = codecs()[tag]
    _, struct = codec.shapes[tag]
    event = made(inspect.type_info(struct), tag, full=full)
    new = codec.encode(event)
    return Sample(
        type=tag,
        schema_version=new.schema_version,
        data=msgspec.Raw(new.data),
        personal=msgspec.Raw(new.personal or b"null"),
        value=plain(event),
        shape=shape_of(inspect.type_info(struct)),
    )


def missing() -> list[Sample]:
    """Samples of the shapes that have none: with all fields, and with none that may be left out."""
    there = list(stored().values())
    wanted = [sample_of(tag, full=full) for tag in codecs() for full in (True, False)]
    found = []
    for sample in wanted:
        if not any(is_sample_of(old, sample) for old in [*there, *found]):
            found.append(sample)
    return found


def is_sample_of(old: Sample, new: Sample) -> bool:
    """Whether it shows the same fields of the same shape."""
    return (old.type, old.schema_version, old.shape) == (new.type, new.schema_version, new.shape) and names(
        old
    ) == names(new)


def names(sample: Sample) -> Any:
    def below(value: object) -> object:
        match value:
            case dict():
                return {name: below(item) for name, item in value.items()}
            case list():
                return [below(item) for item in value]
            case _:
                return None

    return [below(msgspec.json.decode(part)) for part in (sample.data, sample.personal)]


def write_missing() -> list[Path]:
    SAMPLES.mkdir(parents=True, exist_ok=True)
    written = []
    for sample in missing():
        number = 1
        while True:
            more = "" if number == 1 else f".{number}"
            path = SAMPLES / f"{sample.type}.v{sample.schema_version}{more}.json"
            try:
                with path.open("xb") as file:
                    file.write(as_text(sample))
            except FileExistsError:
                number += 1
                continue
            written.append(path)
            break
    return written


def as_text(sample: Sample) -> bytes:
    """JSON with a line for each field."""
    lines = [
        b"  %b: %b" % (msgspec.json.encode(name), msgspec.json.encode(getattr(sample, name)))
        for name in sample.__struct_fields__
    ]
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


# Tests


@pytest.fixture(params=sorted(stored()))
def sample(request) -> Sample:
    return stored()[request.param]


def test_every_shape_has_samples():
    assert [(new.type, new.schema_version) for new in missing()] == [], "run: python -m tests.test_event_samples"


def test_every_version_of_a_shape_has_a_sample():
    there = {(old.type, old.schema_version) for old in stored().values()}
    for tag, (version, _) in current().items():
        assert {(tag, number) for number in range(1, version + 1)} <= there


def test_a_stored_event_decodes_to_what_it_was(sample):
    assert sample.type in codecs(), "a tag that was released must not disappear"
    event = codecs()[sample.type].decode_stored(
        sample.type, sample.schema_version, bytes(sample.data), personal_of(sample), erased=False
    )
    version, _ = current()[sample.type]
    if sample.schema_version == version:
        assert list(lost(sample.value, plain(event))) == []
        again = codecs()[sample.type].encode(event)
        assert (again.data, again.personal) == (bytes(sample.data), personal_of(sample))


def lost(old: Any, new: Any, path: str = "value") -> Iterator[str]:
    """What of an old value is not in the new one, which may have more fields."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name, value in old.items():
            yield from lost(value, new.get(name), f"{path}.{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from lost(before, after, f"{path}.{number}")
    elif old != new:
        yield f"{path}: {old!r} became {new!r}"


def personal_of(sample: Sample) -> bytes | None:
    personal = bytes(sample.personal)
    return None if personal == b"null" else personal


def test_an_erased_event_decodes_to_replacements(sample):
    if personal_of(sample) is None:
        return
    event = codecs()[sample.type].decode_stored(sample.type, sample.schema_version, bytes(sample.data), None, True)
    for name, field in shape_of(inspect.type_info(type(event)))["struct"].items():
        if "personal" in field:
            assert plain(event)[name] == field["personal"]


def test_a_shape_changes_only_with_its_schema_version(sample):
    version, struct = current()[sample.type]
    assert sample.schema_version <= version
    if sample.schema_version == version:
        new = shape_of(inspect.type_info(struct))
        assert list(broken(sample.shape, new)) == [], "give the shape a new schema version, with an upcaster"


def changed(**fields: Any) -> Shape:
    fields = {name: field for name, field in fields.items() if field is not None}
    struct = msgspec.defstruct(
        "Changed",
        [(name, *field) if isinstance(field, tuple) else (name, field) for name, field in fields.items()],
        kw_only=True,
    )
    return shape_of(inspect.type_info(struct))


def test_breaking_changes_of_a_shape_are_found():
    hidden = Annotated[str, msgspec.Meta(extra={"personal": "gone"})]
    before = {"name": str, "kind": Literal["a", "b"], "count": (int, 0), "items": tuple[int, ...]}
    fine: tuple[dict[str, Any], ...] = (
        {"more": (str, "")},
        {"kind": Literal["a", "b", "c"]},
        {"name": str | None},
        {"count": (float, 0)},
        {"items": tuple[int | str, ...]},
    )
    bad: tuple[dict[str, Any], ...] = (
        {"more": str},
        {"kind": Literal["a"]},
        {"name": int},
        {"name": None},
        {"name": hidden},
        {"count": (int, 1)},
        {"count": int},
        {"items": tuple[str, ...]},
    )
    for change in fine:
        assert list(broken(changed(**before), changed(**{**before, **change}))) == [], change
    for change in bad:
        assert list(broken(changed(**before), changed(**{**before, **change}))) != [], change


if __name__ == "__main__":
    for path in write_missing():
        sys.stdout.write(f"{path}\n")
