"""The tensor core of sm_100 and its family, one instruction each (PTX ISA, "tcgen05"), for programs
that make descriptors by themselves. `cute.gemm` and `cute.copy` with operations of `nvgpu.tcgen05`
make them from layouts.

One thread issues each. Addresses are pointers into tensor memory, or Int32; descriptors of shared
memory are Int64, instruction descriptors Int32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from basedsl import Boolean, DSLTypeError, Int32, Int64, as_numeric
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, i32, shared_address
from basedsl_cute.hardware.requirements import LONG_K_ATTRIBUTE
from basedsl_cute.hardware.tensor_memory import KINDS
from basedsl_cute.tensors.pointer import Pointer

_COLLECTORS = ("discard", "lastuse", "fill", "use")


def _address(x: Any, what: str) -> Any:
    """Return the `!llvm.ptr<6>` of a pointer into tensor memory, or of an address."""
    if isinstance(x, Pointer):
        if x.space != "tmem":
            raise DSLTypeError(f"{what} takes a pointer into tensor memory, got {x}")
        return x.llvm_ptr
    return emit_op(what, "llvm.inttoptr", [i32(x)], ["!llvm.ptr<6>"]).result


def _operand_a(a: Any, what: str) -> Any:
    return _address(a, what) if isinstance(a, Pointer) else _i64(a)


def _i64(x: Any) -> Any:
    return as_numeric(x).to(Int64).ir_value()


def _group(cta_group: int) -> str:
    return f"#nvvm.cta_group<cta_{int(cta_group)}>"


def _kind(kind: str, is_block_scaled: bool, what: str) -> str:
    known = [name for name, k in KINDS.items() if k.is_block_scaled == is_block_scaled]
    if kind not in known:
        raise DSLTypeError(f"{what} has the kinds {', '.join(known)}, not {kind!r}")
    return f"#nvvm.tcgen05_mma_kind<{kind}>"


def _collector(collector: str | None, what: str) -> dict[str, str]:
    if collector is None:
        return {}
    if collector not in _COLLECTORS:
        raise DSLTypeError(f"{what}: a collector is {', '.join(_COLLECTORS)}, not {collector!r}")
    return {"collectorOp": f"#nvvm.tcgen05_mma_collectorop<{collector}>"}


@takes_location
def tcgen05_mma(
    kind: str,
    d: Any,
    a: Any,
    b: Any,
    descriptor: Any,
    accumulate: Any,
    *,
    cta_group: int = 1,
    scale_d: int | None = None,
    disabled_lanes: Sequence[Any] | None = None,
    shift_a: bool = False,
    collector: str | None = None,
    metadata: Any = None,
) -> None:
    """Issue D = A B + D (PTX `tcgen05.mma`), or D = A B where `accumulate` is False.

    - `kind`: "f16", "tf32", "i8" or "f8f6f4".
    - `d`: the accumulator in tensor memory.
    - `a`: a descriptor of shared memory, or a pointer into tensor memory.
    - `b`: a descriptor of shared memory.
    - `descriptor`: the instruction descriptor.
    - `accumulate`: a Boolean, static or of run time.
    - `cta_group`: 1, or 2 for the two blocks of a pair.
    - `scale_d`: 0 to 15, for D = A B + D 2^-scale_d; of the kinds f16 and tf32.
    - `disabled_lanes`: 4 words (8 with `cta_group` 2) whose bits are lanes of D that stay as they
      are.
    - `shift_a`: A in tensor memory comes one row further down.
    - `collector`: keep A in the collector buffer: "discard", "lastuse", "fill" or "use".
    - `metadata`: an address in tensor memory: A is sparse, K twice as long, of which A has half of
      the elements, and the places of these are at the address (`tcgen05.mma.sp`). The instruction's
      descriptor has bit 2 set, and the column of the metadata behind the address in bits 0 and 1.

    Raises DSLTypeError for other values.
    """
    what = "tcgen05_mma()"
    attributes = {"kind": _kind(kind, False, what), "ctaGroup": _group(cta_group)}
    attributes |= _collector(collector, what)
    operands = [_address(d, what), _operand_a(a, what), _i64(b), i32(descriptor)]
    operands.append(as_numeric(accumulate).to(Boolean).ir_value())
    sparse = [] if metadata is None else [_address(metadata, what)]
    operands += sparse
    segments = [1] * len(operands) + [0, 0]
    if scale_d is not None:
        if type(scale_d) is not int or not 0 <= scale_d <= 15 or kind not in ("f16", "tf32"):
            raise DSLTypeError(
                f"{what}: scale_d is a static 0 to 15 of the kinds f16 and tf32, not {scale_d!r} "
                f"of {kind}"
            )
        operands.append(_i64(Int64(scale_d)))
        segments[-2] = 1
    if disabled_lanes is not None:
        words = [i32(word) for word in disabled_lanes]
        if len(words) != 4 * int(cta_group):
            raise DSLTypeError(
                f"{what}: disabled_lanes are {4 * int(cta_group)} words, not {len(words)}"
            )
        kind_of = f"vector<{len(words)}xi32>"
        operands.append(emit_op(what, "vector.from_elements", words, [kind_of]).result)
        segments[-1] = 1
    if shift_a:
        if not isinstance(a, Pointer):
            raise DSLTypeError(f"{what}: shift_a is for A in tensor memory")
        attributes["aShift"] = "unit"
    attributes["operandSegmentSizes"] = f"array<i32: {', '.join(map(str, segments))}>"
    name = "nvvm.tcgen05.mma.sp" if sparse else "nvvm.tcgen05.mma"
    emit_op(what, name, operands, attributes=attributes)


@takes_location
def tcgen05_mma_block_scale(
    kind: str,
    d: Any,
    a: Any,
    b: Any,
    descriptor: Any,
    accumulate: Any,
    scale_a: Any,
    scale_b: Any,
    *,
    vector: int | None = None,
    cta_group: int = 1,
    collector: str | None = None,
    metadata: Any = None,
    is_long: bool = False,
) -> None:
    """Issue D = (A scale_a) (B scale_b) + D (PTX `tcgen05.mma` with `.block_scale`), or without D
    where `accumulate` is False.

    `kind` is "mxf8f6f4", "mxf4" or "mxf4nvf4", `scale_a` and `scale_b` addresses in tensor memory,
    `vector` the elements that share a factor (16 or 32; of one choice left out), and twice as many
    with `metadata`. With `is_long` K is 96 (sm_103f), and so says bit 31 of the descriptor. `d`,
    `a`, `b`, the instruction's `descriptor`, `cta_group`, `collector` and `metadata` are those of
    `tcgen05_mma`. Raises DSLTypeError for other values.
    """
    what = "tcgen05_mma_block_scale()"
    attributes = {"kind": _kind(kind, True, what), "ctaGroup": _group(cta_group)}
    sizes = sorted({size for found in KINDS[kind].scales.values() for size in found})
    vector = sizes[0] if vector is None and len(sizes) == 1 else vector
    if vector not in sizes:
        raise DSLTypeError(f"{what}: vector is {' or '.join(map(str, sizes))}, not {vector}")
    scale = "default" if len(sizes) == 1 else f"block{vector}"
    attributes["blockScale"] = f"#nvvm.tcgen05_mma_block_scale<{scale}>"
    attributes |= _collector(collector, what)
    operands = [_address(d, what), _operand_a(a, what), _i64(b), i32(descriptor)]
    operands.append(as_numeric(accumulate).to(Boolean).ir_value())
    name = "nvvm.tcgen05.mma.block_scale"
    if metadata is not None:
        name = "nvvm.tcgen05.mma.sp.block_scale"
        operands.append(_address(metadata, what))
    if is_long:
        attributes[LONG_K_ATTRIBUTE] = "unit"
    operands += [_address(scale_a, what), _address(scale_b, what)]
    emit_op(what, name, operands, attributes=attributes)


@takes_location
def tcgen05_mma_ws(
    kind: str,
    d: Any,
    a: Any,
    b: Any,
    descriptor: Any,
    accumulate: Any,
    *,
    zero_columns: Any = None,
    buffer: int = 0,
    collector: str | None = None,
) -> None:
    """Issue D = A B + D with B kept in place (PTX `tcgen05.mma.ws`), or D = A B where `accumulate`
    is False; by one block.

    M is 32, 64 or 128, N 64, 128 or 256; D takes all lanes, its columns in 128 / M groups.
    `zero_columns` is a descriptor of columns of B that count as zero, `buffer` (0 to 3) and
    `collector` the collector buffer of B; `kind`, `d`, `a`, `b` and the instruction's `descriptor`
    are those of `tcgen05_mma`. Raises DSLTypeError for other values.
    """
    what = "tcgen05_mma_ws()"
    if buffer not in (0, 1, 2, 3):
        raise DSLTypeError(f"{what}: a buffer of B is 0 to 3, not {buffer!r}")
    attributes = {"kind": _kind(kind, False, what)}
    attributes["collectorBBuffer"] = f"#nvvm.tcgen05_mma_collectorb<b{buffer}>"
    attributes |= _collector(collector, what)
    operands = [_address(d, what), _operand_a(a, what), _i64(b), i32(descriptor)]
    operands.append(as_numeric(accumulate).to(Boolean).ir_value())
    if zero_columns is not None:
        operands.append(_i64(zero_columns))
    emit_op(what, "nvvm.tcgen05.mma.ws", operands, attributes=attributes)


# Shape and where its rows go -> shape and copies in PTX.
CP_SHAPES = {
    "128x256b": ("128x256b", None),
    "128x128b": ("128x128b", None),
    "4x256b": ("4x256b", None),
    "4x32x128b": ("32x128b", "warpx4"),
    "2x64x128b_0213": ("64x128b", "warpx2_02_13"),
    "2x64x128b_0123": ("64x128b", "warpx2_01_23"),
}
_CP_FORMATS = ("", "b4x16_p64", "b6x16_p32")


@takes_location
def tcgen05_cp(
    shape: str, target: Any, source: Any, *, cta_group: int = 1, source_format: str = ""
) -> None:
    """Copy rows of shared memory, described by `source`, to lanes of tensor memory from the address
    `target` on (PTX `tcgen05.cp`); with `cta_group` 2, in both blocks of a pair.

    `shape` is "128x256b", "128x128b", "4x256b" (to the first lane of each quarter), "4x32x128b" (32
    rows to all quarters), "2x64x128b_0213" or "2x64x128b_0123" (64 rows to two pairs of quarters).
    `source_format` expands elements to a byte each: "b4x16_p64" or "b6x16_p32", of which 16 take 16
    bytes of shared memory. Raises DSLTypeError for other values.
    """
    what = "tcgen05_cp()"
    if shape not in CP_SHAPES:
        raise DSLTypeError(f"{what} has the shapes {', '.join(CP_SHAPES)}, not {shape!r}")
    if source_format not in _CP_FORMATS:
        raise DSLTypeError(f"{what} expands {' and '.join(_CP_FORMATS[1:])}, not {source_format!r}")
    rows, copies = CP_SHAPES[shape]
    attributes = {
        "group": _group(cta_group),
        "shape": f"#nvvm.tcgen05_cp_shape<shape_{rows}>",
    }
    if copies:
        attributes["multicast"] = f"#nvvm.tcgen05_cp_multicast<{copies}>"
    if source_format:
        attributes["srcFormat"] = f"#nvvm.tcgen05_cp_src_fmt<{source_format}>"
    operands = [_address(target, what), _i64(source)]
    emit_op(what, "nvvm.tcgen05.cp", operands, attributes=attributes)


@takes_location
def tcgen05_shift(target: Any, *, cta_group: int = 1) -> None:
    """Move 32 bytes of each lane from `target` on one lane further, but those of the last lane (PTX
    `tcgen05.shift.down`, sm_100a and sm_103a).

    `target` is an address in tensor memory; with `cta_group` 2, both blocks of a pair do so. Raises
    DSLTypeError for a pointer into other memory.
    """
    what = "tcgen05_shift()"
    attributes = {"group": _group(cta_group)}
    emit_op(what, "nvvm.tcgen05.shift", [_address(target, what)], attributes=attributes)


@takes_location
def tcgen05_commit(mbar_ptr: Pointer, multicast_mask: Any = None, group: int = 1) -> None:
    """Have an mbarrier arrive once when the tcgen05 instructions that this thread has issued are
    complete (PTX `tcgen05.commit`).

    `mbar_ptr` points to the mbarrier in shared memory, and `group` is the instructions'
    `cta_group`, 1 or 2. `multicast_mask` has the blocks of the cluster whose mbarriers arrive, as
    bits; without it, that of this block does. Raises DSLTypeError for a pointer that is not into
    shared memory.
    """
    what = "tcgen05_commit()"
    operands = [shared_address(mbar_ptr, what)]
    if multicast_mask is not None:
        number = as_numeric(multicast_mask).to(Int32).ir_value()
        operands.append(emit_op(what, "arith.trunci", [number], ["i16"]).result)
    emit_op(what, "nvvm.tcgen05.commit", operands, attributes={"group": _group(group)})
