"""Construction of tensors: over a pointer, in registers, in shared memory, of coordinates."""

from __future__ import annotations

from typing import Any

from basedsl import (
    DSLTypeError,
    Int64,
    Numeric,
    as_numeric,
    assigned_name,
    current_trace,
    with_article,
)
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.dialect import SPACES, define
from basedsl_cute.dialect.attributes import DYNAMIC_SMEM_ALIGNMENT
from basedsl_cute.dialect.cute_trace import cute_trace
from basedsl_cute.dialect.ops import AllocRmem, AllocSmem, MakeMemRef
from basedsl_cute.tensors.index_arithmetic import as_int
from basedsl_cute.tensors.kernel_scope import in_kernel
from basedsl_cute.tensors.pointer import (
    RUN,
    Pointer,
    element_bytes,
    memref_type,
    recast_ptr,
    storage_bits,
)
from basedsl_cute.tensors.tensor import Tensor

REGISTER_ALIGN = 16  # bytes: the widest access of one thread
_LOCAL_BYTES = 512 << 10  # CUDA C++ Programming Guide, technical specifications


def as_layout(shape_or_layout: Any) -> Any:
    """The layout itself, that of a tensor, or the compact column-major one of a shape."""
    if isinstance(shape_or_layout, algebra.Layout | algebra.ComposedLayout):
        return shape_or_layout
    if isinstance(shape_or_layout, Tensor):
        return shape_or_layout.layout
    return algebra.make_layout(_known(shape_or_layout))


def _known(shape: Any) -> Any:
    return tuple(map(_known, shape)) if isinstance(shape, tuple | list) else as_int(shape)


@takes_location
def make_tensor(iterator: Any, layout: Any) -> Tensor:
    """Make a tensor: a view that starts at `iterator` and is ordered by `layout`.

    `iterator` is a pointer to the element at offset 0, or a coordinate (an integer or a tuple),
    which makes a coordinate tensor without memory. `layout` is a layout, or a shape that stands for
    its compact column-major layout. Raises DSLTypeError for any other iterator.

    >>> import basedsl_cute as cute
    >>> @cute.jit
    ... def upper_half(x: cute.Tensor):
    ...     half = cute.make_tensor(x.iterator, cute.make_layout(cute.size(x) // 2))
    """
    layout = as_layout(layout)
    if isinstance(iterator, Pointer):
        return Tensor(iterator, layout)
    if hasattr(type(iterator), "__with_layout__"):  # descriptors of operands in shared memory
        ordered: Tensor = iterator.__with_layout__(layout)
        return ordered
    if isinstance(iterator, Tensor):
        raise DSLTypeError(
            "make_tensor takes a pointer, got a Tensor", hint="write make_tensor(t.iterator, ...)"
        )
    if _is_coordinate(iterator):
        return Tensor(_known(iterator), layout)
    raise DSLTypeError(
        f"make_tensor takes a pointer or a coordinate, got {type(iterator).__name__}",
        hint="x.iterator is a tensor's pointer; an array becomes a tensor as an argument of a "
        "@jit function, or by cute.runtime.from_dlpack(array)",
    )


def _is_coordinate(x: Any) -> bool:
    if isinstance(x, tuple):
        return all(map(_is_coordinate, x))
    return type(x) is int or (isinstance(x, Numeric) and type(x).is_integer)


@takes_location
def make_identity_tensor(shape: Any) -> Tensor:
    """Make the coordinate tensor of `shape`: its element at a coordinate is that coordinate.

    Partitioned like a tensor of data, it tells a thread where its elements are, for predicates.
    """
    shape = _known(shape)
    layout = algebra.make_identity_layout(shape)
    return Tensor(_zeros(shape), layout)


def _zeros(shape: Any) -> Any:
    return tuple(map(_zeros, shape)) if isinstance(shape, tuple) else 0


@takes_location
def make_rmem_tensor(shape_or_layout: Any, dtype: Any) -> Tensor:
    """Make an uninitialised tensor in the thread's registers.

    `shape_or_layout` must be static; the elements are of type `dtype`. Raises DSLTypeError for a
    dynamic layout and for more than the 512 KiB of a thread's local memory. In host code it is
    memory of the function, on its stack.
    """
    _numeric_class(dtype, "make_rmem_tensor()")
    trace = current_trace("make_rmem_tensor()")
    layout = _static(as_layout(shape_or_layout), "a register tensor")
    nbytes = max(1, _bytes(dtype, layout))
    if nbytes > _LOCAL_BYTES:
        raise DSLTypeError(
            f"a register tensor of {layout} takes {nbytes} bytes",
            notes=((f"a thread has at most {_LOCAL_BYTES} bytes of local memory", None),),
        )
    align = max(min(REGISTER_ALIGN, _power_of_two_up_to(nbytes)), element_bytes(dtype))
    kind = memref_type(trace, dtype, "rmem", layout, align)
    value = AllocRmem(define(trace.bindings), type=kind, bytes=nbytes, loc=trace.loc()).memref
    return Tensor(Pointer(dtype, "rmem", align, value), layout)


make_fragment = make_rmem_tensor  # the older name


@takes_location
def make_rmem_tensor_like(like: Any, dtype: Any = None) -> Tensor:
    """Make an uninitialised compact column-major register tensor of the shape of `like`.

    `like` is a tensor or layout; `dtype` is by default the element type of the tensor.
    """
    return make_rmem_tensor(algebra.shape(like), _dtype_of(like, dtype))


@takes_location
def make_fragment_like(like: Any, dtype: Any = None) -> Tensor:
    """Make an uninitialised register tensor of the shape of `like`, a tensor or layout.

    Mode 0 is compact and column-major, the other modes follow in the order of their strides; modes
    of stride 0 keep it. `dtype` is by default the element type of the tensor.
    """
    layout = as_layout(like)
    return make_rmem_tensor(algebra.make_fragment_like(layout), _dtype_of(like, dtype))


def _dtype_of(like: Any, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    if isinstance(like, Tensor) and like.has_memory:
        return like.element_type
    raise DSLTypeError("the element type is missing", hint="pass dtype=")


def make_smem_tensor(
    dtype: Any, layout: Any, byte_alignment: int | None, what: str, name: str | None = None
) -> Tensor:
    """Allocate an uninitialised tensor in shared memory; its layout must be static."""
    _numeric_class(dtype, what)
    layout = _static(as_layout(layout), "a shared-memory tensor")
    asked = 16 if byte_alignment is None else checked_alignment(byte_alignment, what)
    align = max(asked, element_bytes(dtype))
    pointer = alloc_smem(dtype, _bytes(dtype, layout), align, what, layout, name)
    return Tensor(pointer, layout)


def checked_alignment(align: Any, what: str) -> int:
    """The alignment in bytes itself; DSLTypeError unless it is a power of two."""
    if type(align) is not int or align < 1 or align & (align - 1):
        raise DSLTypeError(
            f"{what}: an alignment is a power of two of bytes, not {align!r}",
            hint="16 allows vectors of 128 bits, 128 is what TMA needs, 1024 what swizzles need",
        )
    return align


def alloc_smem(
    dtype: Any,
    nbytes: int,
    align: int,
    what: str,
    layout: Any = RUN,
    name: str | None = None,
    fields: str | None = None,
) -> Pointer:
    """Allocate `nbytes` bytes (at least one) of shared memory, aligned to `align` bytes.

    Its name in the IR is `name`, by default that of the user's variable it is assigned to; `fields`
    is "name:offset" of its parts, for messages.
    """
    trace = in_kernel(what)
    record = cute_trace(trace)
    if not record.allocates and nbytes >= DYNAMIC_SMEM_ALIGNMENT:
        align = max(align, DYNAMIC_SMEM_ALIGNMENT)  # the first lies there without padding
    record.allocates = True
    kind = memref_type(trace, dtype, "smem", layout, align)
    alloc = AllocSmem(
        define(trace.bindings),
        type=kind,
        bytes=max(1, nbytes),
        name=name or assigned_name(),
        fields=fields,
        loc=trace.loc(),
    )
    return Pointer(dtype, "smem", align, alloc.memref)


@takes_location
def make_ptr(
    dtype: Any, value: Any, mem_space: Any = "generic", *, assumed_align: int | None = None
) -> Pointer:
    """Make a pointer to elements of `dtype` from the address `value`, an integer or an `!llvm.ptr`.

    `mem_space` is an `AddressSpace` or its name. `assumed_align` promises an alignment in bytes; by
    default the element's own size is assumed. Raises DSLTypeError for other addresses and spaces.
    """
    _numeric_class(dtype, "make_ptr()")
    trace = current_trace("make_ptr()")
    dialect = define(trace.bindings)
    space = space_name(mem_space)
    align = assumed_align or element_bytes(dtype)
    kind = memref_type(trace, dtype, space, RUN, align)
    pointer_type = dialect.pointer_type(SPACES[space].address_space)
    if isinstance(value, Pointer):
        raise DSLTypeError("make_ptr takes an address", hint="use recast_ptr(ptr, dtype=...)")
    if isinstance(value, int | Numeric):
        number = as_numeric(value)
        if number.is_float:
            raise DSLTypeError(f"an address is an integer, not {with_article(type(number))}")
        wide = number if number.width == 64 else number.to(Int64)
        made = trace.ir.Operation.create(
            "llvm.inttoptr",
            results=[pointer_type],
            operands=[wide.ir_value()],
            loc=trace.loc(),
        ).result
    else:
        made = getattr(value, "result", value)
        if str(getattr(made, "type", None)) != str(pointer_type):
            raise DSLTypeError(
                f"an address in {space} is {pointer_type} or an integer, not "
                f"{getattr(made, 'type', type(value).__name__)}"
            )
    memref = MakeMemRef(dialect, pointer=made, type=kind, loc=trace.loc()).memref
    return Pointer(dtype, space, align, memref)


def pointer_of(ptr: Any, dtype: Any, what: str) -> Pointer:
    """The pointer itself, or an `!llvm.ptr` value as a pointer to `dtype`; else DSLTypeError."""
    if isinstance(ptr, Pointer):
        return ptr
    value = getattr(ptr, "result", ptr)
    kind = str(getattr(value, "type", ""))
    for space in ("gmem", "smem", "dsmem", "generic"):
        here = SPACES[space].address_space
        if kind == (f"!llvm.ptr<{here}>" if here else "!llvm.ptr"):
            return make_ptr(dtype, value, "generic" if not here else space)
    raise DSLTypeError(
        f"{what} takes a pointer, not {with_article(type(ptr))}",
        hint="x.iterator + i points to element i of a contiguous tensor x",
    )


def space_name(space: Any) -> str:
    """The name of an address space, given as `AddressSpace` or as a string; else DSLTypeError."""
    name = str(getattr(space, "value", space))
    if name not in SPACES:
        raise DSLTypeError(f"{space!r} is no memory space; there are {', '.join(SPACES)}")
    return name


@takes_location
def recast_tensor(tensor: Tensor, dtype: Any) -> Tensor:
    """The memory of `tensor` as a tensor of the element type `dtype`; pointer and layout are
    recast.

    The extent of the contiguous mode changes by the ratio of the widths. Raises LayoutError for a
    layout in which elements of the new type are not whole.
    """
    _numeric_class(dtype, "recast_tensor()")
    old = tensor.element_type
    if dtype is old:
        return tensor
    layout = algebra.recast_layout(storage_bits(dtype), storage_bits(old), tensor.layout)
    return Tensor(recast_ptr(tensor.pointer, dtype=dtype), layout)


def _bytes(dtype: Any, layout: Any) -> int:
    return int(algebra.size_in_bytes(storage_bits(dtype), layout))


def _numeric_class(dtype: Any, what: str) -> None:
    if not (isinstance(dtype, type) and issubclass(dtype, Numeric) and hasattr(dtype, "width")):
        raise DSLTypeError(
            f"{what} takes an element type, not {dtype!r}", hint="for instance Float32"
        )


def _static(layout: Any, what: str) -> Any:
    if not algebra.is_static(layout):
        raise DSLTypeError(
            f"{what} needs a static layout, got {layout}",
            hint="make its shape of Python ints or Constexpr arguments",
        )
    return layout


def _power_of_two_up_to(n: int) -> int:
    return 1 << (n.bit_length() - 1)


def place_tensor(
    pointer: Pointer, layout: Any, swizzle: Any, dtype: Any, nbytes: int | None = None
) -> Tensor:
    """A tensor over the memory at `pointer`, of `nbytes` bytes if that is given.

    `swizzle` acts on bits of the byte address. The swizzle of a composed layout, which acts on
    element indices, moves to the pointer, where it acts on the same bits. Raises DSLTypeError for
    two swizzles and for a tensor larger than the memory.
    """
    layout = as_layout(layout)
    if isinstance(layout, algebra.ComposedLayout) and isinstance(layout.inner, algebra.Swizzle):
        if swizzle is not None:
            raise DSLTypeError(
                f"the layout {layout} has a swizzle, and {swizzle} is given too",
                hint="pass layout.outer with swizzle=",
            )
        offset = layout.offset
        if not (type(offset) is int and offset == 0):
            raise DSLTypeError(f"the layout {layout} begins at {offset}, not at 0")
        swizzle = algebra.recast_layout(8, storage_bits(dtype), layout.inner)
        layout = layout.outer
    if nbytes is not None and algebra.is_static(layout) and _bytes(dtype, layout) > nbytes:
        raise DSLTypeError(
            f"a tensor of {layout} with {dtype.__name__} elements takes {_bytes(dtype, layout)} "
            f"bytes; there are {nbytes}"
        )
    if dtype is not pointer.dtype or swizzle is not None:
        pointer = recast_ptr(pointer, swizzle, dtype)
    return Tensor(pointer, layout)
