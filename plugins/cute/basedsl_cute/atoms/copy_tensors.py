"""`cute.copy` and related functions: copies of whole tensors by the instructions of a copy atom, or
in the widest accesses that are proven.

The loops here run while tracing: every instruction of a copy is an op of its own in the IR.
"""

from __future__ import annotations

from typing import Any

from basedsl import DSLCallError, DSLTypeError, with_article
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.copy import CopyAtom, TiledCopy
from basedsl_cute.atoms.copy_instruction import as_predicate, check_elements, predicated
from basedsl_cute.atoms.predicated_copy import copy_parts, copy_where
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.vectorized_access import load_vector, store_vector


@takes_location
def copy(
    atom: Any,
    src: Tensor,
    dst: Tensor | None = None,
    *,
    pred: Any = None,
    **fields: Any,
) -> None:
    """Copy the tensor `src` into `dst` by instructions of a copy atom.

    `atom` is a `CopyAtom`, a `TiledCopy` or a TMA atom. Mode 0 of both tensors is as partitions
    make it: ((values of one instruction), (repeats)); all further modes are looped over. Shapes are
    static, element types equal.

    `pred` is a tensor of Booleans: one for each instruction (the repeats of mode 0, then the other
    modes), or one for each coordinate of the other modes. Where it is False nothing is copied. An
    atom without `num_bits_per_copy` copies in the widest accesses that contiguity and alignment
    prove, and also takes a predicate for each element. `fields` are arguments of the atom's
    operation, for instance `tma_bar_ptr=` of a TMA load.

    Raises DSLTypeError for tensors that are not whole instructions, whose modes differ, or whose
    elements are not known to be consecutive and aligned as the instruction needs.

    >>> import basedsl_cute as cute
    >>> @cute.kernel
    ... def copy_kernel(src: cute.Tensor, dst: cute.Tensor):
    ...     atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), src.element_type)
    ...     tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(4))
    ...     thread = tiled.get_slice(cute.arch.thread_idx()[0])
    ...     cute.copy(tiled, thread.partition_S(src), thread.partition_D(dst))
    """
    if dst is None:
        raise DSLCallError(
            "cute.copy takes a copy atom, a source and a destination; the first is "
            + with_article(type(atom)),
            hint="cute.copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), dtype), src, dst), "
            "or cute.autovec_copy(src, dst)",
        )
    if hasattr(atom, "copy_tensors"):  # a TMA atom, which has run-time state and copies whole boxes
        atom.copy_tensors(src, dst, pred, **fields)
        return
    atom = _atom(atom)
    if not atom.op.checks_itself:
        check_elements(src, dst, "cute.copy")
    if atom.op.takes_whole_tensors:
        atom.op.issue(atom, src, dst, None if pred is None else as_predicate(pred), **fields)
        return
    if atom.num_bits is None and atom.op.may_choose_width:
        _copy_as_wide_as_proven(src, dst, pred)
        return
    n_src, n_dst = atom.values_src, atom.values_dst
    sources, targets = _pieces(src, n_src, "source"), _pieces(dst, n_dst, "destination")
    count = len(sources)
    if count != len(targets):
        raise DSLTypeError(
            f"cute.copy: the source is {count} instruction(s), the destination {len(targets)}",
            notes=(
                (f"the source is {src}, with {n_src} element(s) an instruction", None),
                (f"the destination is {dst}, with {n_dst} element(s) an instruction", None),
            ),
        )
    _same_modes(src, n_src, dst, n_dst)
    each = _instructions_of_a_predicate(pred, count, n_src, src)
    for i in range(count):
        holds = None if pred is None else as_predicate(pred[i // each])
        if holds is False:
            continue
        _call(atom, sources[i], targets[i], holds, fields)


@takes_location
def copy_atom_call(
    atom: Any,
    src: Tensor,
    dst: Tensor,
    *,
    pred: Any = None,
    **fields: Any,
) -> None:
    """Copy `src` into `dst` by exactly one instruction of the copy atom `atom`.

    The tensors have the elements of one instruction; `pred` is a Boolean, or a tensor of one.
    `fields` are as for `copy`. Raises DSLTypeError for tensors of another size or of different
    element types.
    """
    atom = _atom(atom)
    if atom.op.checks_itself:
        atom.op.issue(atom, src, dst, None if pred is None else as_predicate(pred), **fields)
        return
    check_elements(src, dst, "copy_atom_call")
    if isinstance(pred, Tensor):
        pred = pred[0]
    holds = None if pred is None else as_predicate(pred)
    if atom.num_bits is None and atom.op.may_choose_width:
        atom = CopyAtom(atom.op, atom.dtype, algebra.size(src.shape) * atom.width)
    for tensor, n, what in ((src, atom.values_src, "source"), (dst, atom.values_dst, "target")):
        if algebra.size(tensor.shape) != n:
            raise DSLTypeError(f"copy_atom_call: the {what} {tensor} is not {n} element(s)")
    if holds is not False:
        _call(atom, src, dst, holds, fields)


@takes_location
def autovec_copy(src: Tensor, dst: Tensor, *, l1c_evict_priority: Any = None) -> None:
    """Copy the tensor `src` into `dst`, of the same static shape, without an atom: each side in the
    widest accesses, of up to 16 bytes, that its contiguity and alignment prove.

    `l1c_evict_priority` (`nvgpu.CacheEvictionPriority`) applies to accesses to global memory.
    Raises DSLTypeError for dynamic shapes, different sizes or different element types.
    """
    check_elements(src, dst, "autovec_copy")
    _same_shape(src, dst, "autovec_copy")
    priority = getattr(l1c_evict_priority, "value", l1c_evict_priority)
    if priority is not None and not str(priority).startswith("L1::"):
        raise DSLTypeError(
            f"l1c_evict_priority is one of nvgpu.CacheEvictionPriority, not {l1c_evict_priority!r}"
        )
    if algebra.size(src.shape) == 0:
        return
    loading, storing = (priority if x.memspace == "gmem" else None for x in (src, dst))
    store_vector(dst, load_vector(src, loading), storing)


@takes_location
def basic_copy(src: Tensor, dst: Tensor) -> None:
    """Copy the tensor `src` into `dst`, of the same static shape, element by element.

    Raises DSLTypeError for dynamic shapes, different sizes or different element types.
    """
    check_elements(src, dst, "basic_copy")
    _same_shape(src, dst, "basic_copy")
    for i in range(algebra.size(src.shape)):
        dst[i] = src[i]


@takes_location
def basic_copy_if(pred: Any, src: Tensor, dst: Tensor) -> None:
    """Copy those elements of `src` into `dst` for which `pred`, a tensor of Booleans of the same
    shape, holds; else as `basic_copy`.
    """
    check_elements(src, dst, "basic_copy_if")
    _same_shape(src, dst, "basic_copy_if")
    if algebra.size(pred.shape) != algebra.size(src.shape):
        raise DSLTypeError(f"basic_copy_if: {pred.shape} predicates for elements {src.shape}")
    for i in range(algebra.size(src.shape)):
        holds = as_predicate(pred[i])
        if holds is not False:
            with predicated(None if holds is True else holds):
                dst[i] = src[i]


# Shared ------------------------------------------------------------------------------------------


def _atom(atom: Any) -> CopyAtom:
    if isinstance(atom, CopyAtom):
        return atom
    if isinstance(atom, TiledCopy):
        return atom.atom
    found = getattr(atom, "atom", None)
    if isinstance(found, CopyAtom):
        return found
    raise DSLTypeError(
        f"a copy takes a copy atom or a tiled copy, got {type(atom).__name__}",
        hint="cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), dtype)",
    )


def _call(atom: CopyAtom, src: Tensor, dst: Tensor, holds: Any, fields: dict[str, Any]) -> None:
    atom.op.issue(atom, src, dst, None if holds is True else holds, **fields)


def _pieces(tensor: Tensor, n: int, what: str) -> list[Tensor]:
    """The parts of a tensor for each instruction: `n` elements each, in the order of its shape."""
    if not algebra.is_static(tensor.shape):
        raise DSLTypeError(
            f"cute.copy: the {what} has a dynamic shape, {tensor.shape}",
            hint="slice the dynamic mode in a loop: cute.copy(atom, src[None, None, k], ...)",
        )
    size = int(algebra.size(tensor.shape))
    if size % n:
        raise DSLTypeError(
            f"cute.copy: {size} element(s) of the {what} are no whole instructions of {n} each",
            notes=((f"the {what} is {tensor}", None),),
        )
    by_instruction = algebra.Layout((n, size // n), (1, n))
    try:
        divided = algebra.composition(
            tensor if isinstance(tensor.layout, algebra.ComposedLayout) else tensor.layout,
            by_instruction,
        )
    except algebra.LayoutError as error:
        raise DSLTypeError(
            f"cute.copy: the {what} does not split into instructions of {n} elements alike",
            notes=((f"the {what} is {tensor}", None),),
        ) from error
    if isinstance(divided, Tensor):
        return [divided[None, i] for i in range(size // n)]
    piece = algebra.coalesce(divided[0])
    return [tensor._at(tensor.layout(i), piece) for i in range(0, size, n)]


def _same_modes(src: Tensor, n_src: int, dst: Tensor, n_dst: int) -> None:
    """Raise DSLTypeError for different modes, by whose order instructions would be paired."""
    modes = []
    for tensor, n in ((src, n_src), (dst, n_dst)):
        first, *rest = (int(algebra.size(tensor.shape, [i])) for i in range(algebra.rank(tensor)))
        modes.append((first / n, *(extent for extent in rest if extent != 1)))
    if len(modes[0]) > 1 and len(modes[1]) > 1 and modes[0] != modes[1]:
        raise DSLTypeError(
            f"cute.copy: the modes of source {src.shape} and destination {dst.shape} differ",
            notes=(
                (f"one instruction takes {n_src} element(s) of the source", None),
                (f"one instruction takes {n_dst} element(s) of the destination", None),
            ),
            hint="partition both by this copy, and retile() a fragment that an MMA made",
        )


def _instructions_of_a_predicate(pred: Any, count: int, n: int, src: Tensor) -> int:
    """The number of consecutive instructions that share one predicate."""
    if pred is None:
        return 1
    if not isinstance(pred, Tensor):
        raise DSLTypeError(f"pred is a tensor of Booleans, not {with_article(type(pred))}")
    known = int(algebra.size(pred.shape))
    if known == count * n and n > 1:
        raise DSLTypeError(
            f"there is a predicate for each of {known} elements, and one instruction copies {n}",
            hint="make the atom without num_bits_per_copy, or predicate whole instructions",
        )
    if known == 0 or count % known:
        raise DSLTypeError(
            f"pred of shape {pred.shape} has {known} predicates for {count} instruction(s)",
            notes=((f"they copy {src.shape}", None),),
        )
    return count // known


def _copy_as_wide_as_proven(src: Tensor, dst: Tensor, pred: Any) -> None:
    _same_shape(src, dst, "cute.copy")
    if algebra.size(src.shape) == 0:
        return
    if pred is None:
        store_vector(dst, load_vector(src))
        return
    if not isinstance(pred, Tensor):
        raise DSLTypeError(f"pred is a tensor of Booleans, not {with_article(type(pred))}")
    size, known = int(algebra.size(src.shape)), int(algebra.size(pred.shape))
    if known == 0 or size % known:
        raise DSLTypeError(
            f"pred of shape {pred.shape} has {known} predicates for elements {src.shape}"
        )
    n = size // known
    holds = [as_predicate(pred[i]) for i in range(known)]

    def one_by_one() -> None:
        copy_parts(_pieces(src, n, "source"), _pieces(dst, n, "destination"), holds)

    copy_where(src, dst, holds, one_by_one)


def _same_shape(src: Tensor, dst: Tensor, what: str) -> None:
    for name, tensor in (("source", src), ("destination", dst)):
        if not algebra.is_static(tensor.shape):
            raise DSLTypeError(
                f"{what}: the {name} has a dynamic shape, {tensor.shape}",
                hint="tile it with a static tiler first, or slice the dynamic mode in a loop",
            )
    if algebra.size(src.shape) != algebra.size(dst.shape):
        raise DSLTypeError(f"{what}: the source has shape {src.shape}, the destination {dst.shape}")
