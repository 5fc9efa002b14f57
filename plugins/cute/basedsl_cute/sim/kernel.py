"""Kernels of the simulator: `translate` a lowered kernel once, `launch` it many times.

Translating loads the table of rules; a kernel that was kept (`pack`, `unpack`) runs without.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from basedsl import DSLError
from basedsl_cute.sim.errors import LaunchError, RaceError
from basedsl_cute.sim.explore import seeded
from basedsl_cute.sim.launch import check_configuration, run_launch, triple
from basedsl_cute.sim.machine.guards import KernelInFront
from basedsl_cute.sim.machine.memory import Memory
from basedsl_cute.sim.machine.race_checker import RaceChecker
from basedsl_cute.sim.machine.ranks import current_rank
from basedsl_cute.sim.machine.reports import report
from basedsl_cute.sim.machine.state import SimLaunch
from basedsl_cute.sim.machine.stream_order import ORDER
from basedsl_cute.sim.machine_model import Machine
from basedsl_cute.sim.nvidia import NVIDIA
from basedsl_cute.sim.observe import Observer, watching
from basedsl_cute.sim.options import LockstepWidth, SimOptions
from basedsl_cute.sim.translate.parameter import KernelParameter
from basedsl_cute.sim.translate.specialization import RaceFacts, Specialization

if TYPE_CHECKING:
    from basedsl_cute.sim.translate.records import KernelRecord  # a kept kernel runs without


_PLACEMENTS = 4  # of shared variables, that seeds choose from


class SimKernel:
    """A translated kernel: plain Python, nothing of MLIR. Made by `translate`.

    `width` is the most lanes that can run in lock step. Raises MissingRuleError for an operation
    that `machine` has no rule for.
    """

    def __init__(self, record: KernelRecord, machine: Machine = NVIDIA) -> None:
        from basedsl_cute.sim.translate.placement import assign_addresses
        from basedsl_cute.sim.translate.translation import kernel_parameters, widest_lockstep

        if machine.lanes & (machine.lanes - 1) or machine.lanes < 1:
            raise ValueError(
                f"{machine.name!r} has {machine.lanes} lanes: it must be a power of two"
            )
        self.name, self.machine = record.name, machine
        self._memory_map = assign_addresses(record, 1)
        self._record: Callable[[], KernelRecord] = lambda: record
        self._specializations: dict[str, Specialization] = {}
        self.width: LockstepWidth = widest_lockstep(record, machine.rules(record))
        self._specialization(self.width)
        self._parameters: tuple[KernelParameter, ...] = kernel_parameters(record)

    def prepared(self, options: SimOptions) -> SimKernel:
        """This kernel, translated for launches with these options."""
        self._specialization(self._choose_width(options))
        return self

    def pack(self) -> bytes:
        """Serialize this kernel for `unpack`, in another process of the same Python."""
        return pickle.dumps((self.name, self._parameters, self.width, self._specializations))

    @classmethod
    def unpack(
        cls, data: bytes, record: Callable[[], KernelRecord], machine: Machine = NVIDIA
    ) -> SimKernel:
        """The kernel of `machine` that `pack` was called on. `record` is called for a width that it
        was not translated for.
        """
        self = cls.__new__(cls)
        self.machine = machine
        self.name, self._parameters, self.width, self._specializations = pickle.loads(data)
        self._memory_map = self._specializations[self.width].memory_map
        self._record = record
        return self

    @property
    def source(self) -> str:
        """The Python that runs when the width is "auto"."""
        return self._specialization(self.width).source

    @property
    def widths(self) -> tuple[LockstepWidth, ...]:
        """The widths that this kernel can run at, all with the same results."""
        every: tuple[LockstepWidth, ...] = ("warp", "block", "grid")
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
        preferred: Any = None,
        cooperative: bool = False,
        dependent: bool = False,
        stream: int = 0,
    ) -> None:
        """Run the kernel on every thread of the grid.

        `grid`, `block` and `cluster` are ints or up to three of them. `args` are ints and floats
        (or NumPy scalars), and host addresses for pointers; `memory` lists the memory that may be
        touched. `dynamic_smem` is in bytes. Every second place of a cluster of the shape
        `preferred` has one such cluster; others have the shape `cluster`, by default the only one.
        The blocks of a cluster run together, and those of a `cooperative` launch all do. A
        `dependent` launch may begin before the one in front of it has ended: the race check demands
        that it waits for that. Launches on different streams, whose handles these are, may run at
        the same time.

        Raises LaunchError before anything runs, and SimulationError for an error of the kernel;
        then the memory holds what was written so far.
        """
        options = seeded(options or SimOptions())
        member = current_rank()
        if member is not None:
            options = member.begin_launch(options)
            memory = member.with_symmetric(memory)
        grid, block = triple(grid, "grid"), triple(block, "block")
        cluster = triple(cluster, "cluster")
        if preferred is not None:
            preferred = triple(preferred, "preferred cluster")
        self._check_shape(grid, block, cluster, dynamic_smem)
        values = self._values(args)
        clustered = preferred is not None or cluster != (1, 1, 1)
        apart = clustered or cooperative or member is not None
        observer = watching()
        width = "warp" if apart else self._choose_width(options, observer)
        specialization = self._specialization(width, observer, options.schedule_seed)
        pointers = {
            i: int(values[i])
            for i, parameter in enumerate(self._parameters)
            if parameter.is_pointer
        }
        launch = SimLaunch(
            grid,
            block,
            specialization.memory_map,
            dynamic_smem,
            memory,
            pointers,
            options,
            self.machine,
            cluster,
            cooperative,
            preferred,
        )
        launch.member = member
        facts = specialization.race_facts
        if options.level("races") != "off":
            launch.races = self._race_checker(launch, facts, stream)
            launch.asynchronous = facts.asynchronous or clustered
        if dependent and launch.races is not None and memory.launches:
            launch.guards += memory.launches[-1].guards()
        if observer is not None:
            observer.begin(launch, self.name)
        with self._hints():
            run_launch(launch, width, specialization.call, values, specialization.waits)
        if observer is not None:
            observer.end(launch)
        self._end(launch, facts, memory, stream)
        if dependent and launch.races is not None and not launch.waited:
            report(launch, "races", _never_waits(self.name))

    def _check_shape(self, grid: Any, block: Any, cluster: Any, dynamic_smem: int) -> None:
        if dynamic_smem < 0:
            raise LaunchError(
                f"dynamic shared memory of {dynamic_smem} bytes: it cannot be negative"
            )
        smem = self._memory_map.shared_size(dynamic_smem)
        with self._hints():
            check_configuration(self.machine.limits, grid, block, cluster, smem)

    @contextmanager
    def _hints(self) -> Iterator[None]:
        """Let the hints of errors speak of this kernel's machine."""
        try:
            yield
        except DSLError as error:
            error.hint = self.machine.hint(error.hint)
            raise

    def _race_checker(self, launch: SimLaunch, facts: RaceFacts, stream: int) -> RaceChecker:
        written = None
        if facts.written is not None and (launch.member or not ORDER.follows(stream)):
            written = [s for i in facts.written for s in launch.aliases.get(i, ())]
            written += [s for s in launch.memory if s.name in self._memory_map.writable]
        shared = number = None
        if launch.member is not None:
            shared = launch.member.world.order
            number = shared.begin(launch.member.rank, launch.grid, launch.block)
        lanes = self.machine.lanes
        memory = launch.memory
        return RaceChecker(launch.threads, lanes, memory, written, facts.syncs, shared, number)

    def _end(self, launch: SimLaunch, facts: RaceFacts, memory: Memory, stream: int) -> None:
        """Tell later launches what this one has read and written of `memory`."""
        if launch.member is not None:
            launch.member.end_launch(launch)
        elif not ORDER.follows(stream):
            ORDER.pass_default()
        elif launch.races is not None:
            ORDER.add(stream, self.name, launch)
        written = _ranges(launch, facts.written)
        if launch.races is not None:
            written += tuple((s.base, s.end) for s in launch.races.stored)
        read = _ranges(launch, facts.read)
        memory.launches[:] = [KernelInFront(self.name, written, read)]

    def _choose_width(self, options: SimOptions, observer: Observer | None = None) -> LockstepWidth:
        if observer is not None and observer.width is not None:
            return observer.width
        if options.schedule_seed:
            return "warp"
        if options.width == "auto":
            return self.width
        if options.width not in self.widths:
            raise LaunchError(
                f"kernel {self.name} cannot run {options.width}-wide: some of its warps wait alone",
                hint=f"run it {' or '.join(self.widths)}-wide",
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

    def _specialization(
        self, width: LockstepWidth, observer: Observer | None = None, seed: int = 0
    ) -> Specialization:
        """This kernel translated for `width`, anew for each launch that is observed; `seed` decides
        how shared memory is laid out.
        """
        if observer is not None:
            from basedsl_cute.sim.translate.placement import assign_addresses
            from basedsl_cute.sim.translate.translation import specialize

            record = self._record()
            return specialize(record, width, assign_addresses(record), self.machine, observer)
        placement = seed % _PLACEMENTS
        key = f"{width} {placement}" if placement else width
        found = self._specializations.get(key)
        if found is None:
            from basedsl_cute.sim.translate.placement import assign_addresses
            from basedsl_cute.sim.translate.translation import specialize

            memory_map, record = self._memory_map, self._record()
            if placement:
                memory_map = assign_addresses(record, 1 + placement)
            found = specialize(record, width, memory_map, self.machine)
            self._specializations[key] = found
        return found


def _never_waits(name: str) -> RaceError:
    return RaceError(
        f"{name} was launched with use_pdl=True and never waits",
        notes=(("it may begin before the kernel in front of it has written what it reads", None),),
        hint="cute.arch.griddepcontrol_wait() before the first access to global memory",
    )


def _ranges(launch: SimLaunch, roots: frozenset[int] | None) -> tuple[tuple[int, int], ...]:
    """The addresses of the arguments with these numbers, where they are known."""
    return tuple((s.base, s.end) for i in roots or () for s in launch.aliases.get(i, ()))


def _argument(value: Any, parameter: KernelParameter, number: int) -> Any:
    try:
        return parameter.convert(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise LaunchError(
            f"argument {number} is {value!r}, not a value of type {parameter}"
        ) from error


def translate(module: Any, name: str, machine: Machine = NVIDIA) -> SimKernel:
    """Translate the kernel `name` of a lowered module (or gpu.module, or gpu.func) for `machine`.

    `module` is an MLIR operation of any bindings; nothing of it is kept. Raises MissingRuleError
    for an operation that `machine` has no rule for, and DSLError if there is no such kernel.
    """
    from basedsl_cute.sim.translate.records import read_kernel

    return SimKernel(read_kernel(module, name), machine)
