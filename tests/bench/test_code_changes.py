"""Differences of code that are explained: each rule undoes its change, and nothing else."""

import importlib.util
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def changes(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    spec = importlib.util.spec_from_file_location("code_changes", BENCH / "code_changes.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "code_changes", module)
    spec.loader.exec_module(module)
    return module


def function(body):
    return "func.func @f(%a: f32, %b: f32, %i: i32, %p: !llvm.ptr) {\n" + body + "\n}\n"


SAME = {
    "order": (
        "%0 = arith.mulf %a, %b : f32\n%1 = arith.mulf %a, %b : f32\nllvm.store %1, %p : f32",
        "%7 = arith.mulf %a, %b : f32\nllvm.store %7, %p : f32",
    ),
    "contraction": (
        "%0 = arith.mulf %a, %b : f32\n%1 = arith.subf %a, %0 : f32\nllvm.store %1, %p : f32",
        "%0 = arith.negf %a : f32\n%1 = math.fma %0, %b, %a : f32\nllvm.store %1, %p : f32",
    ),
    "addresses": (
        "%c = arith.constant 4 : i32\n%0 = arith.addi %i, %c : i32\n"
        "%1 = llvm.getelementptr %p[%0] : (!llvm.ptr, i32) -> !llvm.ptr, f32\n"
        "llvm.store %a, %1 : f32",
        "%0 = llvm.getelementptr %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32\n"
        "%1 = llvm.getelementptr %0[16] : (!llvm.ptr) -> !llvm.ptr, i8\n"
        "llvm.store %a, %1 : f32",
    ),
    "exp2": (
        '%0 = llvm.inline_asm "ex2.approx.f32 $0, $1;", "=f,f" %a : (f32) -> f32',
        '%0 = llvm.inline_asm "ex2.approx.ftz.f32 $0, $1;", "=f,f" %a : (f32) -> f32',
    ),
    "alignment": (
        '%0 = "cute.alloc_smem"() : () -> !cute.memref<i8, "smem align<128>", "?:1">',
        '%0 = "cute.alloc_smem"() : () -> !cute.memref<i8, "smem align<1024>", "?:1">',
    ),
    "launch table": (
        "%n = llvm.mlir.constant(14 : i64) : i64\n%t = llvm.alloca %n x i64 : (i64) -> !llvm.ptr",
        "%n = llvm.mlir.constant(18 : i64) : i64\n%t = llvm.alloca %n x i64 : (i64) -> !llvm.ptr\n"
        "%z = llvm.mlir.constant(0 : i64) : i64\n"
        "%w = llvm.getelementptr %t[15] : (!llvm.ptr) -> !llvm.ptr, i64\n"
        "llvm.store %z, %w : i64, !llvm.ptr",
    ),
    "parameter alignment": (
        "llvm.func @k(%q: !llvm.ptr<1>, %n: i32) attributes {cute.bytes = 8 : i64, "
        "cute.parameters = [{llvm.byval = i8}, {}], gpu.kernel} {",
        "llvm.func @k(%q: !llvm.ptr<1> {llvm.align = 16 : i64}, %n: i32) attributes "
        "{basedsl.parameters = [{llvm.byval = i8}, {}], cute.bytes = 8 : i64, gpu.kernel} {",
    ),
    "cluster": ("nvvm.cluster.arrive.relaxed {aligned}", "nvvm.cluster.arrive {aligned}"),
}
OTHER = {
    "another attribute of a parameter": (
        "llvm.func @k(%q: !llvm.ptr) attributes {cute.parameters = [{llvm.byval = i8}], } {",
        "llvm.func @k(%q: !llvm.ptr) attributes {basedsl.parameters = [{llvm.byval = i16}], } {",
    ),
    "another operand": ("llvm.store %a, %p : f32", "llvm.store %b, %p : f32"),
    "another order of effects": (
        "llvm.store %a, %p : f32\nllvm.store %b, %p : f32",
        "llvm.store %b, %p : f32\nllvm.store %a, %p : f32",
    ),
    "a sum in another order": (
        "%0 = arith.addf %a, %b : f32\n%1 = arith.addf %0, %0 : f32\nllvm.store %1, %p : f32",
        "%0 = arith.addf %b, %b : f32\n%1 = arith.addf %a, %0 : f32\nllvm.store %1, %p : f32",
    ),
    "another offset": (
        "%1 = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, f32\nllvm.store %a, %1 : f32",
        "%1 = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, f64\nllvm.store %a, %1 : f32",
    ),
    "a word of another table": (
        "%n = llvm.mlir.constant(20 : i64) : i64\n%t = llvm.alloca %n x i64 : (i64) -> !llvm.ptr",
        "%n = llvm.mlir.constant(20 : i64) : i64\n%t = llvm.alloca %n x i64 : (i64) -> !llvm.ptr\n"
        "%w = llvm.getelementptr %t[15] : (!llvm.ptr) -> !llvm.ptr, i64\n"
        "llvm.store %n, %w : i64, !llvm.ptr",
    ),
}


@pytest.mark.parametrize("rule", SAME)
def test_a_rule_explains_its_change(changes, rule):
    before, after = (function(body) for body in SAME[rule])
    needed, left = changes.unexplained([before], [after])
    assert left == 0
    assert rule in needed
    assert needed <= {rule, "order", "addresses"}


@pytest.mark.parametrize("change", OTHER)
def test_other_changes_are_not_explained(changes, change):
    before, after = (function(body) for body in OTHER[change])
    assert changes.unexplained([before], [after])[1] == 1


def test_texts_are_found_among_others(changes):
    before, after = (function(body) for body in SAME["contraction"])
    assert changes.unexplained([before], [function(""), after])[1] == 0
    assert changes.unexplained([before, function("func.call @g() : () -> ()")], [after])[1] == 1


@pytest.mark.parametrize("rule", SAME)
def test_digests_agree_where_the_texts_do(changes, rule):
    before, after = (changes.Reader(changes.RULES).digest(function(x)) for x in SAME[rule])
    assert before == after


@pytest.mark.parametrize("change", OTHER)
def test_digests_differ_where_the_texts_do(changes, change):
    before, after = (changes.Reader(changes.RULES).digest(function(x)) for x in OTHER[change])
    assert before != after


def test_the_table_of_one_text_is_no_table_of_another(changes):
    reader = changes.Reader(changes.RULES)
    reader.lines(function(SAME["launch table"][1]))
    # The same value of another function, and the same place in it.
    body = SAME["launch table"][1].replace("18", "32")
    assert sum("llvm.store" in line for line in reader.lines(function(body))) == 1
