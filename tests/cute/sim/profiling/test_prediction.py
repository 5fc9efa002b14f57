"""`cute.sim.predict`: the replay of simulated blocks, against times counted by hand."""

import json
import pathlib

import numpy as np
import pytest

import basedsl_cute.sim.profiling as profiling
from basedsl import DSLCallError
from basedsl_cute.sim import predict, profile
from basedsl_cute.sim.profiling.rates import rates_of
from tests.cute.sim.profiling import kernels

ROOT = pathlib.Path(__file__).parents[4]


def arrays(count):
    return np.zeros(count, np.float32), np.zeros(count, np.float32)


def test_a_large_copy_takes_the_time_of_its_bytes_or_of_starting_its_blocks():
    x, y = arrays(1 << 24)
    (found,) = predict(kernels.copied, x, y)
    rates = rates_of("sm_90a")
    bytes_alone = 2 * x.nbytes / rates.memory
    assert found.bytes == pytest.approx(2 * x.nbytes)
    assert found.bounds["memory"] == pytest.approx(bytes_alone, rel=0.01)
    starts = (1 << 24) / 128 / rates.processors * rates.block_start / rates.clock
    least = max(bytes_alone, starts)
    assert least < found.seconds < 1.3 * least


def test_a_small_copy_takes_the_launch_and_two_latencies():
    x, y = arrays(128)
    (found,) = predict(kernels.copied, x, y)
    rates = rates_of("sm_90a")
    least = rates.launch + rates.memory_latency / rates.clock
    assert least < found.seconds < least + 1.5e-6
    assert found.limited_by == "latency"


def test_strided_loads_take_longer():
    x = np.zeros(1 << 22, np.float32)
    (near,) = predict(kernels.copied, x[: 1 << 19], np.zeros(1 << 19, np.float32))
    (far,) = predict(kernels.copied, x, np.zeros(1 << 19, np.float32), step=8)
    assert far.bytes == pytest.approx(near.bytes / 2 * 9)
    assert far.bounds["memory"] == pytest.approx(4.5 * near.bounds["memory"])
    assert far.seconds > 1.3 * near.seconds


def test_bank_conflicts_take_time_of_shared_memory():
    x, y = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    (padded,), (conflicts,) = (predict(kernels.turn, x, y, pitch) for pitch in (33, 32))
    rates = rates_of("sm_90a")
    more = (conflicts.bounds["shared"] - padded.bounds["shared"]) * rates.clock
    assert more == pytest.approx(32 * 31)
    assert conflicts.seconds > padded.seconds


def test_warps_that_meet_at_barriers_of_their_own_go_on():
    x, y = arrays(128)
    (found,) = predict(kernels.rounds, x, y, timeline=True)
    stores = [one for one in found.slices if "global" in one.name]
    assert {one.track for one in stores} == {f"warp {i}" for i in range(4)}


def test_other_architectures():
    x, y = arrays(1 << 22)
    (hopper,), (ampere,) = (
        predict(kernels.copied, x, y, arch=arch) for arch in ("sm_90a", "sm_80")
    )
    assert ampere.seconds > 1.5 * hopper.seconds
    assert "derived from" in ampere.rates.source
    with pytest.raises(DSLCallError, match="no rates are known for 'sm_75'"):
        predict(kernels.copied, x, y, arch="sm_75")


def test_the_timeline(tmp_path):
    x, y = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    (found,) = predict(kernels.turn, x, y, 33, timeline=True)
    events = json.loads(found.timeline(tmp_path / "turn.json").read_text())["traceEvents"]
    tracks = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert tracks == {f"warp {i}" for i in range(32)}
    barriers = [e for e in events if e["ph"] == "X" and "barrier" in e["name"]]
    ends = [e["ts"] + e["dur"] for e in barriers]
    assert len(barriers) == 32
    assert max(e["ts"] for e in barriers) <= min(ends) + 1e-9
    with pytest.raises(ValueError, match="timeline=True"):
        predict(kernels.turn, x, y, 33)[0].timeline(tmp_path / "none.json")


def test_the_roofline(tmp_path):
    x, y = arrays(1 << 12)
    (found,) = predict(kernels.doubled, x, y)
    page = profile(kernels.doubled, x, y).html(tmp_path / "page.html", [found]).read_text()
    assert 'aria-label="roofline"' in page
    assert "doubled_kernel: " in page
    assert found.flops == 1 << 12


def test_the_rates_are_those_of_the_results():
    inside = pathlib.Path(profiling.__file__).parent / "h200.json"
    kept = sorted((ROOT / "bench" / "results").glob("*-h200-units.json"))[-1]
    assert inside.read_text() == kept.read_text()


def test_the_timeline_of_a_profile(tmp_path):
    """Each warp and each asynchronous unit has a track; launches follow each other."""
    x, y = np.ones(128, np.float32), np.zeros(128, np.float32)
    a, b = (np.ones((128, 64, 1), np.float16) for _ in range(2))
    c = np.zeros((128, 128, 1), np.float16)
    found = profile(kernels.staged_and_multiplied, x, y, a, b, c, timeline=True)
    events = json.loads(found.timeline(tmp_path / "both.json").read_text())["traceEvents"]
    named = {
        kind: {e["pid"]: e["args"]["name"] for e in events if e["name"] == kind}
        for kind in ("process_name", "thread_name")
    }
    first, second = (
        {e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == pid}
        for pid in sorted(named["process_name"])[:2]
    )
    assert len(named["process_name"]) == 2
    assert first == {"cp.async", *(f"warp {i}" for i in range(4))}
    assert {"TMA", "tensor cores", "warp 0"} <= second
    spans = [
        [(e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X" and e["pid"] == pid]
        for pid in sorted(named["process_name"])
    ]
    assert max(end for _, end in spans[0]) <= min(start for start, _ in spans[1]) + 1e-9
    with pytest.raises(ValueError, match="timeline=True"):
        profile(kernels.copied, x, y).timeline(tmp_path / "none.json")
