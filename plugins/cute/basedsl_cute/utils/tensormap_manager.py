"""`TensorMapManager`: tensor maps that a kernel keeps in global memory and changes as it runs.

manager = TensorMapManager(TensorMapUpdateMode.SMEM, 128)
at = manager.get_tensormap_ptr(maps.iterator + 16 * block)
manager.init_tensormap_from_atom(atom, scratch, 0)              # warp 0
manager.fence_tensormap_initialization()
manager.update_tensormap((tensor,), (atom,), (at,), 0, (scratch,))
manager.fence_tensormap_update(at)                              # who copies by it
cute.copy(atom, src, dst, tma_bar_ptr=barrier, tma_desc_ptr=at)
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.hardware.tensor_map_format import BYTES
from basedsl_cute.nvgpu import tma
from basedsl_cute.tensors.pointer import Pointer


class TensorMapUpdateMode(enum.Enum):
    """The memory in which a tensor map is changed: global memory itself, or shared memory, then
    copied.

    In shared memory a change takes less time; it needs 128 bytes for each map.
    """

    GMEM = "gmem"
    SMEM = "smem"


@dataclass(frozen=True)
class TensorMapManager:
    """Tensor maps of `bytes_per_tensormap` (128) bytes each, changed by one warp (sm_90a).

    `tensormap_update_mode` says whether a change is made in global or in shared memory. Raises
    DSLTypeError for another size.
    """

    tensormap_update_mode: TensorMapUpdateMode
    bytes_per_tensormap: int = BYTES

    def __post_init__(self) -> None:
        if self.bytes_per_tensormap != BYTES:
            raise DSLTypeError(f"a tensor map has {BYTES} bytes, not {self.bytes_per_tensormap}")

    @takes_location
    def get_tensormap_ptr(self, ptr: Pointer, address_space: Any = None) -> Pointer:
        """Return `ptr`, checked to be the place of a tensor map in global or shared memory.

        `address_space` is accepted and not used. Raises DSLTypeError for other memory.
        """
        if not isinstance(ptr, Pointer) or ptr.space not in ("gmem", "smem"):
            raise DSLTypeError(f"a tensor map lies in global or shared memory, not at {ptr}")
        return ptr

    @takes_location
    def init_tensormap_from_atom(self, copy_atom: Any, dst_ptr: Pointer, warp_id: int) -> None:
        """Copy the tensor map of `copy_atom` to `dst_ptr`, by warp `warp_id`."""
        with predicated(_warp() == warp_id):
            tma.copy_tensormap(copy_atom, dst_ptr)
            arch.sync_warp()

    @takes_location
    def fence_tensormap_initialization(self) -> None:
        """Make maps that were initialised in global memory usable: an acquire-release fence of the
        block.
        """
        if self.tensormap_update_mode is TensorMapUpdateMode.GMEM:
            arch.fence_acq_rel_cta()

    @takes_location
    def update_tensormap(
        self,
        tensor_gmem: Sequence[Any],
        tma_copy_atom: Sequence[Any],
        tensormap_gmem_ptr: Sequence[Pointer],
        warp_id: int,
        tensormap_smem_ptr: Sequence[Pointer] = (),
    ) -> None:
        """Change tensor maps to describe other tensors, and release them, by warp `warp_id`.

        - `tensor_gmem`: the new tensors, of the modes and element types of the atoms' own.
        - `tma_copy_atom`: the TMA atoms whose maps they are.
        - `tensormap_gmem_ptr`: the maps in global memory.
        - `tensormap_smem_ptr`: with `TensorMapUpdateMode.SMEM`, a copy of each in shared memory.
        """
        in_smem = self.tensormap_update_mode is TensorMapUpdateMode.SMEM
        places = tensormap_smem_ptr if in_smem else tensormap_gmem_ptr
        with predicated(_warp() == warp_id):
            arch.sync_warp()  # all lanes have read what the last change left in shared memory
            with arch.elect_one():
                for tensor, atom, at in zip(tensor_gmem, tma_copy_atom, places, strict=True):
                    tma.update_tma_descriptor(atom, tensor, at)
            arch.sync_warp()
            if in_smem:
                for target, source in zip(tensormap_gmem_ptr, places, strict=True):
                    tma.cp_fence_tma_desc_release(target, source)
            else:
                tma.fence_tma_desc_release()

    @takes_location
    def fence_tensormap_update(self, tensormap_ptr: Pointer) -> None:
        """Have this thread's TMA copies by the map at `tensormap_ptr` use what was released
        there.
        """
        tma.fence_tma_desc_acquire(tensormap_ptr)


def _warp() -> Any:
    return arch.make_warp_uniform(arch.warp_idx())
