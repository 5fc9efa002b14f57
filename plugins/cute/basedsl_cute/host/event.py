"""CUDA events as arguments of @jit functions, which a launch records: `launch_completion_event=`
and `programmatic_event=`. On the simulator a launch has ended when it returns, and events do
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError, Int64, is_dynamic, with_article
from basedsl_cute.host.cuda_handle import CudaHandle, HandleArgument


class Event(CudaHandle):
    """A CUDA event in compiled code, whose handle is known at run time. As the annotation of a
    parameter of a @jit function, it also takes a handle (CUevent) as an integer.
    `value` is the handle in the IR, of 64 bits.
    """

    noun = "event"


@dataclass(frozen=True)
class EventArgument(HandleArgument):
    """The argument type of an event, passed as its CUevent."""

    traced = Event

    def pack(self, value: Any) -> tuple[int]:
        return (event_handle(value),)


def is_event(value: Any) -> bool:
    """Return True for an event of cuda.bindings, cuda.core, PyTorch or CuPy."""
    name = type(value).__name__
    return name in ("CUevent", "cudaEvent_t") or (
        name == "Event" and any(hasattr(value, a) for a in ("cuda_event", "handle", "ptr"))
    )


def event_handle(event: Any) -> int:
    """Return the CUevent of an event of cuda.bindings, cuda.core, PyTorch or CuPy, or of its handle
    as an integer; DSLTypeError for anything else.
    """
    for attribute in ("cuda_event", "handle", "ptr"):  # PyTorch, cuda.core, CuPy
        event = getattr(event, attribute, event)
    if not isinstance(event, bool | float | str | bytes):
        try:
            return int(event)
        except (TypeError, ValueError):
            pass
    raise DSLTypeError(
        f"{with_article(type(event))} is no CUDA event",
        hint="pass an event of PyTorch, CuPy or cuda.bindings, or its handle as an integer",
    )


def event_value(event: Any) -> Any:
    """Return the handle of a launch's event as an i64 value. DSLTypeError for no event."""
    if isinstance(event, Event):
        return event.ir_value()
    if is_dynamic(event):
        raise DSLTypeError(
            f"a dynamic {type(event).__name__} is no CUDA event",
            hint="annotate the parameter that takes the event: event: cute.Event",
        )
    return Int64(event_handle(event)).ir_value()
