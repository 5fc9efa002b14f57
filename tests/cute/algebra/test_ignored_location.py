"""`loc=` and `ip=`: all public functions and methods take them, as type checkers know."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import basedsl_cute as cute
from basedsl_cute import algebra, arch, nvgpu, pipeline, utils
from basedsl_cute.algebra.ignored_location import takes_location

ROOMS = (algebra, arch, nvgpu.cpasync, nvgpu.warpgroup, pipeline, utils.hopper_helpers)


def is_decorated(function):
    return "ignored_location" in function.__code__.co_filename


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
def test_every_public_function_takes_them(room):
    functions = [getattr(room, name) for name in room.__all__]
    functions = [function for function in functions if inspect.isfunction(function)]
    assert functions
    assert [f.__qualname__ for f in functions if not is_decorated(f)] == []


@pytest.mark.parametrize(
    "cls",
    [getattr(pipeline, name) for name in pipeline.__all__ if name.startswith("Pipeline")]
    + [pipeline.ProducerHandle, pipeline.ConsumerHandle, pipeline.NamedBarrier]
    + [cute.TiledCopy, cute.ThrCopy, cute.TiledMma, cute.utils.SmemAllocator],
)
def test_every_public_method_takes_them(cls):
    for name, value in vars(cls).items():
        function = getattr(value, "__func__", value)
        if inspect.isfunction(function) and not name.startswith("_"):
            plain = isinstance(value, staticmethod) or name in ("get_tile_size", "set", "gemm")
            assert plain or is_decorated(function), f"{cls.__name__}.{name}"


def test_a_decorated_function_is_itself_otherwise():
    @takes_location
    def double(x: int, *, more: int = 0) -> int:
        """Twice."""
        return 2 * x + more

    assert double(2) == double(2, loc=1) == double(2, ip=1, loc=None) == 4
    assert double(2, more=1, loc=None) == 5
    assert double.__doc__ == "Twice." and double.__name__ == "double"
    with pytest.raises(TypeError, match="other"):
        double(2, other=1)


PROGRAM = """\
import basedsl_cute as cute
from basedsl_cute.pipeline import PipelineState
cute.algebra.make_layout((4, 8), loc=None, ip=None)
def steps(state: PipelineState) -> None:
    state.advance(2)
    state.advance(2, loc=None)
    state.advance("2")
cute.arch.lane_idx(loc=None)
cute.arch.lane_idx(0)
cute.arch.sync_warp(masks=0)
"""


@pytest.mark.slow
def test_type_checkers_know_both_signatures(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", str(program)]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    wrong = {line.split(":")[1] for line in printed.splitlines() if ": error:" in line}
    assert wrong == {"7", "9", "10"}, printed
