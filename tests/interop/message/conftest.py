"""Our codec as a program: one process, one line of JSON for each question."""

import base64
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


class Codec:
    """Talks to tests/conformance/message_codec."""

    def __init__(self, path: str):
        self.process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def ask(self, **request) -> dict:
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def compile(self, message_encoding: str, name: str, encoding: str, schema: bytes) -> None:
        answer = self.ask(
            schema={
                "message_encoding": message_encoding,
                "schema_name": name,
                "schema_encoding": encoding,
                "data": base64.b64encode(schema).decode(),
            }
        )
        assert answer == {"ok": True}, answer

    def decode(self, payload: bytes):
        answer = self.ask(decode=base64.b64encode(payload).decode())
        assert "value" in answer, answer
        return answer["value"]

    def encode(self, value) -> bytes:
        answer = self.ask(encode=value)
        assert "payload" in answer, (answer, value)
        return base64.b64decode(answer["payload"])


@pytest.fixture(scope="session")
def codec():
    """The program beside the one in ROPEWALK_BIN."""
    ropewalk = Path(os.environ.get("ROPEWALK_BIN", ROOT / "build/dev/bin/ropewalk"))
    path = ropewalk.parent.parent / "conformance" / "message_codec"
    if not os.access(path, os.X_OK):
        pytest.fail(f"no program at {path}; run: make interop")
    codec = Codec(str(path))
    yield codec
    codec.process.stdin.close()
    codec.process.wait(timeout=10)
