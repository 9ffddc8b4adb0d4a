"""Random .msg schemas with random values, and one form for the values of all decoders."""

import base64
import math
import random
import struct

INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
FLOATS = ("float32", "float64")
TEXTS = ("", "a", "bc", "joint_1", "größe", "日本", 'quo"te\\', "line\nend", "x" * 70)
RULE = "=" * 80


class Schema:
    """A root type with its dependencies: {name: [(field, type, array)]}.

    `array` is None, "" for a sequence, a number for an array, "<=n" for a bounded sequence.
    """

    def __init__(self, seed: int, ros2: bool):
        self.random = random.Random(seed)
        self.ros2 = ros2
        self.types: dict[str, list] = {}
        self.root = "pkg/Root"
        self.add("Root", 4)

    def add(self, name: str, depth: int) -> None:
        pick = self.random
        fields: list = []
        self.types[f"pkg/{name}"] = fields
        for i in range(pick.randint(1, 7)):
            kinds = [*INTEGERS, *FLOATS, "bool", "string"]
            if not self.ros2:
                kinds += ["time", "duration"]
            kind = pick.choice(kinds)
            if depth > 1 and pick.random() < 0.35:
                kind = f"T{len(self.types)}"
                self.add(kind, depth - 1)
            arrays = [None, None, "", pick.randint(1, 4)]
            if self.ros2:
                arrays.append(f"<={pick.randint(1, 5)}")
            fields.append((f"f{i}", kind, pick.choice(arrays)))

    def text(self) -> str:
        parts = []
        for name, fields in self.types.items():
            lines = [] if name == self.root else [f"MSG: {name}"]
            for field, kind, array in fields:
                lines.append(f"{kind}{'' if array is None else f'[{array}]'} {field}")
            parts.append("\n".join(lines) + "\n")
        return f"{RULE}\n".join(parts)

    def value(self, kind: str | None = None):
        """Returns a random value: dicts, lists, numbers, texts; times are (sec, nsec)."""
        kind = kind or self.root
        fields = self.types.get(kind) or self.types.get(f"pkg/{kind}")
        if fields is None:
            return self.scalar(kind)
        out = {}
        for field, inner, array in fields:
            if array is None:
                out[field] = self.value(inner)
                continue
            count = array
            if not isinstance(array, int):
                count = self.random.randint(0, int(array[2:]) if array else 4)
            out[field] = [self.value(inner) for _ in range(count)]
        return out

    def scalar(self, kind: str):
        pick = self.random
        if kind in INTEGERS:
            low, high = INTEGERS[kind]
            return pick.choice([low, high, 0, 1, pick.randint(low, high)])
        if kind == "float64":
            return pick.choice([0.0, -1.5, math.nan, math.inf, -math.inf, pick.gauss(0, 1e3)])
        if kind == "float32":
            value = pick.choice([0.0, 0.1, math.nan, -math.inf, pick.gauss(0, 10)])
            return struct.unpack("<f", struct.pack("<f", value))[0]
        if kind == "bool":
            return pick.random() < 0.5
        if kind == "string":
            return pick.choice(TEXTS)
        if kind == "time":
            # Seconds are uint32; rosbags reads them as int32.
            return (pick.randint(0, 2**31 - 1), pick.randint(0, 999_999_999))
        # Python's genpy normalizes durations; those in range stay as they are.
        return (pick.randint(-(2**31), 2**31 - 1), pick.randint(0, 999_999_999))

    def norm(self, value, kind: str | None = None):
        """Returns one comparable form of what any decoder gave for this type."""
        kind = kind or self.root
        fields = self.types.get(kind) or self.types.get(f"pkg/{kind}")
        if fields is None:
            return norm_scalar(value, kind)
        out = {}
        for field, inner, array in fields:
            held = value[field] if isinstance(value, dict) else getattr(value, field)
            if array is None:
                out[field] = self.norm(held, inner)
            else:
                out[field] = [self.norm(element, inner) for element in as_list(held)]
        return out

    def ours(self, value, kind: str | None = None):
        """Returns the value as JSON for our encoder."""
        kind = kind or self.root
        fields = self.types.get(kind) or self.types.get(f"pkg/{kind}")
        if fields is None:
            if kind in ("time", "duration"):
                return {"sec": value[0], "nsec": value[1]}
            if isinstance(value, float) and not math.isfinite(value):
                return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return value
        return {
            field: self.ours(value[field], inner)
            if array is None
            else [self.ours(element, inner) for element in value[field]]
            for field, inner, array in fields
        }


def as_list(value):
    if isinstance(value, str):  # our JSON of bytes
        return list(base64.b64decode(value))
    return list(value)


def norm_scalar(value, kind: str):
    if kind in INTEGERS:
        return int(value)
    if kind in FLOATS:
        number = float(value)
        if math.isnan(number):
            return "nan"
        return struct.pack("<f" if kind == "float32" else "<d", number)
    if kind == "bool":
        return bool(value)
    if kind in ("time", "duration"):
        if isinstance(value, dict):
            return (value["sec"], value["nsec"])
        if isinstance(value, tuple):
            return value
        if hasattr(value, "secs"):
            return (value.secs, value.nsecs)
        return (value.sec, value.nanosec)
    return str(value)
