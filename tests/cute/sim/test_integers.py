"""Integer arithmetic against Python's unbounded integers, at every width."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl_cute.sim.machine.memory import distinct

WIDTHS = (8, 16, 32, 64)


def signed(x, width):
    half = 1 << (width - 1)
    return (x + half) % (2 * half) - half


def unsigned(x, width):
    return x % (1 << width)


def trunc_div(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def samples(rng, width, count=300):
    edge = [0, 1, 2, 3, -1, -2, 5, 7, (1 << (width - 1)) - 1, -(1 << (width - 1))]
    pairs = [(a, b) for a in edge for b in edge]
    bits = rng.integers(1, width + 1, (count, 2))
    for m, n in bits.tolist():
        a, b = (int.from_bytes(rng.bytes(8), "little") for _ in "ab")
        pairs.append((signed(a >> (64 - m), width), signed(b >> (64 - n), width)))
    dtype = f"i{width // 8}"
    return np.array([p[0] for p in pairs], dtype), np.array([p[1] for p in pairs], dtype)


def shifted(kind):
    def reference(a, b, w):
        n = unsigned(b, w)
        if kind == "shli":
            return a << n if n < w else 0
        if kind == "shrui":
            return unsigned(a, w) >> n if n < w else 0
        return a >> min(n, w)

    return reference


BINARY = {
    "addi": lambda a, b, w: a + b,
    "subi": lambda a, b, w: a - b,
    "muli": lambda a, b, w: a * b,
    "andi": lambda a, b, w: a & b,
    "ori": lambda a, b, w: a | b,
    "xori": lambda a, b, w: a ^ b,
    "maxsi": lambda a, b, w: max(a, b),
    "minsi": lambda a, b, w: min(a, b),
    "maxui": lambda a, b, w: max(unsigned(a, w), unsigned(b, w)),
    "minui": lambda a, b, w: min(unsigned(a, w), unsigned(b, w)),
    "shli": shifted("shli"),
    "shrui": shifted("shrui"),
    "shrsi": shifted("shrsi"),
}
DIVISIONS = {
    "divsi": lambda a, b, w: trunc_div(a, b),
    "floordivsi": lambda a, b, w: a // b,
    "ceildivsi": lambda a, b, w: -(-a // b),
    "remsi": lambda a, b, w: a - b * trunc_div(a, b),
    "divui": lambda a, b, w: unsigned(a, w) // unsigned(b, w),
    "ceildivui": lambda a, b, w: -(-unsigned(a, w) // unsigned(b, w)),
    "remui": lambda a, b, w: unsigned(a, w) % unsigned(b, w),
}


def check_all(elementwise, table, a, b, width):
    lines = "\n".join(f"%r_{name} = arith.{name} %a, %b : i{width}" for name in table)
    got = elementwise(lines, {f"r_{name}": a.dtype for name in table}, a=a, b=b)
    for name, reference in table.items():
        want = [
            signed(reference(x, y, width), width)
            for x, y in zip(a.tolist(), b.tolist(), strict=True)
        ]
        assert got[f"r_{name}"].tolist() == want, name


@pytest.mark.parametrize("width", WIDTHS)
def test_binary_operations(elementwise, rng, width):
    check_all(elementwise, BINARY, *samples(rng, width), width)


@pytest.mark.parametrize("width", WIDTHS)
def test_divisions(elementwise, rng, width):
    a, b = samples(rng, width)
    low = -(1 << (width - 1))
    defined = (b != 0) & ~((a == low) & (b == -1))
    check_all(elementwise, DIVISIONS, a[defined], b[defined], width)


@pytest.mark.parametrize("width", (3, 4, 12, 24))
def test_widths_between_numpys(elementwise, rng, width):
    container = 8 if width <= 8 else 16 if width <= 16 else 32
    a, b = samples(rng, width, 0) if width in WIDTHS else narrow_samples(rng, width, container)
    table = BINARY | DIVISIONS
    low = -(1 << (width - 1))
    keep = (b != 0) & ~((a == low) & (b == -1))
    a, b = a[keep], b[keep]
    lines = [f"%x = arith.trunci %a : i{container} to i{width}"]
    lines += [f"%y = arith.trunci %b : i{container} to i{width}"]
    for name in table:
        lines += [f"%n_{name} = arith.{name} %x, %y : i{width}"]
        lines += [f"%r_{name} = arith.extsi %n_{name} : i{width} to i{container}"]
    lines += [f"%u = arith.extui %x : i{width} to i{container}"]
    lines += [f"%less = arith.cmpi ult, %x, %y : i{width}"]
    results = {f"r_{name}": a.dtype for name in table} | {"u": a.dtype, "less": np.bool_}
    got = elementwise("\n".join(lines), results, a=a, b=b)
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    for name, reference in table.items():
        want = [signed(reference(x, y, width), width) for x, y in pairs]
        assert got[f"r_{name}"].tolist() == want, name
    assert got["u"].tolist() == [unsigned(x, width) for x, _ in pairs]
    assert got["less"].tolist() == [unsigned(x, width) < unsigned(y, width) for x, y in pairs]


def narrow_samples(rng, width, container):
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    edge = [low, low + 1, -2, -1, 0, 1, 2, high - 1, high]
    values = np.array([(a, b) for a in edge for b in edge], f"i{container // 8}")
    more = rng.integers(low, high + 1, (200, 2)).astype(values.dtype)
    both = np.concatenate([values, more])
    return both[:, 0].copy(), both[:, 1].copy()


PREDICATES = {
    "eq": lambda a, b, w: a == b,
    "ne": lambda a, b, w: a != b,
    "slt": lambda a, b, w: a < b,
    "sle": lambda a, b, w: a <= b,
    "sgt": lambda a, b, w: a > b,
    "sge": lambda a, b, w: a >= b,
    "ult": lambda a, b, w: unsigned(a, w) < unsigned(b, w),
    "ule": lambda a, b, w: unsigned(a, w) <= unsigned(b, w),
    "ugt": lambda a, b, w: unsigned(a, w) > unsigned(b, w),
    "uge": lambda a, b, w: unsigned(a, w) >= unsigned(b, w),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("form", ["arith.cmpi {0}, %a, %b", 'llvm.icmp "{0}" %a, %b'])
def test_comparisons(elementwise, rng, width, form):
    a, b = samples(rng, width, 50)
    lines = "\n".join(f"%r_{p} = {form.format(p)} : i{width}" for p in PREDICATES)
    got = elementwise(lines, {f"r_{p}": np.bool_ for p in PREDICATES}, a=a, b=b)
    for name, holds in PREDICATES.items():
        want = [holds(x, y, width) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert got[f"r_{name}"].tolist() == want, name


def test_booleans_are_one_bit_integers(elementwise):
    a = np.array([0, 0, 1, 1], np.bool_)
    b = np.array([0, 1, 0, 1], np.bool_)
    table = BINARY | {f"cmp_{name}": p for name, p in PREDICATES.items()}
    shifts = {"shli", "shrui", "shrsi"}
    lines = []
    for name in table:
        op = f"cmpi {name[4:]}," if name.startswith("cmp_") else name
        lines.append(f"%r_{name} = arith.{op} %a, %b : i1")
    lines += ["%s = arith.extsi %a : i1 to i32", "%z = arith.extui %a : i1 to i32"]
    lines += ["%f = arith.sitofp %a : i1 to f32", "%g = arith.uitofp %a : i1 to f32"]
    more = {"s": np.int32, "z": np.int32, "f": np.float32, "g": np.float32}
    got = elementwise("\n".join(lines), {f"r_{n}": np.bool_ for n in table} | more, a=a, b=b)
    for name, reference in table.items():
        if name in shifts:
            continue
        want = [
            bool(unsigned(int(reference(signed(x, 1), signed(y, 1), 1)), 1))
            for x, y in zip(a.tolist(), b.tolist(), strict=True)
        ]
        assert got[f"r_{name}"].tolist() == want, name
    assert got["s"].tolist() == [0, 0, -1, -1] and got["z"].tolist() == [0, 0, 1, 1]
    assert got["f"].tolist() == [0, 0, -1, -1] and got["g"].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("width", WIDTHS)
def test_extended_results(elementwise, rng, width):
    a, b = samples(rng, width, 100)
    lines = f"""
    %slo, %shi = arith.mulsi_extended %a, %b : i{width}
    %ulo, %uhi = arith.mului_extended %a, %b : i{width}
    %sum, %carry = arith.addui_extended %a, %b : i{width}, i1
    """
    dtype = a.dtype
    results = dict.fromkeys(("slo", "shi", "ulo", "uhi", "sum"), dtype) | {"carry": np.bool_}
    got = elementwise(lines, results, a=a, b=b)
    for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        ux, uy = unsigned(x, width), unsigned(y, width)
        assert got["slo"][i] == signed(x * y, width)
        assert got["shi"][i] == signed((x * y) >> width, width)
        assert got["ulo"][i] == signed(ux * uy, width)
        assert got["uhi"][i] == signed((ux * uy) >> width, width)
        assert got["carry"][i] == (ux + uy >= 1 << width)


@pytest.mark.parametrize("width", WIDTHS)
def test_bit_counts(elementwise, rng, width):
    a, b = samples(rng, width, 100)
    b = np.abs(b % 7).astype(a.dtype)
    lines = "\n".join(
        f"%{name} = math.{name} %a : i{width}" for name in ("ctlz", "cttz", "ctpop", "absi")
    )
    lines += f"\n%power = math.ipowi %a, %b : i{width}"
    lines += f"\n%reverse = llvm.intr.bitreverse(%a) : (i{width}) -> i{width}"
    lines += f"\n%left = llvm.intr.fshl(%a, %b, %b) : (i{width}, i{width}, i{width}) -> i{width}"
    names = ("ctlz", "cttz", "ctpop", "absi", "power", "reverse", "left")
    got = elementwise(lines, dict.fromkeys(names, a.dtype), a=a, b=b)
    for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        bits = format(unsigned(x, width), f"0{width}b")
        assert got["ctpop"][i] == bits.count("1")
        assert got["ctlz"][i] == len(bits) - len(bits.lstrip("0"))
        assert got["cttz"][i] == len(bits) - len(bits.rstrip("0"))
        assert got["absi"][i] == signed(abs(x), width)
        assert got["power"][i] == signed(x**y, width)
        assert got["reverse"][i] == signed(int(bits[::-1], 2), width)
        pair = (unsigned(x, width) << width | unsigned(y, width)) << (y % width)
        assert got["left"][i] == signed(pair >> width, width)


def test_conversions_between_widths(elementwise, rng):
    a, _ = samples(rng, 64, 100)
    lines, want, results = [], {}, {}
    for width in (8, 16, 32):
        lines.append(f"%t{width} = arith.trunci %a : i64 to i{width}")
        lines.append(f"%s{width} = arith.extsi %t{width} : i{width} to i64")
        lines.append(f"%u{width} = arith.extui %t{width} : i{width} to i64")
        lines.append(f"%x{width} = arith.index_cast %t{width} : i{width} to index")
        lines.append(f"%y{width} = arith.index_cast %x{width} : index to i{width}")
        want[f"s{width}"] = [signed(x, width) for x in a.tolist()]
        want[f"u{width}"] = [unsigned(x, width) for x in a.tolist()]
        want[f"y{width}"] = want[f"s{width}"]
        results |= {f"s{width}": np.int64, f"u{width}": np.int64, f"y{width}": f"i{width // 8}"}
    got = elementwise("\n".join(lines), results, a=a)
    for name, values in want.items():
        assert got[name].tolist() == values, name


@pytest.mark.parametrize("values", [[3, 1, 3], [7], [-5, 1000, -5, 2], range(9, 0, -1)])
def test_distinct_integers(values):
    array = np.array(list(values), np.int64)
    assert np.array_equal(distinct(array), np.unique(array))
