"""Argument types: how each kind of argument crosses the call from Python into compiled code.

Compiled code depends on the types of its arguments. An argument type knows the parameter's IR
types, how to make the proxy that the function sees while it is traced, and how to turn a Python
value into C storage at a call. Plugins bring their own for tensors.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, ClassVar

from basedsl import digest
from basedsl.binding.c_interface import C_TYPES, CParameter
from basedsl.binding.unpacker import Unpacker
from basedsl.errors import DSLCallError, DSLTypeError, with_article
from basedsl.numeric import Boolean, Numeric, mlir_type
from basedsl.pytree import Node, flatten, leaf_paths, rebuild
from basedsl.tracing import current_trace


class ArgumentType:
    """The base class of argument types. Instances are hashable; calls with equal ones share code.

    A subclass gives `ir_types`, `proxy`, `pack` and `__str__`; frozen dataclasses are hashable, and
    have a `digest` where their fields are plain values.
    """

    # No `abc.ABC`: `isinstance` of such a class takes longer, and each call that is not native asks
    # it several times.

    #: Calls of a `Compiled` leave the argument out; `pack(None)` finds its value.
    implicit: ClassVar[bool] = False

    #: The indices in `storage` of addresses of arrays: what may differ where a call is repeated.
    #: None for a type whose calls cannot be repeated.
    address_places: ClassVar[tuple[int, ...] | None] = None

    @property
    def storage(self) -> tuple[str, ...]:
        """The `struct` codes of the C storage, which is derived from `ir_types` when a function is
        compiled: one code for each number or pointer. A memref takes 3 + 2 * rank of them: the
        allocated and the aligned pointer, the offset in elements, each size, each stride, all "q".

        Declare it only for types of the DSL's own dialect, whose storage MLIR does not know; it is
        checked against what the compiled function takes.
        """
        known: tuple[str, ...] | None = vars(self).get("_storage")
        if known is None:
            raise RuntimeError(f"the storage of {type(self).__name__} is not derived yet")
        return known

    def ir_types(self, ir: Any) -> list[Any]:
        """Return the MLIR types of the IR parameters; `ir` is that module of the bindings."""
        raise NotImplementedError(f"{type(self).__name__} does not define ir_types")

    def proxy(self, values: Sequence[Any]) -> Any:
        """Return the object that the traced function gets for this argument, made of `values`: the
        IR parameters of `ir_types`, in that order.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define proxy")

    def pack(self, value: Any) -> tuple[Any, ...]:
        """Return the C storage of a Python value of this type: one item for each of `storage`."""
        raise NotImplementedError(f"{type(self).__name__} does not define pack")

    def accepts(self, value: Any, name: str) -> bool:
        """Return True if code compiled for this type may be called with `value`, whose own argument
        type is of the same class but not equal (a `Compiled` asks). May raise a DSLCallError that
        says why not; `name` is the parameter's.
        """
        return False

    def unpacker(self) -> Unpacker | None:
        """Return the native form of `pack`, used by calls of a @jit function; None keeps calls in
        Python. It must reject each value whose argument type is not equal to this one.
        """
        return None

    def accepting_unpacker(self) -> Unpacker | None:
        """Return the unpacker for calls of a `Compiled`, which may take all that `accepts` does."""
        return self.unpacker()

    def c_parameters(self, name: str) -> list[CParameter]:
        """Return the C parameters by which an exported function takes the argument `name`, with one
        item of `storage` for each of this type's. By default raises DSLCallError: there are none.
        """
        raise DSLCallError(
            f"'{name}' is {self}, which has no C type",
            hint=f"its argument type, {type(self).__name__}, would define c_parameters",
        )

    def digest(self) -> str | None:
        """Return text that identifies this type in every process, for the disk-cache key; None
        keeps its code off the disk.
        """
        fields = getattr(type(self), "__dataclass_fields__", None)
        if fields is None:
            return None
        values = [digest.of_value(getattr(self, name)) for name in fields]
        return None if None in values else f"{digest.of_class(type(self))} {values}"


@dataclass(frozen=True)
class NumericArgument(ArgumentType):
    """A number passed by value."""

    type: Any

    address_places = ()

    @property
    def storage(self) -> tuple[str, ...]:
        return (storage_format(self.type),)

    def ir_types(self, ir: Any) -> list[Any]:
        return [mlir_type(self.type, ir)]

    def proxy(self, values: Sequence[Any]) -> Any:
        return self.type.from_value(values[0])

    def pack(self, value: Any) -> tuple[Any, ...]:
        return (storage_value(self.type, value),)

    def c_parameters(self, name: str) -> list[CParameter]:
        if self.storage[0] not in C_TYPES:
            return super().c_parameters(name)
        return [CParameter(name, "number", self.storage, text=str(self))]

    def digest(self) -> str | None:
        return str(self)

    def __str__(self) -> str:
        return str(self.type.__name__)


@dataclass(frozen=True)
class StaticArgument(ArgumentType):
    """A value known while compiling, which takes no storage. Equal `key`s mean equal values."""

    key: Any
    value: Any = None

    storage = ()
    address_places = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticArgument) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def ir_types(self, ir: Any) -> list[Any]:
        return []

    def proxy(self, values: Sequence[Any]) -> Any:
        return self.value

    def pack(self, value: Any) -> tuple[Any, ...]:
        return ()

    def c_parameters(self, name: str) -> list[CParameter]:
        return []

    def digest(self) -> str | None:
        return "static"  # the guards say which value

    def __str__(self) -> str:
        return f"static {self.value!r}"


class ReceiverArgument(StaticArgument):
    """The instance that a method is called on: static, and known by its identity."""

    def __init__(self, value: Any) -> None:
        super().__init__(("receiver", id(value)), value)


class PartsArgument(ArgumentType):
    """The base of composite types: the storage of `parts` in order. Types with equal `key`s are
    equal.
    """

    def __init__(self, key: Any, parts: Sequence[ArgumentType]) -> None:
        self.key = key
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def storage(self) -> tuple[str, ...]:
        return tuple(f for part in self.parts for f in part.storage)

    def ir_types(self, ir: Any) -> list[Any]:
        return [t for part in self.parts for t in part.ir_types(ir)]


class TreeArgument(PartsArgument):
    """A tuple, list, dict or dataclass: its leaves are passed in order, its structure is static.

    `node` is its shape, and `parts` are the argument types of its leaves.
    """

    def __init__(self, node: Node, parts: list[Any]) -> None:
        super().__init__((_shape_key(node), tuple(parts)), parts)
        self.node = node

    @property
    def address_places(self) -> tuple[int, ...] | None:  # type: ignore[override]
        found: list[int] = []
        start = 0
        for part in self.parts:
            if part.address_places is None:
                return None
            found += [start + place for place in part.address_places]
            start += len(part.storage)
        return tuple(found)

    def proxy(self, values: Sequence[Any]) -> Any:
        leaves, at, ir = [], 0, current_trace("a tree of arguments").ir
        for part in self.parts:
            n = len(part.ir_types(ir))
            leaves.append(part.proxy(values[at : at + n]))
            at += n
        return rebuild(self.node, leaves)

    def pack(self, value: Any) -> tuple[Any, ...]:
        _, leaves = flatten(value)
        pairs = zip(self.parts, leaves, strict=True)
        return tuple(c for part, leaf in pairs for c in part.pack(leaf))

    def c_parameters(self, name: str) -> list[CParameter]:
        paths = leaf_paths(self.node, name)
        pairs = zip(paths, self.parts, strict=True)
        return [one for path, part in pairs for one in part.c_parameters(path)]

    def digest(self) -> str | None:
        parts = [part.digest() for part in self.parts]
        shape = _shape_digest(self.node)
        return None if None in parts or shape is None else f"{shape} {parts}"

    def __str__(self) -> str:
        paths = leaf_paths(self.node, "")
        inside = ", ".join(f"{p}: {t}" for p, t in zip(paths, self.parts, strict=True))
        return f"{type(self.node.obj).__name__}({inside})"


def _shape_key(node: Node | None) -> Any:
    if node is None:
        return None
    return (
        node.kind,
        type(node.obj),
        node.keys,
        node.static,
        tuple(_shape_key(child) for child in node.children),
    )


def _shape_digest(node: Node | None) -> str | None:
    if node is None:
        return "leaf"
    texts = [digest.of_value(node.keys), digest.of_value(node.static)]
    texts += [_shape_digest(child) for child in node.children]
    return None if None in texts else f"{node.kind} {digest.of_class(type(node.obj))} {texts}"


@dataclass(frozen=True)
class AdaptedArgument(ArgumentType):
    """A value that a plugin converts by `adapt` at every call; `inner` is the converted one's
    type.
    """

    inner: ArgumentType
    adapt: Callable[[Any], Any]

    @property
    def storage(self) -> tuple[str, ...]:
        return tuple(self.inner.storage)

    def ir_types(self, ir: Any) -> list[Any]:
        return list(self.inner.ir_types(ir))

    def proxy(self, values: Sequence[Any]) -> Any:
        return self.inner.proxy(values)

    def pack(self, value: Any) -> tuple[Any, ...]:
        return tuple(self.inner.pack(self.adapt(value)))

    def c_parameters(self, name: str) -> list[CParameter]:
        return self.inner.c_parameters(name)

    def __str__(self) -> str:
        return str(self.inner)


# Static values ----------------------------------------------------------------------------------


def static_key(value: Any, name: str = "argument") -> Any:
    """Return a hashable key of a static value, under which `1`, `1.0` and `True` differ. Raises
    DSLCallError for an unhashable value; `name` is the parameter's.
    """
    if isinstance(value, tuple):
        return (type(value), tuple(static_key(v, name) for v in value))
    if isinstance(value, frozenset):
        return (type(value), frozenset(static_key(v, name) for v in value))
    if isinstance(value, float):
        return (type(value), value.hex())
    if isinstance(value, Numeric) and not value.is_dynamic:
        return (type(value), static_key(value.value))
    try:
        hash(value)
    except TypeError:
        hint = "pass a tuple instead of a list, a frozen dataclass instead of a dict"
        if is_dataclass(value):
            hint = (
                f"declare {type(value).__name__} with @dataclass(frozen=True), tuples in its fields"
            )
        raise DSLCallError(
            f"the static argument '{name}' is {with_article(type(value))}, which is not hashable",
            hint=hint,
        ) from None
    return (type(value), value)


def static_parts(argument: Any) -> list[Any]:
    """Return the parts of an argument that are known while compiling: static values, the classes
    of trees.
    """
    if isinstance(argument, StaticArgument):
        return [argument.value]
    if isinstance(argument, TreeArgument):
        found: list[Any] = _classes(argument.node)
        for part in argument.parts:
            found += static_parts(part)
        return found
    return []


def _classes(node: Node | None) -> list[Any]:
    if node is None:
        return []
    return [type(node.obj), *(cls for child in node.children for cls in _classes(child))]


def is_plainly_static(value: Any) -> bool:
    """Return True for a value that is static without an annotation: None, a class, an enum member
    or a string.
    """
    return value is None or isinstance(value, type | enum.Enum | str)


# C storage ---------------------------------------------------------------------------------------

_FORMATS = {1: "b", 8: "b", 16: "h", 32: "i", 64: "q"}


def storage_format(type_: Any) -> str:
    """Return the `struct` format character under which a number of this type is stored."""
    if type_.is_float:
        native = {"Float16": "e", "Float32": "f", "TFloat32": "f", "Float64": "d"}
        return native.get(type_.__name__, "H" if type_.width == 16 else "B")
    if type_.width == 128:
        return "16s"
    if type_.width < 8:
        return "b" if type_.signed else "B"
    code = _FORMATS[type_.width]
    return code if type_.signed or type_ is Boolean else code.upper()


def storage_value(type_: Any, value: Any) -> Any:
    """Return the C storage of `value` as a `type_`: what `struct.pack` takes under
    `storage_format(type_)`. Raises DSLTypeError if the value does not fit the type.
    """
    number = value if type(value) is type_ else type_(value)
    raw = number.value
    code = storage_format(type_)
    if code == "16s":
        return int(raw).to_bytes(16, "little", signed=type_.signed)
    if type_.is_float and code in "HB":
        import numpy as np

        as_bits = np.asarray(raw, dtype=type_.numpy_dtype).view(np.uint16 if code == "H" else "u1")
        return int(as_bits)
    return raw


def from_storage(type_: Any, raw: Any) -> Any:
    """Return the Python number of `raw`, which `struct` unpacked under `storage_format(type_)`."""
    code = storage_format(type_)
    if type_.is_integer and type_.signed and 1 < type_.width < 8 and raw >> (type_.width - 1):
        return raw - 2**type_.width  # narrow integers are stored with zeros above
    if code == "16s":
        return int.from_bytes(raw, "little", signed=type_.signed)
    if type_ is Boolean:
        return bool(raw)
    if type_.is_float and code in "HB":
        import numpy as np

        bits = np.asarray(raw, dtype=np.uint16 if code == "H" else np.uint8)
        return float(bits.view(type_.numpy_dtype))
    return raw


def numeric_argument(value: Any, annotation: Any, name: str, ints: Any, floats: Any) -> Any:
    """Return the argument type of a number; None if `value` is not a number.

    A Numeric class as `annotation` decides the type. Otherwise a Python int becomes `ints`, a
    Python float `floats`, and a Numeric or NumPy scalar keeps its type. Raises DSLCallError for a
    value that is not of the annotated kind; `name` is the parameter's.
    """
    declared = (
        annotation if isinstance(annotation, type) and issubclass(annotation, Numeric) else None
    )
    kind = _kind_of_number(value, ints, floats)
    if declared is None or kind is None:
        if declared is not None:
            raise DSLCallError(
                f"'{name}' is declared {declared.__name__}, got {describe(value)}",
                hint=f"pass a number, or change the annotation of '{name}'",
            )
        return None if kind is None else NumericArgument(kind)
    abstract = declared.__name__ in ("Numeric", "Integer", "Float")
    if declared.is_integer and kind.is_float:
        raise DSLCallError(
            f"'{name}' is declared {declared.__name__}, got the {describe(value)} {value}",
            hint=f"pass an int, or declare '{name}' as a float type",
        )
    return NumericArgument(kind if abstract else declared)


def _kind_of_number(value: Any, ints: Any, floats: Any) -> Any:
    if type(value) is bool:
        return Boolean
    if type(value) is int:
        return ints
    if type(value) is float:
        return floats
    if isinstance(value, Numeric):
        if value.is_dynamic:
            raise DSLTypeError("a dynamic value has no meaning outside the function that made it")
        return type(value)
    if (
        hasattr(type(value), "dtype")
        and getattr(value, "shape", None) == ()
        and hasattr(value, "item")
    ):
        from basedsl.numeric import from_numpy_dtype

        return (
            None
            if not type(value).__module__.startswith("numpy")
            else from_numpy_dtype(value.dtype)
        )
    return None


def describe(value: Any) -> str:
    """Return the class of a Python value in a user's words, with dtype and shape of an array."""
    dtype = getattr(value, "dtype", None)
    shape = getattr(value, "shape", None)
    if dtype is not None and isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of {dtype} with shape {shape}"
    return type(value).__name__
