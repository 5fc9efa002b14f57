"""Profiles: what launches did, by Python line; printed as a table, and as JSON."""

from __future__ import annotations

import json
import linecache
from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from basedsl_cute.hardware.occupancy import Occupancy
from basedsl_cute.sim.profiling.counting import KernelRun
from basedsl_cute.sim.profiling.operations import ProfiledOperation

if TYPE_CHECKING:
    from basedsl_cute.sim.profiling.prediction import Prediction


@dataclass
class Counts:
    """Counts of a line, or of a whole kernel.

    `instructions` are warp instructions by kind, and `warps` those that began the line's
    operations with `lanes` lanes in all. Of global memory: `requests`, the `sectors` of 32 bytes
    that they touched and the fewest that hold the same bytes, `lines` of 128 bytes. Of shared
    memory: `wavefronts`, and the fewest; the difference are bank conflicts. `tma_bytes` are copied
    by the TMA unit, `tensor_flops` done by tensor cores, `tensor_memory_bytes` loaded from tensor
    memory, stored or copied to it by tcgen05 instructions.
    """

    instructions: dict[str, float] = field(default_factory=dict)
    executed: float = 0.0
    lane_instructions: float = 0.0
    branches: int = 0
    diverged_branches: int = 0
    partial: float = 0.0
    load_requests: int = 0
    store_requests: int = 0
    load_sectors: int = 0
    load_ideal_sectors: int = 0
    store_sectors: int = 0
    store_ideal_sectors: int = 0
    lines: int = 0
    load_wavefronts: int = 0
    load_ideal_wavefronts: int = 0
    store_wavefronts: int = 0
    store_ideal_wavefronts: int = 0
    barriers: int = 0
    tma_bytes: int = 0
    tensor_flops: float = 0.0
    tensor_memory_bytes: int = 0

    @property
    def active_lanes(self) -> float:
        """The mean of active lanes of an instruction, of 32."""
        return self.lane_instructions / self.executed if self.executed else 0.0

    @property
    def load_bank_conflicts(self) -> int:
        return self.load_wavefronts - self.load_ideal_wavefronts

    @property
    def store_bank_conflicts(self) -> int:
        return self.store_wavefronts - self.store_ideal_wavefronts

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts of shared memory beyond the fewest."""
        return self.load_bank_conflicts + self.store_bank_conflicts

    @property
    def sectors(self) -> int:
        return self.load_sectors + self.store_sectors

    @property
    def ideal_sectors(self) -> int:
        return self.load_ideal_sectors + self.store_ideal_sectors

    def add(self, operation: ProfiledOperation, warps: int, lanes: int, partial: int) -> None:
        """Add what an operation of a chunk did, which `warps` warps executed."""
        number = warps * operation.count
        kinds = Tally(self.instructions)
        kinds[operation.kind] += number  # type: ignore[assignment]
        self.instructions = dict(kinds)
        self.executed += number
        self.lane_instructions += lanes * operation.count
        self.partial += partial * operation.count
        self.tensor_flops += warps * operation.flops + operation.issued_flops
        if operation.kind == "branch":
            self.branches += warps
            self.diverged_branches += operation.diverged
        if operation.kind in ("barrier", "mbarrier"):
            self.barriers += warps
        memory = operation.memory
        if memory is None:
            if operation.kind == "tensor memory":
                self.tensor_memory_bytes += operation.bytes
            else:
                self.tma_bytes += operation.bytes
            return
        self.lines += operation.lines
        copies = operation.kind == "asynchronous copy"  # these write to shared memory
        if operation.sectors:
            side = "store" if memory.writes else "load"
            self._more(f"{side}_requests", operation.requests)
            self._more(f"{side}_sectors", operation.sectors)
            self._more(f"{side}_ideal_sectors", operation.ideal_sectors)
        side = "store" if memory.writes or copies else "load"
        self._more(f"{side}_wavefronts", operation.wavefronts)
        self._more(f"{side}_ideal_wavefronts", operation.ideal_wavefronts)

    def _more(self, name: str, number: int) -> None:
        setattr(self, name, getattr(self, name) + number)


@dataclass
class LineProfile(Counts):
    """Counts of one Python line."""

    file: str = ""
    line: int = 0

    @property
    def text(self) -> str:
        """The line, without what it is indented by."""
        return linecache.getline(self.file, self.line).strip()


@dataclass
class KernelProfile:
    """One launch of a kernel: its shape, the blocks that were simulated, its lines and their sum.

    `registers` are a thread's by ptxas, None where that is not known; sizes are bytes.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared: int
    blocks: int
    lines: list[LineProfile]
    total: Counts
    registers: int | None = None
    spilled: int = 0
    occupancy: Occupancy | None = None
    file: str = ""

    @staticmethod
    def of(run: KernelRun) -> KernelProfile:
        """The profile of a launch that was counted."""
        launch = run.launch
        assert launch is not None
        lines: dict[tuple[str, int], LineProfile] = {}
        total = Counts()
        for chunk in run.chunks:
            for operation in chunk.operations:
                span = operation.site.span
                key = (span.filename, span.line) if span is not None else ("", 0)
                found = lines.setdefault(key, LineProfile(file=key[0], line=key[1]))
                for counts in (found, total):
                    counts.add(operation, chunk.warps, chunk.lanes, chunk.partial)
        span = run.record.site.span
        return KernelProfile(
            run.kernel, launch.grid, launch.block, launch.cluster, launch.shared_size,
            launch.blocks, sorted(lines.values(), key=lambda one: (one.file, one.line)), total,
            file="" if span is None else span.filename,
        )  # fmt: skip

    def line(self, number: int, file: str | None = None) -> LineProfile:
        """The profile of one line, by its number. Raises KeyError if it did nothing."""
        for one in self.lines:
            if one.line == number and (file is None or one.file == file):
                return one
        raise KeyError(f"line {number} of the kernel {self.name} executes no instruction")

    def where(self, text: str) -> LineProfile:
        """The profile of the first line that contains `text`. Raises KeyError if none does."""
        for one in self.lines:
            if text in one.text:
                return one
        raise KeyError(f"no line of the kernel {self.name} contains {text!r}")


_COLUMNS = (
    ("instr", 9), ("lanes", 6), ("global sectors", 20), ("shared waves", 18), ("TMA bytes", 10),
    ("tensor flop", 12),
)  # fmt: skip


class Profile:
    """Profiles of the launches of one call, in order: `kernels`. Printing it gives tables."""

    def __init__(
        self, kernels: list[KernelProfile], predictions: Sequence[Prediction] = ()
    ) -> None:
        self.kernels = kernels
        self._predictions = predictions

    @property
    def kernel(self) -> KernelProfile:
        """The only kernel. Raises ValueError if there are several launches, or none."""
        if len(self.kernels) != 1:
            raise ValueError(f"{len(self.kernels)} launches: pick one of `kernels`")
        return self.kernels[0]

    def __str__(self) -> str:
        return "\n\n".join(table(one) for one in self.kernels) or "no kernel was launched"

    def json(self) -> str:
        """All counts as JSON."""
        return json.dumps([_plain(one) for one in self.kernels], indent=1) + "\n"

    def timeline(self, path: str | Path) -> Path:
        """Write what the warps and the asynchronous units of all launches do as a file for
        ui.perfetto.dev, at the times of a prediction for the profile's architecture, and return its
        path. Raises ValueError for a profile that was made without `timeline=True`.
        """
        from basedsl_cute.sim.profiling.timeline import write_timeline

        if not self._predictions:
            raise ValueError("profile(..., timeline=True) keeps what a timeline draws")
        launches = [(one.kernel, one.slices, one.rates.clock) for one in self._predictions]
        return write_timeline(path, launches)

    def html(self, path: str | Path, predictions: Sequence[Prediction] = ()) -> Path:
        """Write the annotated source as one HTML file, and return its path. `predictions` of the
        same launches add their text, and the kernels in a roofline.
        """
        from basedsl_cute.sim.profiling.page import page
        from basedsl_cute.sim.profiling.roofline import roofline

        figure = roofline(list(predictions))
        text = page(self.kernels, [str(one) for one in predictions], figure)
        Path(path).write_text(text, encoding="utf-8")
        return Path(path)


def _plain(kernel: KernelProfile) -> dict[str, Any]:
    out = asdict(kernel)
    for line, given in zip(out["lines"], kernel.lines, strict=True):
        line["text"] = given.text
    return out


def table(kernel: KernelProfile) -> str:
    """The profile of a kernel as text: a row for each line, and their sum."""
    title = f"{kernel.name}: grid {_shape(kernel.grid)}, block {_shape(kernel.block)}"
    if kernel.cluster != (1, 1, 1):
        title += f", cluster {_shape(kernel.cluster)}"
    title += f", {kernel.shared} bytes of shared memory"
    every = kernel.grid[0] * kernel.grid[1] * kernel.grid[2]
    if kernel.blocks < every:
        title += f"; {kernel.blocks} of {every} blocks simulated"
    rows = [title]
    if kernel.registers is not None:
        rows.append(f"{kernel.registers} registers, {kernel.spilled} bytes spilled; occupancy "
                    f"{kernel.occupancy}")  # fmt: skip
    elif kernel.occupancy is not None:
        rows.append(f"occupancy, registers not known: {kernel.occupancy}")
    head = " ".join(f"{name:>{width}}" for name, width in _COLUMNS)
    rows += ["", f"{head}  line"]
    for one in kernel.lines:
        place = f"{one.line:>5}  {one.text[:60]}" if one.line else "    ?"
        rows.append(f"{_row(one)} {place}")
    rows.append(f"{_row(kernel.total)}   sum")
    rows += [f"  {text}" for text in _summary(kernel.total)]
    return "\n".join(rows)


def _row(one: Counts) -> str:
    def ratio(number: int, ideal: int) -> str:
        return f"{number} ({number / ideal:.2f}x)" if number and ideal else "-"

    waves = one.load_wavefronts + one.store_wavefronts
    fewest = one.load_ideal_wavefronts + one.store_ideal_wavefronts
    cells = (
        f"{one.executed:.0f}", f"{one.active_lanes:.1f}", ratio(one.sectors, one.ideal_sectors),
        ratio(waves, fewest), f"{one.tma_bytes}" if one.tma_bytes else "-",
        f"{one.tensor_flops:.3g}" if one.tensor_flops else "-",
    )  # fmt: skip
    widths = (width for _, width in _COLUMNS)
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _summary(total: Counts) -> list[str]:
    kinds = sorted(total.instructions.items(), key=lambda pair: -pair[1])
    out = ["instructions of warps: " + ", ".join(f"{n:.0f} {kind}" for kind, n in kinds)]
    if total.branches:
        out.append(f"{total.diverged_branches} of {total.branches} branches of warps diverge")
    if total.sectors:
        out.append(
            f"global memory: loads touch {total.load_sectors} sectors ({total.load_ideal_sectors} "
            f"would do), stores {total.store_sectors} ({total.store_ideal_sectors})"
        )
    if total.tensor_memory_bytes:
        out.append(f"tensor memory: {total.tensor_memory_bytes} bytes loaded, stored and copied")
    if total.load_wavefronts or total.store_wavefronts:
        out.append(
            f"shared memory: {total.load_bank_conflicts} bank conflicts of loads, "
            f"{total.store_bank_conflicts} of stores"
        )
    return out


def _shape(extents: tuple[int, int, int]) -> str:
    kept = list(extents)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return " x ".join(map(str, kept))
