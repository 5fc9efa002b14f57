"""A declared dialect for one package of MLIR bindings: its types, and loading it into a context."""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from basedsl.dialect import irdl, loadable
from basedsl.dialect.op_view import OpView
from basedsl.errors import DSLTypeError
from basedsl.mlir import Bindings


class Dialect:
    """A dialect that is declared in Python, as it is in one package of bindings.

    A subclass says which operations are its own, and of what parameters its types are made. Each is
    a "type", a "string" or an "integer":

        class Arrays(Dialect):
            ops = ArraysOp
            types = {"array": {"element": "type", "rank": "integer"}}

    `Arrays.of(bindings)` is the one object for these bindings, `Arrays.load(bindings)` defines it
    in the current MLIR context: a DSL calls it in `Language.load_dialects`, and its `dialects`
    include "irdl". `arrays.type("array", element, 2)` is then `!arrays.array<element, 2 : i64>`.
    """

    ops: ClassVar[type[OpView]]
    types: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    _made: ClassVar[dict[int, Any]] = {}  # by the bindings' ids, for each subclass

    def __init_subclass__(cls) -> None:
        """Check the declaration: ValueError for a parameter of an unknown kind."""
        cls._made = {}
        for name, parameters in cls.types.items():
            for parameter, kind in parameters.items():
                if kind not in irdl.PARAMETERS:
                    raise ValueError(
                        f"the type '{name}' has a parameter '{parameter}' of the kind '{kind}'; "
                        f"there are {', '.join(irdl.PARAMETERS)}"
                    )

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        self.ir = ir = bindings.ir
        name = self.ops.dialect_name
        # As long as the bindings find no Python module of the dialect they search again for every
        # type that they hand to Python, which takes 18 us where a found one takes 0.3.
        module = f"{loadable.__name__}.{name}"
        sys.modules.setdefault(module, types.ModuleType(module))
        ir._globals.append_dialect_search_prefix(loadable.__name__)
        self.create = ir.Operation.create
        self.type_classes = {kind: _type_class(ir, f"{name}.{kind}") for kind in self.types}
        self._loaded_in: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_defined = False

    @classmethod
    def of(cls, bindings: Bindings) -> Self:
        """Return the dialect of these bindings, made once."""
        found: Self | None = cls._made.get(id(bindings))
        if found is None:
            found = cls._made[id(bindings)] = cls(bindings)
        return found

    @classmethod
    def load(cls, bindings: Bindings) -> None:
        """Define the dialect of these `bindings` in the current MLIR context, once for each
        context.
        """
        dialect = cls.of(bindings)
        context = dialect.ir.Context.current
        if context not in dialect._loaded_in:
            dialect.define()
            dialect._loaded_in.add(context)

    def define(self) -> None:
        """Define the dialect in the current context, where it is not yet."""
        ir = self.ir
        # MLIR verifies functions in parallel. A verifier written in Python would wait in another
        # thread for the interpreter lock, which the thread that waits for the verifier holds.
        ir.Context.current.enable_multithreading(False)
        with ir.Location.unknown():
            definition = ir.Module.parse(irdl.text(self.ops, self.types))
            self.bindings.irdl.load_dialects(definition)
        for op in self.ops.declared.values():
            ir.DynamicOpTrait.attach(op.op_name, irdl.verifier(self, op))
        for kind in self.type_classes.values():
            known = ir.DynamicType.lookup_typeid(kind.type_name)
            ir.register_type_caster(known, replace=self._is_defined)(kind)
        self._is_defined = True

    def type(self, name: str, *parameters: Any) -> Any:
        """Build the type `name`, an `ir.Type`. Parameters are types, strings and ints, in order.
        Raises DSLTypeError for a type that is not declared, or another number of parameters.
        """
        found = self.type_classes.get(name)
        declared = self.types.get(name, {})
        if found is None or len(parameters) != len(declared):
            known = ", ".join(f"{n}({', '.join(p)})" for n, p in self.types.items()) or "no types"
            raise DSLTypeError(
                f"{self.ops.dialect_name} has no type '{name}' of {len(parameters)} parameters",
                hint=f"it has {known}",
            )
        return found.get(*map(self._attribute, parameters))

    def view(self, op: Any) -> OpView:
        """View `op`, an `ir.Operation` of the dialect, as an instance of the class that declares
        it.
        """
        return self.ops.declared[op.name.partition(".")[2]].of(self, op)

    def integer(self, value: int) -> Any:
        """An integer attribute of 64 bits with this `value`."""
        return self.ir.IntegerAttr.get(self.ir.IntegerType.get_signless(64), value)

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.ir.StringAttr.get(value)
        if isinstance(value, int):
            return self.integer(value)
        return self.ir.TypeAttr.get(value) if isinstance(value, self.ir.Type) else value


def _type_class(ir: Any, name: str) -> Any:
    """Make the Python class of a declared type. `parameters` are its attributes, in order."""

    class DeclaredType(ir.DynamicType):  # type: ignore[misc]
        type_name = name

        @classmethod
        def get(cls, *parameters: Any) -> Any:
            return cls(ir.DynamicType.get(cls.type_name, list(parameters)))

    return DeclaredType
