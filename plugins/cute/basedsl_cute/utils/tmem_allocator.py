"""`utils.TmemAllocator`: tensor memory of a block, shared by the warps of several roles.

One warp allocates and frees; the others take the address from shared memory behind a barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from basedsl import DSLTypeError, Float32, Integer
from basedsl_cute import arch
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.hardware.tensor_memory import MIN_TMEM_COLUMNS
from basedsl_cute.hardware.unsupported import NotOfferedError
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.pipeline import NamedBarrier
from basedsl_cute.pipeline.mbarrier_pipelines import initialise_barriers
from basedsl_cute.tensors.pointer import Pointer
from basedsl_cute.tensors.tensor import Tensor

_ALIGNMENT = 16  # bytes, what a pointer to a whole allocation promises


class _Columns:
    """The numbers of columns that the program allocates, as far as it is traced."""

    __dsl_leaf__ = True

    def __init__(self) -> None:
        self.numbers: set[Any] = set()


class TmemAllocator:
    """The allocation of tensor memory by one warp of a block, for it and other warps (sm_100f).

    - `holding_buf_ptr`: a pointer to an Int32 in shared memory, which gets the address.
    - `barrier_for_retrieve`: the `NamedBarrier` of all threads that call `wait_for_alloc`.
    - `allocator_warp_id`: the warp that allocates and frees.
    - `is_two_cta`: for a pair of blocks, which allocate and free together.
    - `two_cta_tmem_dealloc_mbar_ptr`: for a pair, an Int64 in shared memory: an mbarrier that is
      initialised here, so that the allocator is made before the pipelines' barriers are released.
    - `arch`: an architecture with tensor memory, "sm_100".

    Raises DSLTypeError for a pair without its mbarrier, and for an architecture without tensor
    memory.

        tmem = utils.TmemAllocator(storage.holder, barrier_for_retrieve=barrier)
        tmem.allocate(512)
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(cute.Float32)
        ...                       # the last readers wait for each other
        tmem.relinquish_alloc_permit()
        tmem.free(start)
    """

    def __init__(
        self,
        holding_buf_ptr: Pointer,
        barrier_for_retrieve: NamedBarrier | None = None,
        allocator_warp_id: int = 0,
        is_two_cta: bool = False,
        two_cta_tmem_dealloc_mbar_ptr: Pointer | None = None,
        arch: str = "sm_100",
        *,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        self._most = _max_columns(arch)
        self._holder = _pointer(holding_buf_ptr)
        self._barrier = barrier_for_retrieve
        self._warp = allocator_warp_id
        self._is_two_cta = bool(is_two_cta)
        self._dealloc_barrier = _pointer(two_cta_tmem_dealloc_mbar_ptr)
        self._columns = _Columns()
        if self._is_two_cta:
            if self._dealloc_barrier is None:
                raise DSLTypeError(
                    "a TmemAllocator for two blocks needs an mbarrier to free together",
                    hint="two_cta_tmem_dealloc_mbar_ptr=, a pointer to an Int64 in shared memory",
                )
            initialise_barriers([(self._dealloc_barrier, 1)])
            _fence_barriers()

    def _is_allocator(self) -> Any:
        return arch.make_warp_uniform(arch.warp_idx()) == self._warp

    @takes_location
    def allocate(self, num_columns: int | Integer) -> None:
        """Allocate `num_columns` columns, a power of two from 32 to 512, by the allocator's warp;
        the calls of other warps do nothing.
        """
        self._columns.numbers.add(num_columns)
        with predicated(self._is_allocator()):
            arch.alloc_tmem(num_columns, self._holder, self._is_two_cta)

    def reserve(self, *args: Any, **kwargs: Any) -> Any:
        """Raise NotOfferedError: no public description says what CuTe's own allocator does here."""
        raise NotOfferedError(
            "TmemAllocator.reserve is not offered: no public description says what it does",
            hint="tmem.allocate(columns) allocates; parts of that are at retrieve_ptr() + columns",
        )

    @property
    def num_columns(self) -> int:
        """Raise NotOfferedError: no public description says what CuTe's own allocator counts."""
        raise NotOfferedError(
            "TmemAllocator.num_columns is not offered: no public description says what it counts",
            hint="keep the number that tmem.allocate() gets",
        )

    @takes_location
    def wait_for_alloc(self) -> None:
        """Wait until the address is in shared memory: all threads of `barrier_for_retrieve`."""
        if self._barrier is None:
            arch.sync_threads()
        else:
            self._barrier.arrive_and_wait()

    @takes_location
    def retrieve_ptr(self, dtype: Any = None) -> Pointer:
        """Return the address as a pointer to elements of `dtype`, by default Float32; behind
        `wait_for_alloc`.
        """
        element = Float32 if dtype is None else dtype
        return arch.retrieve_tmem_ptr(element, _ALIGNMENT, self._holder)

    @takes_location
    def relinquish_alloc_permit(self) -> None:
        """Give up the right to allocate more, by the allocator's warp."""
        with predicated(self._is_allocator()):
            arch.relinquish_tmem_alloc_permit(self._is_two_cta)

    @takes_location
    def free(self, tmem_ptr: Pointer, num_columns: int | Integer | None = None) -> None:
        """Free what `allocate` gave, by the allocator's warp. `tmem_ptr` is its address.

        All threads that read or write it have waited for each other before. The blocks of a pair
        wait for each other here. `num_columns` is needed if there were several allocations
        (DSLTypeError otherwise).
        """
        if num_columns is None:
            if len(self._columns.numbers) != 1:
                raise DSLTypeError(
                    "free() needs num_columns: the allocator has made "
                    f"{len(self._columns.numbers) or 'no'} allocations",
                    hint="tmem.free(pointer, columns)",
                )
            (num_columns,) = self._columns.numbers
        with predicated(self._is_allocator()):
            if self._is_two_cta:
                assert self._dealloc_barrier is not None
                peer = arch.block_idx_in_cluster() ^ 1
                arch.sync_warp()
                with arch.elect_one():
                    arch.mbarrier_arrive(self._dealloc_barrier, peer)
                arch.mbarrier_wait(self._dealloc_barrier, 0)
            arch.dealloc_tmem(tmem_ptr, num_columns, self._is_two_cta)


def _max_columns(name: str) -> int:
    return arch.get_max_tmem_alloc_cols(name)


def _fence_barriers() -> None:
    arch.mbarrier_init_fence()


def _pointer(x: Any) -> Any:
    """Return a pointer, that of a field of a `cute.struct` too."""
    return x.ptr if x is not None and not isinstance(x, Pointer) and hasattr(x, "ptr") else x


@takes_location
def get_num_tmem_alloc_cols(
    tmem_tensors: Tensor | Sequence[Tensor], rounding: bool = True, *, arch: str = "sm_100"
) -> int:
    """Return the columns to allocate for tensors that lie behind each other in tensor memory.

    `tmem_tensors` is one tensor or a sequence of them. The result is the sum of what each reaches,
    with `rounding` the next power of two from 32. Raises DSLTypeError if that is more than `arch`
    has.
    """
    tensors = [tmem_tensors] if isinstance(tmem_tensors, Tensor) else list(tmem_tensors)
    columns = sum(tcgen05.find_tmem_tensor_col_offset(tensor) for tensor in tensors)
    most = _max_columns(arch)
    if columns > most:
        raise DSLTypeError(
            f"the tensors take {columns} columns of tensor memory; {arch} has {most}",
            notes=tuple(
                (f"{tcgen05.find_tmem_tensor_col_offset(x)} columns: {x}", None) for x in tensors
            ),
        )
    if not rounding:
        return columns
    return max(MIN_TMEM_COLUMNS, 1 << (columns - 1).bit_length())
