"""The simulator's two calls: `translate` a lowered kernel once, `launch` it many times.

Translating loads the table of rules; a kernel that was kept (`pack`, `unpack`) runs without.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from basedsl_cute.sim.errors import LaunchError, RaceError
from basedsl_cute.sim.launch import Launch, SimOptions, Width, check_configuration, triple
from basedsl_cute.sim.machine.memory import Memory
from basedsl_cute.sim.translate.parameter import Parameter
from basedsl_cute.sim.translate.specialization import Variant

if TYPE_CHECKING:
    from basedsl_cute.sim.translate.records import KernelRecord


class SimKernel:
    """A translated kernel: plain Python, nothing of MLIR. Made by `translate`."""

    def __init__(self, record: KernelRecord) -> None:
        from basedsl_cute.sim.translate.translation import parameters, place, widest

        self.name = record.name
        self._layout = place(record)
        self._record = lambda: record
        self._variants: dict[str, Variant] = {}
        self.width: Width = widest(record)
        self._variant(self.width)
        self._parameters = parameters(record)

    def prepared(self, options: SimOptions) -> SimKernel:
        """This kernel, translated for launches with these options."""
        self._variant(self._choose(options))
        return self

    def pack(self) -> bytes:
        """What `unpack` makes this kernel of, in another process of the same Python."""
        return pickle.dumps((self.name, self._parameters, self.width, self._variants))

    @classmethod
    def unpack(cls, data: bytes, record: Callable[[], KernelRecord]) -> SimKernel:
        """The kernel that `pack` was called on; its `record` is needed only for another width."""
        self = cls.__new__(cls)
        self.name, self._parameters, self.width, self._variants = pickle.loads(data)
        self._layout = self._variants[self.width].layout
        self._record = record
        return self

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
        cooperative: bool = False,
        dependent: bool = False,
    ) -> None:
        """Run the kernel on every thread of the grid, blocks of a `cluster` together, or all of a
        `cooperative` launch. A `dependent` one may begin before the launch in front of it has
        ended, and the race check has it wait for that.

        `args` are ints and floats (or NumPy scalars), and addresses for pointers. `memory` says
        what may be touched. Raises LaunchError before anything runs, SimulationError for what the
        kernel does; then the memory holds what was written so far.
        """
        options = options or SimOptions()
        grid, block = triple(grid, "grid"), triple(block, "block")
        if dynamic_smem < 0:
            raise LaunchError(f"dynamic shared memory of {dynamic_smem} bytes")
        cluster = triple(cluster, "cluster")
        check_configuration(grid, block, cluster, self._layout.shared_size(dynamic_smem))
        values = self._values(args)
        apart = cluster != (1, 1, 1) or cooperative
        width = "warp" if apart else self._choose(options)
        variant = self._variant(width)
        pointers = {
            i: int(values[i])
            for i, parameter in enumerate(self._parameters)
            if parameter.is_pointer
        }
        layout = variant.layout
        launch = Launch(
            grid, block, layout, dynamic_smem, memory, pointers, options, cluster, cooperative
        )
        launch.run(width, variant.call, values, variant.waits)
        if dependent and options.check_races and not launch.waited:
            raise RaceError(
                f"{self.name} was launched with use_pdl=True and never waits: it may begin before "
                "the kernel in front of it has written what it reads",
                hint="cute.arch.griddepcontrol_wait() before the first access to global memory",
            )

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

    def _values(self, args: Any) -> tuple[Any, ...]:
        expected = self._parameters
        if len(args) != len(expected):
            raise LaunchError(
                f"kernel {self.name} takes {len(expected)} arguments, {len(args)} were given"
            )
        pairs = zip(args, expected, strict=True)
        return tuple(_argument(value, parameter, i) for i, (value, parameter) in enumerate(pairs))

    def _variant(self, width: Width) -> Variant:
        found = self._variants.get(width)
        if found is None:
            from basedsl_cute.sim.translate.translation import place, translate_at

            record = self._record()
            # Translating asks where each allocation of the record is, which is not kept.
            layout = self._layout if self._layout.record is record else place(record)
            found = self._variants[width] = translate_at(record, width, layout)
        return found


def _argument(value: Any, parameter: Parameter, number: int) -> Any:
    try:
        return parameter.convert(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise LaunchError(f"argument {number} is {value!r}, which is no {parameter}") from error


def translate(module: Any, name: str, bindings: Any = None) -> SimKernel:
    """Translate the kernel `name` of a lowered module (or gpu.module, or gpu.func).

    `module` is an MLIR operation of any bindings; nothing of it is kept. `bindings` is not needed
    to read it and is accepted for symmetry with the other targets. Raises MissingRuleError for an
    operation the simulator does not know.
    """
    from basedsl_cute.sim.translate.records import read_kernel

    return SimKernel(read_kernel(module, name))
