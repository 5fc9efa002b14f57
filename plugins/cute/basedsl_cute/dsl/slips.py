"""Hints for errors that Python raises in kernels: names and attributes of other languages."""

from __future__ import annotations

import re

from basedsl import Numeric, closest_name
from basedsl_cute.hardware.other_names import MODULES, OF_NUMBERS, instead_of

_MEMBER = re.compile(r"\.(\w+)")
_NUMPY = re.compile(r"\b(?:np|numpy)\.(\w+)")
_PART = re.compile(r"\.(shape|stride)\b")
_AXES = {"x": 0, "y": 1, "z": 2}


def hint(error: Exception, source: str) -> str | None:
    """Return what to write instead of `source`, the expression at which Python raised `error`."""
    if isinstance(error, NameError) and error.name is not None:
        return _name(error.name, source)
    if isinstance(error, AttributeError):
        return _attribute(error, source)
    if isinstance(error, IndexError) and _PART.search(source):
        return "shape and stride have an entry for each mode: cute.rank(x) is how many there are"
    if isinstance(error, IndexError) and str(error).startswith("only integers, slices"):
        return (
            "NumPy's array is known while compiling, the index at run time only: pass the array "
            "to the @jit function, as a cute.Tensor"
        )
    if isinstance(error, TypeError):
        return _type_error(str(error), source)
    return None


def _name(name: str, source: str) -> str | None:
    if name in MODULES and (member := _MEMBER.search(source)):
        instead = instead_of(member[1])
        if instead is None:
            return f"a kernel calls functions of cute, not of {MODULES[name]}"
        return f"in cute: {instead}"
    instead = instead_of(name)
    return None if instead is None else f"in cute: {instead}"


def _attribute(error: AttributeError, source: str) -> str | None:
    name, owner = error.name or "", error.obj
    axis = _AXES.get(name)
    if axis is not None and isinstance(owner, tuple):
        return f"it is a tuple (x, y, z): write {source.rpartition('.')[0] or 'idx'}[{axis}]"
    if isinstance(owner, tuple) and ("_idx()" in source or "_dim()" in source):
        return f"it is a tuple (x, y, z) of numbers: write {source.rpartition('.')[0]}[0]"
    if axis is not None and callable(owner):
        return f"call it, it returns a tuple: write {source.rpartition('.')[0]}()[{axis}]"
    if owner is None and ".launch(" in source:
        return "launch() returns None: streams order the work, and cute.synchronize() waits for it"
    if name == "launch":
        return "kernels are launched: functions decorated with @cute.kernel; others are called"
    # Of an assignment, which names no object; reading asks the tensor itself.
    if str(error).startswith("'Tensor' object"):
        return "a tensor is a view of memory: x[i] = value writes an element"
    if isinstance(owner, Numeric):
        known = [one for one in dir(owner) if not one.startswith("_")]
        near = closest_name(name, known)
        return (
            OF_NUMBERS.get(name)
            or (near and f"did you mean x.{near}?")
            or (name.endswith("_") and "numbers do not change in place: x[i] = x[i] + 1")
            or "a number has operators and x.to(type); cute.math has functions of it"
        )
    return None


def _type_error(text: str, source: str) -> str | None:
    if "does not support ufuncs" in text:
        found = _NUMPY.search(source)
        name = found[1] if found else "sqrt"
        return (
            f"NumPy computes while compiling, the value is known at run time: cute.math.{name}(x), "
            "if it has it, computes there"
        )
    if "is not subscriptable" in text and text.startswith("'") and _is_number(text):
        return "a tensor takes all coordinates in one pair of brackets: x[i, j]"
    if text.startswith("'Tensor' object is not callable"):
        return "an element is x[i], with brackets"
    if text.startswith("'tuple' object is not callable") and _PART.search(source):
        return "it is a tuple, without parentheses: x.shape[i], x.stride[i]"
    if text.startswith("'NoneType' object") and ("subscriptable" in text or "item" in text):
        return "it is None, a static argument: pass the tensor"
    if "for @: 'Float" in text or "for @: 'Int" in text:
        return "these are numbers: a * b; matrices are multiplied by cute.gemm, or basedsl_cute.ops"
    if "for @: 'Tensor'" in text:
        return "products of matrices are cute.gemm(tiled_mma, d, a, b, c), or basedsl_cute.ops"
    if "for @: 'Layout'" in text:
        return "cute.composition(a, b), cute.logical_product(a, b) or cute.logical_divide(a, b)"
    if "does not support item assignment" in text and _is_number(text):
        return "it is one number: pass the tensor, and write x[i] = value"
    if "bad operand type for unary -: 'Pointer'" in text:
        return "a pointer takes + and - of elements; p.load() is the element there"
    if "is not callable" in text and text.startswith("'") and _is_number(text):
        return "it is a number: write it without parentheses"
    return None


def _is_number(text: str) -> bool:
    name = text.split("'")[1]
    return name.startswith(("Int", "Uint", "Float", "BFloat", "Boolean"))
