"""Protobuf against Google's Python library, on random schemas and on all of foxglove-sdk's.

CBOR and MessagePack against cbor2 and msgpack.
"""

import base64
import math
import random
import struct

import cbor2
import foxglove.messages
import msgpack
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor as FD

SCHEMAS = 100
VALUES = 100  # of each schema: 10,000 in all
SCALARS = {
    FD.TYPE_INT32: ("int", -(2**31), 2**31 - 1),
    FD.TYPE_SINT32: ("int", -(2**31), 2**31 - 1),
    FD.TYPE_SFIXED32: ("int", -(2**31), 2**31 - 1),
    FD.TYPE_INT64: ("int", -(2**63), 2**63 - 1),
    FD.TYPE_SINT64: ("int", -(2**63), 2**63 - 1),
    FD.TYPE_SFIXED64: ("int", -(2**63), 2**63 - 1),
    FD.TYPE_UINT32: ("int", 0, 2**32 - 1),
    FD.TYPE_FIXED32: ("int", 0, 2**32 - 1),
    FD.TYPE_UINT64: ("int", 0, 2**64 - 1),
    FD.TYPE_FIXED64: ("int", 0, 2**64 - 1),
    FD.TYPE_BOOL: ("bool",),
    FD.TYPE_STRING: ("str",),
    FD.TYPE_BYTES: ("bytes",),
    FD.TYPE_FLOAT: ("f",),
    FD.TYPE_DOUBLE: ("d",),
}


def random_file(seed: int) -> descriptor_pb2.FileDescriptorProto:
    """Every kind, nested to depth 4; odd seeds are proto2."""
    pick = random.Random(seed)
    proto2 = seed % 2 == 1
    file = descriptor_pb2.FileDescriptorProto(name=f"r{seed}.proto", package="r")
    file.syntax = "proto2" if proto2 else "proto3"
    enum = file.enum_type.add(name="E")
    for i, number in enumerate((0, 1, -3, 70000)):
        enum.value.add(name=f"E{i}", number=number)

    def message(name: str, depth: int) -> None:
        out = file.message_type.add(name=name)
        number = 0
        for i in range(pick.randint(1, 8)):
            number += pick.choice([1, 1, 1, 20])
            field = out.field.add(name=f"f{i}", number=number)
            field.type = pick.choice([*SCALARS, FD.TYPE_ENUM])
            if field.type == FD.TYPE_ENUM:
                field.type_name = ".r.E"
            elif depth > 1 and pick.random() < 0.35:
                inner = f"M{len(file.message_type)}"
                message(inner, depth - 1)
                field.type = FD.TYPE_MESSAGE
                field.type_name = f".r.{inner}"
            form = pick.random()
            field.label = FD.LABEL_OPTIONAL
            if form < 0.3:
                field.label = FD.LABEL_REPEATED
                if field.type not in (FD.TYPE_STRING, FD.TYPE_BYTES, FD.TYPE_MESSAGE):
                    field.options.packed = pick.random() < 0.5
            elif form < 0.4:
                key = pick.choice(
                    [t for t in SCALARS if t not in (FD.TYPE_FLOAT, FD.TYPE_DOUBLE, FD.TYPE_BYTES)]
                )
                entry = out.nested_type.add(name=f"F{i}Entry")
                entry.options.map_entry = True
                entry.field.add(name="key", number=1, type=key, label=FD.LABEL_OPTIONAL)
                held = entry.field.add(name="value", number=2, label=FD.LABEL_OPTIONAL)
                held.type, held.type_name = field.type, field.type_name
                if not held.type_name:
                    held.ClearField("type_name")
                field.type = FD.TYPE_MESSAGE
                field.type_name = f".r.{name}.F{i}Entry"
                field.label = FD.LABEL_REPEATED
            elif form < 0.6 and (
                not out.oneof_decl or (i > 0 and out.field[i - 1].HasField("oneof_index"))
            ):  # the fields of a oneof stand together
                if not out.oneof_decl:
                    out.oneof_decl.add(name="choice")
                field.oneof_index = 0
        if not proto2:
            singular = [f for f in out.field if f.label == FD.LABEL_OPTIONAL]
            for field in singular:
                plain = field.type != FD.TYPE_MESSAGE and not field.HasField("oneof_index")
                if plain and pick.random() < 0.2:
                    field.proto3_optional = True
                    field.oneof_index = len(out.oneof_decl)
                    out.oneof_decl.add(name=f"_{field.name}")

    message("Root", 4)
    return file


def scalar(pick: random.Random, field):
    if field.type == FD.TYPE_ENUM:
        return pick.choice([value.number for value in field.enum_type.values])
    kind, *span = SCALARS[field.type]
    if kind == "int":
        return pick.choice([0, 1, *span, pick.randint(*span)])
    if kind == "bool":
        return pick.random() < 0.5
    if kind == "str":
        return pick.choice(["", "a", "größe", "日本", "x" * 200])
    if kind == "bytes":
        return pick.randbytes(pick.choice([0, 1, 5, 300]))
    value = pick.choice([0.0, -0.0, 0.1, math.nan, math.inf, pick.gauss(0, 100)])
    return struct.unpack("<f", struct.pack("<f", value))[0] if kind == "f" else value


def is_map(field) -> bool:
    return (
        field.type == FD.TYPE_MESSAGE
        and field.is_repeated
        and field.message_type.GetOptions().map_entry
    )


def fill(pick: random.Random, message, depth: int = 0) -> None:
    for field in message.DESCRIPTOR.fields:
        if pick.random() < 0.3 or (depth > 3 and field.type == FD.TYPE_MESSAGE):
            continue
        held = getattr(message, field.name)
        if is_map(field):
            key, inner = field.message_type.fields_by_name["key"], None
            inner = field.message_type.fields_by_name["value"]
            for _ in range(pick.randint(0, 3)):
                if inner.type == FD.TYPE_MESSAGE:
                    fill(pick, held[scalar(pick, key)], depth + 1)
                else:
                    held[scalar(pick, key)] = scalar(pick, inner)
        elif field.is_repeated:
            for _ in range(pick.randint(0, 4)):
                if field.type == FD.TYPE_MESSAGE:
                    fill(pick, held.add(), depth + 1)
                else:
                    held.append(scalar(pick, field))
        elif field.type == FD.TYPE_MESSAGE:
            held.SetInParent()
            fill(pick, held, depth + 1)
        else:
            setattr(message, field.name, scalar(pick, field))


def norm_scalar(value, field):
    if field.type == FD.TYPE_ENUM:
        if isinstance(value, str):
            return field.enum_type.values_by_name[value].number
        return int(value)
    kind = SCALARS[field.type][0]
    if kind == "int":
        return int(value)
    if kind in "fd":
        number = float(value)
        return "nan" if math.isnan(number) else struct.pack(f"<{kind}", number)
    if kind == "bytes" and isinstance(value, str):
        return base64.b64decode(value)
    return value


def norm_message(message) -> dict:
    """The form that Google's object and our JSON are both brought to."""
    out = {}
    for field in message.DESCRIPTOR.fields:
        held = getattr(message, field.name)
        nested = field.type == FD.TYPE_MESSAGE
        if is_map(field):
            inner = field.message_type.fields_by_name["value"]
            out[field.name] = {
                map_key(key): norm_message(value)
                if inner.type == FD.TYPE_MESSAGE
                else norm_scalar(value, inner)
                for key, value in held.items()
            }
        elif field.is_repeated:
            out[field.name] = [norm_message(v) if nested else norm_scalar(v, field) for v in held]
        elif not field.has_presence or message.HasField(field.name):
            out[field.name] = norm_message(held) if nested else norm_scalar(held, field)
    return out


def map_key(key) -> str:
    return {True: "true", False: "false"}[key] if isinstance(key, bool) else str(key)


def norm_ours(value: dict, descriptor) -> dict:
    out = {}
    for name, held in value.items():
        field = descriptor.fields_by_name[name]
        nested = field.type == FD.TYPE_MESSAGE
        if is_map(field):
            inner = field.message_type.fields_by_name["value"]
            out[name] = {
                key: norm_ours(v, inner.message_type)
                if inner.type == FD.TYPE_MESSAGE
                else norm_scalar(v, inner)
                for key, v in held.items()
            }
        elif field.is_repeated:
            out[name] = [
                norm_ours(v, field.message_type) if nested else norm_scalar(v, field) for v in held
            ]
        else:
            out[name] = norm_ours(held, field.message_type) if nested else norm_scalar(held, field)
    return out


def cross_check(codec, cls, pick: random.Random) -> None:
    message = cls()
    fill(pick, message)
    wanted = norm_message(message)
    decoded = codec.decode(message.SerializeToString())
    assert norm_ours(decoded, cls.DESCRIPTOR) == wanted
    assert norm_message(cls.FromString(codec.encode(decoded))) == wanted


def test_protobuf_agrees_on_random_schemas(codec):
    for seed in range(SCHEMAS):
        file = random_file(seed)
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        cls = message_factory.GetMessageClass(pool.FindMessageTypeByName("r.Root"))
        files = descriptor_pb2.FileDescriptorSet(file=[file])
        codec.compile("protobuf", "r.Root", "protobuf", files.SerializeToString())
        pick = random.Random(seed)
        for _ in range(VALUES):
            cross_check(codec, cls, pick)


def foxglove_types() -> list:
    types = [getattr(foxglove.messages, name) for name in dir(foxglove.messages)]
    return [t for t in types if isinstance(t, type) and hasattr(t, "get_schema")]


@pytest.mark.parametrize("kind", foxglove_types(), ids=lambda kind: kind.__name__)
def test_every_foxglove_type_decodes(codec, kind):
    schema = kind.get_schema()
    assert schema.encoding == "protobuf"
    codec.compile("protobuf", schema.name, "protobuf", schema.data)
    files = descriptor_pb2.FileDescriptorSet.FromString(schema.data)
    pool = descriptor_pool.DescriptorPool()
    waiting = list(files.file)
    while waiting:
        ready = [f for f in waiting if not set(f.dependency) & {w.name for w in waiting}]
        for file in ready:
            pool.Add(file)
            waiting.remove(file)
    cls = message_factory.GetMessageClass(pool.FindMessageTypeByName(schema.name))
    pick = random.Random(kind.__name__)
    for _ in range(100):
        cross_check(codec, cls, pick)
    # A message that the kit itself wrote.
    assert norm_ours(codec.decode(kind().encode()), cls.DESCRIPTOR) == norm_message(
        cls.FromString(kind().encode())
    )


def plain(pick: random.Random, depth: int):
    kinds = ["int", "float", "str", "bytes", "bool", "none"]
    if depth > 0:
        kinds += ["list", "dict", "dict"]
    kind = pick.choice(kinds)
    if kind == "int":
        return pick.choice([0, 23, 24, -1, -25, 255, 2**53, 2**63 - 1, -(2**63), 2**64 - 1])
    if kind == "float":
        return pick.choice([0.5, -1e300, pick.gauss(0, 1)])
    if kind == "str":
        return pick.choice(["", "a", "größe", "x" * 300])
    if kind == "bytes":
        return pick.randbytes(pick.choice([0, 3, 300]))
    if kind == "list":
        return [plain(pick, depth - 1) for _ in range(pick.randint(0, 5))]
    if kind == "dict":
        return {f"k{i}": plain(pick, depth - 1) for i in range(pick.randint(0, 5))}
    return None if kind == "none" else pick.random() < 0.5


def as_json(value):
    """What our JSON says of a plain value."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: as_json(held) for key, held in value.items()}
    if isinstance(value, list):
        return [as_json(held) for held in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        return str(value)
    return value


@pytest.mark.parametrize(
    ("encoding", "dumps", "loads"),
    [("cbor", cbor2.dumps, cbor2.loads), ("msgpack", msgpack.packb, msgpack.unpackb)],
)
def test_schemaless_encodings_agree(codec, encoding, dumps, loads):
    codec.compile(encoding, "", "", b"")
    pick = random.Random(7)
    for _ in range(SCHEMAS * VALUES):
        value = plain(pick, 4)
        wanted = as_json(value)
        assert codec.decode(dumps(value)) == wanted
        assert as_json(loads(codec.encode(wanted))) == wanted
