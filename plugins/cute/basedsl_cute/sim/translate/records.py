"""Records of a kernel: plain Python, read once from MLIR, with nothing of MLIR left in them.

Touching an MLIR operation after its context is gone crashes the interpreter, and walking through
the bindings is slow, so `read_kernel` walks once and keeps strings.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from basedsl import DSLError, Span
from basedsl_cute.dialect.attributes import DYNAMIC_SMEM_NAMES_ATTRIBUTE, DYNAMIC_SMEM_SYMBOL
from basedsl_cute.sim.site import Site
from basedsl_cute.sim.translate.attributes import parse_int, parse_ints, parse_string, parse_word
from basedsl_cute.sim.translate.types import Type, parse_type


class Value:
    """One SSA value. `number` names it in the generated source; `defining` is the op that has it
    as a result, None for an argument.
    """

    __slots__ = ("defining", "number", "type")

    def __init__(self, number: int, type_: Type, defining: Op | None) -> None:
        self.number = number
        self.type = type_
        self.defining = defining

    def __repr__(self) -> str:
        return f"%{self.number}: {self.type}"


@dataclass(slots=True)
class OpRegion:
    """A region of one block: its arguments and operations."""

    args: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    @property
    def terminator(self) -> Op:
        """The last operation."""
        return self.ops[-1]

    def walk_into(self, found: list[Op]) -> None:
        """Append all operations of the region to `found`, outer before inner."""
        for op in self.ops:
            found.append(op)
            for region in op.regions:
                region.walk_into(found)


@dataclass(slots=True, eq=False)
class Op:
    """One operation. Attributes are kept as text, and parsed by the rule that reads them."""

    name: str
    operands: list[Value]
    results: list[Value]
    attributes: dict[str, str]
    regions: list[OpRegion]
    site: Site

    def integer(self, name: str, default: int | None = None) -> int:
        """The integer attribute `name`. Raises KeyError if it is missing and has no default."""
        if name not in self.attributes and default is not None:
            return default
        return parse_int(self.attributes[name])

    def integers(self, name: str) -> list[int]:
        """The array attribute `name`; empty if it is missing."""
        return parse_ints(self.attributes[name]) if name in self.attributes else []

    def word(self, name: str, default: str = "") -> str:
        """The last word of the enum attribute `name`."""
        return parse_word(self.attributes[name]) if name in self.attributes else default

    def flag(self, name: str) -> bool:
        """The boolean attribute `name`; False if it is missing."""
        return self.attributes.get(name, "false") not in ("false", "0 : i1")

    def string(self, name: str) -> str:
        """The string attribute `name`. Raises KeyError if it is missing."""
        return parse_string(self.attributes[name])

    def segments(self) -> list[list[Value]]:
        """The operands, divided as `operandSegmentSizes` says."""
        out, at = [], 0
        for size in self.integers("operandSegmentSizes"):
            out.append(self.operands[at : at + size])
            at += size
        return out

    def walk(self) -> list[Op]:
        """This op and all ops inside it."""
        found = [self]
        for region in self.regions:
            region.walk_into(found)
        return found


@dataclass(frozen=True, slots=True)
class Global:
    """A variable of the kernel's module (llvm.mlir.global).

    `space` is its address space as LLVM numbers them, `align` in bytes. `init` is the text of its
    initial value, None if it has none. `fields` are names and byte offsets of a struct's parts.
    """

    name: str
    type: Type
    space: int
    align: int
    constant: bool
    init: str | None
    site: Site
    fields: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class KernelRecord:
    """One kernel, with the variables of its module by name and the number of its values. Pickling
    does not recurse, however long the chains of operations are.
    """

    name: str
    site: Site
    body: OpRegion
    globals: dict[str, Global]
    values: int

    def walk(self) -> list[Op]:
        """All operations of the kernel, outer before inner."""
        found: list[Op] = []
        self.body.walk_into(found)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return _thaw, (self.name, self.site, _freeze(self.body), self.globals, self.values)


def _freeze(region: OpRegion) -> tuple[Any, ...]:
    """Turn a region into nested tuples in which values are numbers."""
    ops = [
        (
            op.name,
            [operand.number for operand in op.operands],
            [(result.number, result.type) for result in op.results],
            op.attributes,
            [_freeze(inner) for inner in op.regions],
            op.site,
        )
        for op in region.ops
    ]
    return [(arg.number, arg.type) for arg in region.args], ops


def _thaw(name: str, site: Site, body: Any, variables: Any, count: int) -> KernelRecord:
    values: dict[int, Value] = {}

    def value(number: int, type_: Type, defining: Op | None) -> Value:
        values[number] = Value(number, type_, defining)
        return values[number]

    def region(frozen: Any) -> OpRegion:
        args, ops = frozen
        out = OpRegion([value(number, type_, None) for number, type_ in args])
        for op_name, operands, results, attributes, regions, op_site in ops:
            op = Op(op_name, [values[n] for n in operands], [], attributes, [], op_site)
            op.regions = [region(inner) for inner in regions]
            op.results = [value(number, type_, op) for number, type_ in results]
            out.ops.append(op)
        return out

    return KernelRecord(name, site, region(body), variables, count)


_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)(?: to (\d*):(\d+))?')


def spans_in(text: str) -> list[Span]:
    """The file positions in a printed location, innermost first (callee before caller)."""
    spans = []
    for name, line, col, end_line, end_col in _FILE.findall(text):
        filename = parse_string(f'"{name}"')
        start = max(int(col) - 1, 0)
        if end_col:
            end = int(end_line or line), int(end_col) - 1
            spans.append(Span(filename, int(line), start, *end))
        else:
            spans.append(Span(filename, int(line), start))
    return spans


def _spans(text: str) -> tuple[Span | None, tuple[Span, ...]]:
    spans = spans_in(text)
    if not spans:
        return None, ()
    callers = tuple(spans[1:]) if "callsite(" in text else ()
    return spans[0], callers


class _RecordReader:
    def __init__(self) -> None:
        self.values: dict[Any, Value] = {}
        self.count = 0
        self.spans: dict[str, tuple[Span | None, tuple[Span, ...]]] = {}

    def site(self, op: Any) -> Site:
        text = str(op.location)
        found = self.spans.get(text)
        if found is None:
            found = self.spans[text] = _spans(text)
        return Site(op.name, *found)

    def value(self, value: Any, defining: Op | None) -> Value:
        new = Value(self.count, parse_type(str(value.type)), defining)
        self.count += 1
        self.values[value] = new
        return new

    def region(self, region: Any) -> OpRegion:
        blocks = list(region.blocks)
        if not blocks:
            return OpRegion()
        if len(blocks) > 1:
            raise DSLError(
                "the simulator runs structured kernels: a region here has several blocks",
                hint="simulate the kernel before convert-scf-to-cf",
            )
        out = OpRegion([self.value(arg, None) for arg in blocks[0].arguments])
        for op in blocks[0].operations:
            out.ops.append(self.op(op.operation))
        return out

    def op(self, op: Any) -> Op:
        new = Op(
            op.name,
            [self.values[operand] for operand in op.operands],
            [],
            attributes_of(op),
            [],
            self.site(op),
        )
        new.regions = [self.region(region) for region in op.regions]
        new.results = [self.value(result, new) for result in op.results]
        return new


def attributes_of(op: Any) -> dict[str, str]:
    """All attributes of an MLIR operation as text; bindings differ in what iterating them gives."""
    attributes = op.attributes
    out = {}
    for item in attributes:
        name = item if isinstance(item, str) else item.name
        out[name] = str(attributes[name])
    return out


def _operations(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation


def _find(root: Any, name: str) -> tuple[Any, Any]:
    """The gpu.func called `name` and the symbol table op around it."""
    seen = []
    stack = [root]
    while stack:
        op = stack.pop()
        for inner in _operations(op):
            if inner.name == "gpu.func":
                symbol = parse_string(attributes_of(inner)["sym_name"])
                if symbol == name:
                    return inner, op
                seen.append(symbol)
            elif inner.name in ("gpu.module", "builtin.module"):
                stack.append(inner)
    raise DSLError(
        f"the module has no kernel {name!r}; it has: {', '.join(sorted(seen)) or 'none'}"
    )


def read_kernel(root: Any, name: str) -> KernelRecord:
    """Copy kernel `name` out of `root`: a module, a gpu.module, or the gpu.func itself. Raises
    DSLError if there is none, or if control flow in it is not structured.
    """
    root = getattr(root, "operation", root)
    if root.name == "gpu.func":
        func, table = root, getattr(root.parent, "operation", root.parent)
    else:
        func, table = _find(root, name)
    reader = _RecordReader()
    found = {}
    for op in _operations(table):
        if op.name == "llvm.mlir.global":
            new = _read_global(op, reader.site(op))
            found[new.name] = new
    names = attributes_of(func).get(DYNAMIC_SMEM_NAMES_ATTRIBUTE)
    if names is not None:
        dynamic = found[DYNAMIC_SMEM_SYMBOL]
        found[dynamic.name] = dataclasses.replace(dynamic, fields=tuple(_fields(names)))
    body = reader.region(func.regions[0])
    record = KernelRecord(name, reader.site(func), body, found, reader.count)
    used = {
        op.attributes["global_name"].lstrip("@").strip('"')
        for op in record.walk()
        if op.name == "llvm.mlir.addressof"
    }
    # A block has the shared variables of its own kernel, not those of the module's others.
    record.globals = {k: v for k, v in found.items() if v.space != 3 or k in used}
    return record


def _read_global(op: Any, site: Site) -> Global:
    attributes = attributes_of(op)
    type_ = parse_type(attributes["global_type"])
    return Global(
        name=parse_string(attributes["sym_name"]),
        type=type_,
        space=parse_int(attributes.get("addr_space", "0")),
        align=max(parse_int(attributes.get("alignment", "0")), type_.align),
        constant="constant" in attributes,
        init=attributes.get("value"),
        site=site,
        fields=tuple(_fields(attributes.get("cute.fields", '""'))),
    )


def _fields(attribute: str) -> Iterator[tuple[str, int]]:
    for field_ in filter(None, parse_string(attribute).split(";")):
        name, _, offset = field_.rpartition(":")
        yield name, int(offset)
