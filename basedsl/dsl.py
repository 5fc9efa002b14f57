"""A DSL as programs use it: its decorators, and compiling without a call.

TOY = DSL(Toy())

@TOY.jit
def f(x): ...
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

from basedsl.compiled import Compiled
from basedsl.driver import Driver
from basedsl.errors import DSLCallError, users_frames
from basedsl.function import BoundFunction, DSLFunction
from basedsl.language import Language
from basedsl.location import is_internal
from basedsl.mlir import MLIRContext
from basedsl.options import Options

L = TypeVar("L", bound=Language)
P = ParamSpec("P")
R = TypeVar("R")


class DSL(Generic[L]):
    """The decorators of a language; `driver` makes the calls of what they decorate."""

    def __init__(self, language: L) -> None:
        self.language = language
        self.driver = Driver(language)
        self._has_decorated = False

    def __repr__(self) -> str:
        return f"DSL({self.name!r})"

    @property
    def name(self) -> str:
        """The language's name."""
        return self.language.name

    @property
    def options(self) -> Any:
        """The options that the environment asks for now."""
        return self.driver.options

    @property
    def mlir(self) -> MLIRContext:
        """The language's MLIR bindings and its one context."""
        return self.driver.mlir

    @property
    def counts(self) -> Counter[str]:
        """How many variants of functions were "compiled" in calls, and "loaded" from the disk."""
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
        """Decorator: compile the function on its first call with arguments of a kind.

        `preprocess=False` only traces it: then a dynamic value cannot be a condition or bound.
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
        """Decorator: a function that a @jit function launches."""
        with users_frames():
            return self._decorate(fn, "kernel", preprocess)

    def compile(self, function: Any, *args: Any, options: Any = None, **kwargs: Any) -> Compiled:
        """Compile for arguments like these; always compiles, caches nothing.

        `function` is a @jit function, a bound method, or an object whose `__call__` is one;
        `options` is text as on a command line, or a record of options.
        """
        with users_frames():
            function, args = _resolve_callable(function, args)
            if function.kind != "jit":
                raise DSLCallError(
                    f"'{function.fn.__qualname__}' is a kernel; only @jit functions are compiled",
                    hint="compile the @jit function that launches it",
                )
            call = self.driver.bind(function, args, kwargs, self.settings(options))
            return self.driver.compile(call)

    def settings(self, given: Any = None) -> Any:
        """The record of options: those of the environment, changed by the text `given`; a record
        stays as it is.
        """
        if isinstance(given, Options):
            return given
        return self.options.parse(given) if isinstance(given, str) else self.options

    def _decorate(self, fn: Any, kind: str, preprocess: bool) -> Any:
        if fn is None:
            return lambda fn: self._decorate(fn, kind, preprocess)
        with users_frames():
            made = self.language.function_class(
                self.language, fn, kind, preprocess, self.driver.call, self.compile
            )
        if not self._has_decorated and not is_internal(made.fn.__code__.co_filename):
            self._has_decorated = True
            self.driver.start_preload()
        return made


def _resolve_callable(function: Any, args: tuple[Any, ...]) -> tuple[DSLFunction, tuple[Any, ...]]:
    """The decorated function of what is to be compiled, and its arguments with the instance."""
    if isinstance(function, DSLFunction):
        return function, args
    if isinstance(function, BoundFunction):
        return function.function, (function.instance, *args)
    call = inspect.getattr_static(type(function), "__call__", None)
    if isinstance(call, DSLFunction):
        return call, (function, *args)
    raise DSLCallError(
        f"compile takes a @jit function, got a {type(function).__name__}",
        hint="decorate the function with @jit",
    )
