"""Addresses of a kernel's variables."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl_cute.sim import MissingRuleError
from basedsl_cute.sim.machine.memory import LOCAL_BASE, SHARED_BASE
from basedsl_cute.sim.translate.placement import assign_addresses


def uses(*names):
    """The body of a kernel that uses these shared variables."""
    return "\n".join(f"%{x} = llvm.mlir.addressof @{x} : !llvm.ptr<3>" for x in names)


def test_shared_variables_lie_one_after_another_as_they_are_aligned(record):
    outside = """
    llvm.mlir.global internal @k_a_0() {addr_space = 3 : i32} : !llvm.array<5 x i8>
    llvm.mlir.global internal @k_b_0() {addr_space = 3 : i32, alignment = 64 : i64}
      : !llvm.array<3 x i32>
    llvm.mlir.global internal @other() {addr_space = 3 : i32} : i16
    llvm.mlir.global external @all() {addr_space = 3 : i32, alignment = 32 : i64}
      : !llvm.array<0 x i8>
    llvm.mlir.global internal @of_another_kernel() {addr_space = 3 : i32} : i64
    """
    found = assign_addresses(record("", uses("k_a_0", "k_b_0", "other", "all"), outside))
    offsets = {name: address - SHARED_BASE for name, address in found.addresses.items()}
    assert offsets == {"k_a_0": 0, "k_b_0": 64, "other": 76, "all": 96}
    assert found.static_size == 78
    assert found.dynamic_base == SHARED_BASE + 96
    names = [(name, size) for _, name, size in found.variables]
    assert names == [("a", 5), ("b", 12), ("other", 2), ("all", 0)]


def test_no_variable_is_aligned_better_than_it_asks(record):
    outside = "".join(
        f"""llvm.mlir.global internal @k_{name}_0()
        {{addr_space = 3 : i32, alignment = {align} : i64}}
        : !llvm.array<48 x i8>
        """
        for name, align in (("a", 16), ("b", 128), ("c", 8))
    )
    kernel = record("", uses("k_a_0", "k_b_0", "k_c_0"), outside)
    plain = assign_addresses(kernel)
    orders = set()
    for placement in (1, 2, 3):
        found = assign_addresses(kernel, placement)
        assert found.shared_size(0) == plain.shared_size(0) <= found.shared_span(0)
        for name, align in (("k_a_0", 16), ("k_b_0", 128), ("k_c_0", 8)):
            assert found.addresses[name] % (2 * align) == align
        orders.add(tuple(name for _, name, _ in found.variables))
        ends = [at + size for at, _, size in found.variables]
        assert all(end <= at for end, (at, _, _) in zip(ends, found.variables[1:], strict=False))
    assert len(orders) == 3


def test_parts_of_a_struct_have_names_of_their_own(record):
    outside = """llvm.mlir.global internal @k_s_0()
      {addr_space = 3 : i32, cute.fields = "x:0;y:16"} : !llvm.array<24 x i8>"""
    found = assign_addresses(record("", uses("k_s_0"), outside))
    assert found.variables == [(SHARED_BASE, "s.x", 16), (SHARED_BASE + 16, "s.y", 8)]


def test_constants_hold_their_initial_values(record):
    outside = """
    llvm.mlir.global internal constant @table(dense<[1, -2, 3]> : tensor<3xi16>)
      {addr_space = 4 : i32, alignment = 64 : i64} : !llvm.array<3 x i16>
    llvm.mlir.global internal @counter(7 : i32) {addr_space = 1 : i32} : i32
    llvm.mlir.global internal constant @text("ab\\00") {addr_space = 4 : i32} : !llvm.array<3 x i8>
    """
    found = assign_addresses(record("", "", outside))
    assert found.data["table"].view(np.int16).tolist() == [1, -2, 3]
    assert found.data["counter"].view(np.int32).tolist() == [7]
    assert found.data["text"].tobytes() == b"ab\0"
    assert found.address_of("table") % 64 == 0
    assert found.writable == {"counter"}


def test_local_arrays_that_registers_cannot_hold_count_as_local_memory(record, ops):
    body = """
    %three = arith.constant 3 : i32
    %a = llvm.alloca %three x f32 : (i32) -> !llvm.ptr
    %b = llvm.alloca %three x f32 {alignment = 16 : i64} : (i32) -> !llvm.ptr
    %v = llvm.load %a : !llvm.ptr -> f32
    llvm.store %b, %out : !llvm.ptr, !llvm.ptr<1>
    """
    kernel = record("%out: !llvm.ptr<1>", body)
    found = assign_addresses(kernel)
    a, b = (op.results[0].number for op in ops(kernel, "llvm.alloca"))
    assert found.local == {a: LOCAL_BASE, b: LOCAL_BASE + 16}
    assert list(found.registers) == [a]
    assert (found.registers[a].size, found.registers[a].itemsize) == (12, 4)
    assert found.local_size == 28


def test_an_array_of_unknown_size(record):
    body = "%a = llvm.alloca %n x f32 : (i32) -> !llvm.ptr"
    with pytest.raises(MissingRuleError, match="of a size that is not constant"):
        assign_addresses(record("%n: i32", body))
