"""Random configurations of the matrix products in `ops`: what is drawn, and how each is called.

`Draw.case(number)` draws a `Case`, which is one product, from (seed, number) alone: the kernel,
element types, which modes are contiguous, ragged extents, batches, tile, stages, cluster, order of
tiles, epilogue. A kernel is a class in KERNELS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute.ops.ampere import gemm as ampere_gemm
from basedsl_cute.ops.ampere import gemm_tma, mainloop, sgemm
from basedsl_cute.ops.hopper import gemm as hopper_gemm
from basedsl_cute.ops.hopper import split_k_gemm
from basedsl_cute.utils import hopper_helpers as sm90
from basedsl_cute.utils.epilogue import per_column, per_row

F16, BF16, F32 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
S8, U8, S32 = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int32)


@dataclass(frozen=True)
class Case:
    """One product: C (M, N, L) = epilogue(A (M, K, L) B (N, K, L)^T)."""

    kernel: str
    shape: tuple[int, int, int]
    batches: int | None
    types: tuple[np.dtype, np.dtype, np.dtype]
    transposed: tuple[bool, bool, bool]  # mode 0 of A, B, C is contiguous
    gaps: tuple[int, int, int]  # 16 bytes behind each row
    epilogue: str
    blocks: int
    options: dict[str, Any] = field(hash=False)

    def __str__(self) -> str:
        kinds = "*".join(t.name for t in self.types[:2]) + f"->{self.types[2].name}"
        majors = "".join(
            "MK"[not t] if i < 2 else "MN"[not t] for i, t in enumerate(self.transposed)
        )
        batches = "" if self.batches is None else f" x{self.batches}"
        return (
            f"{self.kernel} {self.shape}{batches} {kinds} contiguous {majors}, gaps {self.gaps}, "
            f"epilogue {self.epilogue}, {self.blocks} blocks, {self.options}"
        )


# Drawing -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """Which cases there are: `small` ones are for the simulator, those with a true option in
    `without` are left out.
    """

    seed: int
    small: bool = False
    kernels: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def case(self, number: int) -> Case:
        dice = Dice(np.random.default_rng([self.seed, number]))
        names = self.kernels or tuple(KERNELS)
        name = names[number % len(names)]
        while True:
            case: Case = KERNELS[name].draw(dice, name, self.small)
            if not any(case.options.get(option) for option in self.without):
                return case


class Dice:
    def __init__(self, rng: Any) -> None:
        self.rng = rng

    def one(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def often(self, likely: Any, *others: Any) -> Any:
        """`likely` in half of the cases."""
        return likely if self.rng.integers(2) else self.one(*others)

    def number(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.rng.integers(low, high + 1))


def drawn(
    d: Dice,
    name: str,
    small: bool,
    types: Any,
    options: dict[str, Any],
    transposed: Any = None,
    smallest: tuple[int, int, int] = (200, 200, 160),
) -> Case:
    """The part of every kernel. Extents of `small` cases are up to `smallest`."""
    a, b, c = types
    tile = options["tile"]
    most = smallest if small else (700, 700, 900)
    ragged = d.often(True, False)
    shape = [d.number(1, n) if ragged else max(8, d.number(1, n) // 8 * 8) for n in most]
    if not small and d.one(True, False, False):  # several tiles of each
        shape = [max(s, 2 * t + 8) for s, t in zip(shape, tile, strict=True)]
    turned = (
        a.itemsize == b.itemsize == 2 and d.one(True, False),
        a.itemsize == b.itemsize == 2 and d.one(True, False),
        d.one(True, False),
    )
    return Case(
        kernel=name,
        shape=tuple(shape),  # type: ignore[arg-type]
        batches=d.often(None, 1, 2, 3),
        types=(a, b, c),
        transposed=transposed or turned,
        gaps=tuple(d.often(0, 1, 3) for _ in range(3)),  # type: ignore[arg-type]
        epilogue=d.often("none", "bias_relu", "scaled_residual"),
        blocks=d.often(132, d.number(4, 24)) if not small else d.number(4, 8),
        options=options,
    )


def floats(of: Any, into: Any) -> list[Any]:
    return [(a, b, c) for a, b in of for c in into]


class Hopper:
    """`ops.hopper.gemm`."""

    TYPES = (
        *floats([(F16, F16), (BF16, BF16)] * 2, (F16, BF16, F32, E4M3)),
        *floats([(x, y) for x in (E4M3, E5M2) for y in (E4M3, E5M2)], (F16, BF16, F32)),
        *floats([(x, y) for x in (S8, U8) for y in (S8, U8)], (S32, F32)),
        *floats([(F32, F32)] * 3, (F32, F16)),
    )

    def draw(self, d: Dice, name: str, small: bool) -> Case:
        while True:
            types = d.one(*self.TYPES)
            options = self.options(d, types, small)
            case = self.whole_rows(drawn(d, name, small, types, options))
            if self.fits(case):
                return case

    def whole_rows(self, case: Case) -> Case:
        """Rows of C are of whole 16 bytes: TMA stores such, even beyond an extent."""
        shape, unit = list(case.shape), 16 // case.types[2].itemsize
        along = 0 if case.transposed[2] else 1
        shape[along] = -(-shape[along] // unit) * unit
        return replace(case, shape=tuple(shape))

    def options(self, d: Dice, types: Any, small: bool) -> dict[str, Any]:
        consumers = d.often(2, 1, 3)
        pingpong = consumers > 1 and d.one(True, False, False)
        warpgroups_per_tile = 1 if pingpong else consumers
        widths = (16, 32, 64, 96, 128) if small else (16, 32, 64, 80, 96, 128, 160, 192, 256)
        stores = d.often("deferred", "at once", "by warps")
        return {
            "tile": (
                64 * warpgroups_per_tile * d.often(1, 2),
                d.one(*widths) if types[0] in (S8, U8) else d.often(d.one(*widths), 8, 24, 72),
                d.often(128, 64, 32) // types[0].itemsize,
            ),
            "stages": d.number(2, 5),
            "consumers": consumers,
            "pingpong": pingpong,
            "cluster": d.often((1, 1), (2, 1), (1, 2), (2, 2)),
            "swizzle": d.one(1, 2, 4, 8),
            "along_m": d.one(True, False),
            "apart": d.often(1, 3, 8),
            "slots": d.number(1, 3),
            "deferred": stores == "deferred",
            "by_warps": stores == "by warps",
            "overlap": d.one(True, False),
            "swap": d.one(True, False),
        }

    def fits(self, case: Case) -> bool:
        """Accumulators in registers, stages in shared memory, pieces as instructions have them."""
        a, b, c = (cute_type(t) for t in case.types)
        try:
            config = self.config(case)
            columns = config.piece(c)[1]
        except (ValueError, DSLTypeError):  # it says so, for example of tiles of over 256 rows
            return False
        m, n, _ = config.tile
        kinds = hopper_gemm.HopperGemmKinds(a, b, c, None, None, None)
        if config.smem_bytes(kinds) > hopper_gemm.SHARED_MEMORY:
            return False
        if m // config.rows_per_mma * n // 2 > config.consumer_registers - 90:
            return False
        if a.is_integer and columns % 16:
            return False
        if case.transposed[1] and n * case.types[1].itemsize % 16:
            return False
        cm, cn = config.cluster
        return n % (8 * cm) == 0 and case.blocks >= cm * cn

    def config(self, case: Case) -> Any:
        return hopper_gemm.Config(**case.options)

    def run(self, case: Case, a: Any, b: Any, c: Any, extras: dict[str, Any]) -> None:
        fused(a, b, c, extras, hopper, case.epilogue, (case.blocks, self.config(case)))


class HopperSplit:
    """`ops.hopper.split_k_gemm`."""

    TYPES = Hopper.TYPES

    def draw(self, d: Dice, name: str, small: bool) -> Case:
        while True:
            types = d.one(*self.TYPES)
            options = self.options(d, types, small)
            case = drawn(d, name, small, types, options)
            options["vector"] = min(split_k_gemm.VECTOR, widths(d, case)[2])
            if self.fits(case):
                return case

    def options(self, d: Dice, types: Any, small: bool) -> dict[str, Any]:
        consumers = d.often(1, 2)
        widths = (16, 32, 64, 96, 128) if small else (16, 32, 64, 80, 96, 128, 160, 192, 256)
        return {
            "tile": (
                64 * consumers * d.often(1, 2),
                d.one(*widths) if types[0] in (S8, U8) else d.often(d.one(*widths), 8, 24, 72),
                d.often(128, 64, 32) // types[0].itemsize,
            ),
            "stages": d.number(2, 5),
            "consumers": consumers,
            "split": d.often(d.one(1, 2, 4), 3, 5, 8),
            "swap": d.one(True, False),
            "swizzle": d.one(1, 2, 8),
            "along_m": d.one(True, False),
            "overlap": d.one(True, False),
        }

    def fits(self, case: Case) -> bool:
        """Accumulators in registers, stages in shared memory, whole 16 bytes of a column there."""
        config = self.config(case)
        m, n, _ = config.tile
        a, b, c = (cute_type(t) for t in case.types)
        columns = sm90.LayoutEnum.COL_MAJOR
        try:
            split_k_gemm.check_config(
                hopper_gemm.HopperGemmKinds(a, b, c, None, None, columns), config
            )
        except DSLTypeError:  # it says so
            return False
        if m // (64 * config.consumers) * n // 2 > 150:
            return False
        turned = case.transposed[0 if config.swap else 1]
        return not (turned and n * case.types[1].itemsize % 16)

    def config(self, case: Case) -> Any:
        options = {name: x for name, x in case.options.items() if name != "vector"}
        return split_k_gemm.Config(**options)

    def run(self, case: Case, a: Any, b: Any, c: Any, extras: dict[str, Any]) -> None:
        arguments = (self.config(case), case.options["vector"])
        fused(a, b, c, extras, hopper_split, case.epilogue, arguments)


class Ampere:
    """`ops.ampere.gemm`."""

    TYPES = (
        *floats([(F16, F16), (BF16, BF16)], (F16, BF16, F32)),
        *floats([(E4M3, E4M3), (E5M2, E5M2)], (F16, F32)),
        *floats([(S8, S8), (U8, U8)], (S32,)),
        *floats([(F32, F32)], (F32, F16)),
    )

    def draw(self, d: Dice, name: str, small: bool) -> Case:
        while True:
            types = d.one(*self.TYPES)
            options = self.options(d, types)
            turned = tuple(d.one(True, False) for _ in range(3))
            case = drawn(d, name, small, types, options, turned)
            options["vectors"] = widths(d, case)
            m, n, k = (s % t for s, t in zip(case.shape, options["tile"], strict=True))
            options["is_full"] = (m, n, k) == (0, 0, 0)
            if self.fits(case):
                return case

    def options(self, d: Dice, types: Any) -> dict[str, Any]:
        return {
            "tile": (d.one(64, 128), d.one(64, 128), d.one(64, 128) // types[0].itemsize),
            "warps": d.one((1, 1), (2, 1), (1, 2), (2, 2), (4, 2)),
            "stages": d.number(2, 5),
            "swizzle": d.one(1, 4, 8),
            "along_m": d.one(True, False),
        }

    def config(self, case: Case) -> Any:
        options = {name: x for name, x in case.options.items() if name != "vectors"}
        return ampere_gemm.Config(**options)

    def fits(self, case: Case) -> bool:
        """Accumulators in registers, stages in shared memory, what copies divide among threads."""
        config = self.config(case)
        m, n, _ = config.tile
        if config.smem_bytes(8 * case.types[0].itemsize) > hopper_gemm.SHARED_MEMORY:
            return False
        if m * n // config.threads > 128:
            return False
        kind = cute_type(case.types[0])
        op = ampere_gemm.instruction(cute.TFloat32 if kind is cute.Float32 else kind)
        a, b, c = case.options["vectors"]
        try:
            ampere_gemm.check_config(config, op, (b, a, c) if case.transposed[2] else (a, b, c))
        except DSLTypeError:  # it says so
            return False
        return True

    def run(self, case: Case, a: Any, b: Any, c: Any, extras: dict[str, Any]) -> None:
        arguments = (case.blocks, self.config(case), case.options["vectors"])
        fused(a, b, c, extras, ampere, case.epilogue, arguments)


class AmpereByTma(Ampere):
    """`ops.ampere.gemm_tma`: operands that TMA reads, warpgroups that multiply."""

    def options(self, d: Dice, types: Any) -> dict[str, Any]:
        return super().options(d, types) | {
            "warps": d.one((4, 1), (2, 2), (1, 4), (4, 2), (2, 4)),
            "cluster": d.often((1, 1), (2, 1), (1, 2), (2, 2)),
            "blocks_per_sm": d.often(1, 2),
            "overlap": d.one(True, False),
        }

    def config(self, case: Case) -> Any:
        options = {name: x for name, x in case.options.items() if name != "vectors"}
        return gemm_tma.Config(**options)

    def fits(self, case: Case) -> bool:
        """Sums in registers, stages in shared memory, tiles that warps and clusters divide."""
        config = self.config(case)
        (m, n, _), width = config.tile, 8 * case.types[0].itemsize
        cm, cn = config.cluster
        if config.blocks_per_sm * config.smem_bytes(width) > hopper_gemm.SHARED_MEMORY:
            return False
        if m * n // (128 * config.warpgroups_per_tile) > min(128, config.consumer_registers - 80):
            return False
        kind = cute_type(case.types[0])
        op = mainloop.instruction(cute.TFloat32 if kind is cute.Float32 else kind)
        try:
            gemm_tma.check_config(config, op)
        except DSLTypeError:  # it says so
            return False
        return case.blocks >= cm * cn

    def run(self, case: Case, a: Any, b: Any, c: Any, extras: dict[str, Any]) -> None:
        arguments = (case.blocks, self.config(case), case.options["vectors"][2])
        fused(a, b, c, extras, ampere_by_tma, case.epilogue, arguments)


class Simt:
    """`ops.ampere.sgemm`."""

    def draw(self, d: Dice, name: str, small: bool) -> Case:
        while True:
            options = {
                "tile": (64, 64, d.one(8, 16))
                if small
                else (d.one(64, 128), d.one(64, 128), d.one(8, 16)),
                "warps": d.one((2, 1), (2, 2), (4, 2)),
                "stages": d.number(2, 4),
                "swizzle": d.one(1, 4, 8),
                "along_m": d.one(True, False),
            }
            turned = tuple(d.one(True, False) for _ in range(3))
            case = drawn(d, name, small, (F32, F32, F32), options, turned, (150, 150, 40))
            options["vectors"] = widths(d, case)
            if self.fits(case):
                return case

    def fits(self, case: Case) -> bool:
        """Tiles that all threads copy, as `sgemm` wants them."""
        m, n, k = self.config(case).tile
        threads = self.config(case).threads
        return all(
            rows * k % (threads * (v if turned or v == sgemm.VECTOR else 1)) == 0
            for rows in (m, n)
            for v, turned in zip(case.options["vectors"][:2], case.transposed, strict=False)
        )

    def config(self, case: Case) -> Any:
        options = {name: x for name, x in case.options.items() if name != "vectors"}
        return sgemm.Config(**options)

    def run(self, case: Case, a: Any, b: Any, c: Any, extras: dict[str, Any]) -> None:
        arguments = (self.config(case), case.options["vectors"])
        fused(a, b, c, extras, simt, case.epilogue, arguments)


KERNELS: dict[str, Any] = {
    "hopper": Hopper(),
    "ampere": Ampere(),
    "sgemm": Simt(),
    "split": HopperSplit(),
    "ampere_tma": AmpereByTma(),
}


def widths(d: Dice, case: Case) -> tuple[int, int, int]:
    """Elements of A, B and C that one access may move: divisors of the contiguous extent."""
    m, n, k = case.shape
    found = []
    for which, (rows, columns) in enumerate(((m, k), (n, k), (m, n))):
        extent = rows if case.transposed[which] else columns
        most = math.gcd(extent, 16 // case.types[which].itemsize)
        found.append(d.often(most, 1, max(1, most // 2)))
    return tuple(found)  # type: ignore[return-value]


# Epilogues ---------------------------------------------------------------------------------------


def bias_relu(acc, bias):
    x = acc.to(cute.Float32) + bias
    return cute.where(x > 0.0, x, 0.0)


def scaled_residual(acc, scale, x, shift):
    return acc.to(cute.Float32) * scale * 0.5 + x + shift


def fused(
    a: Any, b: Any, c: Any, extras: dict[str, Any], kernel: Any, epilogue: str, arguments: Any
) -> None:
    """`kernel` with the epilogue of that name."""
    if epilogue == "none":
        plain(a, b, c, kernel, arguments)
    elif epilogue == "bias_relu":
        with_bias(a, b, c, extras["bias"], kernel, arguments)
    else:
        with_residual(a, b, c, extras["scale"], extras["x"], extras["shift"], kernel, arguments)


@cute.jit
def plain(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    kernel: cute.Constexpr,
    arguments: cute.Constexpr,
):
    kernel(a, b, c, arguments, None, ())


@cute.jit
def with_bias(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    bias: cute.Tensor,
    kernel: cute.Constexpr,
    arguments: cute.Constexpr,
):
    kernel(a, b, c, arguments, bias_relu, (per_column(bias, c.shape),))


@cute.jit
def with_residual(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    scale: cute.Tensor,
    x: cute.Tensor,
    shift: cute.Float32,
    kernel: cute.Constexpr,
    arguments: cute.Constexpr,
):
    operands = (per_row(scale, c.shape), x, shift)
    kernel(a, b, c, arguments, scaled_residual, operands)


def hopper(a, b, c, arguments, epilogue, operands):
    blocks, config = arguments
    hopper_gemm.gemm(a, b, c, blocks, config, epilogue, operands)


def hopper_split(a, b, c, arguments, epilogue, operands):
    config, vector = arguments
    split_k_gemm.gemm(a, b, c, config, epilogue, operands, vector)


def ampere(a, b, c, arguments, epilogue, operands):
    blocks, config, vectors = arguments
    ampere_gemm.gemm(a, b, c, blocks, config, epilogue, operands, vectors)


def ampere_by_tma(a, b, c, arguments, epilogue, operands):
    blocks, config, vector = arguments
    gemm_tma.gemm(a, b, c, blocks, config, epilogue, operands, vector)


def simt(a, b, c, arguments, epilogue, operands):
    config, vectors = arguments
    sgemm.sgemm(a, b, c, config, epilogue, operands, vectors)


def cute_type(dtype: np.dtype) -> Any:
    return {
        F16: cute.Float16, BF16: cute.BFloat16, F32: cute.Float32, E4M3: cute.Float8E4M3FN,
        E5M2: cute.Float8E5M2, S8: cute.Int8, U8: cute.Uint8, S32: cute.Int32,
    }[dtype]  # fmt: skip
