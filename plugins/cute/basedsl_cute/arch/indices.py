"""The position of a thread: PTX ISA section 10, "Special Registers" (%tid, %ctaid, %ntid,
%nctaid).
"""

from __future__ import annotations

from typing import Any

from basedsl import Int32
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.tensors.kernel_scope import in_kernel

FULL_MASK = 0xFFFFFFFF


def read_register(name: str, what: str) -> Int32:
    """Return the special register `name`, read by its op of the nvvm dialect."""
    trace = in_kernel(what)
    i32 = trace.ir.IntegerType.get_signless(32)
    op = trace.emit(trace.ir.Operation.create, f"nvvm.read.ptx.sreg.{name}", results=[i32])
    return Int32.from_value(op.result)


def _triple(register: str, what: str) -> tuple[Any, Any, Any]:
    x, y, z = (read_register(f"{register}.{axis}", what) for axis in "xyz")
    return x, y, z


@takes_location
def thread_idx() -> tuple[Int32, Int32, Int32]:
    """Return the index (x, y, z) of the thread in its block (`%tid`)."""
    return _triple("tid", "thread_idx()")


@takes_location
def block_idx() -> tuple[Int32, Int32, Int32]:
    """Return the index (x, y, z) of the block in the grid (`%ctaid`)."""
    return _triple("ctaid", "block_idx()")


@takes_location
def block_dim() -> tuple[Int32, Int32, Int32]:
    """Return the number of threads of a block in x, y and z (`%ntid`)."""
    return _triple("ntid", "block_dim()")


@takes_location
def grid_dim() -> tuple[Int32, Int32, Int32]:
    """Return the number of blocks of the grid in x, y and z (`%nctaid`)."""
    return _triple("nctaid", "grid_dim()")


@takes_location
def lane_idx() -> Int32:
    """Return the lane of the thread in its warp, 0 to 31 (`%laneid`)."""
    return read_register("laneid", "lane_idx()")


@takes_location
def warp_idx() -> Int32:
    """Return the number of the thread's warp in its block: its linear index, x fastest, over 32.

    The compiler does not know that it is the same in all lanes: `make_warp_uniform(warp_idx())`
    says so.
    """
    x, y, z = thread_idx()
    nx, ny, _ = block_dim()
    warp: Int32 = (x + nx * (y + ny * z)) // WARP_SIZE
    return warp


@takes_location
def dynamic_smem_size() -> Int32:
    """Return the bytes of dynamic shared memory that the launch gives each block
    (`%dynamic_smem_size`).
    """
    return read_register("dynamic.smem.size", "dynamic_smem_size()")


get_dyn_smem_size = dynamic_smem_size  # an older spelling
