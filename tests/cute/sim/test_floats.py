"""Float arithmetic and conversions: precision, NaN, signed zeros, saturation."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

TYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}


def samples(rng, dtype, count=300):
    special = [0.0, -0.0, 1.0, -1.0, 1.5, np.inf, -np.inf, np.nan, 1e-40, 3.0, 1e30, 65504.0]
    pairs = np.array([(a, b) for a in special for b in special])
    with np.errstate(all="ignore"):
        more = rng.standard_normal((count, 2)) * 2.0 ** rng.integers(-20, 20, (count, 2))
        both = np.concatenate([pairs, more]).astype(dtype)
    return both[:, 0].copy(), both[:, 1].copy()


def same(a, b):
    """Equal bits, any NaN equal to any NaN."""
    nan = np.isnan(a) & np.isnan(b)
    ints = f"u{a.dtype.itemsize}"
    bad = ~nan & (a.view(ints) != b.view(ints))
    assert not bad.any(), (a[bad][:5], b[bad][:5])


@pytest.mark.parametrize("name", TYPES)
def test_operations_round_to_the_operands_type(elementwise, rng, name):
    dtype = TYPES[name]
    a, b = samples(rng, dtype)
    ops = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}
    lines = "\n".join(f"%{op} = arith.{op} %a, %b : {name}" for op in ops)
    lines += f"\n%neg = arith.negf %a : {name}\n%rem = arith.remf %a, %b : {name}"
    lines += f"\n%abs = math.absf %a : {name}\n%sign = math.copysign %a, %b : {name}"
    got = elementwise(lines, dict.fromkeys([*ops, "neg", "rem", "abs", "sign"], dtype), a=a, b=b)
    wide = np.float64 if name != "f64" else np.longdouble
    with np.errstate(all="ignore"):
        for op, function in ops.items():
            if name == "f64":
                same(got[op], function(a, b))
            else:
                same(got[op], function(a.astype(wide), b.astype(wide)).astype(dtype))
        same(got["neg"], -a)
        same(got["rem"], np.fmod(a.astype(np.float64), b.astype(np.float64)).astype(dtype))
    same(got["abs"], np.abs(a))
    assert np.array_equal(np.signbit(got["sign"]), np.signbit(b))


def reference_extreme(a, b, largest, number):
    if math.isnan(a) or math.isnan(b):
        if not number:
            return math.nan
        return b if math.isnan(a) else a
    ka, kb = ((v, math.copysign(1, v)) for v in (a, b))
    return a if (ka >= kb) == largest else b


@pytest.mark.parametrize("name", TYPES)
def test_minimum_and_maximum(elementwise, rng, name):
    dtype = TYPES[name]
    a, b = samples(rng, dtype, 50)
    ops = {
        "maximumf": (True, False),
        "minimumf": (False, False),
        "maxnumf": (True, True),
        "minnumf": (False, True),
    }
    lines = "\n".join(f"%{op} = arith.{op} %a, %b : {name}" for op in ops)
    got = elementwise(lines, dict.fromkeys(ops, dtype), a=a, b=b)
    for op, (largest, number) in ops.items():
        pairs = zip(a.astype(float).tolist(), b.astype(float).tolist(), strict=True)
        want = [reference_extreme(x, y, largest, number) for x, y in pairs]
        same(got[op], np.array(want).astype(dtype))


COMPARISONS = {
    "eq": lambda a, b: a == b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "ne": lambda a, b: a != b,
}


@pytest.mark.parametrize("name", TYPES)
def test_comparisons_ordered_and_unordered(elementwise, rng, name):
    a, b = samples(rng, TYPES[name], 20)
    names = [o + c for o in "ou" for c in COMPARISONS] + ["ord", "uno", "true", "false"]
    lines = "\n".join(f"%r_{p} = arith.cmpf {p}, %a, %b : {name}" for p in names)
    got = elementwise(lines, {f"r_{p}": np.bool_ for p in names}, a=a, b=b)
    x, y = a.astype(float), b.astype(float)
    unordered = np.isnan(x) | np.isnan(y)
    for c, function in COMPARISONS.items():
        np.testing.assert_array_equal(got[f"r_o{c}"], function(x, y) & ~unordered)
        np.testing.assert_array_equal(got[f"r_u{c}"], function(x, y) | unordered)
    np.testing.assert_array_equal(got["r_uno"], unordered)
    np.testing.assert_array_equal(got["r_ord"], ~unordered)
    assert got["r_true"].all() and not got["r_false"].any()


def exact_fma(a, b, c, dtype):
    """Rounded once: by the neighbours of the float64 result, compared as fractions."""
    values = [float(v) for v in (a, b, c)]
    if not all(map(math.isfinite, values)):
        return dtype(values[0] * values[1] + values[2])
    exact = Fraction(values[0]) * Fraction(values[1]) + Fraction(values[2])
    if exact == 0:
        return dtype(values[0] * values[1] + values[2])
    guess = dtype(float(exact))
    best = min(
        (guess, np.nextafter(guess, dtype(np.inf)), np.nextafter(guess, dtype(-np.inf))),
        key=lambda v: (
            abs(Fraction(float(v)) - exact) if math.isfinite(float(v)) else math.inf,
            int(v.view(f"i{v.dtype.itemsize}")) & 1,
        ),
    )
    return best


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_fma_rounds_once(elementwise, rng, name):
    dtype = TYPES[name]
    a, b = (rng.standard_normal(600).astype(dtype) for _ in "ab")
    c = (-(a.astype(float) * b)).astype(dtype)  # cancellation shows a product rounded too early
    c[200:400] = rng.standard_normal(200)
    # Sums that land halfway between two float32, which rounding twice gets wrong.
    a[400:] = 1 + 2.0**-12
    b[400:] = 1 + 2.0**-12 + rng.integers(0, 4, 200) * 2.0**-23
    c[400:] = rng.choice([2.0**30, 2.0**-60, -(2.0**-54), 2.0**24, 2.0**-24], 200)
    got = elementwise(f"%r = math.fma %a, %b, %c : {name}", {"r": dtype}, a=a, b=b, c=c)["r"]
    want = np.array([exact_fma(*v, dtype) for v in zip(a, b, c, strict=True)], dtype)
    same(got, want)


def test_fma_of_subnormals(elementwise):
    a = np.array([2.0**-80, 3 * 2.0**-80, 1.5], np.float32)
    b = np.array([2.0**-69, 2.0**-70, 2.0**-149], np.float32)
    c = np.array([2.0**-149, 2.0**-149, 2.0**-140], np.float32)
    got = elementwise("%r = math.fma %a, %b, %c : f32", {"r": np.float32}, a=a, b=b, c=c)["r"]
    want = [exact_fma(*v, np.float32) for v in zip(a, b, c, strict=True)]
    assert got.tolist() == [float(v) for v in want]


def test_fma_of_f64_at_the_ends_of_its_range(elementwise):
    a = [2.0**-600, 3 * 2.0**-560, 2.0**1000, -(2.0**1000), 2.0**600, 2.0**-1074, 2.0**900]
    b = [2.0**-470, 2.0**-512, 1.5, 2.0**24, 2.0**600, 0.5, -(2.0**100)]
    c = [2.0**-1074, -(2.0**-1074), -(2.0**1000), 2.0**1023, -1.0, 0.0, 2.0**1000]
    a, b, c = map(np.array, (a, b, c))
    lines = "%r = math.fma %a, %b, %c : f64"
    got = elementwise(lines, {"r": np.float64}, a=a, b=b, c=c)["r"]
    exact = [Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in zip(a, b, c, strict=True)]
    want = [float(v) if abs(v) < 2**1024 else (math.inf if v > 0 else -math.inf) for v in exact]
    same(got, np.array(want))


def test_conversions_between_floats(elementwise, rng):
    a, b = samples(rng, np.float64, 500)
    a = np.concatenate([a, b, 1 + 2.0**-8 + 2.0**-40 * np.arange(-3, 4)])
    narrow = {
        "f32": np.float32,
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "f8E4M3FN": ml_dtypes.float8_e4m3fn,
        "f8E5M2": ml_dtypes.float8_e5m2,
    }
    lines, results = [], {}
    for name, dtype in narrow.items():
        lines.append(f"%r_{name} = arith.truncf %a : f64 to {name}")
        lines.append(f"%x_{name} = arith.extf %r_{name} : {name} to f64")
        results |= {f"r_{name}": dtype, f"x_{name}": np.float64}
        if name.startswith("f8"):  # LLVM has no such type: memory holds its bits
            lines.append(f"%bits_{name} = arith.bitcast %r_{name} : {name} to i8")
            del results[f"r_{name}"]
            results[f"bits_{name}"] = np.int8
    got = elementwise("\n".join(lines), results, a=a)
    for name in ("f8E4M3FN", "f8E5M2"):
        got[f"r_{name}"] = got[f"bits_{name}"].view(narrow[name])
    with np.errstate(all="ignore"):
        same(got["r_f32"], a.astype(np.float32))
        same(got["r_f16"], a.astype(np.float16))
        for name, dtype in narrow.items():
            same(got[f"x_{name}"], got[f"r_{name}"].astype(np.float64))
            finite = np.isfinite(a) & np.isfinite(got[f"x_{name}"])
            if name.startswith("f8"):  # saturates
                top = float(ml_dtypes.finfo(dtype).max)
                assert (got[f"x_{name}"][a >= top] == top).all()
                assert np.array_equal(np.isnan(got[f"x_{name}"]), np.isnan(a))
                finite &= np.abs(a) <= top
            # Nearest: no neighbour of the result is closer to the input.
            value = got[f"r_{name}"][finite]
            for toward in (np.inf, -np.inf):
                other = np.nextafter(value, dtype(toward)).astype(float)
                error = np.abs(a[finite] - value.astype(float))
                ok = ~np.isfinite(other) | (error <= np.abs(a[finite] - other))
                assert ok.all(), name
    # bfloat16 rounds once: this is above the halfway point by less than float32 can tell.
    assert float(got["r_bf16"][-1]) == 1 + 2.0**-7


def test_integers_to_floats_round_once(elementwise):
    a = np.array([0, 1, -1, 2**24 + 1, 2**53 + 1, 2**63 - 1, -(2**63), 257 * 2**40 + 1], np.int64)
    lines = """
    %s32 = arith.sitofp %a : i64 to f32
    %u32 = arith.uitofp %a : i64 to f32
    %s64 = arith.sitofp %a : i64 to f64
    %bf = arith.sitofp %a : i64 to bf16
    """
    results = {"s32": "f4", "u32": "f4", "s64": "f8", "bf": ml_dtypes.bfloat16}
    got = elementwise(lines, results, a=a)
    np.testing.assert_array_equal(got["s32"], a.astype(np.float32))
    np.testing.assert_array_equal(got["u32"], a.view(np.uint64).astype(np.float32))
    np.testing.assert_array_equal(got["s64"], a.astype(np.float64))
    assert float(got["bf"][-1]) == 258 * 2.0**40


def test_float_to_integer_saturates(elementwise):
    values = [0.0, -0.0, 1.9, -1.9, 1e10, -1e10, 1e30, -1e30, np.inf, -np.inf, np.nan, 255.5]
    for source, dtype in (("f64", np.float64), ("f32", np.float32), ("bf16", TYPES["bf16"])):
        a = np.array(values).astype(dtype)
        lines, results = [], {}
        for width in (8, 32, 64):
            lines.append(f"%s{width} = arith.fptosi %a : {source} to i{width}")
            lines.append(f"%u{width} = arith.fptoui %a : {source} to i{width}")
            results |= {f"s{width}": f"i{width // 8}", f"u{width}": f"i{width // 8}"}
        got = elementwise("\n".join(lines), results, a=a)
        for width in (8, 32, 64):
            for kind, low, high in (
                ("s", -(1 << (width - 1)), (1 << (width - 1)) - 1),
                ("u", 0, (1 << width) - 1),
            ):
                for x, y in zip(a.astype(float).tolist(), got[f"{kind}{width}"], strict=True):
                    if math.isnan(x):
                        want = 0
                    elif math.isinf(x):
                        want = high if x > 0 else low
                    else:
                        want = min(max(int(x), low), high)
                    y = int(y) % (1 << width) if kind == "u" else int(y)
                    assert y == want, (source, width, kind, x)


MATH = {
    "acos": math.acos,
    "asin": math.asin,
    "atan": math.atan,
    "cbrt": lambda x: math.copysign(abs(x) ** (1 / 3), x),
    "ceil": math.ceil,
    "cos": math.cos,
    "cosh": math.cosh,
    "erf": math.erf,
    "erfc": math.erfc,
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "expm1": math.expm1,
    "floor": math.floor,
    "log": math.log,
    "log10": math.log10,
    "log1p": math.log1p,
    "log2": math.log2,
    "round": lambda x: math.copysign(math.floor(abs(x) + 0.5), x),
    "roundeven": round,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sin": math.sin,
    "sinh": math.sinh,
    "sqrt": math.sqrt,
    "tan": math.tan,
    "tanh": math.tanh,
    "trunc": math.trunc,
}


@pytest.mark.parametrize("name", TYPES)
def test_math_functions(elementwise, rng, name):
    dtype = TYPES[name]
    a = rng.random(100).astype(dtype)
    a = a[(a > 0) & (a < 1)]
    a[:4] = [0.5, 0.25, 0.75, 0.125]
    lines = "\n".join(f"%{op} = math.{op} %a : {name}" for op in MATH)
    lines += f"\n%pow = math.powf %a, %a : {name}\n%two = math.atan2 %a, %a : {name}"
    got = elementwise(lines, dict.fromkeys([*MATH, "pow", "two"], dtype), a=a)
    eps = float(ml_dtypes.finfo(dtype).eps)
    table = MATH | {"pow": lambda x: x**x, "two": lambda x: math.pi / 4}
    for op, function in table.items():
        want = np.array([function(x) for x in a.astype(float).tolist()])
        tolerance = 3 * eps if name in ("f32", "f64") else eps
        np.testing.assert_allclose(got[op].astype(float), want, tolerance, 1e-300, err_msg=op)


def test_bitcasts_and_classification(elementwise, rng):
    a, _ = samples(rng, np.float32, 20)
    lines = """
    %bits = arith.bitcast %a : f32 to i32
    %back = arith.bitcast %bits : i32 to f32
    %nan = math.isnan %a : f32
    %inf = math.isinf %a : f32
    %finite = math.isfinite %a : f32
    """
    results = {"bits": "i4", "back": "f4", "nan": "?", "inf": "?", "finite": "?"}
    got = elementwise(lines, results, a=a)
    same(got["back"], a)
    np.testing.assert_array_equal(got["bits"], a.view(np.int32))
    np.testing.assert_array_equal(got["nan"], np.isnan(a))
    np.testing.assert_array_equal(got["inf"], np.isinf(a))
    np.testing.assert_array_equal(got["finite"], np.isfinite(a))


def test_tf32(elementwise):
    a = np.array([1 + 2.0**-11, 1 + 2.0**-10 + 2.0**-11, -1 - 2.0**-11, np.inf, 3.0], np.float32)
    lines = """
    %t = arith.truncf %a : f32 to tf32
    %wide = arith.extf %t : tf32 to f32
    %away = nvvm.convert.float.to.tf32 %a {rnd = #nvvm.fp_rnd_mode<rna>}
    """
    got = elementwise(lines, {"wide": np.float32, "away": np.int32}, a=a)
    assert got["wide"].tolist() == [1 + 2.0**-10, 1 + 2.0**-9, -1 - 2.0**-10, np.inf, 3.0]
    away = got["away"].view(np.float32)
    assert away.tolist() == [1 + 2.0**-10, 1 + 2.0**-9, -1 - 2.0**-10, np.inf, 3.0]


def test_floats_of_six_and_four_bits(elementwise):
    a = np.array([0.5, -0.7, 1e9, -np.inf, np.nan, 2.6], np.float32)
    names = {
        "f6E2M3FN": ml_dtypes.float6_e2m3fn,
        "f6E3M2FN": ml_dtypes.float6_e3m2fn,
        "f4E2M1FN": ml_dtypes.float4_e2m1fn,
        "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    }
    lines = "\n".join(
        f"%r_{n} = arith.truncf %a : f32 to {n}\n%x_{n} = arith.extf %r_{n} : {n} to f32"
        for n in names
    )
    got = elementwise(lines, {f"x_{n}": np.float32 for n in names}, a=a)
    assert got["x_f4E2M1FN"].tolist() == [0.5, -0.5, 6, -6, 6, 3]
    assert got["x_f6E2M3FN"].tolist() == [0.5, -0.75, 7.5, -7.5, 7.5, 2.5]
    assert got["x_f6E3M2FN"].tolist() == [0.5, -0.75, 28, -28, 28, 2.5]
    scale = got["x_f8E8M0FNU"].tolist()
    assert scale[0] == 0.5 and scale[1] == scale[3] == 2.0**-127 and math.isnan(scale[4])
