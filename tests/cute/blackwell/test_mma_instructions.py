"""Every kind of tcgen05.mma on random bytes against NumPy, from the PTX ISA alone.

Operands lie in shared memory as core matrices with random offsets (K-major, no swizzle), or A in
tensor memory; D, scale factors and all else in tensor memory is random before. `descriptor` has the
instruction descriptor's bits as the table of the PTX ISA does.
"""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.lowering.ptx import ptxas
from tests.cute.blackwell.harness import (
    COLUMNS,
    compile_body,
    core_matrices,
    run,
    smem_descriptor,
)

ROW = 32  # bytes of a row of an operand
NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8,
    "u8": np.uint8, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn, "ue8m0": ml_dtypes.float8_e8m0fnu,
    "ue4m3": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
CODES = {
    "f16": {"f16": 0, "bf16": 1}, "tf32": {"tf32": 2}, "i8": {"u8": 0, "s8": 1},
    "f8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}, "mxf4": {"e2m1": 1},
}  # fmt: skip
CODES["mxf8f6f4"], CODES["mxf4nvf4"] = CODES["f8f6f4"], CODES["mxf4"]
BITS = {"e2m3": 6, "e3m2": 6, "e2m1": 4}


def descriptor(kind, types, m, n, d=1, scale=None, ids=(0, 0), negate=(0, 0), saturate=0):
    a, b = (CODES[kind][x] for x in types)
    bits = a << 7 | b << 10 | negate[0] << 13 | negate[1] << 14 | n >> 3 << 17 | m >> 4 << 24
    if scale is None:
        return bits | saturate << 3 | d << 4
    return bits | ids[1] << 4 | (scale == "ue8m0") << 23 | ids[0] << 29


def random_elements(rng, kind, rows, k, small=False):
    """Random finite elements (rows, k), below 2 if `small`, and their codes or values."""
    dtype = np.dtype(NUMPY[kind])
    if kind in BITS:
        codes = rng.integers(0, 1 << BITS[kind], (rows, k), np.uint8)
        return codes.view(dtype).astype(np.float64), codes
    if kind in ("s8", "u8"):
        values = rng.integers(0, 256, (rows, k), np.uint8).view(dtype)
    elif kind in ("e4m3", "e5m2"):
        codes = rng.integers(0, 256, (rows, k), np.uint8)
        codes[~np.isfinite(codes.view(dtype).astype(np.float32))] = 0x39
        values = (codes & 0xBF if small else codes).view(dtype)
    else:
        values = rng.standard_normal((rows, k)).astype(dtype)
    exact = values.astype(np.float64)
    if kind == "tf32":  # 10 bits of the mantissa count
        exact = (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(float)
    return exact, values


def as_rows(rng, kind, mma, codes, in_tmem=False):
    """The 32 bytes of each row."""
    if kind not in BITS:
        return np.ascontiguousarray(codes).view(np.uint8)
    if mma in ("mxf4", "mxf4nvf4"):
        return codes[:, ::2] | codes[:, 1::2] << 4
    if in_tmem:
        return codes << 2 if BITS[kind] == 4 else codes
    rows = rng.integers(0, 256, (len(codes), ROW), np.uint8)
    for r, c in np.ndindex(len(codes), 2):
        number = sum(int(x) << BITS[kind] * i for i, x in enumerate(codes[r, 16 * c : 16 * c + 16]))
        size = 2 * BITS[kind]
        rows[r, 16 * c : 16 * c + size] = np.frombuffer(number.to_bytes(size, "little"), np.uint8)
    return rows


def accumulator(m, n, blocks, ws=False):
    """Lane and column of each element of a block's D (PTX ISA, layouts D, F, A, B, E and G)."""
    r, c = np.indices((m // blocks, n))
    if ws:
        return {
            32: (r + 32 * (c // (n // 4)), c % (n // 4)),
            64: (r + 64 * (c >= n // 2), c % (n // 2)),
            128: (r, c),
        }[m]
    if (blocks, m) == (2, 128):
        return r + 64 * (c >= n // 2), c % (n // 2)
    if (blocks, m) == (1, 64):
        return r // 16 * 32 + r % 16, c
    return r, c


class Case:
    """One instruction with random operands: `body`, memories before, and what is expected."""

    def __init__(
        self, kind, types, m, n, blocks=1, d=np.float32, a_in_tmem=False, scale=None, vector=0,
        accumulate=True, scale_d=None, disabled=False, shift_a=False, negate=(0, 0), saturate=0,
        seed=0, ws=False,
    ):  # fmt: skip
        rng = np.random.default_rng([seed, m, n, blocks])
        k = {"f16": 16, "tf32": 8, "mxf4": 64, "mxf4nvf4": 64}.get(kind, 32)
        self.smem = smem = rng.integers(0, 256, (blocks, 24576), np.uint8)
        self.tmem = tmem = rng.integers(0, 1 << 32, (blocks, 128, COLUMNS), np.uint32)
        small = d is np.float16  # sums of larger ones would overflow
        exact = [
            random_elements(rng, t, rows, k, small) for t, rows in zip(types, (m, n), strict=True)
        ]
        self.own_m, own_n = m // blocks, n // blocks
        # D takes columns from 0 on; A from 224, scale factors from 240 and 248.
        sources = []
        for i, (rows, offset) in enumerate(((self.own_m, 0), (own_n, 12288))):
            lbo = 128 * int(rng.integers(1, 3))
            sbo = 2 * lbo
            places = offset + core_matrices(rows, ROW, lbo, sbo)
            for block in range(blocks):
                codes = exact[i][1][block * rows : (block + 1) * rows]
                if i == 0 and a_in_tmem:
                    raw = as_rows(rng, types[0], kind, codes, True).view(np.uint32)
                    lanes, copies = np.arange(rows), 1
                    if (blocks, m) == (1, 64):
                        lanes = lanes // 16 * 32 + lanes % 16
                    if (blocks, m) == (2, 128):
                        copies = 2
                    for copy in range(copies):
                        tmem[block][lanes + 64 * copy, 224:232] = raw
                else:
                    smem[block][places] = as_rows(rng, types[i], kind, codes)
            sources.append((offset, lbo, sbo))
        a, b = exact[0][0], exact[1][0]
        ids = (0, 0)
        if scale is not None:
            count = k // vector
            choices = range(0, 4, count)
            ids = tuple(int(rng.choice(choices)) for _ in range(2))
            a, b = self.scaled(rng, a, b, scale, vector, ids, blocks)
        a = np.where(negate[0], -a, a)
        b = np.where(negate[1], -b, b)
        if shift_a:
            parts = [a[i * self.own_m : (i + 1) * self.own_m] for i in range(blocks)]
            a = np.concatenate([np.concatenate([p[:1], p[:-1]]) for p in parts])
        lanes, columns = accumulator(m, n, blocks, ws)
        masks = rng.integers(0, 1 << 32, (blocks, 4), np.uint32) if disabled else None
        self.wanted, self.where = tmem.copy(), np.zeros(tmem.shape, bool)
        self.values = np.zeros(tmem.shape)
        for block in range(blocks):
            sums = a[block * self.own_m : (block + 1) * self.own_m] @ b.T
            before = rng.standard_normal(sums.shape)
            if d is np.int32:
                before = rng.integers(-(2**30), 2**30, sums.shape)
            before = before.astype(d)
            word = before.view(np.uint32) if d is not np.float16 else before.view(np.uint16)
            tmem[block][lanes, columns] = word
            if accumulate:
                sums = sums + before.astype(float) * 2.0 ** -(scale_d or 0)
            if d is np.int32:
                sums = np.clip(sums, -(2**31), 2**31 - 1) if saturate else sums
                sums = sums.astype(np.int64).astype(np.int32)
            kept = np.zeros(lanes.shape, bool)
            if disabled:
                kept = (masks[block][lanes // 32] >> (lanes % 32).astype(np.uint32) & 1).astype(
                    bool
                )
            self.wanted[block] = tmem[block]
            self.where[block][lanes[~kept], columns[~kept]] = True
            self.values[block][lanes[~kept], columns[~kept]] = sums[~kept]
        self.d = d
        number = descriptor(
            kind, types, m, n, {np.float16: 0, np.float32: 1, np.int32: 2}[d], scale, ids, negate,
            saturate,
        )  # fmt: skip
        words = None if masks is None else [int(x) for x in masks.ravel().view(np.int32)]

        def body(base, start):
            left, right = (smem_descriptor(base, *place) for place in sources)
            left = start + 224 if a_in_tmem else left
            idesc = cute.Int32(number - (number >> 31 << 32))
            if ws:
                arch.tcgen05_mma_ws(kind, start, left, right, idesc, accumulate, buffer=1)
            elif scale is not None:
                size = None if kind != "mxf4nvf4" else vector
                arch.tcgen05_mma_block_scale(
                    kind, start, left, right, idesc, accumulate, start + 240, start + 248,
                    vector=size, cta_group=blocks,
                )  # fmt: skip
            else:
                arch.tcgen05_mma(
                    kind, start, left, right, idesc, accumulate, cta_group=blocks,
                    scale_d=scale_d, shift_a=shift_a,
                    disabled_lanes=None if words is None else [cute.Int32(x) for x in words],
                )  # fmt: skip

        self.body = body

    def scaled(self, rng, a, b, scale, vector, ids, blocks):
        """Put random factors into tensor memory; the operands times them."""
        out = []
        for which, (x, first) in enumerate(((a, 240), (b, 248))):
            count = x.shape[1] // vector
            if scale == "ue8m0":
                codes = rng.integers(120, 134, (len(x), count), np.uint8)
            else:
                codes = rng.integers(0, 0x7F, (len(x), count), np.uint8)
            factors = codes.view(NUMPY[scale]).astype(np.float64)
            bytes_ = self.tmem.view(np.uint8).reshape(*self.tmem.shape, 4)
            for block in range(blocks):
                rows = codes[block * self.own_m : (block + 1) * self.own_m] if which == 0 else codes
                halves = which == 1 and blocks == 2 and self.own_m == 64
                for r, row in enumerate(rows):
                    half, at = divmod(r, len(rows) // 2) if halves else (0, r)
                    quarters = (2 * half, 2 * half + 1) if halves else range(4)
                    for q in quarters:
                        place = (block, at % 32 + 32 * q, first + at // 32)
                        bytes_[place][ids[which] : ids[which] + count] = row
            out.append(x * np.repeat(factors, vector, 1))
        return out

    def check(self):
        after = run(self.body, self.smem, self.tmem)
        np.testing.assert_array_equal(after[~self.where], self.wanted[~self.where])
        words = after[self.where]
        wanted = self.values[self.where]
        if self.d is np.int32:
            np.testing.assert_array_equal(words.view(np.int32), wanted.astype(np.int32))
        elif self.d is np.float16:
            found = words.astype(np.uint16).view(np.float16).astype(float)
            np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())
        else:
            found = words.view(np.float32).astype(float)
            scale = np.abs(wanted).max()
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6 * scale)


F16, F32, S32 = np.float16, np.float32, np.int32
CASES = {
    "f16": ("f16", ("f16", "f16"), 128, 64),
    "f16, 64 rows": ("f16", ("f16", "f16"), 64, 40),
    "f16 in f16": ("f16", ("f16", "f16"), 128, 24, 1, F16),
    "bf16": ("f16", ("bf16", "bf16"), 128, 16),
    "bf16, pair": ("f16", ("bf16", "bf16"), 256, 64, 2),
    "f16, pair of 64 rows": ("f16", ("f16", "f16"), 128, 96, 2),
    "tf32": ("tf32", ("tf32", "tf32"), 128, 40),
    "tf32, pair": ("tf32", ("tf32", "tf32"), 256, 32, 2),
    "s8 u8": ("i8", ("s8", "u8"), 128, 48, 1, S32),
    "u8, pair": ("i8", ("u8", "s8"), 256, 64, 2, S32),
    "e4m3 e5m2": ("f8f6f4", ("e4m3", "e5m2"), 128, 56),
    "e4m3 in f16": ("f8f6f4", ("e4m3", "e4m3"), 64, 32, 1, F16),
    "e2m3 e3m2": ("f8f6f4", ("e2m3", "e3m2"), 128, 32),
    "e2m1 e5m2": ("f8f6f4", ("e2m1", "e5m2"), 128, 32),
    "e3m2 e2m1, pair": ("f8f6f4", ("e3m2", "e2m1"), 256, 64, 2),
}
OPTIONS = {
    "negate": (("f16", ("f16", "f16"), 128, 32), {"negate": (1, 0)}),
    "negate both": (("tf32", ("tf32", "tf32"), 64, 16), {"negate": (1, 1)}),
    "saturate": (("i8", ("u8", "u8"), 128, 32, 1, S32), {"saturate": 1}),
    "without D": (("f16", ("f16", "f16"), 128, 32), {"accumulate": False}),
    "scaled D": (("f16", ("bf16", "bf16"), 128, 32), {"scale_d": 3}),
    "scaled D, tf32": (("tf32", ("tf32", "tf32"), 128, 32), {"scale_d": 15}),
    "disabled lanes": (("f16", ("f16", "f16"), 128, 32), {"disabled": True}),
    "disabled lanes, pair": (("f16", ("f16", "f16"), 256, 32, 2), {"disabled": True}),
    "A in tmem": (("f16", ("f16", "f16"), 128, 32), {"a_in_tmem": True}),
    "A in tmem, 64 rows": (("f8f6f4", ("e4m3", "e4m3"), 64, 32), {"a_in_tmem": True}),
    "A of 4 bits in tmem": (("f8f6f4", ("e2m1", "e4m3"), 128, 32), {"a_in_tmem": True}),
    "A of 6 bits in tmem": (("f8f6f4", ("e3m2", "e2m1"), 128, 32), {"a_in_tmem": True}),
    "A in tmem, pair": (("f16", ("f16", "f16"), 256, 32, 2), {"a_in_tmem": True}),
    "A in tmem twice": (("f16", ("f16", "f16"), 128, 32, 2), {"a_in_tmem": True}),
    "ws": (("f16", ("f16", "f16"), 32, 64), {"ws": True}),
    "ws, 64 rows": (("tf32", ("tf32", "tf32"), 64, 128), {"ws": True}),
    "ws, 128 rows": (("f8f6f4", ("e4m3", "e2m1"), 128, 64), {"ws": True}),
    "A shifted": (("f16", ("f16", "f16"), 128, 32), {"a_in_tmem": True, "shift_a": True}),
}
MX = {"scale": "ue8m0", "vector": 32}
SCALED = {
    "mxf8": (("mxf8f6f4", ("e4m3", "e5m2"), 128, 64), MX),
    "mxf8, pair": (("mxf8f6f4", ("e4m3", "e4m3"), 256, 64, 2), MX),
    "mxf6 mxf4": (("mxf8f6f4", ("e3m2", "e2m1"), 128, 40), MX),
    "mxf8, A in tmem": (("mxf8f6f4", ("e5m2", "e2m3"), 128, 32), MX | {"a_in_tmem": True}),
    "mxf4": (("mxf4", ("e2m1", "e2m1"), 128, 64), MX),
    "mxf4, pair": (("mxf4", ("e2m1", "e2m1"), 256, 64, 2), MX),
    "mxf4, pair of 64 rows": (("mxf4", ("e2m1", "e2m1"), 128, 64, 2), MX),
    "nvf4": (("mxf4nvf4", ("e2m1", "e2m1"), 128, 96), {"scale": "ue4m3", "vector": 16}),
    "nvf4, pair": (("mxf4nvf4", ("e2m1", "e2m1"), 256, 64, 2), {"scale": "ue4m3", "vector": 16}),
    "nvf4 of ue8m0": (("mxf4nvf4", ("e2m1", "e2m1"), 128, 32), {"scale": "ue8m0", "vector": 16}),
    "nvf4 of 32": (("mxf4nvf4", ("e2m1", "e2m1"), 128, 32), MX),
}


@pytest.mark.parametrize("name", CASES)
def test_each_kind(name):
    Case(*CASES[name]).check()


@pytest.mark.parametrize("name", [*OPTIONS, *SCALED])
def test_options_and_scale_factors(name):
    args, options = {**OPTIONS, **SCALED}[name]
    Case(*args, **options).check()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_shapes(seed):
    rng = np.random.default_rng(seed)
    pool = [(args, {}) for args in CASES.values()] + [*OPTIONS.values(), *SCALED.values()]
    args, options = pool[rng.integers(len(pool))]
    kind, types, m, _, *rest = args
    blocks = rest[0] if rest else 1
    step = 32 if kind == "i8" or options.get("a_in_tmem") else 16 * blocks
    n = step * int(rng.integers(1, 192 // step + 1))
    if options.get("ws"):
        n = int(rng.choice((64, 128)))
    Case(kind, types, m, n, *rest, **options, seed=seed).check()


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("name", [*CASES, *OPTIONS, *SCALED])
def test_ptxas_takes_each(name):
    args, options = {**{k: (v, {}) for k, v in CASES.items()}, **OPTIONS, **SCALED}[name]
    case = Case(*args, **options)
    compiled, *_ = compile_body(case.body, case.smem, case.tmem, "sm_100a")
    assert f".kind::{args[0]}" in compiled.stages.text("ptx")
    assert compiled.__cubin__
