"""The builder of loops that replace one with `prefetch_stages=`."""

from __future__ import annotations

from typing import Any

from basedsl_cute.dialect import CuteDialect
from basedsl_cute.lowering.loops.loop_analysis import PREFETCH


class LoopBuilder:
    """Builds in place of `loop`, an `scf.for`."""

    def __init__(self, dialect: CuteDialect, loop: Any) -> None:
        self.dialect = dialect
        self.ir = dialect.ir
        self.loop = loop
        self.lower, self.upper, self.step, *self.initial = loop.operands
        self.index = self.lower.type
        self.i32 = self.ir.IntegerType.get_signless(32)

    def attributes(self) -> dict[str, Any]:
        """Return the loop's attributes, for the one that replaces it."""
        attributes = self.loop.attributes
        names = [item if isinstance(item, str) else item.name for item in attributes]
        return {name: attributes[name] for name in names if name != PREFETCH}

    def further(self, index: Any, iterations: int) -> tuple[Any, Any]:
        """Compute the index so many iterations on, and if it is below the upper bound: in 64 bits,
        where it cannot wrap.
        """
        i64 = self.ir.IntegerType.get_signless(64)

        def wide(value: Any) -> Any:
            if str(value.type) == "i64":
                return value
            name = "arith.extui" if "unsignedCmp" in self.loop.attributes else "arith.extsi"
            name = "arith.index_cast" if str(value.type) == "index" else name
            return self.emit(name, [value], [i64]).result

        count = self.constant(iterations, i64)
        distance = self.emit("arith.muli", [wide(self.step), count], [i64]).result
        further = self.emit("arith.addi", [wide(index), distance], [i64]).result
        there = self.compare("slt", further, wide(self.upper))
        if str(self.index) == "i64":
            return further, there
        name = "arith.index_cast" if str(self.index) == "index" else "arith.trunci"
        return self.emit(name, [further], [self.index]).result, there

    def emit(
        self,
        name: str,
        operands: Any = (),
        results: Any = (),
        attributes: Any = None,
        regions: int = 0,
    ) -> Any:
        return self.ir.Operation.create(
            name,
            operands=list(operands),
            results=list(results),
            attributes=attributes,
            regions=regions,
        )

    def constant(self, value: int, kind: Any) -> Any:
        attributes = {"value": self.ir.IntegerAttr.get(kind, value)}
        return self.emit("arith.constant", [], [kind], attributes).result

    def number(self, value: int) -> Any:
        return self.constant(value, self.i32)

    def compare(self, how: str, a: Any, b: Any) -> Any:
        i64 = self.ir.IntegerType.get_signless(64)
        predicate = self.ir.IntegerAttr.get(i64, {"eq": 0, "slt": 2, "sge": 5}[how])
        i1 = self.ir.IntegerType.get_signless(1)
        return self.emit("arith.cmpi", [a, b], [i1], {"predicate": predicate}).result
