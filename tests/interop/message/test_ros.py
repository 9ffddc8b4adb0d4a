"""CDR and ROS 1 against mcap-ros2-support, mcap-ros1-support and rosbags, in both directions."""

import base64
import io

import pytest
from mcap_ros1._vendor import genpy
from mcap_ros1._vendor.genpy import dynamic as genpy_dynamic
from mcap_ros2._dynamic import generate_dynamic, serialize_dynamic
from random_ros import Schema
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

SCHEMAS = 100
VALUES = 100  # of each schema: 10,000 in all


def rosbags_types(schema: Schema):
    store = get_typestore(Stores.EMPTY)
    for name, fields in schema.types.items():
        lines = [f"{kind}{'' if a is None else f'[{a}]'} {field}" for field, kind, a in fields]
        store.register(get_types_from_msg("\n".join(lines), name.replace("/", "/msg/")))
    return store


def test_ros2msg_agrees_with_mcap_ros2_support_and_rosbags(codec):
    compared = 0
    for seed in range(SCHEMAS):
        schema = Schema(seed, ros2=True)
        text = schema.text()
        codec.compile("cdr", "pkg/msg/Root", "ros2msg", text.encode())
        decode = generate_dynamic("pkg/msg/Root", text)["pkg/msg/Root"]
        encode = serialize_dynamic("pkg/msg/Root", text)["pkg/msg/Root"]
        store = rosbags_types(schema)
        for _ in range(VALUES):
            value = schema.value()
            wanted = schema.norm(value)
            theirs = encode(value)
            assert schema.norm(codec.decode(theirs)) == wanted, (seed, text)
            ours = codec.encode(schema.ours(value))
            assert schema.norm(decode(ours)) == wanted, (seed, text)
            assert schema.norm(store.deserialize_cdr(ours, "pkg/msg/Root")) == wanted, (seed, text)
            big = bytes(
                store.serialize_cdr(
                    store.deserialize_cdr(ours, "pkg/msg/Root"), "pkg/msg/Root", little_endian=False
                )
            )
            assert schema.norm(codec.decode(big)) == wanted, (seed, text)
            compared += 1
    assert compared == SCHEMAS * VALUES


def to_genpy(schema: Schema, value, classes, kind: str):
    fields = schema.types.get(kind) or schema.types[f"pkg/{kind}"]
    name = kind if kind in schema.types else f"pkg/{kind}"
    out = classes[name]()
    for field, inner, array in fields:
        nested = f"pkg/{inner}" in schema.types

        def one(held, inner=inner, nested=nested):
            if nested:
                return to_genpy(schema, held, classes, inner)
            if inner in ("time", "duration"):
                return (genpy.Time if inner == "time" else genpy.Duration)(*held)
            return held

        held = value[field]
        if array is None:
            setattr(out, field, one(held))
        elif inner == "uint8":
            setattr(out, field, bytes(held))
        else:
            setattr(out, field, [one(element) for element in held])
    return out


def test_ros1msg_agrees_with_mcap_ros1_support_and_rosbags(codec):
    compared = 0
    for seed in range(SCHEMAS):
        schema = Schema(seed, ros2=False)
        text = schema.text()
        codec.compile("ros1", "pkg/Root", "ros1msg", text.encode())
        classes = genpy_dynamic.generate_dynamic("pkg/Root", text)
        store = rosbags_types_ros1(schema)
        for _ in range(VALUES):
            value = schema.value()
            wanted = schema.norm(value)
            buffer = io.BytesIO()
            to_genpy(schema, value, classes, "pkg/Root").serialize(buffer)
            theirs = buffer.getvalue()
            assert schema.norm(codec.decode(theirs)) == wanted, (seed, text)
            ours = codec.encode(schema.ours(value))
            assert ours == theirs, (seed, text)
            read = classes["pkg/Root"]().deserialize(ours)
            assert schema.norm(read) == wanted, (seed, text)
            read = store.deserialize_ros1(ours, "pkg/msg/Root")
            assert schema.norm(read) == wanted, (seed, text)
            compared += 1
    assert compared == SCHEMAS * VALUES


def rosbags_types_ros1(schema: Schema):
    store = get_typestore(Stores.EMPTY)
    time = get_types_from_msg("int32 sec\nuint32 nanosec", "builtin_interfaces/msg/Time")
    store.register(time)
    store.register(
        get_types_from_msg("int32 sec\nuint32 nanosec", "builtin_interfaces/msg/Duration")
    )
    for name, fields in schema.types.items():
        lines = [f"{kind}{'' if a is None else f'[{a}]'} {field}" for field, kind, a in fields]
        store.register(get_types_from_msg("\n".join(lines), name.replace("/", "/msg/")))
    return store


@pytest.mark.parametrize("seed", range(20))
def test_cut_payloads_are_refused(codec, seed):
    schema = Schema(seed, ros2=True)
    codec.compile("cdr", "pkg/msg/Root", "ros2msg", schema.text().encode())
    payload = codec.encode(schema.ours(schema.value()))
    for size in range(len(payload)):
        answer = codec.ask(decode=base64.b64encode(payload[:size]).decode())
        assert "byte" in answer["error"], (size, answer)
