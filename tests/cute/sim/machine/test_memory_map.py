"""Memory maps: which variable an address belongs to, sizes, and constants after pickling."""

from __future__ import annotations

import pickle

import numpy as np

from basedsl_cute.sim import Memory
from basedsl_cute.sim.machine.memory import SHARED_BASE
from basedsl_cute.sim.machine.memory_map import MemoryMap, aligned_zeros


def two_variables() -> MemoryMap:
    """64 bytes of `a`, 32 of `b`, then the dynamic array from byte 128 on."""
    memory_map = MemoryMap()
    memory_map.addresses = {"k_a": SHARED_BASE, "k_b": SHARED_BASE + 64}
    memory_map.variables = [
        (SHARED_BASE, "a", 64),
        (SHARED_BASE + 64, "b", 32),
        (SHARED_BASE + 128, "dynamic", 0),
    ]
    memory_map.static_size = 96
    memory_map.dynamic_base = SHARED_BASE + 128
    return memory_map


def test_shared_size_counts_the_gap_before_the_dynamic_array():
    memory_map = two_variables()
    assert memory_map.shared_size(0) == 96
    assert memory_map.shared_size(10) == 138


def test_the_variable_of_an_address():
    memory_map = two_variables()
    found = {
        offset: memory_map.variable_at(SHARED_BASE + offset, 40) for offset in (0, 63, 64, 100, 130)
    }
    assert found == {
        0: ("a", SHARED_BASE, 64),
        63: ("a", SHARED_BASE, 64),
        64: ("b", SHARED_BASE + 64, 32),
        100: ("b", SHARED_BASE + 64, 32),  # in the gap behind it
        130: ("dynamic", SHARED_BASE + 128, 40),
    }


def test_an_address_before_every_variable():
    assert MemoryMap().variable_at(SHARED_BASE, 24) == ("shared memory", SHARED_BASE, 24)


def test_aligned_zeros():
    for align in (1, 16, 256):
        raw = aligned_zeros(48, align)
        assert raw.ctypes.data % max(align, 16) == 0
        assert raw.shape == (48,)
        assert not raw.any()


def test_constants_keep_their_bytes_and_alignment_when_pickled():
    memory_map = MemoryMap()
    raw = memory_map.data["table"] = aligned_zeros(8, 512)
    raw[:] = np.arange(8)
    memory_map.aligns["table"] = 512
    memory_map.local[3] = 16
    other = pickle.loads(pickle.dumps(memory_map))
    assert other.differs_by_process("table")
    assert other.address_of("table") % 512 == 0
    assert other.address_of("table") != memory_map.address_of("table")
    assert other.data["table"].tolist() == list(range(8))
    assert other.local == {3: 16}
    memory = Memory()
    other.add_variables(memory)
    segment = memory.find(other.address_of("table"))
    assert segment is not None
    assert (segment.name, segment.size, segment.writable) == ("table", 8, False)
