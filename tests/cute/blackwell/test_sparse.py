"""tcgen05.mma.sp against NumPy: each kind with a sparse A, on random shapes and values.

The expectation is written from the PTX ISA ("Sparse Matrices") and, for where metadata lie, from
CuTe's C++ header `mma_traits_sm100.hpp` (`tmem_e_frg`).
"""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl.testing import slow_but
from basedsl_cute import arch
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.sim.errors import SimulationError
from tests.cute.blackwell.harness import (
    COLUMNS,
    compile_body,
    core_matrices,
    run,
    smem_descriptor,
)
from tests.cute.blackwell.test_mma_instructions import (
    BITS,
    NUMPY,
    as_rows,
    descriptor,
    random_elements,
)

DENSE_K = {"f16": 16, "tf32": 8, "mxf4": 64, "mxf4nvf4": 64}
PLACES = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110], np.uint8)
OF_TF32 = np.array([0b0100, 0b1110], np.uint8)
METADATA = 192  # columns of tensor memory; A from 224 on, scale factors from 240 and 248


def spread(kind, packed, places):
    """A with its zeros: one element, or pair of them, after the other."""
    rows, count = packed.shape
    whole = np.zeros((rows, 2 * count))
    for r in range(rows):
        for group, bits in enumerate(places[r]):
            if kind == "tf32":
                whole[r, 2 * group + (bits == 0b1110)] = packed[r, group]
                continue
            width = 2 if kind in ("mxf4", "mxf4nvf4") else 1
            for i, at in enumerate((bits & 3, bits >> 2)):
                target = (4 * group + at) * width
                source = (2 * group + i) * width
                whole[r, target : target + width] = packed[r, source : source + width]
    return whole


def put_metadata(kind, words, places, selector):
    """The metadata of 128 rows in the words of a block's tensor memory."""
    for r, row in enumerate(places):
        for group, bits in enumerate(row):
            if kind in ("f16", "tf32"):  # 8 groups of a row
                lane = r // 16 * 16 + group // 4 * 8 + r % 8
                column, at = METADATA + selector, 16 * (r // 8 % 2) + group % 4 * 4
            else:  # 16 groups
                lane, column, at = r, METADATA + group // 8, group % 8 * 4
            words[lane, column] &= ~np.uint32(15 << at)
            words[lane, column] |= np.uint32(int(bits) << at)


class Case:
    """One sparse instruction with random operands: `body`, memories before, what is expected."""

    def __init__(
        self, kind, types, m, n, blocks=1, d=np.float32, selector=0, scale=None, vector=0,
        a_in_tmem=False, accumulate=True, bad=None, sparse=True, seed=0,
    ):  # fmt: skip
        rng = np.random.default_rng([seed, m, n, blocks])
        k = DENSE_K.get(kind, 32)
        self.smem = rng.integers(0, 256, (blocks, 32768), np.uint8)
        self.tmem = rng.integers(0, 1 << 32, (blocks, 128, COLUMNS), np.uint32)
        small = d is np.float16
        (a, a_codes), (b, b_codes) = (
            random_elements(rng, t, rows, elements, small)
            for t, rows, elements in zip(types, (m, n), (k, 2 * k), strict=True)
        )
        groups = {"tf32": k}.get(kind, k // (4 if kind in ("mxf4", "mxf4nvf4") else 2))
        places = rng.choice(OF_TF32 if kind == "tf32" else PLACES, (m, groups))
        left = (0, 128, 256)
        right = (8192, 128, 512)
        for block in range(blocks):
            own = slice(block * 128, block * 128 + 128)
            put_metadata(kind, self.tmem[block], places[own], selector)
            raw = as_rows(rng, types[0], kind, a_codes[own], a_in_tmem)
            if a_in_tmem:
                self.tmem[block][:, 224:232] = raw.view(np.uint32)
            else:
                self.smem[block][core_matrices(128, 32, *left[1:])] = raw
            rows = b_codes[block * n // blocks : (block + 1) * n // blocks]
            halves = np.split(rows, 2, 1)  # of K, as the rows of dense operands
            raw = np.concatenate([as_rows(rng, types[1], kind, half) for half in halves], 1)
            places_of_b = right[0] + core_matrices(n // blocks, 64, *right[1:])
            self.smem[block][places_of_b] = raw
        if bad is not None:
            self.tmem[0][5, METADATA] = bad
        ids = (0, 0)
        whole = spread(kind, a, places)
        if scale is not None:
            count = k // vector
            ids = tuple(int(rng.choice(range(0, 4, count))) for _ in range(2))
            whole, b = (
                self.scaled(rng, x, first, scale, count, ids[i], i == 0)
                for i, (x, first) in enumerate(((whole, 240), (b, 248)))
            )
        sums = whole @ b.T
        self.where = np.zeros(self.tmem.shape, bool)
        self.where[:, :, :n] = True
        self.values = np.zeros(self.tmem.shape)
        for block in range(blocks):
            own = sums[block * 128 : block * 128 + 128]
            before = rng.integers(-1000, 1000, own.shape).astype(d)
            size = np.uint16 if d is np.float16 else np.uint32
            self.tmem[block][:, :n] = before.view(size)
            self.values[block][:, :n] = own + accumulate * before.astype(float)
        self.d = d
        number = descriptor(
            kind, types, m, n, {np.float16: 0, np.float32: 1, np.int32: 2}[d], scale, ids
        )
        number |= 4 * sparse | selector

        def body(base, start):
            first = start + 224 if a_in_tmem else smem_descriptor(base, *left)
            second = smem_descriptor(base, *right)
            idesc = cute.Int32(number - (number >> 31 << 32))
            metadata = start + METADATA
            if scale is not None:
                arch.tcgen05_mma_block_scale(
                    kind, start, first, second, idesc, accumulate, start + 240, start + 248,
                    vector=vector if kind == "mxf4nvf4" else None, cta_group=blocks,
                    metadata=metadata,
                )  # fmt: skip
            else:
                arch.tcgen05_mma(
                    kind, start, first, second, idesc, accumulate, cta_group=blocks,
                    metadata=metadata,
                )  # fmt: skip

        self.body = body

    def scaled(self, rng, x, first, scale, count, number, is_a):
        codes = rng.integers(*((120, 134) if scale == "ue8m0" else (0, 0x7F)), (len(x), count))
        codes = codes.astype(np.uint8)
        bytes_ = self.tmem.view(np.uint8).reshape(*self.tmem.shape, 4)
        for block in range(len(self.tmem)):
            for r, row in enumerate(codes[block * 128 : block * 128 + 128] if is_a else codes):
                for quarter in range(4):
                    place = (block, r % 32 + 32 * quarter, first + r // 32)
                    bytes_[place][number : number + count] = row
        factors = codes.view(NUMPY[scale]).astype(np.float64)
        return x * np.repeat(factors, x.shape[1] // count, 1)

    def check(self):
        after = run(self.body, self.smem, self.tmem)
        np.testing.assert_array_equal(after[~self.where], self.tmem[~self.where])
        words, wanted = after[self.where], self.values[self.where]
        if self.d is np.int32:
            np.testing.assert_array_equal(words.view(np.int32), wanted.astype(np.int32))
        elif self.d is np.float16:
            found = words.astype(np.uint16).view(np.float16).astype(float)
            np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())
        else:
            found = words.view(np.float32).astype(float)
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())


S32, F16 = np.int32, np.float16
MX = {"scale": "ue8m0", "vector": 32}
CASES = {
    "f16": (("f16", ("f16", "f16"), 128, 32), {}),
    "bf16, the second column": (("f16", ("bf16", "bf16"), 128, 24), {"selector": 1}),
    "f16, the fourth column": (("f16", ("f16", "f16"), 128, 16), {"selector": 3}),
    "f16, pair": (("f16", ("f16", "f16"), 256, 48, 2), {"selector": 1}),
    "f16, A in tmem": (("f16", ("f16", "f16"), 128, 32), {"a_in_tmem": True}),
    "f16 in f16": (("f16", ("f16", "f16"), 128, 32, 1, F16), {"accumulate": False}),
    "tf32": (("tf32", ("tf32", "tf32"), 128, 40), {"selector": 2}),
    "s8 u8": (("i8", ("s8", "u8"), 128, 32, 1, S32), {}),
    "e4m3 e5m2": (("f8f6f4", ("e4m3", "e5m2"), 128, 40), {}),
    "e2m1 e3m2": (("f8f6f4", ("e2m1", "e3m2"), 128, 32), {}),
    "mxf8": (("mxf8f6f4", ("e4m3", "e4m3"), 128, 32), MX),
    "mxf8, pair": (("mxf8f6f4", ("e5m2", "e4m3"), 256, 32, 2), MX),
    "mxf4": (("mxf4", ("e2m1", "e2m1"), 128, 32), MX),
    "nvf4": (("mxf4nvf4", ("e2m1", "e2m1"), 128, 64), {"scale": "ue4m3", "vector": 16}),
}
QUICK = ("f16", "bf16, the second column", "mxf4")


def case(name):
    given, options = CASES[name]
    return Case(*given, **options)


@pytest.mark.parametrize("name", slow_but(CASES, *QUICK))
def test_each_kind(name):
    case(name).check()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_random_shapes(seed):
    rng = np.random.default_rng(seed)
    (kind, types, *_), options = list(CASES.values())[int(rng.integers(len(CASES)))]
    blocks = int(rng.integers(1, 3))
    n = 32 * int(rng.integers(1, 6))
    d = S32 if kind == "i8" else np.float32
    chosen = {"selector": int(rng.integers(4))} if kind in ("f16", "tf32") else {}
    scaling = {name: x for name, x in options.items() if name in ("scale", "vector")}
    in_tmem = bool(rng.integers(2)) and not (types[0] in BITS and kind != "f8f6f4")
    Case(
        kind, types, 128 * blocks, n, blocks, d, a_in_tmem=in_tmem, seed=seed, **chosen, **scaling
    ).check()


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("name", slow_but(CASES, *QUICK))
def test_ptxas_takes_each(name, target):
    it = case(name)
    if name == "s8 u8" and target == "sm_103a":
        with pytest.raises(DSLTypeError, match=r"sm_103a has no tcgen05\.mma of kind i8"):
            compile_body(it.body, it.smem, it.tmem, target)
        return
    compiled, _, _ = compile_body(it.body, it.smem, it.tmem, target)
    text = compiled.stages.text("ptx")
    assert text.count("tcgen05.mma.sp.cta_group::") == 1
    assert ptxas.start(text, target).finish().cubin


def test_a_target_that_has_it_not():
    it = case("f16")
    with pytest.raises(DSLTypeError, match="sm_90a has no tcgen05"):
        compile_body(it.body, it.smem, it.tmem, "sm_90a")


WRONG = {
    "places that there are not": (
        ("f16", ("f16", "f16"), 128, 32), {"bad": 0},
        "the metadata of row 5 of a sparse A are 0b0000",
    ),
    "a dense descriptor": (
        ("f16", ("f16", "f16"), 128, 32), {"sparse": False}, "of a dense A (bit 2)",
    ),
    "a selector that the kind has not": (
        ("f8f6f4", ("e4m3", "e4m3"), 128, 32), {"selector": 1},
        "the sparsity selector of kind f8f6f4 is 0, not 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_reports(name):
    given, options, message = WRONG[name]
    it = Case(*given, **options)
    with pytest.raises(SimulationError) as error:
        run(it.body, it.smem, it.tmem)
    assert message in str(error.value)


def test_64_rows_are_not_simulated():
    number = descriptor("f16", ("f16", "f16"), 64, 32) | 4
    it = case("f16")

    def body(base, start):
        left, right = smem_descriptor(base, 0, 128, 256), smem_descriptor(base, 8192, 128, 512)
        arch.tcgen05_mma(
            "f16", start, left, right, cute.Int32(number), False, metadata=start + METADATA
        )

    with pytest.raises(SimulationError, match="a sparse A is simulated with 128 rows a block"):
        run(body, it.smem, it.tmem)
