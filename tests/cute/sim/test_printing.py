"""printf: C's conversions, and an order that does not depend on how lanes are grouped."""

from __future__ import annotations

import pytest

from basedsl_cute.sim.machine.output import format_c

CASES = [
    ("plain %% text", [], [], "plain % text"),
    ("%d %i", [-5, 7], [32, 32], "-5 7"),
    ("%u", [-1], [32], "4294967295"),
    ("%lu", [-1], [64], "18446744073709551615"),
    ("%llu", [-1], [32], "18446744073709551615"),
    ("%d", [2**40 + 1], [64], "1099511627777"),
    ("%hhd %hd", [300, 70000], [32, 32], "44 4464"),
    ("%ld %lld", [-(2**40), 2**40], [64, 64], "-1099511627776 1099511627776"),
    ("%x %X %o", [255, -1, 8], [32, 32, 32], "ff FFFFFFFF 10"),
    ("%#x %#o", [255, 8], [32, 32], "0xff 010"),
    ("[%5d|%-5d|%05d|%+d]", [42, 42, 42, 42], [32] * 4, "[   42|42   |00042|+42]"),
    ("%f %.2f %8.3f", [1.5, 2.345, 3.14159], [64] * 3, "1.500000 2.35    3.142"),
    ("%e %g %G", [12345.678, 1e-10, 1e20], [64] * 3, "1.234568e+04 1e-10 1E+20"),
    ("%c%c", [104, 105], [32, 32], "hi"),
    ("%p", [4096], [64], "0x1000"),
    ("%*d %.*f", [6, 42, 1, 2.55], [32, 32, 32, 64], "    42 2.5"),
    ("%f %f", [float("nan"), float("inf")], [64, 64], "nan inf"),
    ("%d and no argument: %d", [1], [32], "1 and no argument: 0"),
]


@pytest.mark.parametrize(("fmt", "args", "bits", "want"), CASES, ids=[c[0] for c in CASES])
def test_c_conversions(fmt, args, bits, want):
    assert format_c(fmt, args, bits) == want


BODY = """
%tid = nvvm.read.ptx.sreg.tid.x : i32
%bid = nvvm.read.ptx.sreg.ctaid.x : i32
%f = arith.sitofp %tid : i32 to f32
%two = arith.constant 2 : i32
%few = arith.cmpi ult, %tid, %two : i32
gpu.printf "a %d.%d\\n", %bid, %tid : i32, i32
gpu.barrier
scf.if %few {
  gpu.printf "b %d.%d %.1f\\n", %bid, %tid, %f : i32, i32, f32
}
"""


@pytest.mark.parametrize("width", ["warp", "block", "grid"])
def test_lines_come_by_block_barrier_and_warp(kernel, capsys, width):
    kernel("", BODY).once(2, 34, [], width=width)
    want = []
    for block in range(2):
        want += [f"a {block}.{t}" for t in range(34)]
        want += [f"b {block}.{t} {t}.0" for t in range(2)]
    assert capsys.readouterr().out.splitlines() == want


def test_output_before_an_error_is_written(kernel, capsys):
    body = 'gpu.printf "here\\n"\n%f = arith.constant false\ncf.assert %f, "no"'
    with pytest.raises(Exception, match="assertion failed: no"):
        kernel("", "\n" + body).once(1, 2, [])
    assert capsys.readouterr().out == "here\nhere\n"


def test_vprintf_reads_its_packed_buffer(kernel, capsys):
    outside = (
        "llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32 "
        'llvm.mlir.global internal constant @fmt("%d %f %lld\\0A\\00") {addr_space = 0 : i32}'
    )
    body = """
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %one = arith.constant 1 : i32
    %fmt = llvm.mlir.addressof @fmt : !llvm.ptr
    %b = llvm.alloca %one x !llvm.struct<(i32, f64, i64)> : (i32) -> !llvm.ptr
    %half = arith.constant 0.5 : f64
    %big = arith.constant 1099511627776 : i64
    %p = llvm.getelementptr %b[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i32, f64, i64)>
    %q = llvm.getelementptr %b[0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i32, f64, i64)>
    llvm.store %tid, %b : i32, !llvm.ptr
    llvm.store %half, %p : f64, !llvm.ptr
    llvm.store %big, %q : i64, !llvm.ptr
    %n = llvm.call @vprintf(%fmt, %b) : (!llvm.ptr, !llvm.ptr) -> i32
    """
    kernel("", body, outside).once(1, 2, [])
    assert capsys.readouterr().out == "0 0.500000 1099511627776\n1 0.500000 1099511627776\n"
