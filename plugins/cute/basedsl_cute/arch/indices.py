"""Where a thread is: PTX ISA section 10, "Special Registers" (%tid, %ctaid, %ntid, %nctaid)."""

from __future__ import annotations

from typing import Any

from basedsl.numeric import Int32
from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.tensors.kernel_scope import in_kernel

FULL_MASK = 0xFFFFFFFF


def read_register(name: str, what: str) -> Int32:
    """The special register `name`, through its op of the nvvm dialect."""
    trace = in_kernel(what)
    i32 = trace.ir.IntegerType.get_signless(32)
    op = trace.emit(trace.ir.Operation.create, f"nvvm.read.ptx.sreg.{name}", results=[i32])
    return Int32.from_value(op.result)


def _triple(register: str, what: str) -> tuple[Any, Any, Any]:
    x, y, z = (read_register(f"{register}.{axis}", what) for axis in "xyz")
    return x, y, z


def thread_idx() -> tuple[Any, Any, Any]:
    """The thread's (x, y, z) in its block."""
    return _triple("tid", "thread_idx()")


def block_idx() -> tuple[Any, Any, Any]:
    """The block's (x, y, z) in the grid."""
    return _triple("ctaid", "block_idx()")


def block_dim() -> tuple[Any, Any, Any]:
    """Threads of a block in x, y, z."""
    return _triple("ntid", "block_dim()")


def grid_dim() -> tuple[Any, Any, Any]:
    """Blocks of the grid in x, y, z."""
    return _triple("nctaid", "grid_dim()")


def lane_idx() -> Any:
    """The thread's lane in its warp, 0 to 31."""
    return read_register("laneid", "lane_idx()")


def warp_idx() -> Any:
    """The thread's warp in its block, counted along x, then y, then z."""
    x, y, z = thread_idx()
    nx, ny, _ = block_dim()
    return (x + nx * (y + ny * z)) // WARP_SIZE


def dynamic_smem_size() -> Any:
    """The dynamic shared memory of the launch, in bytes."""
    return read_register("dynamic.smem.size", "dynamic_smem_size()")


get_dyn_smem_size = dynamic_smem_size  # an older spelling
