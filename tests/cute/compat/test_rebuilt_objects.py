"""Objects of classes with `__extract_mlir_values__` and `__new_from_mlir_values__` are values."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError
from basedsl_cute.cutlass_dsl import extract_mlir_values, new_from_mlir_values


class Tile:
    """A tile's coordinates, as schedulers of such programs return them."""

    def __init__(self, index, valid, kind="plain"):
        self._index = index
        self._valid = cute.Boolean(valid)
        self.kind = kind

    def __extract_mlir_values__(self):
        return extract_mlir_values(self._index) + extract_mlir_values(self._valid)

    def __new_from_mlir_values__(self, values):
        n = len(extract_mlir_values(self._index))
        index = new_from_mlir_values(self._index, values[:n])
        return Tile(index, new_from_mlir_values(self._valid, values[n:]), self.kind)


class Plain:
    def __init__(self, index):
        self.index = index


@cute.kernel
def tiles(out: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    tile = Tile((t, t * 2, None), t < 6)
    first = tile
    if t > 2:
        tile = Tile((t + 100, t, None), True)
    if t == 4:
        out[0] = 1
    else:
        tile = Tile((tile._index[0] + 1000, tile._index[1], None), tile._valid)
    while tile._valid:
        out[1 + t] = tile._index[0] * 10000 + tile._index[1] + first._index[1]
        tile = Tile((tile._index[0] + 1, 0, None), False)


@cute.jit
def launch(out: cute.Tensor):
    tiles(out).launch(grid=1, block=8)


def test_branches_make_them_anew(target):
    out = np.zeros(9, np.int32)
    launch(out)
    wanted = [1]
    for t in range(8):
        tile = (t + 100, t) if t > 2 else (t, t * 2)
        x = tile[0] if t == 4 else tile[0] + 1000
        wanted.append(x * 10000 + tile[1] + t * 2)
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda t: Plain(t), "'a' refers to different Plain objects"),
        (lambda t: Tile((t, t), True), "'a' refers to different Tile objects"),
        (lambda t: Tile((t,), True, "other"), "kind"),
    ],
)
def test_what_cannot_be_made_anew(sim, make, text):
    @cute.kernel
    def kernel(out: cute.Tensor):
        t = cute.arch.thread_idx()[0]
        a = Plain(t) if isinstance(make(1), Plain) else Tile((t,), True)
        if t > 2:
            a = make(t)
        out[t] = 1 if a is None else 2

    with pytest.raises(DSLError, match=text):
        cute.jit(lambda out: kernel(out).launch(grid=1, block=4))(np.zeros(4, np.int32))
