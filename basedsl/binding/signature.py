"""The parameters of a DSL function: names, defaults, annotations, and binding a call to them."""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from basedsl.binding.constexpr import constexpr_type
from basedsl.errors import DSLCallError, DSLTypeError
from basedsl.location import span_of_function

_EMPTY = inspect.Parameter.empty
NO_DEFAULT: Any = object()


@dataclass(frozen=True)
class Each:
    """The annotation of `*args: T` or `**named: T`: each element of the tuple or dict is a T."""

    annotation: Any

    def convert(self, value: Any, one: Callable[[Any, Any], Any]) -> Any:
        """Return the tuple or dict `value` with `one(element, annotation)` in the place of each
        element.
        """
        if isinstance(value, dict):
            return {key: one(x, self.annotation) for key, x in value.items()}
        return tuple([one(x, self.annotation) for x in value])


@dataclass(frozen=True)
class Parameter:
    """One parameter of a DSL function. `annotation` is None without one, and an `Each` for a
    variadic parameter.
    """

    name: str
    annotation: Any
    default: Any
    variadic: str  # "*" of `*args`, "**" of `**named`, "" of others

    @property
    def is_constexpr(self) -> bool:
        return constexpr_type(self.annotation) is not None

    @property
    def has_default(self) -> bool:
        return self.default is not _EMPTY


@dataclass(frozen=True)
class Parameters:
    """The parameters of a native call: names (None where callers cannot use one), the values of
    those that may be left out (NO_DEFAULT of others), how many may be passed by position.
    """

    names: tuple[str | None, ...]
    defaults: tuple[Any, ...]
    positional: int


class Signature:
    """The parameters of `fn`, and the binding of calls to them. Annotations written as strings are
    evaluated in the function's scope. Raises DSLTypeError for one that cannot be evaluated.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self._signature = inspect.signature(fn, follow_wrapped=False)
        annotations = _annotations(fn)
        stars: dict[Any, str] = {
            inspect.Parameter.VAR_POSITIONAL: "*",
            inspect.Parameter.VAR_KEYWORD: "**",
        }
        for p in self._signature.parameters.values():
            annotation = annotations.get(p.name)
            if p.kind in stars and annotation is not None and not constexpr_type(annotation):
                annotations[p.name] = Each(annotation)
        self.parameters = tuple(
            Parameter(p.name, annotations.get(p.name), p.default, stars.get(p.kind, ""))
            for p in self._signature.parameters.values()
        )
        plain = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY
        self._positional = all(p.kind in plain for p in self._signature.parameters.values())
        self._count = len(self.parameters)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return one value for each parameter, defaults filled in; `*args` is a tuple, `**kw` a
        dict. Raises DSLCallError where Python would raise TypeError.
        """
        if not kwargs and self._positional and len(args) == self._count:
            return list(args)
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            unknown = self._unknown(kwargs)
            raise DSLCallError(
                f"{self.fn.__qualname__}(): {unknown or error}",
                notes=(("the function", span_of_function(self.fn)),),
                hint=f"it takes ({', '.join(self._signature.parameters)})"
                + _elsewhere(unknown or str(error)),
            ) from None
        bound.apply_defaults()
        return list(bound.arguments.values())

    def _unknown(self, kwargs: dict[str, Any]) -> str:
        """Return what Python says of the first keyword that is no parameter, "" if all are. It says
        so before it counts the others, which `inspect` does first.
        """
        kinds = [p.kind for p in self._signature.parameters.values()]
        if inspect.Parameter.VAR_KEYWORD in kinds:
            return ""
        unknown = [name for name in kwargs if name not in self._signature.parameters]
        return f"got an unexpected keyword argument {unknown[0]!r}" if unknown else ""

    def pop_option(self, name: str, kwargs: dict[str, Any]) -> Any:
        """Remove an option of a call, such as `no_cache=True`, from its keyword arguments and
        return it; None without it, or if a parameter of the function has that name.
        """
        if name not in kwargs or any(p.name == name for p in self.parameters):
            return None
        return kwargs.pop(name)

    def native(self, places: Sequence[int] | None = None) -> Parameters | None:
        """Return the parameters at the indices `places` (None: all) for a native call; None if the
        function has a variadic one.
        """
        kinds = [p.kind for p in self._signature.parameters.values()]
        if any(p.variadic for p in self.parameters):
            return None
        chosen = range(self._count) if places is None else places
        by_name = [kinds[i] is not inspect.Parameter.POSITIONAL_ONLY for i in chosen]
        return Parameters(
            tuple(
                sys.intern(self.parameters[i].name) if named else None
                for i, named in zip(chosen, by_name, strict=True)
            ),
            tuple(
                p.default if p.has_default else NO_DEFAULT
                for p in (self.parameters[i] for i in chosen)
            ),
            sum(kinds[i] is not inspect.Parameter.KEYWORD_ONLY for i in chosen),
        )

    def spread(self, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return `(args, kwargs)` with which to call the function itself, from one value for each
        parameter.
        """
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for p, value in zip(self._signature.parameters.values(), values, strict=True):
            if p.kind is inspect.Parameter.VAR_POSITIONAL:
                args.extend(value)
            elif p.kind is inspect.Parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif p.kind is inspect.Parameter.KEYWORD_ONLY:
                kwargs[p.name] = value
            else:
                args.append(value)
        return args, kwargs


def _elsewhere(error: str) -> str:
    """Return text that says where an argument belongs that the function does not take, if known."""
    _, _, name = error.partition("unexpected keyword argument ")
    if name.strip("'") in _OF_LAUNCHES:
        return f"; {name.strip(chr(39))}= belongs to .launch()"
    if name.strip("'") in _OF_COMPILATIONS:
        return '; options are text, options="--opt-level 3", or types, compile[OptLevel(3)]'
    return ""


_OF_LAUNCHES = frozenset(("grid", "block", "cluster", "smem", "stream"))
_OF_COMPILATIONS = frozenset(("opt_level", "arch", "gpu_arch", "keep", "option"))


def _annotations(fn: Callable[..., Any]) -> dict[str, Any]:
    found = dict(inspect.get_annotations(fn))
    for name, annotation in found.items():
        if isinstance(annotation, str):
            found[name] = _evaluate(annotation, name, fn)
    return found


def _evaluate(text: str, name: str, fn: Callable[..., Any]) -> Any:
    scope = dict(vars(builtins))
    scope.update(getattr(fn, "__globals__", {}))
    closure = getattr(fn, "__closure__", None) or ()
    for variable, cell in zip(fn.__code__.co_freevars, closure, strict=False):
        try:
            scope[variable] = cell.cell_contents
        except ValueError:
            continue
    try:
        return eval(text, scope)
    except Exception as error:  # any expression of the user's
        raise DSLTypeError(
            f"the annotation '{text}' of '{name}' cannot be evaluated: {error}",
            span_of_function(fn),
            hint="make the name visible in the module, or annotate without quotes",
        ) from None
