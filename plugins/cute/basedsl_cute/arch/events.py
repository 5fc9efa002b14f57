"""Events in kernels: how long each warp is in a region of code, written to a buffer.

The compile option `trace_buffer` is the address of the buffer; without it nothing is emitted. The
buffer is an array of 64-bit words: the number of events so far, the number that there is room for,
then EVENT_WORDS words for each event:

    name (4 words of UTF-8), kernel (4 words of UTF-8), block, warp, start, end

Times are nanoseconds of `%globaltimer` (PTX ISA 10, "Special Registers"), which all SMs share; the
simulator's clock goes forward by one at each read.
"""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Int32, Int64, Trace
from basedsl_cute.arch.atomics import atomic_add
from basedsl_cute.arch.indices import block_idx, grid_dim, read_register, warp_idx
from basedsl_cute.arch.inline import inline_ptx
from basedsl_cute.tensors.kernel_scope import in_kernel
from basedsl_cute.tensors.make_tensor import make_ptr

NAME_BYTES = 32
HEADER_WORDS = 2
EVENT_WORDS = 2 * NAME_BYTES // 8 + 4


class trace:
    """Record when each warp enters and leaves the block of a `with` statement.

        with cute.trace("load"):
            cute.copy(...)

    A `cute.record_events()` around the call collects the events; without it, and on the host's
    side of a program, the statement emits nothing. `name` is text of at most 32 bytes in UTF-8. Of
    a warp that is in several parts at that time, each part records an event. Raises DSLTypeError
    for another name, DSLError outside of a kernel.
    """

    __dsl_staged__ = True

    def __init__(self, name: str, *, loc: Any = None, ip: Any = None) -> None:
        if not isinstance(name, str) or not 0 < len(name.encode()) <= NAME_BYTES:
            raise DSLTypeError(
                f"the name of a region is text of 1 to {NAME_BYTES} bytes, not {name!r}",
                hint='write with cute.trace("load"):',
            )
        self._name = name
        self._start: Any = None

    def __enter__(self) -> None:
        running = in_kernel("cute.trace()")
        if running.options.trace_buffer:
            self._start = _now(running)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None and self._start is not None:
            running = in_kernel("cute.trace()")
            _record(running, self._name, self._start, _now(running))


def _now(running: Trace) -> Int64:
    """Read the clock; no access to memory moves across it."""
    ir = running.ir
    made = running.emit(
        ir.Operation.create,
        "llvm.inline_asm",
        results=[ir.IntegerType.get_signless(64)],
        operands=[],
        attributes={
            "asm_string": ir.StringAttr.get("mov.u64 $0, %globaltimer;"),
            "constraints": ir.StringAttr.get("=l,~{memory}"),
            "has_side_effects": ir.UnitAttr.get(),
        },
    )
    return Int64.from_value(made.result)


def _record(running: Trace, name: str, start: Int64, end: Int64) -> None:
    """Write one event, by the first lane that is here."""
    mask = inline_ptx("activemask.b32 $0;", (), Int32)
    base = make_ptr(Int64, Int64(running.options.trace_buffer), "gmem")
    below = read_register("lanemask.lt", "cute.trace()")
    with _only_where(running, (mask & below) == 0):
        place = atomic_add(base, 1)
        with _only_where(running, place < (base + 1).load()):
            x, y, z = block_idx()
            width, height, _ = grid_dim()
            block = x.to(Int64) + width.to(Int64) * (y.to(Int64) + height.to(Int64) * z.to(Int64))
            words = [*_words(name), *_words(running.function_name), block, warp_idx(), start, end]
            event = base + (HEADER_WORDS + place * EVENT_WORDS)
            for i, word in enumerate(words):
                (event + i).store(Int64(word))


def _words(text: str) -> list[int]:
    data = text.encode()[:NAME_BYTES].ljust(NAME_BYTES, b"\0")
    return [int.from_bytes(data[i : i + 8], "little", signed=True) for i in range(0, NAME_BYTES, 8)]


class _only_where:
    """Emit the block of a `with` statement under `scf.if`."""

    def __init__(self, running: Trace, condition: Any) -> None:
        self._trace = running
        create = running.ir.Operation.create
        branch = running.emit(create, "scf.if", operands=[condition.ir_value()], regions=2)
        self._insertion = running.insertion(branch.regions[0].blocks.append())

    def __enter__(self) -> None:
        self._insertion.__enter__()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            self._trace.ir.Operation.create("scf.yield", loc=self._trace.loc())
        self._insertion.__exit__(kind, error, traceback)
