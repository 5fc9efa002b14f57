"""The simulator's two calls: `translate` a lowered kernel once, `launch` it many times."""

from __future__ import annotations

import linecache
import operator
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from basedsl_cute.sim.emitter import Emitter, is_aggregate
from basedsl_cute.sim.errors import LaunchError
from basedsl_cute.sim.launch import Launch, SimOptions, Width, check_configuration, triple
from basedsl_cute.sim.layout import Layout
from basedsl_cute.sim.memory import Memory
from basedsl_cute.sim.records import KernelRecord, Value, read_kernel
from basedsl_cute.sim.rules import load_rules
from basedsl_cute.sim.types import (
    IntType,
    PtrType,
    VectorType,
    aggregate_fields,
    dtype_of,
)
from basedsl_cute.sim.uniform import Variance, lockstep_is_safe


@dataclass(frozen=True, slots=True)
class Variant:
    """The generated function for one width."""

    source: str
    call: Any
    waits: bool


class SimKernel:
    """A translated kernel: plain Python, nothing of MLIR. Made by `translate`."""

    def __init__(self, record: KernelRecord) -> None:
        self.name = record.name
        self._record = record
        self._layout = Layout(record)
        self._variants: dict[str, Variant] = {}
        self.width = self._widest()
        self._variant(self.width)

    @property
    def source(self) -> str:
        """The Python that runs when the width is "auto"."""
        return self._variant(self.width).source

    def source_for(self, width: Width) -> str:
        """The Python that runs at `width`."""
        return self._variant(width).source

    @property
    def widths(self) -> tuple[Width, ...]:
        """The widths this kernel can run at, all with the same results."""
        every: tuple[Width, ...] = ("warp", "block", "grid")
        return every[: every.index(self.width) + 1]

    def launch(
        self,
        grid: Any,
        block: Any,
        args: tuple[Any, ...] | list[Any],
        *,
        memory: Memory,
        dynamic_smem: int = 0,
        options: SimOptions | None = None,
        cluster: Any = (1, 1, 1),
    ) -> None:
        """Run the kernel on every thread of the grid, blocks of a `cluster` together.

        `args` are ints and floats (or NumPy scalars), and addresses for pointers. `memory` says
        what may be touched. Raises LaunchError before anything runs, SimulationError for what the
        kernel does; then the memory holds what was written so far.
        """
        options = options or SimOptions()
        grid, block = triple(grid, "grid"), triple(block, "block")
        if dynamic_smem < 0:
            raise LaunchError(f"dynamic shared memory of {dynamic_smem} bytes")
        cluster = triple(cluster, "cluster")
        check_configuration(grid, block, self._layout.shared_size(dynamic_smem))
        if any(n % c for n, c in zip(grid, cluster, strict=True)):
            raise LaunchError(f"cluster={cluster} does not divide grid={grid}")
        values = self._arguments(args)
        width = self._choose(options) if cluster == (1, 1, 1) else "warp"
        variant = self._variant(width)
        pointers = {
            i: int(values[i])
            for i, arg in enumerate(self._record.body.args)
            if isinstance(arg.type, PtrType)
        }
        launch = Launch(grid, block, self._layout, dynamic_smem, memory, pointers, options, cluster)
        launch.run(width, variant.call, values, variant.waits)

    def _choose(self, options: SimOptions) -> Width:
        if options.check_races and self._layout.addresses:
            return "warp"
        if options.width == "auto":
            return self.width
        if options.width not in self.widths:
            raise LaunchError(
                f"kernel {self.name} cannot run {options.width}-wide: some warps wait while others "
                f"go on; it can run {' or '.join(self.widths)}-wide"
            )
        return options.width

    def _arguments(self, args: Any) -> tuple[Any, ...]:
        expected = self._record.body.args
        if len(args) != len(expected):
            raise LaunchError(
                f"kernel {self.name} takes {len(expected)} arguments, {len(args)} were given"
            )
        pairs = zip(args, expected, strict=True)
        return tuple(_argument(value, arg, i) for i, (value, arg) in enumerate(pairs))

    def _widest(self) -> Width:
        load_rules()
        if lockstep_is_safe(Variance(self._record, many_blocks=True)):
            return "grid"
        if lockstep_is_safe(Variance(self._record, many_blocks=False)):
            return "block"
        return "warp"

    def _variant(self, width: Width) -> Variant:
        found = self._variants.get(width)
        if found is None:
            variance = Variance(self._record, many_blocks=width == "grid")
            emitter = Emitter(self._record, variance, width == "warp", self._layout)
            emitter.body(self._record.body)
            found = self._variants[width] = _compile(emitter, self.name, width)
        return found


def _compile(emitter: Emitter, name: str, width: str) -> Variant:
    source = emitter.source()
    # A file name inside this package marks the generated frames as internal in error messages.
    filename = os.path.join(os.path.dirname(__file__), f"<{name} {width}>")
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), emitter.globals)
    call = emitter.globals["kernel"]
    return Variant(source, call, bool(call.__code__.co_flags & 0x20))  # CO_GENERATOR


def _argument(value: Any, arg: Value, number: int) -> Any:
    try:
        return _convert(value, arg.type)
    except (TypeError, ValueError, OverflowError) as error:
        raise LaunchError(f"argument {number} is {value!r}, which is no {arg.type}") from error


def _convert(value: Any, type_: Any) -> Any:
    if is_aggregate(type_):
        fields = aggregate_fields(type_)
        return tuple(_convert(v, t) for v, t in zip(value, fields, strict=True))
    dtype = dtype_of(type_)
    if isinstance(type_, VectorType):
        return np.asarray(value, dtype).reshape(*type_.shape, 1)
    if isinstance(type_, IntType) and type_.width > 1:
        number = operator.index(value)
        half = 1 << (type_.width - 1)
        if not -half <= number < 2 * half:
            raise OverflowError(number)
        return dtype.type((number + half) % (2 * half) - half)
    if isinstance(type_, PtrType):
        return dtype.type(operator.index(value))
    return dtype.type(value)


def translate(module: Any, name: str, bindings: Any = None) -> SimKernel:
    """Translate the kernel `name` of a lowered module (or gpu.module, or gpu.func).

    `module` is an MLIR operation of any bindings; nothing of it is kept. `bindings` is not needed
    to read it and is accepted for symmetry with the other targets. Raises MissingRuleError for an
    operation the simulator does not know.
    """
    return SimKernel(read_kernel(module, name))
