"""The tile DSL of examples/tile: its programs agree with NumPy, its blocks run in threads."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from basedsl import DSLCallError, DSLTypeError, Float32

FOLDER = Path(__file__).parents[2] / "examples" / "tile"


@pytest.fixture(scope="module")
def programs():
    """The module of programs; `programs.tile` is the DSL."""
    spec = importlib.util.spec_from_file_location("tile_programs", FOLDER / "programs.py")
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before


def test_programs_agree_with_numpy(programs, capsys):
    programs.main()
    assert capsys.readouterr().out.endswith("agree with NumPy\n")


def test_tiles_become_vector_instructions(programs):
    x = np.zeros(1000, np.float32)
    compiled = programs.tile.TILE.compile(programs.saxpy, 2.0, x, x)
    assert "vector<256xf32>" in compiled.__mlir__
    assert "llvm.masked.load" in compiled.stages.text("llvmir")


def test_blocks_run_in_several_threads(programs, monkeypatch):
    tile = programs.tile
    ranges = []
    monkeypatch.setattr(tile, "_THREADS", 4)
    pool = tile._pool

    class Recording:
        def map(self, function, starts):
            ranges.extend(starts)
            return pool.map(function, ranges)

    monkeypatch.setattr(tile, "_pool", Recording())
    x, y = np.ones((2, 256 * 8), np.float32)
    programs.saxpy(2.0, x, y)
    assert ranges == [0, 2, 4, 6]
    np.testing.assert_array_equal(y, np.full_like(y, 3))


def test_an_array_of_other_strides(programs):
    a = np.arange(64 * 40, dtype=np.float32).reshape(64, 40)[::2, ::2]
    b = np.ones((20, 30), np.float32)
    c = np.empty((30, 32), np.float32).T
    programs.matmul(a, b, c[:, :30])
    np.testing.assert_allclose(c[:, :30], a @ b, rtol=1e-5)


def test_errors_are_at_the_programs_line(programs):
    tile = programs.tile

    @tile.kernel
    def wrong(x):
        acc = tile.full((2, 5), 0, Float32)
        tile.dot(tile.full((2, 3), 0, Float32), tile.full((4, 5), 0, Float32), acc)

    @tile.jit
    def run(x):
        wrong(x).launch(grid=1)

    x = np.zeros(4, np.float32)
    with pytest.raises(DSLTypeError, match=r"dot of \(2, 3\) and \(4, 5\) does not fit \(2, 5\)"):
        run(x)

    @tile.kernel
    def rank(x):
        tile.load(x, (0, 0), (4, 4))

    @tile.jit
    def run_rank(x):
        rank(x).launch(grid=1)

    with pytest.raises(DSLTypeError, match=r"2 dimension\(s\) at 2 indices of an array of 1"):
        run_rank(x)
    with pytest.raises(DSLCallError, match="has 3 dimensions; tiles are of one or two"):
        run(np.zeros((2, 2, 2), np.float32))


def test_an_exception_of_a_block_reaches_the_caller(programs):
    tile = programs.tile

    @tile.kernel
    def checked(x, n):
        assert tile.program_id(0) < n, "a block too many"
        tile.store(x, tile.program_id(0), tile.full((1,), 1, Float32))

    @tile.jit
    def run(x, n):
        checked(x, n).launch(grid=x.shape[0])

    x = np.zeros(8, np.float32)
    run(x, 8)
    np.testing.assert_array_equal(x, np.ones(8))
    for _ in range(3):
        with pytest.raises(AssertionError, match="a block too many"):
            run(x, 5)
    run(x, 8)
