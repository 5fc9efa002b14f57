"""Tensor memory and `tcgen05.mma` of data-center Blackwell: sizes, kinds, shapes, descriptors.

Numbers are those of the PTX ISA, "TensorCore 5th Generation Family Instructions": "Tensor Memory",
"Matrix and Data Movement Shape", "Instruction descriptor".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TMEM_LANES = 128
TMEM_COLUMNS = 512  # of 32 bits, in each lane
TMEM_LANE_STRIDE = 1 << 16  # in addresses, which are lane << 16 | column
MIN_TMEM_COLUMNS = 32  # an allocation is a power of two from here to TMEM_COLUMNS

_FLOATS = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
_ANY = {"dyn8": 7, "dyn6": 7, "dyn4": 7}  # a format that is known only when the kernel runs
_ACCUMULATORS = {"f16": 0, "f32": 1, "s32": 2}
_SCALES = {"ue4m3": 0, "ue8m0": 1}
# The types whose operands may be contiguous along M or N.
_TRANSPOSED = ("f16", "bf16", "tf32", "s8", "u8", "e4m3", "e5m2")


@dataclass(frozen=True)
class MmaKind:
    """One kind of `tcgen05.mma`: its element types with their codes, accumulators, K and scales.

    `k` is the extent of one instruction, in elements. `scales` are the types of scale factors with
    the numbers of elements that share one.
    """

    name: str
    formats: Mapping[str, int]
    accumulators: tuple[str, ...]
    k: int
    scales: Mapping[str, tuple[int, ...]]
    can_negate: bool = True
    can_saturate: bool = False

    @property
    def is_block_scaled(self) -> bool:
        return bool(self.scales)


def _kind(
    name: str,
    formats: Mapping[str, int],
    accumulators: str,
    k: int,
    scales: Mapping[str, tuple[int, ...]] | None = None,
    **flags: bool,
) -> tuple[str, MmaKind]:
    return name, MmaKind(name, formats, tuple(accumulators.split()), k, scales or {}, **flags)


KINDS = dict(
    (
        _kind("f16", {"f16": 0, "bf16": 1}, "f16 f32", 16),
        _kind("tf32", {"tf32": 2}, "f32", 8),
        _kind("i8", {"u8": 0, "s8": 1}, "s32", 32, can_negate=False, can_saturate=True),
        _kind("f8f6f4", {**_FLOATS, **_ANY}, "f16 f32", 32),
        _kind("mxf8f6f4", {**_FLOATS, **_ANY}, "f32", 32, {"ue8m0": (32,)}),
        _kind("mxf4", {"e2m1": 1, "dyn4": 7}, "f32", 64, {"ue8m0": (32,)}),
        _kind("mxf4nvf4", {"e2m1": 1, "dyn4": 7}, "f32", 64, {"ue8m0": (16, 32), "ue4m3": (16,)}),
    )
)


LONG_K = 96  # of sm_103's instructions of the 4-bit kinds with scale factors
LONG_KINDS = ("mxf4", "mxf4nvf4")


def refused_shape(
    kind: str, m: int, n: int, blocks: int, a_in_tmem: bool = False, is_long: bool = False
) -> str | None:
    """Return why `tcgen05.mma` of this kind has no shape of M and N over 1 or 2 blocks; else None.

    PTX ISA, tables of shapes; with A in tensor memory, and where it `is_long` (K = 96), the steps
    of CUTLASS's headers.
    """
    if is_long and (kind not in LONG_KINDS or a_in_tmem):
        return f"K = {LONG_K} is of the kinds {' and '.join(LONG_KINDS)}, A in shared memory"
    if not KINDS[kind].is_block_scaled:
        rows: tuple[int, ...] = {1: (64, 128), 2: (128, 256)}[blocks]
    elif blocks == 1:
        rows = (128,)
    else:
        rows = (256,) if kind == "mxf8f6f4" else (128, 256)
    if m not in rows:
        return (
            f"M is {' or '.join(map(str, rows))} over {blocks} block{'s' * (blocks > 1)}, not {m}"
        )
    if kind == "i8" and (blocks, n) == (1, 8):
        return None
    step = 16 if is_long else _step_of_n(kind, m, blocks, a_in_tmem)
    if not step <= n <= 256 or n % step:
        return f"N is a multiple of {step} up to 256, not {n}"
    return None


def refused_ws_shape(kind: str, m: int, n: int) -> str | None:
    """Return why `tcgen05.mma.ws` of this kind has no shape of M and N; else None (PTX ISA,
    tables of shapes).
    """
    if KINDS[kind].is_block_scaled:
        return "the instruction has no scale factors"
    if m not in (32, 64, 128):
        return f"M is 32, 64 or 128, not {m}"
    return None if n in (64, 128, 256) else f"N is 64, 128 or 256, not {n}"


def _step_of_n(kind: str, m: int, blocks: int, a_in_tmem: bool) -> int:
    if kind == "i8":
        return 16 * blocks
    if a_in_tmem and not KINDS[kind].is_block_scaled:
        return 32 if blocks == 2 else 8 if m == 64 else 16
    return 8 * blocks


def instruction_descriptor(
    kind: str,
    types: tuple[str, str, str],
    shape_mn: tuple[int, int],
    *,
    mn_major: tuple[bool, bool] = (False, False),
    negate: tuple[bool, bool] = (False, False),
    saturate: bool = False,
    scale_type: str | None = None,
    scale_ids: tuple[int, int] = (0, 0),
    sparse: bool = False,
    sparse_id: int = 0,
    max_shift: int = 0,
    is_long: bool = False,
) -> int:
    """Return the 32 bits of the instruction descriptor.

    `types` are those of A, B and the accumulator in PTX's names; `mn_major` and `negate` are of A
    and B. `scale_ids` are the bytes of the 32-bit words with the factors of A and B; `is_long` is
    K = 96.
    """
    formats = KINDS[kind].formats
    a_type, b_type, c_type = types
    m, n = shape_mn
    bits = (
        sparse_id
        | sparse << 2
        | formats[a_type] << 7
        | formats[b_type] << 10
        | negate[0] << 13
        | negate[1] << 14
        | mn_major[0] << 15
        | mn_major[1] << 16
        | n >> 3 << 17
        | m >> 4 << 24
    )
    if scale_type is None:
        return bits | saturate << 3 | _ACCUMULATORS[c_type] << 4 | max_shift << 30
    scales = scale_ids[1] << 4 | _SCALES[scale_type] << 23 | scale_ids[0] << 29
    return bits | scales | is_long << 31


def can_transpose(element: str) -> bool:
    """Tell whether an operand of elements called `element` may be contiguous along M or N."""
    return element in _TRANSPOSED
