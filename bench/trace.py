"""The cost of tracing: microseconds for each emitted op, the share of each stage, the pre-stage.

python bench/trace.py

Stages are told in processor time of this thread, the least of some rounds.
The peer is the bindings themselves: building the same number of `arith.addi` with no proxies.
"""

from __future__ import annotations

import linecache
import os
import statistics
from time import perf_counter, thread_time
from typing import Any

os.environ["BASEDSL_CACHE"] = "0"

import basedsl_toy as toy
from basedsl.compilation import cost
from basedsl.prestage import stage_function

ROUNDS = 12
OPS_GOAL, PRESTAGE_GOAL = 6.0, 50.0
cost.perf_counter = thread_time  # other programs on the machine cost nothing here


def _define(name: str, lines: list[str]) -> Any:
    text = f"def {name}(a, b, n):\n" + "".join(f"    {line}\n" for line in lines)
    filename = f"<bench {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    variables: dict[str, Any] = {}
    exec(compile(text, filename, "exec"), variables)
    return variables[name]


def straight(statements: int) -> Any:
    """A function of about `statements` arithmetic ops with no control flow."""
    body = [f"a = a + b * {i % 7 + 2}" for i in range(statements // 2)]
    return _define("straight", [*body, "return a"])


def branchy(lines: int) -> Any:
    """A function of `lines` lines, half of them in loops and branches."""
    block = ["for i in range(n):", "    if i > b:", "        a += i", "    else:", "        b -= 1"]
    block += ["a = a + b * 2"] * 5
    return _define("branchy", [*block * (lines // len(block)), "return a"])


def bare_ops(count: int) -> float:
    """Microseconds for one op built through the bindings alone, the least of some rounds."""
    context = toy.TOY.mlir
    ir, arith, func = context.bindings.ir, context.bindings.arith, context.bindings.func
    best = float("inf")
    with context.entered(), ir.Location.unknown():
        for _ in range(ROUNDS):
            module = ir.Module.create()
            kind = ir.IntegerType.get_signless(64)
            with ir.InsertionPoint(module.body):
                block = func.FuncOp("bare", ([kind], [])).add_entry_block()
            with ir.InsertionPoint(block):
                value = block.arguments[0]
                start = thread_time()
                for _ in range(count):
                    value = arith.AddIOp(value, value).result
                best = min(best, thread_time() - start)
    return best / count * 1e6


def main() -> None:
    fn = straight(2000)
    toy.jit(fn).compile(1, 2, 3)
    runs = [toy.jit(fn).compile(1, 2, 3) for _ in range(ROUNDS)]
    ops = runs[0].stages.text(runs[0].stages.names[0]).count("= arith.")
    per_op = min(run.seconds["trace"] for run in runs) / ops * 1e6
    bare = bare_ops(2000)
    print(f"{ops} ops: {per_op:.1f} us for each (goal {OPS_GOAL:.0f})")
    print(f"  the bindings alone: {bare:.1f} us; ratio {per_op / bare:.1f}")
    total = sum(runs[0].seconds.values())
    for stage in runs[0].seconds:
        seconds = statistics.median(run.seconds[stage] for run in runs)
        print(f"  {stage:24} {seconds * 1e3:8.1f} ms  {seconds / total:6.1%}")
    times = []
    for _ in range(ROUNDS):
        long = branchy(300)
        start = perf_counter()
        stage_function(long)
        times.append(perf_counter() - start)
    print(f"pre-stage of 300 lines: {min(times) * 1e3:.1f} ms (goal {PRESTAGE_GOAL:.0f})")
    start = perf_counter()
    toy.jit(branchy(300)).compile(1, 2, 3)
    print(f"compile of those 300 lines: {(perf_counter() - start) * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
