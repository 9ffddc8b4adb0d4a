"""Datasets of this environment: simulated and real ones, as v2.1 sources and as v3.0 output."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import lerobot_common


@pytest.fixture(scope="session", autouse=True)
def caches():
    yield
    lerobot_common.remove_caches()


@pytest.fixture(scope="session")
def simulated(ropewalk, tmp_path_factory) -> Path:
    """Three episodes with two cameras, recorded as v2.1."""
    raw = tmp_path_factory.mktemp("simulated") / "raw"
    ropewalk("simulate", raw, "--episodes", 3, "--seconds", 1.2, "--cameras", 2, "--size", "96x64")
    return raw


@pytest.fixture(scope="session")
def accepted(ropewalk, simulated) -> Path:
    """The accepted half of its export as v3.0."""
    out = simulated.parent / "pair"
    ropewalk("export", simulated, "--format", "lerobot_v3", "--out", out)
    return out / "accepted"


@pytest.fixture(scope="session", params=["agilex_dataset", "g1_partial"])
def real(ropewalk, testdata, tmp_path_factory, request):
    """A real v2.1 dataset and its conversion to v3.0."""
    source = testdata(request.param)
    out = tmp_path_factory.mktemp("real") / "v3"
    lerobot_common.convert(ropewalk, source, out, "lerobot_v3")
    return source, out
