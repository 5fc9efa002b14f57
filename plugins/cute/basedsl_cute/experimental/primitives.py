"""`experimental.primitives`: one function for an instruction, called as PTX calls it.

Each is the function of `arch` with the same meaning, where there is one; operands are in the order
of the instruction. Enums may also be given as their text in PTX.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from basedsl import Boolean, DSLTypeError, Int32, Integer
from basedsl_cute import arch
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch import (
    cp_async_bulk_commit_group,
    cp_async_bulk_wait_group,
    cp_async_commit_group,
    cp_async_wait_group,
    elect_sync,
    mbarrier_arrive,
    mbarrier_expect_tx,
    mbarrier_init,
)
from basedsl_cute.arch import mbarrier_arrive_and_expect_tx as mbarrier_arrive_expect_tx
from basedsl_cute.arch import mbarrier_init_fence as fence_mbarrier_init
from basedsl_cute.arch.bulk import bulk_load, bulk_store
from basedsl_cute.arch.emit import emit_op, i32, shared_address
from basedsl_cute.arch.tensor_map import replace_address, replace_extent, replace_stride
from basedsl_cute.arch.tma import tma_load, tma_reduce, tma_store
from basedsl_cute.hardware.unsupported import unsupported_names
from basedsl_cute.tensors.pointer import Pointer
from basedsl_cute.tensors.printf import printf


class MemScope(enum.Enum):
    """The threads that a memory operation is ordered for."""

    CTA = "cta"
    CLUSTER = "cluster"
    GPU = "gpu"
    SYS = "sys"


class MemOrder(enum.Enum):
    """The order of a memory operation (PTX ISA 8.8)."""

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"


class Shfl(enum.Enum):
    """The kind of `shfl.sync`."""

    IDX = "idx"
    BFLY = "bfly"
    UP = "up"
    DOWN = "down"


class VoteSync(enum.Enum):
    """The kind of `vote.sync`."""

    ANY = "any"
    ALL = "all"
    UNI = "uni"
    BALLOT = "ballot"


class ReductionKind(enum.Enum):
    """The kind of `redux.sync`."""

    ADD = "add"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    XOR = "xor"
    FMIN = "fmin"
    FMAX = "fmax"


class MBarrierWait(enum.Enum):
    """The kind of wait at an mbarrier: one test, or a wait of limited time."""

    TEST = "test"
    TRY = "try"


class GridDepAction(enum.Enum):
    """The action of `griddepcontrol`."""

    WAIT = "wait"
    LAUNCH_DEPENDENTS = "launch_dependents"


class PermuteMode(enum.Enum):
    """The mode of `prmt`; only the default one, which takes a selector, is here."""

    DEFAULT = "default"


def _text(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


# Barriers ----------------------------------------------------------------------------------------


@takes_location
def barrier_cta_sync(
    barrier_id: int | Integer = 0, number_of_threads: int | Integer | None = None
) -> None:
    """Wait at a named barrier of the block (`barrier.cta.sync`)."""
    arch.barrier(barrier_id=barrier_id, number_of_threads=number_of_threads)


@takes_location
def barrier_cta_arrive(barrier_id: int | Integer, number_of_threads: int | Integer) -> None:
    """Arrive at a named barrier without waiting (`barrier.cta.arrive`)."""
    arch.barrier_arrive(barrier_id, number_of_threads)


@takes_location
def barrier_cluster_arrive(order: MemOrder | str = MemOrder.RELEASE) -> None:
    """Arrive at the barrier of the cluster, with `order` release or relaxed
    (`barrier.cluster.arrive`). Raises DSLTypeError for another order.
    """
    arrive = {"release": arch.cluster_arrive, "relaxed": arch.cluster_arrive_relaxed}
    _one_of(order, arrive, "an arrival at the cluster's barrier")()


@takes_location
def barrier_cluster_wait() -> None:
    """Wait at the barrier of the cluster (`barrier.cluster.wait.acquire`)."""
    arch.cluster_wait()


@takes_location
def mbarrier_wait_parity(
    ptr: Pointer,
    phase: int | Integer,
    kind: MBarrierWait | str | None = None,
    *,
    scope: Any = None,
    order: Any = None,
) -> Boolean | None:
    """Wait until the phase of that parity is complete. With `kind` test or try return whether it
    is, perhaps after a moment (`mbarrier.try_wait.parity`). The wait acquires, for the cluster;
    `scope` and `order` are accepted and not used.
    """
    if kind is None:
        arch.mbarrier_wait(ptr, phase)
        return None
    kinds = dict.fromkeys(("test", "try"), arch.mbarrier_try_wait)
    status: Boolean = _one_of(kind, kinds, "mbarrier_wait_parity()")(ptr, phase)
    return status


@takes_location
def mbarrier_try_wait_parity(ptr: Pointer, phase: int | Integer) -> Boolean:
    """Return whether the phase of that parity is complete (`mbarrier.try_wait.parity`)."""
    return arch.mbarrier_try_wait(ptr, phase)


# Fences ------------------------------------------------------------------------------------------


@takes_location
def fence(scope: MemScope | str, order: MemOrder | str = MemOrder.ACQ_REL) -> None:
    """Order this thread's memory operations (`fence.acq_rel`). Raises DSLTypeError for another
    order than acq_rel.
    """
    if _text(order) != "acq_rel":
        raise DSLTypeError(f"a fence is acq_rel here, not {_text(order)}")
    fences = {
        "cta": arch.fence_acq_rel_cta,
        "cluster": arch.fence_acq_rel_cluster,
        "gpu": arch.fence_acq_rel_gpu,
        "sys": arch.fence_acq_rel_sys,
    }
    _one_of(scope, fences, "a fence")()


@takes_location
def fence_proxy_async(space: str = "cta") -> None:
    """Make writes to shared memory visible to TMA and wgmma (`fence.proxy.async.shared::cta`)."""
    arch.fence_proxy("async.shared", space=space)


# Copies ------------------------------------------------------------------------------------------


@takes_location
def cp_async_bulk_shared_cluster_global(
    dst: Pointer, src: Pointer, size: int | Integer, mbar: Pointer
) -> None:
    """Copy `size` bytes, a multiple of 16, from global to shared memory; they count at the mbarrier
    (`cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes`).
    """
    bulk_load(dst, src, size, mbar)


@takes_location
def cp_async_bulk_global_shared_cta(dst: Pointer, src: Pointer, size: int | Integer) -> None:
    """Copy `size` bytes, a multiple of 16, from shared to global memory, in this thread's bulk
    group (`cp.async.bulk.global.shared::cta.bulk_group`).
    """
    bulk_store(dst, src, size)


@takes_location
def cp_async_bulk_tensor_shared_cluster_global(
    dst: Pointer,
    tensor_map: Any,
    coordinates: Sequence[Any],
    mbar: Pointer,
    *,
    multicast_mask: Any = None,
    cache_hint: Any = None,
) -> None:
    """Copy a box from global to shared memory by TMA (`cp.async.bulk.tensor`); its bytes count at
    the mbarrier.
    """
    tma_load(tensor_map, dst, mbar, coordinates, mcast_mask=multicast_mask, cache_hint=cache_hint)


@takes_location
def cp_async_bulk_tensor_global_shared_cta(
    tensor_map: Any, coordinates: Sequence[Any], src: Pointer, *, cache_hint: Any = None
) -> None:
    """Copy a box from shared to global memory by TMA, in this thread's bulk group."""
    tma_store(tensor_map, src, coordinates, cache_hint=cache_hint)


@takes_location
def cp_reduce_async_bulk_tensor_global_shared_cta(
    tensor_map: Any, coordinates: Sequence[Any], src: Pointer, kind: str = "add"
) -> None:
    """Combine a box of shared memory into global memory by TMA (`cp.reduce.async.bulk.tensor`)."""
    tma_reduce(tensor_map, src, coordinates, _text(kind))


@takes_location
def tensormap_replace(ptr: Pointer, field: str, value: Any, ordinal: int = 0) -> None:
    """Change a field of a tensor map in memory (`tensormap.replace.tile`).

    `field` is "global_address", "global_dim" or "global_stride", the latter two of dimension
    `ordinal` (of strides, from 0 for the second dimension). Raises DSLTypeError for another field.
    """
    fields: dict[str, Any] = {
        "global_address": lambda: replace_address(ptr, value),
        "global_dim": lambda: replace_extent(ptr, ordinal, value),
        "global_stride": lambda: replace_stride(ptr, ordinal + 1, value),
    }
    _one_of(field, fields, "tensormap_replace()")()


@takes_location
def ldmatrix(ptr: Pointer, num: int = 1, *, trans: bool = False) -> Any:
    """Load `num` (1, 2 or 4) matrices of 8x8 numbers of 16 bits from shared memory
    (`ldmatrix.sync.aligned.m8n8`). `ptr` is this lane's row. Returns an Int32 with two numbers, or
    a tuple of them. Raises DSLTypeError for another count, or a pointer to other memory.
    """
    attributes = _matrices(num, trans) | {"num": f"{num} : i32"}
    kind = "i32" if num == 1 else f"!llvm.struct<({', '.join(['i32'] * num)})>"
    address = shared_address(ptr, "ldmatrix()")
    made = emit_op("ldmatrix()", "nvvm.ldmatrix", [address], [kind], attributes).result
    if num == 1:
        return Int32.from_value(made)
    words = []
    for i in range(num):
        place = {"position": f"array<i64: {i}>"}
        word = emit_op("ldmatrix()", "llvm.extractvalue", [made], ["i32"], place).result
        words.append(Int32.from_value(word))
    return tuple(words)


@takes_location
def stmatrix(ptr: Pointer, *words: Any, trans: bool = False) -> None:
    """Store 1, 2 or 4 matrices of 8x8 numbers of 16 bits to shared memory
    (`stmatrix.sync.aligned.m8n8`). `ptr` is this lane's row, each word two of its numbers. Raises
    DSLTypeError for another count, or a pointer to other memory.
    """
    attributes = _matrices(len(words), trans)
    operands = [shared_address(ptr, "stmatrix()"), *map(i32, words)]
    emit_op("stmatrix()", "nvvm.stmatrix", operands, attributes=attributes)


def _matrices(num: int, trans: bool) -> dict[str, str]:
    if num not in (1, 2, 4):
        raise DSLTypeError(f"ldmatrix and stmatrix move 1, 2 or 4 matrices, not {num}")
    return {
        "layout": f"#nvvm.mma_layout<{'col' if trans else 'row'}>",
        "shape": "#nvvm.ld_st_matrix_shape<m = 8, n = 8>",
        "eltType": "#nvvm.ld_st_matrix_elt_type<b16>",
    }


# Warps -------------------------------------------------------------------------------------------


@takes_location
def shfl_sync(
    value: Any,
    offset: int | Integer,
    kind: Shfl | str = Shfl.IDX,
    *,
    mask: int | Integer = arch.FULL_MASK,
    mask_and_clamp: int | Integer | None = None,
) -> Any:
    """Exchange a number between lanes (`shfl.sync`). `mask_and_clamp` is PTX's operand c, by
    default for the whole warp.
    """
    name = _text(kind)
    clamp = (0 if name == "up" else 31) if mask_and_clamp is None else mask_and_clamp
    return arch.shuffle_sync_op(value, offset, mask, clamp, name)


@takes_location
def vote_sync(
    pred: bool | Boolean, kind: VoteSync | str, mask: int | Integer = arch.FULL_MASK
) -> Any:
    """Combine a predicate over the lanes of `mask` (`vote.sync`): a Boolean, of ballot an Int32."""
    votes = {
        "any": arch.vote_any_sync,
        "all": arch.vote_all_sync,
        "uni": arch.vote_uni_sync,
        "ballot": arch.vote_ballot_sync,
    }
    return _one_of(kind, votes, "a vote")(pred, mask)


@takes_location
def redux_sync(
    value: Any,
    kind: ReductionKind | str,
    mask: int | Integer = arch.FULL_MASK,
    *,
    abs: bool = False,
    nan: bool = False,
) -> Any:
    """Combine a 32-bit number over the lanes of `mask` (`redux.sync`); `abs` and `nan` are
    modifiers of fmin and fmax.
    """
    return arch.warp_redux_sync(value, _text(kind), mask, abs=abs, nan=nan)


@takes_location
def prmt(lo: Any, selector: Any, mode: PermuteMode = PermuteMode.DEFAULT, *, hi: Any = 0) -> Any:
    """Pick four bytes out of the eight of `lo` and `hi` by `selector` (`prmt.b32`)."""
    return arch.prmt(lo, hi, selector)


@takes_location
def griddepcontrol(action: GridDepAction | str) -> None:
    """Wait for the grids before this one, or let dependent ones start (`griddepcontrol`). Raises
    DSLTypeError for another action.
    """
    actions = {
        "wait": arch.griddepcontrol_wait,
        "launch_dependents": arch.griddepcontrol_launch_dependents,
    }
    _one_of(action, actions, "griddepcontrol()")()


@takes_location
def red(
    ptr: Pointer,
    value: Any,
    kind: str = "add",
    *,
    order: MemOrder | str = MemOrder.RELAXED,
    scope: MemScope | str = MemScope.GPU,
) -> None:
    """Combine a number into memory atomically (`red`): add, min, max, and, or, xor."""
    atomics = {
        name: getattr(arch, f"atomic_{name}") for name in ("add", "min", "max", "and", "or", "xor")
    }
    _one_of(kind, atomics, "red()")(ptr, value, sem=_text(order), scope=_text(scope))


@takes_location
def setmaxregister(reg_count: int, action: str = "increase") -> None:
    """Change the registers of this warp group's threads to `reg_count` (`setmaxnreg`). `action` is
    "increase" or "decrease"; DSLTypeError otherwise.
    """
    actions = {
        "increase": arch.setmaxregister_increase,
        "decrease": arch.setmaxregister_decrease,
    }
    _one_of(action, actions, "setmaxregister()")(reg_count)


# The program -------------------------------------------------------------------------------------


@takes_location
def print_runtime(*args: Any) -> None:
    """Print when the code runs, as `cute.printf`."""
    printf(*args)


@takes_location
def exit() -> None:
    """End this thread (`exit`). Only on a GPU: the simulator says so."""
    arch.inline_ptx("exit;", (), ())


def _one_of(given: Any, choices: dict[str, Any], what: str) -> Any:
    found = choices.get(_text(given))
    if found is None:
        raise DSLTypeError(f"{what}: {given!r} is none of {', '.join(choices)}")
    return found


__all__ = [
    "GridDepAction",
    "MBarrierWait",
    "MemOrder",
    "MemScope",
    "PermuteMode",
    "ReductionKind",
    "Shfl",
    "VoteSync",
    "barrier_cluster_arrive",
    "barrier_cluster_wait",
    "barrier_cta_arrive",
    "barrier_cta_sync",
    "cp_async_bulk_commit_group",
    "cp_async_bulk_global_shared_cta",
    "cp_async_bulk_shared_cluster_global",
    "cp_async_bulk_tensor_global_shared_cta",
    "cp_async_bulk_tensor_shared_cluster_global",
    "cp_async_bulk_wait_group",
    "cp_async_commit_group",
    "cp_async_wait_group",
    "cp_reduce_async_bulk_tensor_global_shared_cta",
    "elect_sync",
    "exit",
    "fence",
    "fence_mbarrier_init",
    "fence_proxy_async",
    "griddepcontrol",
    "ldmatrix",
    "mbarrier_arrive",
    "mbarrier_arrive_expect_tx",
    "mbarrier_expect_tx",
    "mbarrier_init",
    "mbarrier_try_wait_parity",
    "mbarrier_wait_parity",
    "print_runtime",
    "prmt",
    "red",
    "redux_sync",
    "setmaxregister",
    "shfl_sync",
    "stmatrix",
    "tensormap_replace",
    "vote_sync",
]

if not TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = unsupported_names(__name__)
