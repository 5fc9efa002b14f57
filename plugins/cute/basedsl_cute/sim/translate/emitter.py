"""Emitter of a kernel's Python source: one line per op, masks for divergence.

The generated function takes the group `g` and the kernel's arguments. In it, `vN` is the SSA value
N, and a mask is None (every lane), an array of booleans `(lanes,)` (some lanes) or False (no lane).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine.memory_map import MemoryMap
from basedsl_cute.sim.machine_model import Machine
from basedsl_cute.sim.observe import Observer
from basedsl_cute.sim.site import Site
from basedsl_cute.sim.translate.addresses import local_address
from basedsl_cute.sim.translate.affinity import affine_values
from basedsl_cute.sim.translate.grouping import (
    Bundle,
    Grouping,
    RegisterBytes,
    bundles_of,
    same_loads,
)
from basedsl_cute.sim.translate.liveness import last_uses, steady_loads
from basedsl_cute.sim.translate.poison_flow import PoisonFlow
from basedsl_cute.sim.translate.records import KernelRecord, Op, OpRegion, Value
from basedsl_cute.sim.translate.types import (
    FloatType,
    IntType,
    PtrType,
    Type,
    VectorType,
    dtype_of,
    element_type,
    is_aggregate,
)
from basedsl_cute.sim.translate.uniformity import UniformityAnalysis

BLOCK = "block_"
_DEEPEST = 50


class EmitRule(Protocol):
    """The part of a rule that the emitter calls."""

    @property
    def apply(self) -> Callable[[PythonEmitter, Op], None]: ...
    @property
    def many(self) -> Callable[[PythonEmitter, list[Op], dict[Value, Value]], None] | None: ...
    @property
    def bundle(self) -> Callable[[PythonEmitter, Bundle], str | None] | None: ...
    def is_volatile(self, op: Op) -> bool: ...


class EmitRules(Protocol):
    """The part of the rule table that the emitter calls."""

    def for_op(self, op: Op, target: str) -> EmitRule: ...


class PythonEmitter:
    """The source of a kernel under construction, as a coroutine or a plain function.

    Rules call `let`, `line`, `ref`, `lanes` and `const`, read `mask` and `machine`, and put what
    their lines name into `globals`. `variables` are the names there that hold addresses of host
    memory, with the variable that each is the address of.
    """

    def __init__(
        self,
        kernel: KernelRecord,
        uniformity: UniformityAnalysis,
        coroutine: bool,
        memory_map: MemoryMap,
        rules: EmitRules,
        machine: Machine,
        observer: Observer | None = None,
    ) -> None:
        self.kernel = kernel
        self.observer = observer
        self.uniformity = uniformity
        self.coroutine = coroutine
        self.memory_map = memory_map
        self.rules = rules
        self.machine = machine
        self.globals: dict[str, Any] = {}
        self.variables: dict[str, str] = {}
        self.mask = "None"
        self.branches: list[Site] = []  # diverging constructs around the op being written
        self.site = kernel.site
        self._lines: list[str] = []
        self._depth = 1
        self._blocks: list[str] = []
        self._names: dict[Value, str] = {}
        self._constants: dict[Value, Any] = {}
        self._named: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        self._temporaries = 0
        self._written_line = ""
        self._made: set[Value] = set()  # by the body being written, at its own depth
        self._body_depth = 1
        self._aliased: set[str] = set()
        self._held: dict[str, str] = {}
        self.products: dict[Op, str] = {}  # names of the records of matrix instructions
        self.steady: set[Op] = set()  # loads whose memory does not change while their value lives
        self._moves_masks = False
        self.affine = set() if coroutine else affine_values(kernel, uniformity.varying)
        self.poison = PoisonFlow(self, kernel)

    # Text ------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Write a line of Python at the current depth, with the user's line as a comment where that
        changes.
        """
        where = ""
        if self.site.span is not None and str(self.site.span) != self._written_line:
            self._written_line = str(self.site.span)
            where = f"  # {self._written_line}"
        self._lines.append("    " * self._depth + text + where)

    @contextlib.contextmanager
    def indented(self, head: str) -> Iterator[None]:
        """Write `head`, and what is written inside as its body.

        Python reads 100 levels at most. A body deeper than that becomes a function, which
        `Specialization.of_source` puts in place of its call.
        """
        self.line(head)
        outer, depth = self._lines, self._depth
        deep = depth == _DEEPEST
        if deep:
            self._lines, self._depth = [], 0
        self._depth += 1
        start = len(self._lines)
        yield
        if len(self._lines) == start:
            self._lines.append("    " * self._depth + "pass")
        if deep:
            name = f"{BLOCK}{len(self._blocks)}"
            self._blocks.append("\n".join([f"def {name}():", *self._lines, ""]))
            outer.append("    " * (depth + 1) + f"{name}()")
        self._lines, self._depth = outer, depth

    def source(self) -> str:
        """The generated function as text, and after it those of its blocks."""
        args = "".join(f", {self.raw(arg)}" for arg in self.kernel.body.args)
        head = [f"def kernel(g{args}):", "    lanes = g.lanes"]
        if self.poison.initial:
            head.append(f"    {' = '.join(self.poison.initial)} = None")
        head += [f"    {name} = {value}" for name, value in self._held.items()]
        return "\n".join([*head, *self._lines, *self._blocks, ""])

    def held(self, name: str, expression: str) -> str:
        """The variable `name`, which holds what `expression` gives when the kernel begins."""
        self._held.setdefault(name, expression)
        return name

    def temporary(self, prefix: str = "t") -> str:
        """A new name for a local variable."""
        self._temporaries += 1
        return f"{prefix}{self._temporaries}"

    # Values ----------------------------------------------------------------------------------

    def varying(self, value: Value) -> bool:
        """True when `value` has one entry per lane."""
        return value in self.uniformity.varying

    def ref(self, value: Value) -> str:
        """The expression that holds `value`."""
        name = self.raw(value)
        return f"dense({name})" if value in self.affine else name

    def raw(self, value: Value) -> str:
        """The variable that holds `value`, for rules that take it as coefficients too."""
        return self._names.get(value) or f"v{value.number}"

    def raws(self, op: Op, result: Value) -> list[str]:
        """The operands of `op`, with coefficients if `result` may have them."""
        name = self.raw if result in self.affine else self.ref
        return [name(operand) for operand in op.operands]

    def refs(self, op: Op) -> list[str]:
        """The expressions that hold the operands of `op`."""
        return [self.ref(operand) for operand in op.operands]

    def alias(self, value: Value, name: str) -> None:
        """Let `name` hold `value` from here on."""
        self._names[value] = name
        self._aliased.add(name)

    def let(self, value: Value, expression: str) -> None:
        """Bind `value` to `expression`."""
        self.line(f"{self.raw(value)} = {expression}")
        if value not in self._names and self._depth == self._body_depth:
            self._made.add(value)

    def set_constant(self, value: Value, constant: Any) -> None:
        """Bind `value` to a constant that is known now, shared by all uses."""
        self._constants[value] = constant
        self.alias(value, self.const(constant, f"c{value.number}"))

    def set_address(self, value: Value, variable: str) -> None:
        """Bind `value` to the address of a variable of the kernel's module."""
        self.set_constant(value, dtype_of(PtrType()).type(self.memory_map.address_of(variable)))
        if self.memory_map.differs_by_process(variable):
            self.variables[self.ref(value)] = variable

    def constant(self, value: Value) -> Any:
        """The constant that `value` is bound to; None if it is not known now."""
        return self._constants.get(value)

    def lanes(self, value: Value) -> str:
        """The expression of `value` with one entry per lane, even when it is uniform."""
        return self.spread(value, self.ref(value))

    def spread(self, value: Value, expression: str) -> str:
        """`expression`, which holds `value`, with one entry per lane."""
        if self.varying(value):
            return expression
        if isinstance(value.type, VectorType):
            return f"num.spread_vector({expression}, lanes)"
        if is_aggregate(value.type):
            return f"num.spread_tuple({expression}, lanes)"
        return f"num.spread({expression}, lanes)"

    def like(self, value: Value, model: Value) -> str:
        """The expression of `value`, spread over lanes if `model` varies, to be assigned to it."""
        return self.lanes(value) if self.varying(model) else self.ref(value)

    def const(self, obj: Any, name: str) -> str:
        """A name for `obj` in the generated function's globals: `name`, or that and a number."""
        found = self._named.get(id(obj))
        if found is None:
            number = self._counts.get(name, 0)
            self._counts[name] = number + 1
            found = f"{name}{number}" if number or name in ("at", "read", "write") else name
            self.globals[found] = obj
            self._named[id(obj)] = found
        return found

    def last(self, name: str) -> str:
        """The name that `const` gave last for `name`."""
        number = self._counts[name] - 1
        return f"{name}{number}" if number else name

    def at(self, site: Site | None = None) -> str:
        """A name for `site`, by default the place of the op being written, for error messages."""
        return self.const(site or self.site, "at")

    def branch(self) -> str:
        """A name for the place of the innermost diverging branch or loop, or "None"."""
        return self.at(self.branches[-1]) if self.branches else "None"

    def dtype(self, type_: Type) -> str:
        """A name for the NumPy scalar type of the elements of `type_`. Raises MissingRuleError."""
        if self._moves_masks:
            return "bool_"
        type_ = element_type(type_)
        if isinstance(type_, IntType):
            if type_.width > 64:
                raise MissingRuleError(self.site, f"{type_} is wider than 64 bits")
            return "bool_" if type_.width == 1 else f"i{type_.container}"
        if isinstance(type_, PtrType):
            return "i64"
        if isinstance(type_, FloatType):
            if type_.name in ("f16", "f32", "f64"):
                return type_.name
            return "f32" if type_.name == "tf32" else self.const(dtype_of(type_).type, type_.name)
        raise MissingRuleError(self.site, f"no values of type {type_}")

    # Control flow ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def under(self, mask: str, site: Site | None = None) -> Iterator[None]:
        """Write ops inside that run for the lanes in `mask`; `site` is what diverged."""
        outer, self.mask = self.mask, mask
        if site is not None:
            self.branches.append(site)
        try:
            yield
        finally:
            self.mask = outer
            if site is not None:
                self.branches.pop()

    def body(self, region: OpRegion) -> None:
        """Write the ops of `region`. The caller assigns the operands of its terminator. Raises
        MissingRuleError for an op without a rule.
        """
        if self.observer is not None:
            self.observer.boundary(self)
        groups: dict[Op, list[Op]] = {}
        bundles: dict[Op, Bundle] = {}
        if self.observer is None and self.mask == "None":
            grouping = Grouping(region, self._can_group, self.rows_of)
            region, groups = grouping.region, grouping.groups
            bundles = bundles_of(grouping, self.rows_of)
        ends = last_uses(region) if self.observer is None else {}
        self.steady |= steady_loads(region)
        outer = self._made, self._body_depth
        self._made, self._body_depth = set(), self._depth
        inside = {op for bundle in bundles.values() for op in bundle.all}
        written: set[Op] = set()  # by their group
        for at, op in enumerate(region.ops):
            if op in bundles:
                members, call = bundles[op].all, self._call_of(bundles[op])
                for one in bundles[op].ops if call is not None else ():
                    if all(value.defining not in inside for value in one.operands):
                        self.poison.before(one)
                alone = (
                    contextlib.nullcontext() if call is None else self.indented(f"if not {call}:")
                )
                with alone:
                    for one in members:
                        self._op(one, groups, written, region.ops[:at])
                ended = [value for one in members for value in ends.get(one, ())]
                self._forget(value for value in ended if value.defining not in inside or not call)
            elif op not in inside:
                self._op(op, groups, written, region.ops[:at])
                self._forget(ends.get(op, ()))
        self._made, self._body_depth = outer
        if self.observer is not None:
            self.observer.boundary(self)

    def _op(self, op: Op, groups: dict[Op, list[Op]], written: set[Op], before: list[Op]) -> None:
        """Write an op, and what is in a group with it unless that is `written`."""
        rule = self.rules.for_op(op, "sim")
        self.site = op.site
        self.poison.before(op)
        if self.observer is not None:
            self.observer.before(self, op)
        if op in groups and rule.many is not None:
            rule.many(self, groups[op], same_loads(before, self.rows_of))
            written.update(groups[op])
        if op not in written:
            rule.apply(self, op)
        self.poison.after(op, rule)

    def _call_of(self, bundle: Bundle) -> str | None:
        """The expression that does what a bundle does; None if its ops are written one by one."""
        self.site = bundle.ops[0].site
        rule = self.rules.for_op(bundle.ops[0], "sim")
        return None if rule.bundle is None else rule.bundle(self, bundle)

    def _can_group(self, op: Op) -> bool:
        rule = self.rules.for_op(op, "sim")
        return rule.many is not None or rule.bundle is not None

    def rows_of(self, op: Op) -> RegisterBytes | None:
        """The rows of registers that a plain load or store is known to touch."""
        pointer = op.operands[-1]
        root = self.uniformity.root(pointer)
        if root is None or root.local is None:
            return None
        array = self.memory_map.registers.get(root.local.number)
        address = local_address(pointer, self.memory_map.local)
        if array is None or array.multiplied or address is None:
            return None
        size = (op.results or op.operands)[0].type.size
        return RegisterBytes(array, address, address + size)

    def _forget(self, values: Iterable[Value]) -> None:
        """Write the end of values that hold arrays, whose memory the next ones can have."""
        names = [self.raw(v) for v in values if v in self._made and self.varying(v)]
        names = [name for name in names if name not in self._aliased]
        if names:
            self.line(f"del {', '.join(names)}")

    @contextlib.contextmanager
    def standing_for(self, names: dict[Value, str]) -> Iterator[None]:
        """Write what is written inside with masks of booleans, which `names` has, for values."""
        outer = self._names
        self._names = {**outer, **names}
        self._moves_masks = True
        try:
            yield
        finally:
            self._names = outer
            self._moves_masks = False

    def wait(self, expression: str) -> None:
        """Write a point where the group waits, if `expression` gives a Wait and not None."""
        wait = self.temporary("w")
        self.line(f"{wait} = {expression}")
        with self.indented(f"if {wait} is not None:"):
            self.line(f"yield {wait}")
