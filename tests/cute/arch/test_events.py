"""Events in kernels: recorded by warp and block, written for Perfetto, and free when off."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLCallError, DSLError, DSLTypeError, read_object_file
from basedsl_cute.lowering.ptx import ptxas


@cute.kernel
def traced_kernel(x: cute.Tensor):
    i = cute.arch.block_idx()[0] * 64 + cute.arch.thread_idx()[0]
    with cute.trace("double"):
        x[i] = x[i] * 2
    if cute.arch.warp_idx() == 1:
        with cute.trace("only warp 1"):
            x[i] = x[i] + 1


@cute.kernel
def plain_kernel(x: cute.Tensor):
    i = cute.arch.block_idx()[0] * 64 + cute.arch.thread_idx()[0]
    x[i] = x[i] * 2
    if cute.arch.warp_idx() == 1:
        x[i] = x[i] + 1


@cute.jit
def traced(x: cute.Tensor):
    traced_kernel(x).launch(grid=(3, 1, 1), block=(64, 1, 1))


@cute.jit
def plain(x: cute.Tensor):
    plain_kernel(x).launch(grid=(3, 1, 1), block=(64, 1, 1))


@pytest.fixture
def x():
    return np.ones(192, np.float32)


def test_each_warp_of_each_block_has_its_events(target, x):
    with cute.record_events() as events:
        traced(x)
    np.testing.assert_array_equal(x.reshape(3, 2, 32)[:, 0], 2)
    np.testing.assert_array_equal(x.reshape(3, 2, 32)[:, 1], 3)
    found = sorted((one.name, one.block, one.warp) for one in events)
    assert found == [("double", b, w) for b in range(3) for w in range(2)] + [
        ("only warp 1", b, 1) for b in range(3)
    ]
    assert all(one.start <= one.end and one.kernel == "traced_kernel" for one in events)
    assert events.dropped == 0 and [e.start for e in events] == sorted(e.start for e in events)
    for block in range(3):
        first, second = (
            next(e for e in events if (e.name, e.block, e.warp) == (name, block, 1))
            for name in ("double", "only warp 1")
        )
        assert first.end <= second.start


def test_outside_of_a_recording_nothing_is_recorded(sim, x):
    traced(x)
    with cute.record_events() as events:
        pass
    assert len(events) == 0 and cute.CUTE.options.trace_buffer == 0
    traced(x)


def test_events_beyond_the_capacity_are_counted(sim, x):
    with cute.record_events(capacity=4) as events:
        traced(x)
    assert len(events) == 4 and events.dropped == 5


def test_a_file_for_perfetto(sim, x, tmp_path):
    with cute.record_events() as events:
        traced(x)
    found = json.loads(events.save(tmp_path / "trace.json").read_text())
    tracks = {(e["pid"], e["tid"]) for e in found["traceEvents"] if e["name"] == "thread_name"}
    assert tracks == {(b, w) for b in range(3) for w in range(2)}
    regions = [e for e in found["traceEvents"] if e["ph"] == "X"]
    assert len(regions) == 9 and min(e["ts"] for e in regions) == 0
    assert all(e["dur"] >= 0 and e["cat"] == "traced_kernel" for e in regions)
    assert found["otherData"] == {"clock": "ticks", "dropped": 0}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_it_costs_nothing_when_off(x, arch):
    codes = [cute.compile[cute.GPUArch(arch)](f, x) for f in (traced, plain)]
    texts = [code.__ptx__.replace("traced_", "plain_") for code in codes]
    assert texts[0] == texts[1]
    if ptxas.find_ptxas() is not None:
        assert codes[0].resources["traced_kernel"].registers == (
            codes[1].resources["plain_kernel"].registers
        )


def machine_code(function, x, options=""):
    """The bytes of instructions by kernel, under one name for both functions."""
    cubin = cute.compile(function, x, options=f"--gpu-arch sm_90a {options}").__cubin__
    return {
        one.name.replace("traced_", "plain_"): cubin[one.offset : one.offset + one.size]
        for one in read_object_file(cubin).sections
        if one.name.startswith(".text.")
    }


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas")
def test_machine_code_is_the_same_without_a_recording_and_with_line_tables(x, monkeypatch):
    plain_code = machine_code(plain, x)
    assert list(plain_code) == [".text.plain_kernel"] and len(plain_code[".text.plain_kernel"]) > 0
    assert machine_code(traced, x) == plain_code
    assert machine_code(plain, x, "--lineinfo") == plain_code
    monkeypatch.setenv("CUTE_DSL_TRACE_BUFFER", "4096")
    assert machine_code(traced, x) != plain_code


def test_ptx_of_a_recording(monkeypatch, x):
    monkeypatch.setenv("CUTE_DSL_TRACE_BUFFER", "4096")
    ptx = cute.compile[cute.GPUArch("sm_90a")](traced, x).__ptx__
    assert len(re.findall(r"%globaltimer", ptx)) == 4
    assert "activemask.b32" in ptx and "atom.relaxed.gpu.global.add" in ptx.replace("::", ".")


@cute.kernel
def misnamed_kernel(x: cute.Tensor, name: cute.Constexpr):
    with cute.trace(name):
        x[0] = 1.0


@cute.jit
def misnamed(x: cute.Tensor, name: cute.Constexpr):
    misnamed_kernel(x, name).launch(grid=(1, 1, 1), block=(32, 1, 1))


@pytest.mark.parametrize("name", ["", "n" * 33, 3])
def test_names_that_regions_cannot_have(sim, x, name):
    with pytest.raises(DSLTypeError, match="the name of a region is text of 1 to 32 bytes"):
        misnamed(x, name)


def test_it_is_for_kernels(sim, x):
    @cute.jit
    def on_host(n: cute.Int32):
        with cute.trace("host"):
            return n

    with pytest.raises(DSLError, match="can only be used in a kernel"):
        on_host(1)


def test_recordings_are_not_nested(sim):
    with pytest.raises(DSLCallError, match="not nested"):
        with cute.record_events(), cute.record_events():
            pass
    with pytest.raises(DSLCallError, match="the capacity is a number of events, not 0"):
        with cute.record_events(capacity=0):
            pass


# Pipelines --------------------------------------------------------------------------------------


PIPELINE = Path(__file__).parents[1] / "programs" / "recorded_squares.py"


def test_pipelines_record_their_waits(sim):
    events = runpy.run_path(str(PIPELINE))["run"]()
    waits = [one.warp for one in events if one.name == "consumer_wait"]
    acquired = [one.warp for one in events if one.name == "producer_acquire"]
    assert waits == [1] * 6 and set(acquired) == {0} and len(acquired) >= 6
