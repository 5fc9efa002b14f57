"""Decorated functions: the objects that `@jit` and `@kernel` return."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, overload

from basedsl.binding import Each, Parameter, Signature, constexpr_type
from basedsl.binding.argument_types import DeclaresArguments
from basedsl.binding.calling_convention import INLINE, LAUNCH, decide
from basedsl.errors import (
    DSLAttributeError,
    DSLCallError,
    DSLError,
    DSLTypeError,
    users_frames,
    with_article,
)
from basedsl.location import is_rewritten
from basedsl.numeric import Numeric
from basedsl.slips import closest_name
from basedsl.tracing import RUNNING, Trace, current_trace_or_none
from basedsl.variants import Variants

if TYPE_CHECKING:  # a process that finds its code on the disk never imports the pre-stage
    from typing import Self

    from typing_extensions import ParamSpec, TypeVar

    from basedsl.line_maps import Lined
    from basedsl.native_call.entry import NativeEntry, NativeVariant
    from basedsl.prestage import StagedFunction

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
    C = TypeVar("C", default=Any, covariant=True)
    K = TypeVar("K", default=Any, covariant=True)
else:  # without defaults: typing_extensions costs an import
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")
    C = TypeVar("C", covariant=True)
    K = TypeVar("K", covariant=True)


class FunctionLanguage(DeclaresArguments, Protocol):
    """The part of a `basedsl.Language` that its functions and their compilations use."""

    def launch(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


Call = Callable[["DSLFunction", tuple[Any, ...], dict[str, Any]], Any]


class DSLFunction(Generic[P, R, C, K]):
    """A function of a DSL. `kind` is "jit" or "kernel"; `fn` is the Python function as written;
    `language` declares the DSL. With `preprocess` the pre-stage rewrites the function, else it is
    traced as written. Raises DSLTypeError for an `fn` that is no Python function.

    To a type checker, `P` and `R` are the parameters and the result of the function as written,
    `C` is the type of a call's result, `K` that of `compile`'s. Calls accept any argument types,
    and those of a @jit function return Any: Python passes an array for a tensor, and gets an int
    for an Int32.

    `call(function, args, kwargs)` runs a call from Python, `compile(function, *args, **kwargs)`
    only compiles; the driver provides both. `variants` are the function's compilations, which the
    driver adds.

    Each object has its own `__call__`: at first Python's (`_call`), then a native one, once there
    is a variant that native code can call.
    """

    __slots__ = ("__call__", "__dict__", "__weakref__", "_is_method")
    __dsl_leaf__ = True
    __call__: Callable[..., C]
    __name__: str
    __qualname__: str
    __wrapped__: Callable[P, R]

    def __init__(
        self,
        language: FunctionLanguage,
        fn: Callable[P, R],
        kind: str,
        preprocess: bool,
        call: Call,
        compile: Callable[..., K],
    ) -> None:
        if not callable(fn) or not hasattr(fn, "__code__") or isinstance(fn, types.MethodType):
            raise _not_a_function(kind, fn)
        functools.update_wrapper(self, fn)
        self.language = language
        self.fn: Any = fn
        self.kind = kind
        # A function defined inside of a rewritten one was rewritten with it.
        self.preprocess = preprocess and not is_rewritten(fn.__code__)
        self.variants: Variants[Any] = Variants()
        self._call_from_python = call
        self._compile = compile
        self._signature: tuple[Any, Signature] | None = None
        self._entry: NativeEntry | None = None
        self._entry_signature: Signature | None = None
        self._is_method = False
        self.__call__ = self._call
        self.__dsl_own__ = frozenset({*vars(self), "__dsl_own__"})  # others a program gave it

    @property
    def signature(self) -> Signature:
        """The parameters, with the defaults that the function has now."""
        fn = self.fn
        named = fn.__kwdefaults__
        now = (fn.__code__, fn.__defaults__, None if named is None else dict(named))
        if self._signature is None or not _identical(self._signature[0], now):
            self._signature = now, Signature(fn)
        return self._signature[1]

    def staged_in(self, trace: Trace) -> Callable[..., Any]:
        """Return the function that the meta-stage runs: rewritten, or as written with
        preprocess=False.

        Each trace makes it anew, because the globals may have changed.
        """
        if not self.preprocess:
            written: Callable[..., Any] = self.fn
            return written
        found = trace.staged.get(self)
        if found is None:
            found = trace.staged[self] = bind_staged(self.stage(), trace)
        return found

    def stage(self) -> StagedFunction:
        """Run the pre-stage on the function as it is now. Raises DSLSyntaxError for Python that the
        pre-stage does not support.
        """
        from basedsl.prestage import stage_function

        return stage_function(self.fn)

    @property
    def source(self) -> str:
        """The rewritten function as Python text; as written with preprocess=False."""
        return self.staged_source() if self.preprocess else self.written_source()

    def written_source(self) -> str:
        """Return the text of the function as its file has it."""
        import inspect

        return inspect.getsource(self.fn)

    def staged_source(self) -> str:
        """The rewritten function as Python text; "" with preprocess=False."""
        return self.stage().source if self.preprocess else ""

    def lined_source(self) -> Lined:
        """Return the text of the function as its file has it, with the lines of the file."""
        from basedsl.line_maps import Lined

        text = self.written_source()
        code = self.fn.__code__
        first = code.co_firstlineno
        places = [((code.co_filename, first + i),) for i in range(len(text.splitlines()))]
        return Lined(text, list(places))

    def lined_staged_source(self) -> Lined:
        """Return the rewritten function, with the lines of the file that its lines come from."""
        from basedsl.line_maps import of_rewritten

        staged = self.stage()
        return of_rewritten(staged.source, staged.tree, self.fn.__code__.co_filename)

    @property
    def symbol(self) -> str:
        """The name of the function in the IR and in profilers.

        Host functions carry the DSL's name, so that one called `sin` does not replace libm's.
        """
        plain = self.plain_symbol
        return symbol_of(f"{self.language.name}_") + plain if self.kind == "jit" else plain

    @property
    def plain_symbol(self) -> str:
        """The function's own name as a symbol."""
        name: str = self.fn.__qualname__
        return symbol_of(name.replace("<lambda>", "lambda").replace("<locals>.", ""))

    @property
    def compilations(self) -> tuple[Any, ...]:
        """The compilations of calls that this process has, `Compiled` objects."""
        return tuple(self.variants)

    def forget(self) -> None:
        """Drop all compilations of the function that this process has."""
        with self.variants.lock:
            self.variants.clear()
            self._entry = None
            self.__call__ = self._call

    def __dsl_digest__(self) -> str:
        return f"{self.language.name} {self.kind} {self.preprocess} {self.symbol}"

    def __repr__(self) -> str:
        return f"<@{self.language.name}.{self.kind} {self.fn.__qualname__}>"

    # Like a Python function, it is copied as itself and pickled by name.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> str:
        name: str = self.fn.__qualname__
        return name

    if not TYPE_CHECKING:  # a type checker reports attributes that do not exist

        def __getattr__(self, name: str) -> Any:
            if name == "launch" and self.__dict__.get("kind") == "kernel":
                name = self.fn.__name__
                raise DSLAttributeError(
                    f"'{name}.launch' is missing the kernel's arguments",
                    hint=f"write {name}(...).launch(grid=..., block=...)",
                )
            if name == "launch" and self.__dict__.get("kind") == "jit":
                raise DSLAttributeError(
                    f"'{self.fn.__name__}' is a @jit function: it is called, kernels are launched",
                    hint=f"write {self.fn.__name__}(...)",
                )
            if name.startswith("_") or "fn" not in self.__dict__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            near = closest_name(name, [one for one in dir(self) if not one.startswith("_")])
            written = f"write {self.fn.__name__}(...)" if near is None else f"did you mean {near}?"
            raise DSLAttributeError(
                f"the @{self.kind} function '{self.fn.__name__}' has no '{name}'", hint=written
            )

        def __getitem__(self, extents: Any) -> Any:
            name = self.fn.__name__
            if self.kind == "kernel":
                raise DSLCallError(
                    f"the kernel '{name}' takes no launch extents in brackets",
                    hint=f"write {name}(...).launch(grid=..., block=...), in a @jit function",
                )
            raise DSLCallError(
                f"'{name}' is a @jit function: it is called without brackets",
                hint=f"write {name}(...); kernels get grid= and block= in launch()",
            )

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload  # mypy asks for a field of a NamedTuple too, which is the function itself
    def __get__(self, instance: tuple[Any, ...], owner: type | None = None) -> Self: ...
    @overload
    def __get__(self, instance: Any, owner: type | None = None) -> BoundFunction[C, K]: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Self | BoundFunction[C, K]:
        if instance is None:
            return self
        self._is_method = True
        return BoundFunction(self, instance)

    def __set_name__(self, owner: type, name: str) -> None:
        self._is_method = True  # owner.name(instance, ...) passes an instance too

    @property
    def receiver(self) -> Parameter | None:
        """The parameter that a method is bound by, whatever its name: the first. None for a
        function that is in no class.

        A method inside of another decorator, which binds it by itself, is known by the name `self`.
        """
        first = next(iter(self.signature.parameters), None)
        if first is None or first.variadic:
            return None
        return first if self._is_method or first.name == "self" else None

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        trace = current_trace_or_none()
        if trace is not None:
            return self._call_traced(trace, args, kwargs)
        with users_frames():
            decide("python", "", self.kind, self.fn)
            return self._call_from_python(self, args, kwargs)

    def call_natively(self, variant: NativeVariant | None) -> None:
        """Let native code make calls of this variant from now on; with None, change nothing."""
        if variant is None:
            return
        signature = self.signature
        parameters = signature.native()
        if parameters is None:
            return
        from basedsl.native_call.entry import new_entry

        with self.variants.lock:
            entry = self._entry
            if entry is None or self._entry_signature is not signature:
                entry = new_entry(parameters, self._call, RUNNING)
                if entry is None:
                    return
                self._entry, self._entry_signature = entry, signature
            if variant not in entry.variants:
                entry.add(variant)
            self.__call__ = entry.call

    def compile(self, *args: Any, **kwargs: Any) -> K:
        """Compile for arguments of these types, without running.

        Takes the arguments of a call, and `options` as `DSL.compile` does. Returns a
        `basedsl.Compiled`. Raises the errors of a first call.
        """
        return self._compile(self, *args, **kwargs)

    def _call_traced(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if trace.language is not self.language:
            raise DSLCallError(
                f"'{trace.function_name}', a function of the DSL '{trace.language.name}', calls "
                f"'{self.fn.__qualname__}' of the DSL '{self.language.name}'",
                hint="functions of one DSL can inline only their own and plain Python",
            )
        action = decide(trace.function_kind, trace.function_name, self.kind, self.fn)
        trace.meets(self)
        if action is LAUNCH:
            return self.language.launch(self, args, kwargs)
        assert action is INLINE
        return self._inline(trace, args, kwargs)

    def _inline(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the body in the current trace, with arguments converted as annotated."""
        values = self.signature.bind(args, kwargs)
        for i, parameter in enumerate(self.signature.parameters):
            values[i] = _convert(values[i], parameter.annotation, parameter.name)
        positional, named = self.signature.spread(values)
        return self.staged_in(trace)(*positional, **named)


class BoundFunction(Generic[C, K]):
    """A decorated method bound to its instance, which is static while compiling."""

    __slots__ = ("__call__", "function")  # few: each access of a method makes such an object
    __dsl_leaf__ = True
    __call__: Callable[..., C]

    if TYPE_CHECKING:  # what `__getattr__` finds
        __name__: str
        __qualname__: str
        fn: Any
        kind: str
        signature: Signature
        source: str
        symbol: str
    else:

        def __getattr__(self, name: str) -> Any:
            return getattr(self.function, name)

    def __init__(self, function: DSLFunction[..., Any, C, K], instance: Any) -> None:
        self.function = function
        self.__call__ = types.MethodType(function, instance)

    @property
    def __self__(self) -> Any:
        return self.__call__.__self__  # type: ignore[attr-defined]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> BoundFunction[C, K]:
        return BoundFunction(self.function, copy.deepcopy(self.__self__, memo))

    def __reduce__(self) -> Any:
        return getattr, (self.__self__, self.function.fn.__name__)

    @property
    def __wrapped__(self) -> Any:
        return self.function.fn

    def compile(self, *args: Any, **kwargs: Any) -> K:
        return self.function.compile(self.__self__, *args, **kwargs)


def _not_a_function(kind: str, fn: Any) -> DSLError:
    what = type(fn).__name__
    hint = "put it directly above a def, below @staticmethod or @classmethod"
    if isinstance(fn, type):
        what, hint = "class", "decorate the methods of the class one by one"
    elif isinstance(fn, types.MethodType):
        what, hint = "bound method", "decorate the method in its class"
    return DSLTypeError(f"@{kind} decorates Python functions, not {with_article(what)}", hint=hint)


def symbol_of(name: str) -> str:
    """Return a name as an IR symbol: characters that are no letters or digits become
    underscores.
    """
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)


def bind_staged(staged: StagedFunction, trace: Trace) -> Callable[..., Any]:
    """Return the rewritten function, ready to run in `trace`; print its text if the option
    `print_after_preprocess` is set.
    """
    from basedsl.metastage.control_flow import CONTROL_FLOW

    if trace.options.print_after_preprocess:
        print(staged.source)
    return staged.bind(CONTROL_FLOW)


def _identical(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    (code, defaults, named), (other_code, other_defaults, other_named) = a, b
    if code is not other_code or defaults is not other_defaults:
        return False
    if named is None or other_named is None:
        return named is other_named
    same_keys: bool = named.keys() == other_named.keys()
    return same_keys and all(named[k] is other_named[k] for k in named)


def _convert(value: Any, annotation: Any, name: str) -> Any:
    """Return the argument of an inlined call, converted to its parameter's annotation. Raises
    DSLCallError for a value that the annotation excludes. Constexpr excludes none: programs pass
    conditions of run time too, and a body that needs a static value says so where it does.
    """
    if isinstance(annotation, Each):
        return annotation.convert(value, lambda x, kind: _convert(x, kind, name))
    if constexpr_type(annotation) is not None:
        return value
    if not (isinstance(annotation, type) and issubclass(annotation, Numeric)):
        return value
    if annotation.__name__ in ("Numeric", "Integer", "Float"):
        return value
    if isinstance(value, Numeric) and type(value).is_float and annotation.is_integer:
        raise DSLCallError(
            f"the parameter '{name}' is {annotation.__name__} and got {with_article(type(value))}",
            hint=f"convert it with .to({annotation.__name__})",
        )
    return annotation(value) if isinstance(value, Numeric | int | float) else value
