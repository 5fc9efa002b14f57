"""The promises of speed, in one place, and the verdict on rows that the benchmarks measured.

A goal names the program whose rows (its `--out`) tell, and how they tell it: `found` gives
pairs of a figure and what it was measured on. The worst of them counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

# Hopper GEMM, 16-bit floats: (M, N, K) to the least ratio to cuBLAS.
GEMM = {
    (8192, 8192, 8192): 1.03,
    (4096, 4096, 4096): 1.03,
    (2048, 2048, 2048): 1.08,
    (8192, 8192, 1024): 1.06,
    (16384, 16384, 4096): 1.03,
}
SCALED_GEMM = 1.0  # 8-bit floats, to torch._scaled_mm
TRITON = 1.0  # any type, to Triton's persistent product
AMPERE = 0.75  # mma.sync to wgmma, fp16 at 4096^3
SGEMM = 0.93  # to cuBLAS without TF32
# Kernels that memory bounds: the least ratio to a device-to-device copy of the same bytes, and for
# how many problems.
COPY = {
    "elementwise": (0.96, 3),
    "softmax": (0.93, 2),
    "layer_norm": (0.93, 2),
    "transpose": (0.9, 2),
}
RMS_NORM = 4026  # GB/s, 16384 x 8192, float16
# Attention: rows of gpu/attention.py to the least ratio to cuDNN, or to compiled flex attention.
ATTENTION = {
    "forward 4x4096x16x128": 1.03,
    "forward 4x4096x16x128 causal": 1.03,
    "forward 1x16384x16x128 causal": 1.03,
    "forward 4x4096x32(4)x128 causal": 1.03,
    "forward 8x512x16x128 causal": 1.10,
    "forward 4x4096x16x64": 1.0,
    "forward 4x4096x16x64 causal": 1.0,
    "forward 4x4096x16x256": 1.0,
}
ATTENTION_KINDS = (("backward", "cudnn", 1.0, 7), ("decoding", "cudnn", 1.0, 4))
ATTENTION_FUNCTIONS = (("flex", 1.5), ("built in", 0.9))
LONG_DECODING = 2500  # GB/s, one sequence of 16k
NARROW_ATTENTION = 1.5  # elements of 8 bits, to our own kernel of Float16
ATTENTION_CODE = {"cold": 1.0, "spilled": 0}  # seconds to compile a forward pass, and bytes
# ops.matmul to cuBLAS: every row of gpu/shapes.py; 200 random products, the worst and the mean.
SHAPES, RANDOM_WORST, RANDOM_MEAN = 1.0, 0.97, 1.06
# Milliseconds to compile in a new process: (with an empty, with a filled disk cache).
COMPILE = {
    "elementwise_add": (133, None),
    "hopper_gemm": (665, 20),
    "hopper_gemm of 4096^3": (665, 20),
    "attention": (1700, None),
}
LINEAR = 1.0  # growth of time over growth of a tile's extent, or of the stages

Row = dict[str, Any]
Found = Iterable[tuple[float, str]]


@dataclass(frozen=True)
class Goal:
    """`found` reads figures out of the rows of `program`; each has to be on the right side."""

    text: str
    program: str
    found: Callable[[list[Row]], Found]
    least: float | None = None
    most: float | None = None
    count: int = 1  # of figures

    def verdict(self, rows: list[Row] | None) -> Row:
        """The worst figure and whether the goal is kept, None where that is not known."""
        found = [] if rows is None else list(self.found(rows))
        record: Row = {"goal": self.text, "least": self.least, "most": self.most}
        record["missing"] = self.count - len(found)
        if not found:
            return record | {"measured": None, "on": "", "kept": None}
        worst, on = (min if self.most is None else max)(found)
        kept = worst <= self.most if self.most is not None else worst >= (self.least or 0)
        known = kept if not kept or len(found) >= self.count else None
        return record | {"measured": worst, "on": on if self.count > 1 else "", "kept": known}


def line(record: Row) -> str:
    """A verdict as text."""
    sign, limit = (">=", record["least"]) if record["most"] is None else ("<=", record["most"])
    head = f"{record['goal']:<40} {sign} {f'{limit:g}':<5}"
    measured = record["measured"]
    if measured is None:
        return f"{head} {'-':>8}  not measured"
    shown = f"{measured:.3f}" if abs(measured) < 10 else f"{measured:.0f}"
    said = "kept"
    if record["kept"] is None:
        said = f"{record['missing']} not measured"
    elif not record["kept"]:
        said = "below" if record["most"] is None else "above"
    on = f"  ({record['on']})" if record["on"] else ""
    return f"{head} {shown:>8}  {said}{on}"


# How rows tell -----------------------------------------------------------------------------------


def to_copy(kernel: str) -> Callable[[list[Row]], Found]:
    """The best variant's ratio to a copy, of each type of a kernel."""

    def found(rows: list[Row]) -> Found:
        for row in rows:
            speed = best(row)
            if speed and row["kernel"].startswith(kernel) and row["gb_per_s"].get("copy"):
                yield speed / row["gb_per_s"]["copy"], f"{row['kernel']} {row['dtype']}"

    return found


def best(row: Row) -> float | None:
    """GB/s of the best variant of a kernel that memory bounds."""
    speeds = row.get("gb_per_s", {})
    return max((v for k, v in speeds.items() if k not in ("copy", "torch")), default=None)


def rms_norm(rows: list[Row]) -> Found:
    for row in rows:
        speed = best(row)
        if speed and (row["kernel"], row["dtype"]) == ("rms_norm", "float16"):
            yield speed, ""


def to_peer(
    peer: str, dtype: str = "", shape: tuple[int, ...] = ()
) -> Callable[[list[Row]], Found]:
    """The ratio to a peer of GEMM rows whose type begins so, of one shape or of all. Where ours was
    timed for that peer apart, that counts.
    """

    def found(rows: list[Row]) -> Found:
        for row in rows:
            fits = row.get("dtype", "").startswith(dtype) and shape in ((), tuple(row["shape"]))
            if fits and "ours" in row and row.get(peer):
                name = " ".join(str(row[k]) for k in ("dtype", "order") if k in row)
                ours = row.get(f"ours_to_{peer}", row["ours"])
                yield ours / row[peer], f"{name} {size(row['shape'])}"

    return found


def of_attention(name: str, peer: str = "", exactly: bool = False) -> Callable[[list[Row]], Found]:
    """The ratio to a peer, or the speed, of the rows of attention whose names begin so."""

    def found(rows: list[Row]) -> Found:
        for row in rows:
            fits = row["name"] == name if exactly else row["name"].startswith(name)
            speed = row["speed"]
            if fits and "ours" in speed and (not peer or peer in speed):
                yield speed["ours"] / (speed[peer] if peer else 1), row["name"]

    return found


def of_code(column: str) -> Callable[[list[Row]], Found]:
    """A column of attention_code.py, of the kernels for Hopper."""

    def found(rows: list[Row]) -> Found:
        for row in rows:
            if row["kernel"] == "hopper":
                yield row[column], f"heads of {row['head']}, causal: {row['causal']}"

    return found


def products(rows: list[Row]) -> Found:
    """The ratio to cuBLAS of each product of shapes.py."""
    return [(r["torch"]["kernel"] / r["ours"]["kernel"], r["product"]) for r in rows if "ours" in r]


def mean_product(rows: list[Row]) -> Found:
    """The geometric mean of these ratios."""
    ratios = [ratio for ratio, _ in products(rows)]
    return [(statistics.geometric_mean(ratios), "")] if ratios else []


def size(shape: Iterable[int]) -> str:
    return "x".join(map(str, shape))


def of_kernel(kernel: str, found: Callable[[list[Row]], Found]) -> Callable[[list[Row]], Found]:
    """The same of the rows of one kernel."""
    return lambda rows: found([row for row in rows if row.get("kernel") == kernel])


def milliseconds(name: str, state: str) -> Callable[[list[Row]], Found]:
    """Milliseconds to compile a case, cold or warm."""
    return lambda rows: [(r[state], "") for r in rows if r.get("case") == name and state in r]


def growth(rows: list[Row]) -> Found:
    """Growth of the time to compile over growth of what is compiled."""
    return [(r["costs"] / r["larger"], r["growth"]) for r in rows if "growth" in r]


def goals() -> list[Goal]:
    """Every goal, in the order in which they are told."""
    memory, gemm, ampere = "gpu/memory_bound.py", "gpu/gemm.py", "gpu/ampere_gemm.py"
    made = [Goal("rms_norm float16, GB/s", memory, rms_norm, RMS_NORM)]
    for kernel, (least, count) in COPY.items():
        made.append(Goal(f"{kernel}, of copy", memory, to_copy(kernel), least, count=count))
    for dtype in ("float16", "bfloat16"):
        for shape, least in GEMM.items():
            text = f"{dtype} {size(shape)}, of cuBLAS"
            made.append(Goal(text, gemm, to_peer("cublas", dtype, shape), least))
    scaled = to_peer("cublas", "float8")
    made += [
        Goal("float8, of torch._scaled_mm", gemm, scaled, SCALED_GEMM, count=len(GEMM)),
        Goal("all of these, of Triton", gemm, to_peer("triton"), TRITON, count=3 * len(GEMM)),
    ]
    warp = of_kernel("warp-tma", to_peer("hopper", "float16", (4096, 4096, 4096)))
    simt = of_kernel("simt", to_peer("cublas"))
    made += [
        Goal("mma.sync float16 4096^3, of wgmma", ampere, warp, AMPERE, count=2),
        Goal("sgemm, of cuBLAS", ampere, simt, SGEMM, count=8),
    ]
    flash = "gpu/attention.py"
    for name, least in ATTENTION.items():
        made.append(Goal(f"{name}, of cuDNN", flash, of_attention(name, "cudnn", True), least))
    for name, peer, least, count in ATTENTION_KINDS:
        text = f"attention {name}, of cuDNN"
        made.append(Goal(text, flash, of_attention(name, peer), least, count=count))
    long = of_attention("decoding 1 of 16384")
    made.append(Goal("attention decoding 1 of 16384, GB/s", flash, long, LONG_DECODING))
    for peer, least in ATTENTION_FUNCTIONS:
        found = of_attention("function", peer)
        made.append(Goal(f"attention functions, of {peer}", flash, found, least, count=4))
    eight = of_attention("narrow", "fp16")
    text = "attention of 8 bits, of our Float16"
    made.append(Goal(text, flash, eight, NARROW_ATTENTION, count=6))
    for column, most in ATTENTION_CODE.items():
        text = f"attention forward, {column}"
        made.append(Goal(text, "attention_code.py", of_code(column), most=most, count=10))
    shapes, drawn = "gpu/shapes.py", "random shapes"
    made += [
        Goal("matmul, of cuBLAS", shapes, products, SHAPES, count=20),
        Goal("200 random products, of cuBLAS", drawn, products, RANDOM_WORST, count=200),
        Goal("their geometric mean", drawn, mean_product, RANDOM_MEAN),
    ]
    for name, times in COMPILE.items():
        for state, most in zip(("cold", "warm"), times, strict=True):
            if most is not None:
                found = milliseconds(name, state)
                made.append(Goal(f"compile {name}, {state}, ms", "compile.py", found, most=most))
    text = "growth of compile time, of what grows"
    made.append(Goal(text, "compile.py", growth, most=LINEAR, count=3))
    return made
