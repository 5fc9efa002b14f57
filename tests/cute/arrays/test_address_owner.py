"""The arrays that kernels reach by addresses which they read from memory, on the simulator."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.arrays.address_owner import owners_of
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.sim.errors import MemoryAccessError


@cute.kernel
def add_groups(addresses: cute.Tensor, out: cute.Tensor):
    """Each block adds the 8 numbers of its group."""
    block = cute.arch.block_idx()[0]
    ptr = cute.make_ptr(cute.Float32, addresses[block], cute.AddressSpace.gmem, assumed_align=4)
    numbers = cute.make_tensor(ptr, cute.make_layout(8))
    out[block] = numbers.load().reduce(cute.ReductionOp.ADD, cute.Float32(0.0), 0)


@cute.jit
def host(addresses: cute.Tensor, out: cute.Tensor):
    add_groups(addresses, out).launch(grid=(cute.size(out), 1, 1), block=(1, 1, 1))


def test_a_kernel_reads_arrays_of_its_callers(sim):
    problems = [{"a": [np.arange(8, dtype=np.float32) + i]} for i in range(3)]
    addresses = np.array([p["a"][0].ctypes.data for p in problems])
    out = np.zeros(3, np.float32)
    host(from_dlpack(addresses), from_dlpack(out))
    assert out.tolist() == [28, 36, 44]


def test_an_address_that_no_variable_holds(sim):
    def elsewhere():
        buffer = np.zeros(8, np.float32)
        held.append(buffer.ctypes.data)
        return lambda: buffer  # keeps it out of sight

    held: list[int] = []
    keeps = elsewhere()
    with pytest.raises(MemoryAccessError, match="belongs to no argument"):
        host(from_dlpack(np.array(held)), from_dlpack(np.zeros(1, np.float32)))
    assert keeps().sum() == 0


def test_small_numbers_are_no_addresses():
    assert owners_of(np.arange(1000)) == []
    array = np.zeros(4)
    inside = array.ctypes.data + 16
    assert owners_of(np.array([inside, 5])) == [(array.ctypes.data, array.ctypes.data + 32)]
