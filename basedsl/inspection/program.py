"""A function of a program's file, and the arguments that a command line describes.

function = find_function(load_program(Path("add.py")), "add")
args, kwargs = read_arguments(["float32[1024]", "n=8"], vars(module))
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from basedsl.errors import DSLError, DSLRuntimeError, DSLSyntaxError, with_article
from basedsl.function import BoundFunction, DSLFunction
from basedsl.location import Span, is_internal_frame, span_of_code
from basedsl.slips import closest_name

_ARRAY = re.compile(r"(\w+)\[\s*(\d+(?:\s*,\s*\d+)*)\s*\]")
_NAMED = re.compile(r"([A-Za-z_]\w*)=(?!=)(.*)", re.DOTALL)
_SHORT = {"f": "float", "i": "int", "u": "uint", "bf": "bfloat"}


def read_text(path: Path) -> str:
    """Return the text of a file. Raises DSLRuntimeError, naming it, if it is missing, a folder, not
    readable, or not text.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise DSLRuntimeError(f"{path} is a binary file, not text") from None
    except OSError as error:
        raise DSLRuntimeError(f"{path} cannot be read: {error.strerror}") from None


def load_program(path: Path) -> ModuleType:
    """Run the file `path` as a module, not as the main program, and return it.

    Raises DSLRuntimeError for a file that cannot be read, DSLSyntaxError for one that is not
    Python; an exception that the program raises passes through.
    """
    text = read_text(path)
    try:
        code = compile(text, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        column = getattr(error, "offset", None) or 1
        span = None if line is None else Span(str(path), line, max(0, column - 1))
        reason = getattr(error, "msg", None) or str(error)
        raise DSLSyntaxError(f"{path} is not Python: {reason}", span) from None
    name = re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_loader(name, loader=None, origin=str(path))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        exec(code, module.__dict__)
    except DSLError:
        raise
    except Exception as error:  # the program's own
        raise _raised(path, error) from error
    return module


def _raised(path: Path, error: Exception) -> DSLRuntimeError:
    """Return the error of a program that raises while it is loaded, at its line."""
    span, entry = None, error.__traceback__
    while entry is not None:
        if not is_internal_frame(entry.tb_frame):
            span = span_of_code(entry.tb_frame.f_code, entry.tb_lasti)
        entry = entry.tb_next
    return DSLRuntimeError(f"{path} raises {type(error).__name__}: {error}", span)


def functions_of(module: ModuleType) -> dict[str, DSLFunction]:
    """Return the decorated functions that the module's own file defines, by name; those of classes
    as `Class.method`.
    """
    found: dict[str, DSLFunction] = {}
    for name, value in vars(module).items():
        if isinstance(value, DSLFunction):
            found[name] = value
        elif inspect.isclass(value) and value.__module__ == module.__name__:
            for inner, method in vars(value).items():
                if isinstance(method, DSLFunction):
                    found[f"{name}.{inner}"] = method
    return {
        name: function
        for name, function in found.items()
        if function.fn.__code__.co_filename == module.__file__
    }


def find_function(module: ModuleType, name: str) -> Any:
    """Return the object `name` ("f", "instance.method") of a program. Raises DSLRuntimeError, with
    the nearest name, if there is none.
    """
    value: Any = module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            known = list(functions_of(module))
            near = closest_name(name, known)
            raise DSLRuntimeError(
                f"{module.__file__} has no function {name!r}",
                hint=f"did you mean {near}?"
                if near
                else f"there is {', '.join(known) or 'no decorated function'}",
            ) from None
    return value


def dsl_function(value: Any) -> DSLFunction:
    """Return the decorated function behind a function, a bound method or a callable object."""
    if isinstance(value, BoundFunction):
        return value.function
    if isinstance(value, DSLFunction):
        return value
    call = inspect.getattr_static(type(value), "__call__", None)
    if isinstance(call, DSLFunction):
        return call
    what = f"'{value.__name__}'" if inspect.isroutine(value) else with_article(type(value))
    raise DSLRuntimeError(f"{what} is not a function of a DSL", hint="decorate it with @jit")


def read_arguments(
    texts: Sequence[str], scope: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and named arguments that `texts` describe.

    A text is an array of zeros as element type and shape ("float32[64,64]", "bf16[8]"), or a Python
    expression in the program's own names and `np`; `name=` before it passes it by name. Raises
    DSLRuntimeError for a text that is neither.
    """
    args, kwargs = [], {}
    for text in texts:
        named = _NAMED.fullmatch(text.strip())
        if named is not None:
            kwargs[named[1]] = _read(named[2], scope)
        else:
            args.append(_read(text, scope))
    return args, kwargs


def _read(text: str, scope: Mapping[str, Any]) -> Any:
    array = _ARRAY.fullmatch(text.strip())
    if array is not None and array[1] not in scope:
        dtype = _dtype(array[1])
        if dtype is not None:
            return _zeros(text, [int(n) for n in array[2].split(",")], dtype)
    try:
        return eval(text.strip(), {"np": np, **scope})
    except DSLError:
        raise
    except Exception as error:  # any expression of the user's
        raise DSLRuntimeError(
            f"the argument {text!r} cannot be read: {type(error).__name__}: {error}",
            hint='write an array as "float32[64,64]", or a Python expression of the program',
        ) from None


def _zeros(text: str, shape: list[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    try:
        return np.zeros(shape, dtype)
    except (MemoryError, OverflowError, ValueError) as error:
        raise DSLRuntimeError(f"the argument {text!r} cannot be made: {error}") from None


def _dtype(name: str) -> np.dtype[Any] | None:
    import ml_dtypes  # registers the names of narrow floats  # noqa: F401

    short = re.fullmatch(r"(bf|[fiu])(\d+)", name)
    try:
        return np.dtype(_SHORT[short[1]] + short[2] if short else name)
    except TypeError:
        return None
