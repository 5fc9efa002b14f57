"""`cute.struct` and `cute.union`: memory plans with C's offsets, overlaid on shared memory.

@cute.struct
class Storage:
    mbar: cute.struct.MemRange[cute.Int64, 4]
    tile: cute.struct.Align[cute.struct.MemRange[cute.Float16, 4096], 128]
    count: cute.Int32

storage = SmemAllocator().allocate(Storage)
storage.count = 0
tile = storage.tile.get_tensor(cute.make_layout((64, 64)))
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from basedsl.errors import DSLAttributeError, DSLTypeError
from basedsl.numeric import Numeric, Uint8, is_dynamic
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.tensors.make_tensor import place_tensor
from basedsl_cute.tensors.pointer import Pointer, element_bytes, recast_ptr, storage_bits


@dataclass(frozen=True)
class MemRangeType:
    """An array field: `count` elements of `dtype`."""

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
    """A field whose alignment is raised."""

    field: Any
    bytes: int

    @property
    def size(self) -> int:
        return int(self.field.size)

    @property
    def alignment(self) -> int:
        return max(self.bytes, self.field.alignment)

    def overlay(self, pointer: Pointer) -> Any:
        return self.field.overlay(pointer)

    def store(self, pointer: Pointer, value: Any) -> None:
        self.field.store(pointer, value)


@dataclass(frozen=True)
class ScalarType:
    """A field that is one number."""

    dtype: Any

    @property
    def size(self) -> int:
        return element_bytes(self.dtype)

    alignment = size

    def overlay(self, pointer: Pointer) -> Any:
        """The number that is there now, which knows its place."""
        place = recast_ptr(pointer, dtype=self.dtype)
        number = place.load_if_used()
        number.place = place
        return number

    def store(self, pointer: Pointer, value: Any) -> None:
        recast_ptr(pointer, dtype=self.dtype).store(value)


@dataclass(frozen=True)
class StructType:
    """A struct or union as a type: its fields with their offsets. `S(ptr)` overlays memory."""

    name: str
    fields: tuple[tuple[str, Any, int], ...]
    size: int
    alignment: int

    def size_in_bytes(self) -> int:
        """Bytes of one, with padding."""
        return self.size

    def __sizeof__(self) -> int:
        return self.size

    def __alignof__(self) -> int:
        return self.alignment

    def offset_of(self, name: str) -> int:
        """Bytes from the beginning to a field."""
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
    """A struct in memory. Fields are attributes; assigning a number field stores."""

    __slots__ = ("_pointer", "_type")

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
        """The address of the beginning, counting bytes."""
        return self._pointer

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
    """An array field in memory: `f[i]`, `f.data_ptr()`, `f.get_tensor(layout)`."""

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
        return self._pointer

    def data_ptr(self) -> Pointer:
        """The address of the first element."""
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
        """The elements as a tensor of `layout`. `swizzle` (on bits of the byte address) goes to
        the pointer, as does that of a composed layout (on elements); `dtype` recasts.
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
    """Class decorator: the annotated fields one after the other, each aligned as in C."""

    MemRange = _MemRangeMaker()
    Align = _AlignMaker()

    def __new__(cls, declaration: type) -> Any:
        return _declare(declaration, overlapping=False)


class union:
    """Class decorator: the annotated fields all at the beginning."""

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
    """The plan of fields of these types, as C lays them out, without padding if `packed`."""
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
    """The fields in order; annotations kept as text are evaluated in the frame of the class."""
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
