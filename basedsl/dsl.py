"""A DSL as programs use it: its decorators, and compiling without a call.

TOY = DSL(Toy())

@TOY.jit
def f(x): ...
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from basedsl.errors import DSLCallError, DSLTypeError, users_frames, with_article
from basedsl.function import BoundFunction, DSLFunction
from basedsl.language import Language
from basedsl.location import is_internal, mark_internal
from basedsl.options import Options

if TYPE_CHECKING:  # decorating a function loads nothing of what compiles it
    from pathlib import Path

    from basedsl.compiled import Compiled
    from basedsl.driver import Driver
    from basedsl.export import LoadedModule
    from basedsl.mlir import MLIRContext

L = TypeVar("L", bound=Language)
P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound=Callable[[Any], Any])


class DSL(Generic[L]):
    """The decorators of a language. `driver` compiles and runs the decorated functions."""

    def __init__(self, language: L) -> None:
        self.language = language
        self._driver: Driver | None = None
        self._lock = threading.Lock()
        _hide_frames(type(language))
        self._has_decorated = False

    def __repr__(self) -> str:
        return f"DSL({self.name!r})"

    @property
    def driver(self) -> Driver:
        """The compiler of the decorated functions, loaded by the first one of a program."""
        if self._driver is None:
            from basedsl.driver import Driver

            with self._lock:
                if self._driver is None:
                    self._driver = Driver(self.language)
        return self._driver

    @property
    def name(self) -> str:
        """The language's name."""
        return self.language.name

    @property
    def options(self) -> Any:
        """The options that the environment variables set now, a record of `options_class`."""
        return self.driver.options

    @property
    def options_number(self) -> Callable[[], int]:
        """The function that returns a number for `options`, the same for equal ones, which is much
        cheaper: a part of a key for what was made with them.
        """
        return self.driver.options_number

    @property
    def mlir(self) -> MLIRContext:
        """The language's MLIR bindings and its one context."""
        return self.driver.mlir

    @property
    def counts(self) -> Counter[str]:
        """The numbers of variants that calls "compiled" and that they "loaded" from the disk
        cache.
        """
        return self.driver.counts

    @overload
    def jit(
        self, fn: Callable[P, R], *, preprocess: bool = True
    ) -> DSLFunction[P, R, Any, Compiled]: ...
    @overload
    def jit(
        self, fn: None = None, *, preprocess: bool = True
    ) -> Callable[[Callable[P, R]], DSLFunction[P, R, Any, Compiled]]: ...

    def jit(self, fn: Any = None, *, preprocess: bool = True) -> Any:
        """Decorate the function `fn`, which Python calls: each new tuple of argument types compiles
        it.

        With `preprocess=False` the function is traced as written: then a dynamic value cannot be
        the condition of an `if` or `while`, or a bound of a `for`. Raises DSLTypeError for
        anything but a Python function.
        """
        with users_frames():
            return self._decorate(fn, "jit", preprocess)

    @overload
    def kernel(
        self, fn: Callable[P, R], *, preprocess: bool = True
    ) -> DSLFunction[P, R, Any, Compiled]: ...
    @overload
    def kernel(
        self, fn: None = None, *, preprocess: bool = True
    ) -> Callable[[Callable[P, R]], DSLFunction[P, R, Any, Compiled]]: ...

    def kernel(self, fn: Any = None, *, preprocess: bool = True) -> Any:
        """Decorate the function `fn`, which a @jit function launches on the device. `preprocess` is
        that of `jit`. Raises DSLTypeError for anything but a Python function.
        """
        with users_frames():
            return self._decorate(fn, "kernel", preprocess)

    def compile(self, function: Any, *args: Any, options: Any = None, **kwargs: Any) -> Compiled:
        """Compile a function for arguments of the types of `args` and `kwargs`, without a cache.

        `function` is a @jit function, a bound method of one, or an object whose class has a @jit
        `__call__`. `options` is text as on a command line ("--opt-level 2"), or a record of
        options. Returns the compiled function. Raises DSLCallError for a kernel and for anything
        else that is not a @jit function, and the errors of a first call.
        """
        with users_frames():
            function, args = _resolve_callable(function, args)
            if function.kind != "jit":
                raise DSLCallError(
                    f"'{function.fn.__qualname__}' is a kernel; only @jit functions are compiled",
                    hint="compile the @jit function that launches it",
                )
            try:
                call = self.driver.bind(function, args, kwargs, self.settings(options))
                return self.driver.compile(call)
            except Exception as error:  # told, and raised again
                self.driver.raised(function, error)
                raise

    def repeated(
        self, function: DSLFunction[..., Any, Any, Any], *args: Any, numbers: Sequence[str] = ()
    ) -> Callable[[tuple[int, ...]], Any] | None:
        """Return a native function that repeats the call `function(*args)`, which has been made,
        at other addresses and with other `numbers`: see `Compiled.repeated`. None where calls need
        Python.
        """
        call = self.driver.bind(function, args, {}, self.driver.options)
        compiled, _ = self.driver.variant(call)
        return compiled.repeated(call.values, numbers)

    def load_module(self, path: str | Path) -> LoadedModule:
        """Load the functions of the object file at `path`, which `export_to_c` wrote, or of a
        shared library (".so") linked from such files.

        Returns a module with each function as the attribute of its prefix. Raises DSLRuntimeError
        for a file without exported functions, and for one that is not as it was written: an object
        file has a digest of all of it, a shared library one of the description of its functions.
        Only load files that you trust: they contain machine code.
        """
        from basedsl.export import load_module

        with users_frames():
            return load_module(self.language, path)

    def argument_adapter(self, *kinds: type) -> Callable[[A], A]:
        """Decorate a function that converts values of the classes `kinds` to arguments of this
        DSL's functions.

        It takes one value and returns one that the DSL can pass: a number, an array, or a tuple,
        NamedTuple or dataclass of these. It runs at every call; values share compiled code if
        their results have one argument type. Raises DSLTypeError unless `kinds` are classes.

            @toy.TOY.argument_adapter(Temperature)
            def in_kelvin(temperature):
                return temperature.kelvin
        """
        if not kinds or not all(isinstance(kind, type) for kind in kinds):
            raise DSLTypeError(f"an adapter is registered for classes, not for {kinds}")

        def register(adapter: A) -> A:
            for kind in kinds:
                self.language.register_adapter(kind, adapter)
            return adapter

        return register

    def ir_types(self, value: Any) -> list[Any]:
        """Return the MLIR types that the Python object `value` becomes as an argument; none for a
        static one. Raises DSLCallError for an object that the DSL cannot pass.
        """
        from basedsl.binding import argument_type
        from basedsl.compilation.tracer import ir_types

        with users_frames():
            kind = argument_type(self.language, value, None, "value")
            with self.mlir.entered():
                return ir_types(self.language, self.mlir.bindings, kind, self.options)

    def settings(self, given: Any = None) -> Any:
        """Return the record of options: those of the environment, changed by the text `given`. A
        record is returned as it is.
        """
        if isinstance(given, Options):
            return given
        return self.options if given is None else self.options.parse(given)

    def _call(self, function: DSLFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.driver.call(function, args, kwargs)

    def _decorate(self, fn: Any, kind: str, preprocess: bool) -> Any:
        if fn is None:
            return lambda fn: self._decorate(fn, kind, preprocess)
        with users_frames():
            made = self.language.function_class(
                self.language, fn, kind, preprocess, self._call, self.compile
            )
        if not self._has_decorated and not is_internal(made.fn.__code__.co_filename):
            self._has_decorated = True
            self.driver.start_preload()
        return made


def _hide_frames(language: type[Language]) -> None:
    """Mark the files of the package, or module, that defines a language as the library's, not the
    user's.
    """
    package = sys.modules.get(language.package or language.__module__.rpartition(".")[0])
    initial = getattr(package, "__file__", None)
    if initial is not None:
        mark_internal(os.path.dirname(initial) if hasattr(package, "__path__") else initial)


def _resolve_callable(function: Any, args: tuple[Any, ...]) -> tuple[DSLFunction, tuple[Any, ...]]:
    """Return the @jit function behind a bound method or callable object, and its arguments with
    the instance in front.
    """
    if isinstance(function, DSLFunction):
        return function, args
    if isinstance(function, BoundFunction):
        return function.function, (function.__self__, *args)
    call = inspect.getattr_static(type(function), "__call__", None)
    if isinstance(call, DSLFunction):
        return call, (function, *args)
    raise DSLCallError(
        f"compile takes a @jit function, got {with_article(type(function))}",
        hint="write compile(f, x), without calling f"
        if function is None
        else "decorate the function with @jit",
    )
