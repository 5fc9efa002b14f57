"""`cute.struct` and `cute.union`: record types with C's offsets, overlaid on shared memory."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from basedsl import DSLAttributeError, DSLTypeError, Numeric, Uint8, is_dynamic
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.tensors.make_tensor import place_tensor
from basedsl_cute.tensors.pointer import Pointer, element_bytes, recast_ptr, storage_bits


@dataclass(frozen=True)
class MemRangeType:
    """The type of an array field: `count` elements of `dtype`. Sizes are in bytes."""

    dtype: Any
    count: int

    @property
    def size(self) -> int:
        return array_bytes(self.dtype, self.count)

    @property
    def alignment(self) -> int:
        return element_bytes(self.dtype)

    def overlay(self, pointer: Pointer) -> MemRange:
        return MemRange(self, recast_ptr(pointer, dtype=self.dtype))


@dataclass(frozen=True)
class AlignType:
    """The type of a field with a larger alignment, in bytes."""

    field: Any
    bytes: int

    @property
    def size(self) -> int:
        return int(self.field.size)

    @property
    def alignment(self) -> int:
        return max(self.bytes, int(self.field.alignment))

    def overlay(self, pointer: Pointer) -> Any:
        return self.field.overlay(pointer)

    def store(self, pointer: Pointer, value: Any) -> None:
        self.field.store(pointer, value)


@dataclass(frozen=True)
class ScalarType:
    """The type of a field that is one number."""

    dtype: Any

    @property
    def size(self) -> int:
        return element_bytes(self.dtype)

    alignment = size

    def overlay(self, pointer: Pointer) -> Any:
        """Load the number; it remembers its address, for `.ptr` and assignments."""
        place = recast_ptr(pointer, dtype=self.dtype)
        number = place.load_if_used()
        number.place = place
        return number

    def store(self, pointer: Pointer, value: Any) -> None:
        recast_ptr(pointer, dtype=self.dtype).store(value)


@dataclass(frozen=True)
class StructType:
    """A struct or union type: fields with their offsets in bytes.

    `S(pointer)` overlays the memory at a pointer, which must be aligned for it (else DSLTypeError).
    """

    name: str
    fields: tuple[tuple[str, Any, int], ...]
    size: int
    alignment: int

    def size_in_bytes(self) -> int:
        """The size in bytes, with padding."""
        return self.size

    def __sizeof__(self) -> int:
        return self.size

    def __alignof__(self) -> int:
        return self.alignment

    def offset_of(self, name: str) -> int:
        """The offset of a field in bytes; DSLAttributeError for an unknown one."""
        for field, _, offset in self.fields:
            if field == name:
                return offset
        raise _no_field(self, name)

    def overlay(self, pointer: Pointer) -> Struct:
        return Struct(self, pointer)

    def __call__(self, pointer: Pointer) -> Struct:
        if not isinstance(pointer, Pointer):
            raise DSLTypeError(f"{self.name}(...) takes a pointer, got {type(pointer).__name__}")
        if pointer.alignment < self.alignment:
            raise DSLTypeError(
                f"{self.name} is aligned to {self.alignment} bytes, {pointer} is not",
                hint="promise it with ptr.align(...)",
            )
        return Struct(self, recast_ptr(pointer, dtype=Uint8))

    def __str__(self) -> str:
        fields = ", ".join(f"{name} at {offset}" for name, _, offset in self.fields)
        return f"{self.name}({fields}; {self.size} bytes, align {self.alignment})"


def _no_field(kind: StructType, name: str) -> AttributeError:
    if name.startswith("__"):  # Python asks for these on its own
        return AttributeError(name)
    names = ", ".join(field for field, _, _ in kind.fields)
    return DSLAttributeError(f"{kind.name} has no field '{name}'", hint=f"its fields are {names}")


class Struct:
    """A struct in memory. Fields are attributes: reading a number loads, assigning it stores."""

    __slots__ = ("_pointer", "_type")
    _pointer: Pointer
    _type: StructType

    def __init__(self, type: StructType, pointer: Pointer) -> None:
        object.__setattr__(self, "_type", type)
        object.__setattr__(self, "_pointer", pointer)

    def __dsl_leaves__(self) -> tuple[Any, ...]:
        return (self._pointer,)

    def __dsl_static__(self) -> Any:
        return self._type

    def __dsl_rebuild__(self, parts: tuple[Any, ...]) -> Struct:
        return Struct(self._type, parts[0])

    @property
    def ptr(self) -> Pointer:
        """A pointer to the first byte, with elements of Uint8."""
        pointer: Pointer = self._pointer
        return pointer

    def __getattr__(self, name: str) -> Any:
        kind, pointer = self._field(name)
        return kind.overlay(pointer)

    def __setattr__(self, name: str, value: Any) -> None:
        kind, pointer = self._field(name)
        inner = kind.field if isinstance(kind, AlignType) else kind
        if not isinstance(inner, ScalarType):
            raise DSLTypeError(
                f"the field '{name}' of {self._type.name} is no number; its elements can be set"
            )
        kind.store(pointer, value)

    def _field(self, name: str) -> tuple[Any, Pointer]:
        for field, kind, offset in object.__getattribute__(self, "_type").fields:
            if field == name:
                return kind, self._pointer + offset
        raise _no_field(self._type, name)

    def __str__(self) -> str:
        return f"{self._type} at {self._pointer}"


class MemRange:
    """An array field in memory: `f[i]` loads and stores an element, `len(f)` counts them."""

    __slots__ = ("_pointer", "type")

    def __init__(self, type: MemRangeType, pointer: Pointer) -> None:
        self.type = type
        self._pointer = pointer

    def __dsl_leaves__(self) -> tuple[Any, ...]:
        return (self._pointer,)

    def __dsl_static__(self) -> Any:
        return self.type

    def __dsl_rebuild__(self, parts: tuple[Any, ...]) -> MemRange:
        return MemRange(self.type, parts[0])

    @property
    def ptr(self) -> Pointer:
        """A pointer to the first element."""
        return self._pointer

    def data_ptr(self) -> Pointer:
        """A pointer to the first element."""
        return self._pointer

    def __len__(self) -> int:
        return self.type.count

    def __getitem__(self, i: Any) -> Any:
        return (self._pointer + self._checked(i)).load()

    def __setitem__(self, i: Any, value: Any) -> None:
        (self._pointer + self._checked(i)).store(value)

    def _checked(self, i: Any) -> Any:
        if not is_dynamic(i) and not 0 <= int(i) < self.type.count:
            raise DSLTypeError(f"element {i} of {self.type.count}")
        return i

    @takes_location
    def get_tensor(self, layout: Any, swizzle: Any = None, dtype: Any = None) -> Any:
        """The elements as a tensor of `layout`, by default of their own type, else of `dtype`.

        `swizzle` acts on bits of the byte address and moves to the pointer, as does the swizzle of
        a composed layout. Raises DSLTypeError for two swizzles, and for a tensor larger than the
        field.
        """
        dtype = self.type.dtype if dtype is None else dtype
        return place_tensor(self._pointer, layout, swizzle, dtype, self.type.size)

    def __str__(self) -> str:
        return f"MemRange[{self.type.dtype.__name__}, {self.type.count}] at {self._pointer}"


# Declaring ---------------------------------------------------------------------------------------


class _MemRangeMaker:
    def __getitem__(self, item: Any) -> MemRangeType:
        dtype, count = item
        if not _is_numeric(dtype) or type(count) is not int or count < 0:
            raise DSLTypeError(
                "MemRange[dtype, count] takes a numeric type and a static count, not "
                f"{getattr(dtype, 'name', getattr(dtype, '__name__', dtype))}, {count}"
            )
        return MemRangeType(dtype, count)


class _AlignMaker:
    def __getitem__(self, item: Any) -> AlignType:
        field, nbytes = item
        if type(nbytes) is not int or nbytes < 1 or nbytes & (nbytes - 1):
            raise DSLTypeError(f"Align[type, bytes] takes a power of two of bytes, not {nbytes}")
        return AlignType(_field_type(field, "Align"), nbytes)


class struct:
    """Make a struct type of the decorated class `declaration`: its annotated fields in order,
    aligned as in C.

    Fields are numeric types, `struct.MemRange[dtype, count]` arrays, other structs, or
    `struct.Align[field, bytes]` of these. `SmemAllocator.allocate` puts one into shared memory.
    Raises DSLTypeError for other fields.

    >>> import basedsl_cute as cute
    >>> @cute.struct
    ... class Storage:
    ...     barriers: cute.struct.MemRange[cute.Int64, 4]
    ...     tile: cute.struct.Align[cute.struct.MemRange[cute.Float16, 4096], 128]
    ...     count: cute.Int32
    >>> print(Storage)
    Storage(barriers at 0, tile at 128, count at 8320; 8448 bytes, align 128)
    >>> @cute.kernel
    ... def kernel():
    ...     storage = cute.utils.SmemAllocator().allocate(Storage)
    ...     storage.count = 0
    ...     tile = storage.tile.get_tensor(cute.make_layout((64, 64)))
    """

    MemRange = _MemRangeMaker()
    Align = _AlignMaker()

    def __new__(cls, declaration: type) -> Any:
        return _declare(declaration, overlapping=False)


class union:
    """Make a union type of the decorated class `declaration`: all annotated fields at offset 0. See
    `struct`."""

    MemRange = struct.MemRange
    Align = struct.Align

    def __new__(cls, declaration: type) -> Any:
        return _declare(declaration, overlapping=True)


def _declare(declaration: type, overlapping: bool) -> StructType:
    fields = annotations_in(declaration, sys._getframe(2))
    return declare(declaration.__name__, fields, overlapping=overlapping)


def declare(
    name: str, annotations: dict[str, Any], *, overlapping: bool = False, packed: bool = False
) -> StructType:
    """The struct type with these fields as C lays them out, without padding if `packed`."""
    fields = []
    end, alignment = 0, 1
    for field, annotation in annotations.items():
        kind = _field_type(annotation, f"'{field}' of {name}")
        unit = 1 if packed else kind.alignment
        start = 0 if overlapping else -(-end // unit) * unit
        fields.append((field, kind, start))
        end = max(end, start + kind.size)
        alignment = max(alignment, unit)
    size = -(-end // alignment) * alignment
    return StructType(name, tuple(fields), size, alignment)


def annotations_in(declaration: type, frame: Any) -> dict[str, Any]:
    """The fields in order; annotations that are strings are evaluated in the frame of the class."""
    found = dict(getattr(declaration, "__annotations__", {}))
    for name, annotation in found.items():
        if isinstance(annotation, str):
            found[name] = eval(annotation, frame.f_globals, frame.f_locals)
    return found


def _field_type(annotation: Any, what: str) -> Any:
    if isinstance(annotation, MemRangeType | AlignType | StructType):
        return annotation
    if _is_numeric(annotation):
        return ScalarType(annotation)
    raise DSLTypeError(
        f"{what}: {annotation!r} is no field type",
        hint="a numeric type, struct.MemRange[...], struct.Align[...] or another struct",
    )


def _is_numeric(x: Any) -> bool:
    return isinstance(x, type) and issubclass(x, Numeric) and hasattr(x, "width")


def array_bytes(dtype: Any, count: int) -> int:
    """Bytes of `count` elements; those narrower than a byte are packed."""
    return -(-storage_bits(dtype) * count // 8)
