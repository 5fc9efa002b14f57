"""The box of a TMA copy: the part of a tile that one instruction moves.

A box is contiguous in shared memory: the walk through the shared layout, as far as it steps
through whole modes of the global tensor, the first of which is the contiguous one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from basedsl import DSLTypeError
from basedsl_cute import algebra
from basedsl_cute.hardware.tensor_map_format import MAX_BOX, MAX_RANK, SWIZZLE_BITS, SWIZZLE_BYTES
from basedsl_cute.tensors.tensor import Tensor

_SMEM_UNIT = 128  # bytes; boxes begin at multiples of it in shared memory


class Box(NamedTuple):
    """The box of one instruction: the map's mode i is `order[i]` of the tensor's `Modes`, and
    `extents[i]` the box's elements along it; `swizzle` is the number of the swizzle of shared
    memory in tensor maps, 0 for none.
    """

    order: tuple[int, ...]
    extents: tuple[int, ...]
    swizzle: int

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.extents)


class Modes(NamedTuple):
    """The modes of a tensor map: the leaves of a tensor's shape and stride, and their paths in
    it.
    """

    shape: tuple[Any, ...]
    stride: tuple[Any, ...]
    paths: tuple[tuple[int, ...], ...]

    @property
    def names(self) -> list[Any]:
        """The modes' names in messages."""
        return [path[0] if len(path) == 1 else list(path) for path in self.paths]


def modes_of(tensor: Tensor) -> Modes:
    """Return the modes of a plain tensor in global memory; DSLTypeError for others."""
    layout = tensor.layout
    if not isinstance(layout, algebra.Layout) or tensor.memspace != "gmem":
        raise DSLTypeError(f"TMA copies to and from plain tensors in global memory, not {tensor}")
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    stride = layout.stride if isinstance(layout.shape, tuple) else (layout.stride,)
    return Modes(leaves(shape), leaves(stride), tuple(paths_of(shape)))


def scale_modes(tensor: Tensor) -> tuple[Modes, Any]:
    """Return the modes of a tensor map for a tensor with strides of 0, and its coordinates: a
    layout of its shape with basis strides into these modes.

    Elements along a stride of 0 are one. Where the contiguous mode has less than the 16 bytes that
    TMA copies, or there are more than the 5 modes of a tensor map, static modes that follow each
    other in memory become one: a chunk of block scale factors, of 512 bytes, is contiguous.
    """
    plain = modes_of(tensor)
    kept = [i for i, d in enumerate(plain.stride) if not (type(d) is int and d == 0)]
    kept = [i for i in kept if not (type(plain.shape[i]) is int and plain.shape[i] == 1)]
    static = [i for i in kept if type(plain.shape[i]) is int and type(plain.stride[i]) is int]
    place: dict[int, tuple[int, int]] = {}  # leaf -> (mode of the map, steps)
    whole = 1
    bits = tensor.element_type.width
    for i in sorted(static, key=lambda i: plain.stride[i]):
        is_enough = whole * bits >= 128 and len(kept) <= MAX_RANK
        if plain.stride[i] != whole or is_enough:
            break
        place[i] = (0, whole)
        whole *= plain.shape[i]
    rest = [i for i in kept if i not in place]
    place |= {i: (number, 1) for number, i in enumerate(rest, 1)}
    shape = (whole, *(plain.shape[i] for i in rest))
    stride = (1, *(plain.stride[i] for i in rest))
    steps = [
        algebra.ScaledBasis(place[i][1], place[i][0]) if i in place else 0
        for i in range(len(plain.shape))
    ]
    nested = tensor.layout.shape
    coordinates = algebra.Layout(nested, _unflatten(iter(steps), nested))
    return Modes(shape, stride, tuple((i,) for i in range(len(shape)))), coordinates


def _unflatten(flat: Any, profile: Any) -> Any:
    if isinstance(profile, tuple):
        return tuple(_unflatten(flat, part) for part in profile)
    return next(flat)


def has_repeats(tensor: Tensor) -> bool:
    """Return True for a tensor with a stride of 0 over more than one element, as that of the
    elements that share a scale factor.
    """
    plain = modes_of(tensor)
    return any(
        type(d) is int and d == 0 and not (type(n) is int and n == 1)
        for n, d in zip(plain.shape, plain.stride, strict=True)
    )


def leaves(x: Any) -> tuple[Any, ...]:
    """Return the leaves of nested tuples, in order."""
    return tuple(leaf for part in x for leaf in leaves(part)) if isinstance(x, tuple) else (x,)


def paths_of(x: Any, at: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Return the paths of the leaves of nested tuples, in order."""
    if not isinstance(x, tuple):
        return [at]
    return [path for i, part in enumerate(x) for path in paths_of(part, (*at, i))]


def tile_of(tensor: Tensor, tiler: Any, coordinates: Any = None) -> Any:
    """Return the layout from the elements of a tile to coordinates of `tensor`, with basis
    strides; `coordinates` is the layout of those of the whole tensor, by default its identity.

    `tiler` has an extent, or a layout, for each mode; modes without one are not tiled. Or it is
    such a layout itself, as `composition(make_identity_layout(shape), extents)`.
    """
    shape = (
        tensor.layout.shape if isinstance(tensor.layout.shape, tuple) else (tensor.layout.shape,)
    )
    if isinstance(tiler, algebra.Layout):
        strides = leaves(tiler.stride)
        if all(isinstance(d, algebra.ScaledBasis) or d == 0 for d in strides):
            return tiler
        raise DSLTypeError(
            f"a TMA tiler is extents by mode, or a layout into coordinates, not {tiler}",
            hint="cute.composition(cute.make_identity_layout(tensor.shape), extents)",
        )
    tiler = tuple(tiler) if isinstance(tiler, Sequence) else (tiler,)
    if len(tiler) > len(shape):
        raise DSLTypeError(f"a tile of {tiler} has more modes than {tensor}")
    tiler = (*tiler, *(1,) * (len(shape) - len(tiler)))
    whole = algebra.make_identity_layout(shape) if coordinates is None else coordinates
    return algebra.composition(whole, tiler)


def find_box(smem_layout: Any, tile: Any, modes: Modes, bits: int, units: int = 1) -> Box:
    """Return the largest box that one instruction can copy between a tile and its layout in shared
    memory, `smem_layout`.

    `tile` is from `tile_of`, and `modes` those of the same tensor; its elements have `bits` bits,
    and the tensor map's are `units` of them. Raises DSLTypeError for a layout that is not of the
    tile, or that no box fits.
    """
    swizzle, outer = 0, smem_layout
    if isinstance(smem_layout, algebra.ComposedLayout):
        found = swizzle_number(algebra.recast_layout(8, bits, smem_layout.inner))
        if found is None:
            raise DSLTypeError(
                f"TMA cannot write {bits}-bit elements to shared memory swizzled as {smem_layout}",
                hint="make the layout for the tensor's element type; its swizzles permute 16-byte "
                "pieces",
            )
        swizzle, outer = found, smem_layout.outer
    size = int(algebra.size(tile))
    if int(algebra.size(outer.shape)) != size:
        wanted = ", ".join(map(str, algebra.product_each(tile.shape)))
        raise DSLTypeError(f"the shared layout {smem_layout} is not one tile of ({wanted})")
    leading = [mode for mode, d in enumerate(modes.stride) if type(d) is int and d == 1]
    walk = stretches_of(algebra.composition(tile, algebra.right_inverse(outer)), modes.paths)
    order: list[int] = []
    extents: list[int] = []
    for extent, step, mode in walk:
        if step != 1 or mode in order or (not order and mode not in leading):
            break
        order.append(mode)
        most = MAX_BOX * (1 if extents else units)
        each = math.prod(extents) * bits // 8
        extents.append(_largest_part(extent, each, modes.names[mode], most))
        if extents[-1] < extent:
            break
    if not order:
        raise DSLTypeError(
            "the shared layout is not contiguous in the mode that is contiguous in global memory",
            notes=(
                (f"the shared layout is {smem_layout}", None),
                (f"the strides in global memory are {modes.stride}", None),
            ),
            hint="make MMA and layout for the tensor's own major mode: "
            "utils.LayoutEnum.from_tensor(x).mma_major_mode()",
        )
    row = extents[0] * bits // 8
    if swizzle and row > SWIZZLE_BYTES[swizzle]:
        raise DSLTypeError(f"rows of {row} bytes are swizzled within {SWIZZLE_BYTES[swizzle]}")
    if math.prod(extents) < int(algebra.size(algebra.filter_zeros(outer).shape)):
        check_piece(extents, bits)
    rest = [mode for mode in range(len(modes.stride)) if mode not in order]
    return Box((*order, *rest), (*extents, *[1] * len(rest)), swizzle)


def swizzle_number(swizzle: Any) -> int | None:
    """Return the number of a swizzle of byte addresses in tensor maps; None if TMA has it not."""
    if not isinstance(swizzle, algebra.Swizzle) or swizzle.bits == 0:
        return 0
    key = (swizzle.bits, swizzle.base, swizzle.shift)
    return SWIZZLE_BITS.index(key) if key in SWIZZLE_BITS else None


def _largest_part(extent: int, each: int, mode: Any, most: int = MAX_BOX) -> int:
    """Return the largest part of a mode that a box can have.

    It divides the mode, so that boxes of one extent are the tile, and is whole units of shared
    memory. `each` is the bytes of one index.
    """
    if extent <= most:
        return extent
    unit = _SMEM_UNIT // math.gcd(_SMEM_UNIT, max(each, 1))
    part = next((n for n in range(most, 0, -1) if extent % n == 0 and n % unit == 0), None)
    if part is None:
        raise DSLTypeError(
            f"a tile of {extent} elements in mode {mode} cannot be split into equal TMA boxes",
            notes=((f"a box has up to {most} elements, in whole {_SMEM_UNIT} bytes", None),),
            hint=f"take an extent up to {most}, or a multiple of {unit} that divides into "
            "equal parts of at most that",
        )
    return part


def check_piece(extents: Sequence[int], bits: int) -> None:
    """DSLTypeError unless each of a tile's boxes begins at a multiple of 128 bytes of shared
    memory.

    PTX ISA, cp.async.bulk.tensor: "the shared memory address is a multiple of 128".
    """
    size = math.prod(extents) * bits // 8
    if size % _SMEM_UNIT:
        raise DSLTypeError(
            f"a TMA box of {tuple(extents)} elements has {size} bytes, no multiple of {_SMEM_UNIT}",
            notes=((f"of several boxes each begins at a multiple of {_SMEM_UNIT} bytes", None),),
            hint="enlarge the part that is contiguous both in the tile and in its shared layout",
        )


def stretches_of(along: Any, paths: Sequence[tuple[int, ...]]) -> list[tuple[int, int, int]]:
    """Return (extent, step, mode of the map) of each stretch of a layout into coordinates."""
    along = algebra.coalesce(along)
    found = []
    for extent, step in zip(leaves(along.shape), leaves(along.stride), strict=True):
        if extent == 1:
            continue
        if not isinstance(step, algebra.ScaledBasis):
            raise DSLTypeError(f"the tile {along} has one element of the tensor several times")
        found.append((int(extent), int(step.value), paths.index(step.mode)))
    return found


def share_of_box(box: Box, parts: int, bits: int) -> Box:
    """Return the part of a box that each of several blocks loads: a slice of its slowest mode,
    or of a faster one where it has one of the slower ones, so that it is contiguous.
    """
    if parts == 1:
        return box
    extents, left = list(box.extents), parts
    for mode in reversed(range(len(extents))):
        shared = min(extents[mode], left)
        if extents[mode] % shared or left % shared:
            raise DSLTypeError(f"a box of {box.extents} cannot be divided among {parts} blocks")
        extents[mode] //= shared
        left //= shared
    if left > 1:
        raise DSLTypeError(f"a box of {box.extents} cannot be divided among {parts} blocks")
    check_piece(extents, bits)
    return box._replace(extents=tuple(extents))
