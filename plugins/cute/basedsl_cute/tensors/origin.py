"""Coordinates of a view's elements in the tensor that it was cut from, for the simulator's check.

A tile may overhang its tensor: an element of it then has an address within the allocation, of
another row. So kernels for the simulator carry, beside the layout of a view, the layout of its
coordinates, on which divides, compositions and slices act alike; elements are compared with the
extents of the whole tensor. A view whose coordinates cannot be followed has no origin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from basedsl import DSLTypeError, Trace, current_trace_or_none, is_dynamic
from basedsl_cute import algebra
from basedsl_cute.algebra.int_tuple import flatten_to_tuple
from basedsl_cute.dialect.cute_trace import cute_trace
from basedsl_cute.tensors.bounds_checks import check_mode

_MOST = 1024
"""Elements of one access whose coordinates are looked at while tracing."""


class ViewOrigin(NamedTuple):
    """The coordinates of a view: those of its element at `coord` are `start + layout(coord)`, in a
    tensor with the extents `shape`.
    """

    start: Any
    layout: Any
    shape: Any

    def at(self, offset: Any, layout: Any) -> ViewOrigin:
        """The coordinates of a view of this view, which begins `offset` further."""
        return ViewOrigin(algebra.add_offset(self.start, offset), layout, self.shape)

    def relaid(self, change: Callable[[Any], Any], shape: Any) -> ViewOrigin | None:
        """The coordinates when the layout changes; None if that gives not the modes `shape`."""
        try:
            layout = change(self.layout)
        except (DSLTypeError, TypeError, ValueError):
            return None
        if not isinstance(layout, algebra.Layout) or not _same(layout.shape, shape):
            return None
        return ViewOrigin(self.start, layout, self.shape)

    def sliced(self, coord: Any) -> ViewOrigin:
        """The coordinates of the slice at `coord`."""
        layout, offset = algebra.slice_and_offset(coord, self.layout)
        return self.at(offset, layout)

    def check_element(self, trace: Trace, coord: Any) -> None:
        """Emit checks that the element at `coord` lies in the whole tensor."""
        self._check(trace, algebra.add_offset(self.start, self.layout(coord)))

    def check_elements(self, trace: Trace, numbers: range) -> None:
        """Emit checks that the elements of these numbers, of a static shape, lie in the whole
        tensor.
        """
        if not numbers or len(numbers) > _MOST or not algebra.is_static(self.layout):
            return
        places = [flatten_to_tuple(self.layout(i)) for i in numbers]
        starts = flatten_to_tuple(self.start)
        if any(len(place) != len(starts) for place in places):
            return
        least = [min(part) for part in zip(*places, strict=True)]
        most = [max(part) for part in zip(*places, strict=True)]
        self._check(trace, tuple(map(algebra.add_offset, starts, most)))
        if min(least) < 0:
            self._check(trace, tuple(map(algebra.add_offset, starts, least)))

    def _check(self, trace: Trace, place: Any) -> None:
        parts, extents = flatten_to_tuple(place), flatten_to_tuple(self.shape)
        if len(parts) != len(extents):
            return
        for mode, (part, extent) in enumerate(zip(parts, extents, strict=True)):
            if is_dynamic(part) or is_dynamic(extent) or not 0 <= part < extent:
                which = "" if len(parts) == 1 else f"mode {mode} of "
                check_mode(trace, part, extent, f"{which}the tensor that it is cut from")


def whole(shape: Any) -> ViewOrigin:
    """The coordinates of a tensor that is not cut from another one."""
    layout = algebra.make_identity_layout(shape)
    return ViewOrigin(_zeros(shape), layout, shape)


def are_followed() -> Trace | None:
    """The trace, if it is that of a kernel whose coordinates are checked."""
    trace = current_trace_or_none()
    if trace is None or trace.function_kind != "kernel":
        return None
    return trace if cute_trace(trace).checks_coordinates else None


def _zeros(shape: Any) -> Any:
    return tuple(map(_zeros, shape)) if isinstance(shape, tuple) else 0


def _same(a: Any, b: Any) -> bool:
    """True for shapes with the same modes, where known of the same extents."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        both = isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b)
        return both and all(map(_same, a, b))
    return is_dynamic(a) or is_dynamic(b) or a == b
