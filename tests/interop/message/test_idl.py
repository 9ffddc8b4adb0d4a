"""IDL types in XCDR1 and XCDR2 against cyclonedds, in both directions and both byte orders."""

import base64
import math
import random
import struct
from typing import Optional

import pytest
from cyclonedds import idl
from cyclonedds.idl import annotations, types
from cyclonedds.idl._support import Endianness
from random_ros import FLOATS, INTEGERS, TEXTS

SCHEMAS = 100
VALUES = 100  # of each schema: 10,000 in all
WORDS = {"uint8": "octet", "float32": "float", "float64": "double", "bool": "boolean"}
EXTENSIBILITY = {"final": annotations.final, "appendable": annotations.appendable}
EXTENSIBILITY["mutable"] = annotations.mutable


class Kind:
    """One type: its IDL, its class for cyclonedds, random values, and both forms of them."""

    def declare(self, name: str) -> str:
        return f"{self.word} {name}"


class Number(Kind):
    def __init__(self, name: str):
        self.name = name
        self.word = WORDS.get(name, name)
        self.type = bool if name == "bool" else getattr(types, name)

    def value(self, pick):
        if self.name in INTEGERS:
            low, high = INTEGERS[self.name]
            return pick.choice([low, high, 0, pick.randint(low, high)])
        if self.name == "bool":
            return pick.random() < 0.5
        value = pick.choice([0.0, 0.1, -1.5, math.inf, pick.gauss(0, 10)])
        return struct.unpack("<f", struct.pack("<f", value))[0] if self.name == "float32" else value

    def theirs(self, value):
        return value

    def ours(self, value):
        if isinstance(value, float) and not math.isfinite(value):
            return "Infinity" if value > 0 else "-Infinity"
        return value

    def norm(self, value):
        if self.name in FLOATS:
            return struct.pack("<f" if self.name == "float32" else "<d", float(value))
        return bool(value) if self.name == "bool" else int(value)


class Text(Kind):
    word, type = "string", str

    def value(self, pick):
        return pick.choice(TEXTS)

    def theirs(self, value):
        return value

    ours = norm = theirs


class Choice(Kind):
    """An enumeration."""

    def __init__(self, name: str):
        self.word = name
        self.names = {f"{name}_{i}": number for i, number in enumerate((0, 3, 4))}
        self.text = f"enum {name} {{ {name}_0, @value(3) {name}_1, {name}_2 }};"
        self.type = idl.make_idl_enum(name, name, self.names)

    def value(self, pick):
        return pick.choice(list(self.names))

    def theirs(self, value):
        return self.type[value]

    def ours(self, value):
        return value

    def norm(self, value):
        return value if isinstance(value, str) else value.name


class Flags(Kind):
    """A bitmask."""

    def __init__(self, name: str):
        self.word = name
        self.text = f"bitmask {name} {{ {name}_a, {name}_b, {name}_c }};"
        self.type = idl.make_idl_bitmask(name, name, [f"{name}_{c}" for c in "abc"])

    def value(self, pick):
        return pick.randint(0, 7)

    def theirs(self, value):
        return self.type.from_mask(value)

    def ours(self, value):
        return value

    def norm(self, value):
        return value if isinstance(value, int) else value.as_mask()


class Row(Kind):
    """A sequence, bounded or not, or an array."""

    def __init__(self, element: Kind, form: str, count: int):
        self.element, self.form, self.count = element, form, count
        if form == "array":
            self.type = types.array[element.type, count]
        elif form == "bounded":
            self.word = f"sequence<{element.word}, {count}>"
            self.type = types.sequence[element.type, count]
        else:
            self.word = f"sequence<{element.word}>"
            self.type = types.sequence[element.type]

    def declare(self, name: str) -> str:
        if self.form == "array":
            return f"{self.element.word} {name}[{self.count}]"
        return super().declare(name)

    def value(self, pick):
        count = self.count if self.form == "array" else pick.randint(0, self.count)
        return [self.element.value(pick) for _ in range(count)]

    def theirs(self, value):
        return [self.element.theirs(held) for held in value]

    def ours(self, value):
        return [self.element.ours(held) for held in value]

    def norm(self, value):
        if isinstance(value, str):  # our JSON of bytes
            value = base64.b64decode(value)
        return [self.element.norm(held) for held in value]


class Union(Kind):
    def __init__(self, name: str, branches: list):
        self.word, self.branches = name, branches
        lines = []
        fields = {}
        for i, branch in enumerate(branches):
            last = i + 1 == len(branches)
            label = "default:" if last else f"case {2 * i}: case {2 * i + 1}:"
            lines.append(f"{label} {branch.declare(f'b{i}')};")
            labels = [2 * i, 2 * i + 1]
            fields[f"b{i}"] = (
                types.default[branch.type] if last else types.case[labels, branch.type]
            )
        self.text = f"@final union {name} switch (long) {{ {' '.join(lines)} }};"
        self.type = idl.make_idl_union(name, name, fields, discriminator=types.int32)

    def value(self, pick):
        i = pick.randrange(len(self.branches))
        label = 99 if i + 1 == len(self.branches) else 2 * i + pick.randint(0, 1)
        return (label, i, self.branches[i].value(pick))

    def theirs(self, value):
        label, i, held = value
        return self.type(discriminator=label, value=self.branches[i].theirs(held))

    def ours(self, value):
        label, i, held = value
        return {"_d": label, f"b{i}": self.branches[i].ours(held)}

    def norm(self, value):
        if isinstance(value, tuple):
            label, i, held = value
        elif isinstance(value, dict):
            label = value["_d"]
            name, held = next((n, v) for n, v in value.items() if n != "_d")
            i = int(name[1:])
        else:
            label, held = value.get()
            i = min(label // 2, len(self.branches) - 1)
        return (label, i, self.branches[i].norm(held))


class Struct(Kind):
    def __init__(self, name: str, fields: list, extensibility: str):
        """`fields`: (name, kind, is optional, id or None)."""
        self.word, self.fields = name, fields
        lines, hints, notes = [], {}, {}
        for field, kind, optional, number in fields:
            marks = "@optional " if optional else ""
            if number is not None:
                marks += f"@id({number}) "
                notes[field] = {"id": number}
            lines.append(f"{marks}{kind.declare(field)};")
            # cyclonedds knows this spelling alone.
            hints[field] = Optional[kind.type] if optional else kind.type  # noqa: UP045
        self.text = f"@{extensibility} struct {name} {{ {' '.join(lines)} }};"
        self.type = idl.make_idl_struct(name, name, hints, field_annotations=notes)
        self.type = EXTENSIBILITY[extensibility](self.type)

    def value(self, pick):
        return {
            name: None if optional and pick.random() < 0.4 else kind.value(pick)
            for name, kind, optional, _ in self.fields
        }

    def theirs(self, value):
        return self.type(
            **{
                name: None if value[name] is None else kind.theirs(value[name])
                for name, kind, _, _ in self.fields
            }
        )

    def ours(self, value):
        return {
            name: None if value[name] is None else kind.ours(value[name])
            for name, kind, _, _ in self.fields
        }

    def norm(self, value):
        out = {}
        for name, kind, _, _ in self.fields:
            held = value[name] if isinstance(value, dict) else getattr(value, name)
            out[name] = None if held is None else kind.norm(held)
        return out


def random_root(seed: int, kinds: tuple) -> tuple[Struct, str]:
    """Returns a structure of depth 4 and the IDL text of all it needs."""
    pick = random.Random(seed)
    named: list = []

    def leaf() -> Kind:
        roll = pick.random()
        if roll < 0.1:
            kind = Choice(f"E{len(named)}")
        elif roll < 0.15:
            kind = Flags(f"F{len(named)}")
        elif roll < 0.3:
            return Text()
        else:
            return Number(pick.choice([*INTEGERS, *FLOATS, "bool"]))
        named.append(kind)
        return kind

    def any_kind(depth: int) -> Kind:
        kind = leaf()
        if depth > 1 and pick.random() < 0.35:
            kind = structure(depth - 1)
        elif depth > 1 and pick.random() < 0.1:
            branches = [any_kind(depth - 1) for _ in range(pick.randint(2, 3))]
            kind = Union(f"U{len(named)}", branches)
            named.append(kind)
        if pick.random() < 0.4:
            kind = Row(kind, pick.choice(["sequence", "bounded", "array"]), pick.randint(1, 4))
        return kind

    def structure(depth: int) -> Struct:
        extensibility = pick.choice(kinds)
        number = 0
        fields = []
        for i in range(pick.randint(1, 6)):
            number += pick.randint(1, 3)
            fields.append(
                (
                    f"f{i}",
                    any_kind(depth),
                    pick.random() < 0.2,
                    number if extensibility == "mutable" else None,
                )
            )
        out = Struct(f"S{len(named)}", fields, extensibility)
        named.append(out)
        return out

    root = structure(4)
    return root, "\n".join(kind.text for kind in named)


@pytest.mark.parametrize("kinds", [("final",), ("final", "appendable", "mutable")], ids=len)
def test_omgidl_agrees_with_cyclonedds(codec, kinds):
    read = 0
    written = 0
    for seed in range(SCHEMAS):
        root, text = random_root(seed, kinds)
        codec.compile("cdr", root.word, "omgidl", text.encode())
        pick = random.Random(seed)
        for i in range(VALUES):
            value = root.value(pick)
            wanted = root.norm(value)
            order = Endianness.Big if i % 2 else Endianness.Little
            xcdr2 = i % 4 < 2
            theirs = root.theirs(value).serialize(endianness=order, use_version_2=xcdr2)
            assert root.norm(codec.decode(theirs)) == wanted, (seed, text)
            read += 1
            ours = codec.encode(root.ours(value))
            assert root.norm(root.type.deserialize(ours)) == wanted, (seed, text)
            written += 1
    assert read == written == SCHEMAS * VALUES
