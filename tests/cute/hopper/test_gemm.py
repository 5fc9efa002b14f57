"""The Hopper GEMM of `ops`: every path of it against NumPy, and what ptxas says of it."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError, DSLTypeError
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.ops.hopper.config import CANDIDATES, check_config, filled_config
from basedsl_cute.ops.hopper.gemm import Config, HopperGemmKinds, choose_config, gemm
from basedsl_cute.utils.epilogue import per_column, per_row

ONE = {"tile": (64, 64, 64), "consumers": 1}
TURNS = {"tile": (64, 64, 64), "stages": 3, "pingpong": True}
AT_ONCE = {"tile": (128, 72), "cluster": (4, 2), "stages": 8, "slots": 9, "whole": True}
CASES = {
    "one tile, one consumer": ((64, 64, 64), 1, ONE),
    "tiles of 128, a ring that wraps": ((256, 256, 384), 3, {"tile": (128, 128, 64), "stages": 2}),
    "ragged in M, N and K": ((200, 136, 72), 4, {"tile": (128, 128, 64)}),
    "B is multicast": ((256, 128, 128), 4, {"tile": (128, 64, 64), "cluster": (2, 1)}),
    "A is multicast, ragged": ((136, 200, 72), 4, {"tile": (128, 64, 64), "cluster": (1, 2)}),
    "both are multicast": ((256, 256, 64), 4, {"tile": (128, 128, 64), "cluster": (2, 2)}),
    "bands along N": ((192, 320, 64), 3, ONE | {"swizzle": 2, "along_m": False}),
    "two blocks of rows each": ((300, 128, 64), 2, {"tile": (256, 64, 64), "stages": 2}),
    "three consumers": ((192, 64, 64), 1, {"tile": (192, 64, 64), "consumers": 3}),
    "the tile that is fast": ((128, 256, 128), 1, {}),
    "an odd number of pieces": ((300, 192, 8), 2, {"tile": (128, 192, 64)}),
    "pieces of 24 columns": ((136, 80, 72), 2, ONE | {"tile": (64, 72, 64)}),
    "one slot": ((128, 128, 64), 2, {"tile": (64, 128, 64), "consumers": 1, "slots": 1}),
    "pieces that are narrow": ((64, 160, 64), 1, {"tile": (64, 80, 64), "consumers": 1}),
    "columns of C are rows of tiles": ((136, 200, 72), 2, {"tile": (128, 48, 64), "swap": True}),
    "columns of C are rows, multicast, leave later": (
        (200, 520, 136),
        2,
        {"tile": (128, 48, 64), "cluster": (2, 1), "deferred": True, "swap": True},
    ),
    "taking turns": ((200, 136, 136), 2, TURNS),
    "taking turns, many steps": ((192, 128, 520), 2, TURNS),
    "taking turns, multicast": ((256, 128, 72), 4, TURNS | {"cluster": (2, 1)}),
    "taking turns, fewer tiles than consumers": ((64, 64, 128), 1, TURNS),
    "leaves at once": ((200, 200, 136), 2, {"tile": (128, 64, 64)}),
    "leaves later, many tiles": (
        (300, 200, 200),
        2,
        {"tile": (128, 64, 64), "stages": 3, "deferred": True},
    ),
    "leaves later, an odd number of pieces": (
        (300, 192, 72),
        1,
        ONE | {"tile": (64, 192, 64), "stages": 2, "deferred": True},
    ),
    "leaves later, multicast": (
        (512, 200, 136),
        4,
        {"tile": (128, 64, 64), "cluster": (2, 1), "deferred": True},
    ),
    "one step of K, many tiles": ((300, 200, 64), 2, {"tile": (128, 64, 64), "deferred": True}),
    "two steps of K, many tiles": (
        (300, 200, 128),
        2,
        {"tile": (128, 64, 64), "stages": 2, "deferred": True},
    ),
    "takes nothing over": ((64, 64, 64), 1, ONE | {"overlap": False}),
    "pieces at once, several rounds": (
        (264, 200, 136),
        2,
        {"tile": (128, 72, 64), "stages": 3, "slots": 9, "whole": True},
    ),
    "by warps, fewer slots than pieces": (
        (200, 200, 136),
        2,
        {"tile": (128, 192, 64), "stages": 3, "slots": 2, "by_warps": True},
    ),
    "by warps, pieces of 8 columns": (
        (264, 200, 136),
        2,
        {"tile": (128, 72, 64), "stages": 3, "slots": 9, "by_warps": True},
    ),
    "by warps, pieces of 32 columns, two rows of them": (
        (300, 200, 72),
        2,
        {"tile": (256, 96, 64), "stages": 3, "slots": 6, "by_warps": True},
    ),
    "by warps, four blocks share B": (
        (264, 200, 136),
        4,
        ONE | {"tile": (64, 128, 64), "cluster": (4, 1), "stages": 8, "by_warps": True},
    ),
    "by warps, taking turns": ((200, 136, 136), 2, TURNS | {"by_warps": True}),
}


def operands(shape, dtype, transpose=(False, False, False), batch=(), out=None):
    """A, B and C of a product, C full of rubbish; where `transpose`d, mode 0 is contiguous."""
    m, n, k = shape
    rng = np.random.default_rng(1)

    def make(rows, columns, transposed):
        size = (*batch, columns, rows) if transposed else (*batch, rows, columns)
        integers = np.dtype(dtype).kind in "iu"
        x = rng.integers(-50, 50, size) if integers else rng.standard_normal(size)
        x = x.astype(dtype)
        x = np.moveaxis(x, 0, -1) if batch else x
        return np.swapaxes(x, 0, 1) if transposed else x

    a, b, c = (make(*x) for x in zip((m, n, m), (k, k, n), transpose, strict=True))
    c = c.astype(out or dtype, order="K")
    c.fill(77)
    return a, b, c


def product(a, b):
    a, b = (x.astype(np.float64) for x in (a, b))
    return np.einsum("mk...,nk...->mn...", a, b)


def check(c, exact, tolerance=1e-3):
    epsilon = float(ml_dtypes.finfo(c.dtype).eps) if c.dtype.kind not in "iu" else 0
    np.testing.assert_allclose(c.astype(np.float64), exact, rtol=epsilon, atol=tolerance)


def compare(shape, blocks, options, dtype=np.float16, transpose=(False, False, False), **kinds):
    a, b, c = operands(shape, dtype, transpose, **kinds)
    gemm(a, b, c, blocks, Config(**options))
    cute.synchronize()
    check(c, product(a, b))


@pytest.mark.filterwarnings("ignore:ptxas. .C7514.")  # tiles that nobody would choose for speed
@pytest.mark.parametrize("case", CASES)
def test_against_numpy(hopper, case):
    compare(*CASES[case])


@pytest.mark.parametrize("candidate", CANDIDATES, ids=str)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.float8_e4m3fn])
def test_every_configuration_that_can_be_chosen(hopper, candidate, dtype):
    """Three rounds of tiles on most blocks, ragged in M, N and K."""
    rows, columns = (x * y for x, y in zip(candidate["tile"], (3, 1), strict=True))
    shape = (rows + 8, columns + 8, 272)
    step = 128 // np.dtype(dtype).itemsize
    a, b, c = operands(shape, dtype, out=np.float16)
    gemm(a, b, c, 2, Config(**candidate | {"tile": (*candidate["tile"], step)}))
    cute.synchronize()
    bound = 1e-3 * np.abs(product(np.abs(a), np.abs(b))).max() if step == 128 else 1e-3
    check(c, product(a, b), bound)


@pytest.mark.parametrize(
    "transpose",
    [(True, False, False), (False, True, False), (True, True, False), (False, False, True)],
)
def test_which_mode_is_contiguous(hopper, transpose):
    compare((136, 72, 80), 2, {"tile": (128, 64, 64)}, transpose=transpose)


def test_bfloat16(hopper):
    compare((64, 128, 64), 2, ONE, dtype=ml_dtypes.bfloat16)


@pytest.mark.parametrize("transpose", [(False, False, False), (True, False, True)])
@pytest.mark.parametrize("out", [np.float32, ml_dtypes.bfloat16])
def test_what_c_may_be(hopper, out, transpose):
    compare((136, 72, 64), 2, ONE, transpose=transpose, out=out)


EIGHT = {"tile": (64, 64, 128), "consumers": 1}


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("out", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_floats_of_8_bits(hopper, dtype, out):
    # Hopper adds products of 8-bit floats with 13 bits behind the point or so.
    a, b, c = operands((136, 72, 160), dtype, out=out)
    gemm(a, b, c, 2, Config(**EIGHT))
    cute.synchronize()
    check(c, product(a, b), 1e-3 * np.abs(product(np.abs(a), np.abs(b))).max())


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("out", [np.int32, np.float32])
def test_integers(hopper, dtype, out):
    a, b, c = operands((136, 72, 160), np.int8, out=out)
    a, b = np.abs(a).astype(dtype) if dtype is np.uint8 else a, b.astype(dtype)
    gemm(a, b, c, 2, Config(**EIGHT))
    cute.synchronize()
    np.testing.assert_array_equal(c, product(a, b))


def test_float32_is_rounded_to_tf32(hopper):
    a, b, c = operands((136, 72, 80), np.float32)
    gemm(a, b, c, 2, Config(tile=(64, 64, 32), consumers=1))
    cute.synchronize()
    a, b = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, b))
    check(c, product(a, b))


@pytest.mark.parametrize("options", [ONE, TURNS])
def test_batches(hopper, options):
    compare((72, 136, 80), 2, options, batch=(3,))


def test_a_chain_of_products(hopper):
    """Each begins while the one before it ends, and reads what that has written."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((256, 256)).astype(np.float16)
    turn, _ = np.linalg.qr(rng.standard_normal((256, 256)))  # keeps the sizes of numbers
    turn = turn.astype(np.float16)
    exact = x.astype(np.float64)
    products = [x, *(np.full((256, 256), np.nan, np.float16) for _ in range(3))]
    if hopper == "gpu":
        torch = pytest.importorskip("torch")
        products = [torch.from_numpy(p).cuda() for p in products]
        turn_there = torch.from_numpy(turn).cuda()
    for before, after in itertools.pairwise(products):
        gemm(before, turn if hopper == "sim" else turn_there, after, 2, Config(**ONE))
        exact = exact @ turn.T.astype(np.float64)
    cute.synchronize()
    last = products[-1] if hopper == "sim" else products[-1].cpu().numpy()
    check(last, exact, 2e-2)


def bias_relu(acc, bias):
    x = acc + bias.to(cute.Float32)
    return cute.where(x > 0.0, x, 0.0)


class ScaledResidual:
    """acc * scale[m] * factor + residual[m, n]"""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, acc, scale, residual, shift):
        return acc * scale * self.factor + residual.to(cute.Float32) + shift


@cute.jit
def linear(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, bias: cute.Tensor, cfg: cute.Constexpr):
    gemm(a, b, c, 2, cfg, bias_relu, (per_column(bias, c.shape),))


@cute.jit
def residual(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, scale: cute.Tensor, x: cute.Tensor, shift,
    cfg: cute.Constexpr,
):  # fmt: skip
    gemm(a, b, c, 2, cfg, ScaledResidual(0.5), (per_row(scale, c.shape), x, shift))


@pytest.mark.parametrize("shape", [(128, 128, 64), (72, 136, 64)])
def test_an_epilogue_with_a_bias(hopper, shape):
    a, b, c = operands(shape, np.float16)
    bias = np.linspace(-5, 5, shape[1], dtype=np.float16)
    linear(a, b, c, bias, Config(**ONE))
    cute.synchronize()
    check(c, np.maximum(product(a, b) + bias, 0), 2e-3)


@pytest.mark.parametrize("options", [ONE, {"tile": (128, 64, 64)}, TURNS])
def test_an_epilogue_of_a_class(hopper, options):
    a, b, c = operands((136, 64, 72), np.float16, (False, False, True), out=np.float32)
    scale = np.linspace(1, 2, 136, dtype=np.float32)
    x = np.random.default_rng(2).standard_normal((136, 64)).astype(np.float16)
    residual(a, b, c, scale, x, 3.0, Config(**options))
    cute.synchronize()
    check(c, product(a, b) * scale[:, None] * 0.5 + x + 3)


def test_an_epilogue_in_batches(hopper):
    a, b, c = operands((72, 64, 64), np.float16, batch=(2,))
    x = np.random.default_rng(2).standard_normal(c.shape).astype(np.float16)
    scale = np.ones(72, np.float32)
    residual(a, b, c, scale, x, 0.0, Config(**ONE))
    cute.synchronize()
    check(c, product(a, b) * 0.5 + x, 2e-3)


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda a, b, c: (a[..., None], b, c), "all of them have a last mode"),
        (lambda a, b, c: (a.astype(np.int8).T, b.astype(np.int8), c), "must have K contiguous"),
    ],
)
def test_what_does_not_go_together(sim, change, text):
    with pytest.raises(DSLTypeError, match=text):
        gemm(*change(*operands((64, 64, 64), np.float16)), 1, Config(**ONE))


def test_a_row_of_c_that_tma_cannot_write(hopper):
    with pytest.raises(DSLError, match="multiples of 16 bytes"):
        compare((64, 60, 64), 1, ONE)
    a, b, c = operands((64, 64, 64), np.float16)
    with pytest.raises(DSLError, match="multiples of 16 bytes"):  # it would write 64 columns
        gemm(a, b[:60], c[:, :60], 1, Config(**ONE))
    assert (c == 77).all()


@pytest.mark.parametrize(
    "options",
    [{"tile": (64, 64, 64)}, {"tile": (128, 260, 64)}, {"consumers": 4},
     {"slots": 0}, {"stages": 1}, {"tile": (384, 64, 64)}, {"whole": True, "deferred": True}],
)  # fmt: skip
def test_no_such_configuration(options):
    with pytest.raises(ValueError, match=r"no tile|consumer|at once"):
        Config(**options)


def test_a_piece_is_a_power_of_two_columns_and_16_bytes():
    widths = {24: 8, 72: 8, 80: 16, 96: 32, 192: 64, 256: 64}
    for n, columns in widths.items():
        assert Config(tile=(128, n, 64)).piece(cute.Float16) == (64, columns)
    with pytest.raises(DSLTypeError, match="a tile of 24 columns cannot be stored as"):
        Config(tile=(128, 24, 64)).piece(cute.Int8)


def test_a_block_that_does_not_fit(sim):
    with pytest.raises(DSLTypeError, match=r"bytes of shared memory; a block has 232448"):
        compare((64, 64, 64), 1, {"stages": 8})
    with pytest.raises(DSLTypeError, match=r"has 9 pieces, and 2 slots"):
        compare((64, 72, 64), 1, ONE | {"tile": (64, 72, 64), "whole": True})


@pytest.mark.parametrize("consumers, registers", [(1, 240), (2, 240), (3, 160)])
def test_registers_are_shared(consumers, registers):
    cfg = Config(tile=(64 * consumers, 64, 64), consumers=consumers)
    assert cfg.consumer_registers == registers


@pytest.mark.parametrize(
    "shape", [(8192, 8192, 8192), (2048, 2048, 2048), (16, 512, 100), (1, 1, 1)]
)
@pytest.mark.parametrize(
    "kinds", [(8, np.float16), (16, np.float16), (16, np.float32), (32, np.float32)]
)
def test_what_is_chosen_fits(shape, kinds):
    bits, out = kinds
    cfg = choose_config(*shape, bits, 132)
    assert cfg.tile[2] * bits == 1024
    dtype = {8: cute.Float8E4M3FN, 16: cute.Float16, 32: cute.TFloat32}[bits]
    c = cute.Float16 if out is np.float16 else cute.Float32
    assert cfg.smem_bytes(HopperGemmKinds(dtype, dtype, c, None, None, None)) <= 227 * 1024


@pytest.mark.parametrize(
    "shape, tile",
    [
        ((8192, 8192, 8192), (128, 256)),
        ((4096, 4096, 4096), (128, 256)),
        ((2048, 2048, 2048), (128, 128)),
        ((8192, 8192, 1024), (128, 256)),
        ((16384, 16384, 4096), (128, 256)),
        ((512, 512, 512), (64, 64)),
    ],
)
def test_what_is_chosen_is_what_was_fast(shape, tile):
    """On an H200 of 132 multiprocessors: bench/results."""
    assert choose_config(*shape, 16, 132).tile[:2] == tile


def ptx_of(monkeypatch, *args):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    a = b = c = np.zeros((256, 256), np.float16)
    return cute.compile(gemm, a, b, c, 132, *args).stages.text("ptx")


def test_an_epilogue_that_is_not_there_costs_nothing(monkeypatch):
    plain = ptx_of(monkeypatch, Config(**ONE))
    assert ptx_of(monkeypatch, Config(**ONE), lambda acc: acc) == plain
    assert ptx_of(monkeypatch, Config(**ONE), lambda acc: acc * 2.0) != plain


def resources_of(ptx):
    """The report of ptxas on the only kernel, which it compiles without a warning."""
    made = ptxas.start(ptx, "sm_90a").finish()
    assert made.warnings == ()
    (kernel,) = made.kernels.values()
    return kernel


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
@pytest.mark.parametrize("options", [{}, {"deferred": True}, AT_ONCE, *CANDIDATES], ids=str)
def test_the_accumulator_stays_in_registers(monkeypatch, options):
    cfg = Config(**options | {"tile": (*options.get("tile", (128, 256)), 64)})
    ptx = ptx_of(monkeypatch, cfg)
    # For each 64 rows, four for the first step of K and four for the others.
    down = cfg.tile[0] // cfg.rows_per_mma
    assert ptx.count("wgmma.mma_async") == 4 * 2 * down
    assert ".local" not in ptx
    # A fence of global memory at every step of K.
    assert "mbarrier.arrive.release.cluster" not in ptx
    kernel = resources_of(ptx)
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)
    assert kernel.registers <= 168  # 384 threads share 65536, before they are moved


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
@pytest.mark.parametrize("cfg", [Config(deferred=True), filled_config(192, 192, 16, 3)], ids=str)
def test_an_epilogue_spills_nothing(monkeypatch, cfg):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    a = b = c = np.zeros((256, 256), np.float16)
    call = cute.compile(linear, a, b, c, np.zeros(256, np.float16), cfg)
    kernel = resources_of(call.stages.text("ptx"))
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)


def test_what_registers_hold_waits_there():
    later = Config(deferred=True)  # 128 sums, and 64 registers of 16-bit elements
    assert later.defers(16)
    assert not later.defers(32)
    assert Config(tile=(128, 128, 64), deferred=True).defers(32)
    assert not Config().defers(16)
    assert not Config(tile=(128, 128, 64), pingpong=True, deferred=True).defers(16)


def test_what_does_not_exchange_operands_says_so():
    kinds = HopperGemmKinds(cute.Float16, cute.Float16, cute.Float16, None, None, None)
    check_config(kinds, Config())
    with pytest.raises(DSLTypeError, match="does not compute"):
        check_config(kinds, Config(swap=True))
