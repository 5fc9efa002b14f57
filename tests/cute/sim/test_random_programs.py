"""Random divergent programs: every width agrees with Python running one thread at a time."""

from __future__ import annotations

import random

import numpy as np
import pytest

THREADS, BLOCKS, SLOTS = 37, 3, 4


class Program:
    """A random kernel as MLIR text and as Python text, statement by statement."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.mlir: list[str] = []
        self.python: list[str] = []
        self.count = 0
        self.depth = 1

    def emit(self, mlir: str, python: str | None) -> None:
        self.mlir.append(mlir)
        if python is not None:
            self.python.append("    " * self.depth + python)

    def name(self) -> str:
        self.count += 1
        return f"x{self.count}"

    def constant(self, value: int) -> str:
        new = self.name()
        self.emit(f"%{new} = arith.constant {value} : i32", f"{new} = {value}")
        return new

    def value(self, scope: list[str]) -> str:
        if self.random.random() < 0.2:
            return self.constant(self.random.choice([0, 1, 2, -1, 7, 1000, 2**31 - 1]))
        return self.random.choice(scope)

    def binary(self, scope: list[str]) -> str:
        ops = {"addi": "+", "subi": "-", "muli": "*", "andi": "&", "ori": "|", "xori": "^"}
        op = self.random.choice(list(ops))
        a, b, new = self.value(scope), self.value(scope), self.name()
        self.emit(f"%{new} = arith.{op} %{a}, %{b} : i32", f"{new} = wrap({a} {ops[op]} {b})")
        return new

    def condition(self, scope: list[str]) -> str:
        ops = {"slt": "<", "eq": "==", "sge": ">=", "ne": "!="}
        op = self.random.choice(list(ops))
        a, b, new = self.value(scope), self.value(scope), self.name()
        self.emit(f"%{new} = arith.cmpi {op}, %{a}, %{b} : i32", f"{new} = {a} {ops[op]} {b}")
        return new

    def small(self, scope: list[str], bits: int) -> str:
        a, mask, new = self.value(scope), self.constant(bits), self.name()
        self.emit(f"%{new} = arith.andi %{a}, %{mask} : i32", f"{new} = {a} & {mask}")
        return new

    def statements(self, scope: list[str], fuel: int) -> list[str]:
        scope = list(scope)
        for _ in range(self.random.randint(1, 4)):
            kinds = [self.binary, self.binary, self.store]
            if fuel:
                kinds += [self.branch, self.branch, self.counted, self.conditional]
            kind = self.random.choice(kinds)
            new = kind(scope, fuel - 1) if kind not in (self.binary, self.store) else kind(scope)
            if new:
                scope.append(new)
        return scope

    def store(self, scope: list[str]) -> str:
        slot, new = self.small(scope, SLOTS - 1), self.name()
        value = self.value(scope)
        gep = "llvm.getelementptr %mine[%{}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32"
        self.emit(f"%p{new} = {gep.format(slot)}", None)
        if self.random.random() < 0.5:
            self.emit(
                f"llvm.store %{value}, %p{new} : i32, !llvm.ptr<1>", f"mine[{slot}] = {value}"
            )
            return ""
        self.emit(f"%{new} = llvm.load %p{new} : !llvm.ptr<1> -> i32", f"{new} = mine[{slot}]")
        return new

    def branch(self, scope: list[str], fuel: int) -> str:
        c, new = self.condition(scope), self.name()
        self.emit(f"%{new} = scf.if %{c} -> i32 {{", f"if {c}:")
        for last in (False, True):
            self.depth += 1
            inner = self.statements(scope, fuel)
            result = self.value(inner)
            self.emit(f"scf.yield %{result} : i32", f"{new} = {result}")
            self.depth -= 1
            self.emit("}" if last else "} else {", None if last else "else:")
        return new

    def counted(self, scope: list[str], fuel: int) -> str:
        low, high, step = self.small(scope, 3), self.small(scope, 7), self.small(scope, 1)
        start, one, by = self.value(scope), self.constant(1), self.name()
        self.emit(f"%{by} = arith.addi %{step}, %{one} : i32", f"{by} = {step} + 1")
        new, i, acc = self.name(), self.name(), self.name()
        self.emit(
            f"%{new} = scf.for %{i} = %{low} to %{high} step %{by} iter_args(%{acc} = %{start}) "
            "-> i32 : i32 {",
            f"{acc} = {start}",
        )
        self.python.append("    " * self.depth + f"for {i} in range({low}, {high}, {by}):")
        self.depth += 1
        inner = self.statements([*scope, i, acc], fuel)
        result = self.value(inner)
        self.emit(f"scf.yield %{result} : i32", f"{acc} = {result}")
        self.depth -= 1
        self.emit("}", f"{new} = {acc}")
        return new

    def conditional(self, scope: list[str], fuel: int) -> str:
        """A while loop of few turns, left when its counter or a random condition says so."""
        count, start = self.small(scope, 7), self.value(scope)
        new, n, acc, n2, acc2 = (self.name() for _ in range(5))
        self.emit(
            f"%{new}:2 = scf.while (%{n} = %{count}, %{acc} = %{start}) "
            ": (i32, i32) -> (i32, i32) {",
            f"{n}, {acc} = {count}, {start}",
        )
        self.python.append("    " * self.depth + "while True:")
        self.depth += 1
        before = self.statements([*scope, n, acc], 0)
        zero, extra, more, go = self.constant(0), self.condition(before), self.name(), self.name()
        result = self.value(before)
        self.emit(f"%{more} = arith.cmpi sgt, %{n}, %{zero} : i32", f"{more} = {n} > 0")
        self.emit(f"%{go} = arith.andi %{more}, %{extra} : i1", f"{go} = {more} and {extra}")
        self.emit(
            f"scf.condition(%{go}) %{n}, %{result} : i32, i32", f"{n2}, {acc2} = {n}, {result}"
        )
        self.emit(f"}} do {{\n^bb0(%{n2}: i32, %{acc2}: i32):", f"if not {go}: break")
        inner = self.statements([*scope, n2, acc2], fuel)
        one, less, carried = self.constant(1), self.name(), self.value(inner)
        self.emit(f"%{less} = arith.subi %{n2}, %{one} : i32", f"{less} = {n2} - 1")
        self.emit(f"scf.yield %{less}, %{carried} : i32, i32", f"{n}, {acc} = {less}, {carried}")
        self.depth -= 1
        self.emit("}", f"{new} = {acc2}")
        again, zero = self.name(), self.constant(0)
        self.emit(f"%{again} = arith.addi %{new}#1, %{zero} : i32", f"{again} = {new}")
        return again


HEAD = f"""
%tid = nvvm.read.ptx.sreg.tid.x : i32
%bid = nvvm.read.ptx.sreg.ctaid.x : i32
%bdim = nvvm.read.ptx.sreg.ntid.x : i32
%first = arith.muli %bid, %bdim : i32
%i = arith.addi %first, %tid : i32
%slots = arith.constant {SLOTS} : i32
%at = arith.muli %i, %slots : i32
%mine = llvm.getelementptr %out[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
"""


def wrap(x):
    return (x + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize("seed", range(40))
def test_every_width_agrees_with_python(kernel, seed):
    program = Program(seed)
    program.statements(["tid", "bid", "n"], 3)
    body = HEAD + "\n".join(program.mlir)
    k = kernel("%out: !llvm.ptr<1>, %n: i32", body)
    assert k.sim.widths == ("warp", "block", "grid")
    (got,) = k(BLOCKS, THREADS, np.zeros(BLOCKS * THREADS * SLOTS, np.int32), 5)
    names = {"wrap": wrap}
    exec("def thread(tid, bid, n, mine):\n    pass\n" + "\n".join(program.python), names)
    want = []
    for bid in range(BLOCKS):
        for tid in range(THREADS):
            mine = [0] * SLOTS
            names["thread"](tid, bid, 5, mine)
            want += mine
    assert got.tolist() == want
