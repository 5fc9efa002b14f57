"""Memory: vectors, address spaces, atomics, and the errors of bad addresses."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl_cute.sim import Memory, MemoryAccessError, UninitializedReadError

TID = "%tid = nvvm.read.ptx.sreg.tid.x : i32\n"


def test_vector_loads_and_stores(kernel, rng):
    body = (
        TID
        + """
    %p = llvm.getelementptr %x[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
    %q = llvm.getelementptr %y[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
    %v = llvm.load %p : !llvm.ptr<1> -> vector<4xf32>
    %w = arith.addf %v, %v : vector<4xf32>
    %s = vector.reduction <add>, %v : vector<4xf32> into f32
    %z = vector.insert %s, %w[2] : f32 into vector<4xf32>
    llvm.store %z, %q : vector<4xf32>, !llvm.ptr<1>
    """
    )
    k = kernel("%x: !llvm.ptr<1>, %y: !llvm.ptr<1>", body)
    x = rng.integers(0, 9, 40 * 4).astype(np.float32)
    _, y = k(1, 40, x, np.zeros_like(x))
    want = 2 * x.reshape(-1, 4)
    want[:, 2] = x.reshape(-1, 4).sum(axis=1)
    np.testing.assert_array_equal(y.reshape(-1, 4), want)


def test_vector_access_with_the_alignment_of_an_element(kernel):
    body = (
        TID
        + """
    %p = llvm.getelementptr %x[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    %v = llvm.load %p {alignment = 2 : i64} : !llvm.ptr<1> -> vector<4xi16>
    %s = vector.reduction <add>, %v : vector<4xi16> into i16
    %q = llvm.getelementptr %y[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.store %s, %q : i16, !llvm.ptr<1>
    """
    )
    k = kernel("%x: !llvm.ptr<1>, %y: !llvm.ptr<1>", body)
    x = np.arange(13, dtype=np.int16)
    _, y = k(1, 10, x, np.zeros(10, np.int16))
    assert y.tolist() == [sum(range(t, t + 4)) for t in range(10)]


def test_packed_and_unaligned_values(kernel):
    body = (
        TID
        + """
    %p = llvm.getelementptr %x[%tid]
      : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.struct<packed (i8, i32)>
    %q = llvm.getelementptr %p[0, 1]
      : (!llvm.ptr<1>) -> !llvm.ptr<1>, !llvm.struct<packed (i8, i32)>
    %v = llvm.load %q {alignment = 1 : i64} : !llvm.ptr<1> -> i32
    %c2 = arith.constant 2 : i32
    %w = arith.muli %v, %c2 : i32
    llvm.store %w, %q {alignment = 1 : i64} : i32, !llvm.ptr<1>
    """
    )
    k = kernel("%x: !llvm.ptr<1>", body)
    records = np.zeros(9, np.dtype([("tag", "i1"), ("value", "<i4")]))
    records["value"] = np.arange(9) * 1000
    records["tag"] = 7
    (got,) = k(1, 9, records)
    assert got["value"].tolist() == [2000 * i for i in range(9)] and (got["tag"] == 7).all()


SHARED = "llvm.mlir.global internal @s() {addr_space = 3 : i32} : !llvm.array<64 x i32>"


@pytest.mark.parametrize("blocks", [1, 3])
def test_generic_pointers_reach_every_space(kernel, blocks):
    body = (
        TID
        + """
    %bid = nvvm.read.ptx.sreg.ctaid.x : i32
    %n = nvvm.read.ptx.sreg.ntid.x : i32
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %s = llvm.mlir.addressof @s : !llvm.ptr<3>
    %l = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
    %sp = llvm.getelementptr %s[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %sg = llvm.addrspacecast %sp : !llvm.ptr<3> to !llvm.ptr
    %b0 = arith.muli %bid, %n : i32
    %i = arith.addi %b0, %tid : i32
    %gp = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %gg = llvm.addrspacecast %gp : !llvm.ptr<1> to !llvm.ptr
    llvm.store %i, %l : i32, !llvm.ptr
    llvm.store %i, %sg : i32, !llvm.ptr
    llvm.store %i, %gg : i32, !llvm.ptr
    %three = arith.constant 3 : i32
    %r = arith.remui %tid, %three : i32
    %is0 = arith.cmpi eq, %r, %zero : i32
    %is1 = arith.cmpi eq, %r, %one : i32
    %t = arith.select %is0, %sg, %gg : !llvm.ptr
    %u = arith.select %is1, %l, %t : !llvm.ptr
    %v = llvm.load %u : !llvm.ptr -> i32
    %w = arith.muli %v, %three : i32
    llvm.store %w, %u : i32, !llvm.ptr
    %a = llvm.load %l : !llvm.ptr -> i32
    %b = llvm.load %sp : !llvm.ptr<3> -> i32
    %c = arith.addi %a, %b : i32
    %yp = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %c, %yp : i32, !llvm.ptr<1>
    """
    )
    k = kernel("%x: !llvm.ptr<1>, %y: !llvm.ptr<1>", body, SHARED)
    n = 50 * blocks
    x, y = k(blocks, 50, np.zeros(n, np.int32), np.zeros(n, np.int32))
    i = np.arange(n)
    third = i % 50 % 3
    np.testing.assert_array_equal(x, np.where(third == 2, 3 * i, i))
    np.testing.assert_array_equal(y, np.where(third == 2, 2 * i, 4 * i))


def test_local_arrays_belong_to_threads(kernel):
    body = (
        TID
        + """
    %four = arith.constant 4 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %l = llvm.alloca %four x i32 : (i32) -> !llvm.ptr<5>
    scf.for %i = %zero to %four step %one : i32 {
      %p = llvm.getelementptr %l[%i] : (!llvm.ptr<5>, i32) -> !llvm.ptr<5>, i32
      %v = arith.muli %i, %tid : i32
      llvm.store %v, %p : i32, !llvm.ptr<5>
    }
    %which = arith.andi %tid, %one : i32
    %q = llvm.getelementptr %l[%which] : (!llvm.ptr<5>, i32) -> !llvm.ptr<5>, i32
    %r = llvm.load %q : !llvm.ptr<5> -> i32
    %last = llvm.getelementptr %l[3] : (!llvm.ptr<5>) -> !llvm.ptr<5>, i32
    %s = llvm.load %last : !llvm.ptr<5> -> i32
    %t = arith.addi %r, %s : i32
    %o = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %t, %o : i32, !llvm.ptr<1>
    """
    )
    k = kernel("%out: !llvm.ptr<1>", body)
    (out,) = k(1, 40, np.zeros(40, np.int32))
    assert out.tolist() == [t * (t % 2) + 3 * t for t in range(40)]


def test_constant_tables_and_variables(kernel):
    table = (
        "llvm.mlir.global internal constant @t(dense<[10, 20, 30]> : tensor<3xi32>)"
        " {addr_space = 4 : i32} : !llvm.array<3 x i32>"
        " llvm.mlir.global internal @v(7 : i32) {addr_space = 1 : i32} : i32"
    )
    body = (
        TID
        + """
    %t = llvm.mlir.addressof @t : !llvm.ptr<4>
    %v = llvm.mlir.addressof @v : !llvm.ptr<1>
    %p = llvm.getelementptr %t[0, %tid] : (!llvm.ptr<4>, i32) -> !llvm.ptr<4>, !llvm.array<3 x i32>
    %x = llvm.load %p : !llvm.ptr<4> -> i32
    %y = llvm.load %v : !llvm.ptr<1> -> i32
    %z = arith.addi %x, %y : i32
    %o = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %z, %o : i32, !llvm.ptr<1>
    """
    )
    k = kernel("%out: !llvm.ptr<1>", body, table)
    assert k(1, 3, np.zeros(3, np.int32))[0].tolist() == [17, 27, 37]


def test_pointers_kept_in_memory(kernel):
    body = (
        TID
        + """
    %pp = llvm.getelementptr %table[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i64
    %p = llvm.load %pp : !llvm.ptr<1> -> !llvm.ptr<1>
    %v = llvm.load %p : !llvm.ptr<1> -> f32
    %o = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %v, %o : f32, !llvm.ptr<1>
    """
    )
    k = kernel("%table: !llvm.ptr<1>, %out: !llvm.ptr<1>", body)
    parts = [np.full(1, i + 0.5, np.float32) for i in range(6)]
    memory = Memory()
    table = np.array([memory.add_array(p, f"part{i}") for i, p in enumerate(parts)], np.int64)
    out = np.zeros(6, np.float32)
    args = [memory.add_array(table, "table"), memory.add_array(out, "out")]
    k.sim.launch(1, 6, args, memory=memory)
    assert out.tolist() == [i + 0.5 for i in range(6)]


def test_dynamic_shared_memory_follows_the_static(kernel):
    outside = SHARED + (
        " llvm.mlir.global external @dyn() {addr_space = 3 : i32, alignment = 1024 : i64}"
        " : !llvm.array<0 x i8>"
    )
    body = (
        TID
        + """
    %s = llvm.mlir.addressof @s : !llvm.ptr<3>
    %d = llvm.mlir.addressof @dyn : !llvm.ptr<3>
    %a = llvm.ptrtoint %d : !llvm.ptr<3> to i64
    %b = llvm.ptrtoint %s : !llvm.ptr<3> to i64
    %p = llvm.getelementptr %d[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %tid, %p : i32, !llvm.ptr<3>
    %diff = arith.subi %a, %b : i64
    llvm.store %diff, %out : i64, !llvm.ptr<1>
    """
    )
    k = kernel("%out: !llvm.ptr<1>", body, outside)
    # `s` is aligned to 4 bytes, `dyn` to 1024, and neither to more.
    assert k(1, 32, np.zeros(1, np.int64), smem=128)[0].tolist() == [2 * 1024 - 4]
    with pytest.raises(MemoryAccessError, match=r"byte offset 64 \(element 16\) of `dyn`"):
        k.once(1, 32, [np.zeros(1, np.int64)], smem=64)


OPERATIONS = {
    "xchg": lambda a, b: b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "_and": lambda a, b: a & b,
    "_or": lambda a, b: a | b,
    "_xor": lambda a, b: a ^ b,
    "max": max,
    "min": min,
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("used", [True, False])
def test_atomics_act_as_lanes_one_after_another(kernel, rng, operation, used):
    keep = "llvm.store %old, %o : i32, !llvm.ptr<1>" if used else ""
    body = (
        TID
        + f"""
    %w = llvm.getelementptr %where[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %i = llvm.load %w : !llvm.ptr<1> -> i32
    %v = llvm.getelementptr %value[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %x = llvm.load %v : !llvm.ptr<1> -> i32
    %p = llvm.getelementptr %cells[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %old = llvm.atomicrmw {operation} %p, %x monotonic : !llvm.ptr<1>, i32
    %o = llvm.getelementptr %olds[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    {keep}
    """
    )
    k = kernel(
        "%where: !llvm.ptr<1>, %value: !llvm.ptr<1>, %cells: !llvm.ptr<1>, %olds: !llvm.ptr<1>",
        body,
    )
    where = rng.integers(0, 5, 64).astype(np.int32)
    value, cells = rng.integers(-99, 99, 64).astype(np.int32), np.arange(5, dtype=np.int32) * 9
    _, _, got, olds = k(1, 64, where, value, cells, np.zeros(64, np.int32))
    want, found = cells.tolist(), []
    for i, x in zip(where.tolist(), value.tolist(), strict=True):
        found.append(want[i])
        want[i] = OPERATIONS[operation](want[i], x)
    assert got.tolist() == want
    assert not used or olds.tolist() == found


def test_float_atomics_and_compare_and_swap(kernel):
    body = (
        TID
        + """
    %one = arith.constant 1.0 : f32
    %o = llvm.atomicrmw fadd %sum, %one monotonic : !llvm.ptr<1>, f32
    %t1 = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %mine = arith.addi %tid, %t1 : i32
    %r = llvm.cmpxchg %lock, %zero, %mine acq_rel monotonic : !llvm.ptr<1>, i32
    %won = llvm.extractvalue %r[1] : !llvm.struct<(i32, i1)>
    %was = llvm.extractvalue %r[0] : !llvm.struct<(i32, i1)>
    scf.if %won {
      llvm.store %was, %winner : i32, !llvm.ptr<1>
    }
    """
    )
    k = kernel("%sum: !llvm.ptr<1>, %lock: !llvm.ptr<1>, %winner: !llvm.ptr<1>", body)
    total, lock, winner = k(
        1, 70, np.zeros(1, np.float32), np.zeros(1, np.int32), np.full(1, 9, np.int32)
    )
    assert (total[0], lock[0], winner[0]) == (70, 1, 0)


# Errors ----------------------------------------------------------------------------------------

LOAD = (
    TID
    + """
%p = llvm.getelementptr %x[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
%v = llvm.load %p : !llvm.ptr<1> -> f32
llvm.store %v, %p : f32, !llvm.ptr<1>
"""
)


@pytest.mark.parametrize("width", ["warp", "block", "grid"])
def test_out_of_bounds_names_line_thread_argument_and_index(kernel, width):
    k = kernel("%x: !llvm.ptr<1>", LOAD)
    with pytest.raises(MemoryAccessError) as error:
        k.once((1, 2), (8, 8), [np.zeros(5, np.float32)], width=width)
    text = str(error.value)
    assert "out-of-bounds read of 4 bytes at byte offset 20 (element 5) of `x`\n" in text
    assert "note: `x` has 20 bytes (5 elements of f32)" in text
    assert "note: in thread (5, 0, 0) of block (0, 0, 0)" in text
    assert "kernel.mlir:4" in text and "%v = llvm.load" in text and "^^^" in text
    assert error.value.where.thread == (5, 0, 0)
    assert error.value.span.line == 4


def test_a_negative_index(kernel):
    body = LOAD.replace("%x[%tid]", "%x[-1]").replace("(!llvm.ptr<1>, i32)", "(!llvm.ptr<1>)")
    k = kernel("%x: !llvm.ptr<1>", body)
    with pytest.raises(MemoryAccessError, match=r"byte offset -4 \(element -1\) of `x`"):
        k.once(1, 1, [np.zeros(5, np.float32)])


def test_an_overrun_into_another_argument_is_an_error(kernel):
    both = np.zeros(8, np.float32)
    k = kernel("%x: !llvm.ptr<1>", LOAD)
    memory = Memory()
    address = memory.add_array(both[:4], "x")
    memory.add_array(both[4:], "y")
    with pytest.raises(MemoryAccessError, match=r"element 4\) of `x`"):
        k.sim.launch(1, 8, [address], memory=memory)


def test_the_same_array_twice_may_be_used_through_both(kernel):
    both = np.arange(8, dtype=np.float32)
    k = kernel("%x: !llvm.ptr<1>", LOAD)
    memory = Memory()
    memory.add_array(both[:4], "x")
    address = memory.add_array(both, "y")
    k.sim.launch(1, 8, [address], memory=memory)


def test_writing_to_a_read_only_argument(kernel):
    k = kernel("%x: !llvm.ptr<1>", LOAD)
    with pytest.raises(MemoryAccessError, match=r"write to `x`, which is read-only\n"):
        k.once(1, 4, [np.zeros(5, np.float32)], read_only=("x",))


def test_a_misaligned_vector_access(kernel):
    body = LOAD.replace("-> f32", "-> vector<4xf32>").replace(
        "store %v, %p : f32", "store %v, %p : vector<4xf32>"
    )
    k = kernel("%x: !llvm.ptr<1>", body)
    x = np.zeros(64, np.float32)
    x = x[(-x.ctypes.data % 16) // 4 :][:40]
    with pytest.raises(MemoryAccessError) as error:
        k.once(1, 8, [x])
    text = str(error.value)
    assert "must start at a multiple of 16, and starts 4 bytes after" in text
    assert "byte offset 4 (element 1) of `x`" in text and "thread (1, 0, 0)" in text


def test_null_and_wild_pointers(kernel):
    body = "%v = llvm.load %p : !llvm.ptr<1> -> f32\nllvm.store %v, %p : f32, !llvm.ptr<1>"
    k = kernel("%p: !llvm.ptr<1>", "\n" + body)
    with pytest.raises(MemoryAccessError, match="read of 4 bytes through a null pointer"):
        k.sim.launch(1, 1, [0], memory=Memory())
    with pytest.raises(MemoryAccessError, match="0x1000, which belongs to no argument") as caught:
        k.sim.launch(1, 1, [0x1000], memory=Memory())
    assert "with basedsl_cute.sim.reachable(array, ...):" in str(caught.value)
    memory = Memory()
    x = np.zeros(4, np.float32)
    end = memory.add_array(x, "x") + 16
    with pytest.raises(
        MemoryAccessError, match=r"the closest is byte offset 16 \(element 4\) of `x`"
    ):
        k.sim.launch(1, 1, [end], memory=memory)


SHARED_READ = (
    TID
    + """
%s = llvm.mlir.addressof @s : !llvm.ptr<3>
%p = llvm.getelementptr %s[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
%c = arith.constant 10 : i32
%in = arith.cmpi ne, %tid, %c : i32
scf.if %in {
  llvm.store %tid, %p : i32, !llvm.ptr<3>
}
gpu.barrier
%v = llvm.load %p : !llvm.ptr<3> -> i32
%o = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
llvm.store %v, %o : i32, !llvm.ptr<1>
"""
)


@pytest.mark.parametrize("width", ["warp", "block", "grid"])
def test_reading_shared_memory_that_nobody_wrote(kernel, width):
    k = kernel("%out: !llvm.ptr<1>", SHARED_READ, SHARED)
    out = np.zeros(64, np.int32)
    with pytest.raises(UninitializedReadError) as error:
        k.once(2, 40, [out], width=width)
    text = str(error.value)
    assert "no thread has written, at byte offset 40 (element 10) of `s`\n" in text
    assert "note: `s` has 256 bytes" in text
    assert "thread (10, 0, 0) of block (0, 0, 0)" in text and "kernel.mlir:11" in text
    k.once(2, 40, [out], width=width, check_uninitialized=False)
    assert out[:10].tolist() == list(range(10)) and out[10] == -1


def test_every_block_starts_with_shared_memory_unwritten(kernel):
    body = SHARED_READ.replace(
        "%c = arith.constant 10 : i32", "%c = nvvm.read.ptx.sreg.ctaid.x : i32"
    )
    body = body.replace("cmpi ne, %tid, %c", "cmpi uge, %tid, %c")
    k = kernel("%out: !llvm.ptr<1>", body, SHARED)
    for width in k.sim.widths:
        with pytest.raises(
            UninitializedReadError, match=r"thread \(0, 0, 0\) of block \(1, 0, 0\)"
        ):
            k.once(3, 40, [np.zeros(64, np.int32)], width=width)
