"""Effects of tracing: changes that a traced function made to what outlives the call.

Static code runs while compiling. Where it changes an object that was there before the call, code
from that trace is right for this call only, for Python would change the object in each call. The
guards taken before the trace and after it tell what changed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import CellType, CodeType
from typing import Any

from basedsl.errors import DSLError
from basedsl.location import Span, file_of_module, is_internal, span_of_code, span_of_definition
from basedsl.metastage.namespaces import instructions
from basedsl.numeric import DynamicText, is_dynamic
from basedsl.pytree import flatten
from basedsl.staleness.guard_kinds import (
    MISSING,
    AttributesGuard,
    ClassGuard,
    DictGuard,
    FieldGuard,
    Guard,
    ItemGuard,
    ListGuard,
    same,
)
from basedsl.staleness.guards import Guards


def effects(before: Guards, after: Guards) -> dict[str, Any]:
    """Return what tracing changed: each thing as a user writes it (`log`, `counter.value`), with
    its new value. Both guards must come from the same functions and objects.
    """
    found: dict[str, Any] = {}
    for key, guard in before.items():
        if not guard.holds():
            found.update(_parts(before.path(key), guard))
    if not found:
        for key, guard in after.items():
            if before.get(key) is None:
                found[after.path(key)] = guard.recorded
        found.update(dict.fromkeys(before.given_since()))
    return found


def drop_new_dynamic_attributes(before: Guards) -> None:
    """Delete attributes that tracing bound first and to a dynamic value, as kernels' classes do in
    `__call__`: such a value does not exist after compilation, and reading it is an AttributeError.
    """
    for _, guard in before.items():
        if isinstance(guard, AttributesGuard):
            for name, value in list(guard.obj.__dict__.items()):
                if name in guard.recorded or _would_answer(type(guard.obj), name, before):
                    continue
                if any(map(_is_of_trace, flatten(value)[1])):
                    del guard.obj.__dict__[name]


def _would_answer(cls: Any, name: str, before: Guards) -> bool:
    """Return True if an object without the attribute answers for it: its class does, or the program
    asks if it is there.
    """
    return (
        hasattr(cls, name)
        or hasattr(cls, "__getattr__")
        or any(_asks_for(name, code) for code in before.codes)
    )


def _asks_for(name: str, code: CodeType) -> bool:
    """Return True if code may ask if an object has the attribute `name`."""
    called = set(code.co_names)
    if called & {"vars", "dir", "__dict__"}:
        return True
    if "AttributeError" in called and name in called:
        return True
    if called & {"hasattr", "getattr"} and name in code.co_consts:
        return True
    return any(isinstance(inner, CodeType) and _asks_for(name, inner) for inner in code.co_consts)


def check_left_values(found: dict[str, Any], before: Guards, codes: Sequence[CodeType]) -> None:
    """Raise a DSLError if something that outlives the call now holds a value of this trace; what
    was changed is then put back. `codes` are those that were traced.
    """
    for path, value in found.items():
        if any(map(_is_of_trace, flatten(value)[1])):
            for _, guard in before.items():
                if not guard.holds():
                    _put_back(guard)
            raise DSLError(
                f"'{path}' outlives the call and cannot hold a dynamic value",
                next(filter(None, (_span_of(code, path) for code in codes)), None)
                or span_of_definition(codes[-1]),
                hint="a value known only at run time does not exist after compilation: return it, "
                "or store it in an array",
            )


def _is_of_trace(leaf: Any) -> bool:
    return is_dynamic(leaf) or type(leaf) is DynamicText or hasattr(type(leaf), "with_ir_value")


def _put_back(guard: Guard) -> None:
    if isinstance(guard, ListGuard):
        guard.items[:] = guard.recorded
    elif isinstance(guard, DictGuard):
        guard.table.clear()
        guard.table.update(guard.recorded)
    elif isinstance(guard, AttributesGuard):
        items = {name: x for name, x in guard.recorded.items() if name != "__class__"}
        guard.obj.__dict__.clear()
        guard.obj.__dict__.update(items)
        guard.obj.__class__ = guard.cls
    elif isinstance(guard, ItemGuard) and guard.recorded is not MISSING:
        guard.table[guard.key] = guard.recorded
    elif isinstance(guard, FieldGuard) and isinstance(guard.owner, CellType):
        guard.owner.cell_contents = guard.recorded


def _parts(path: str, guard: Guard) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a changed thing that are not what they were."""
    old, new = guard.recorded, guard.now()
    if isinstance(guard, DictGuard):
        old, new = dict(old), dict(new)
    if isinstance(guard, AttributesGuard | ClassGuard | DictGuard):
        is_dict = isinstance(guard, DictGuard)
        for name in {**old, **new}:
            if not _alike(old.get(name, MISSING), new.get(name, MISSING)):
                yield f"{path}[{name!r}]" if is_dict else f"{path}.{name}", new.get(name)
        if is_dict and list(old) != list(new):
            yield path, None
    elif not _alike(old, new):
        yield path, None if new is MISSING else new


def _alike(a: Any, b: Any) -> bool:
    """Return True if nothing can tell two values apart but by their identity: constants, and values
    of a DSL known while compiling, as a layout that is made again in each trace.
    """
    if same(a, b):
        return True
    if type(a) is not type(b) or _is_of_trace(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_alike, a, b))
    module = sys.modules.get(type(a).__module__)
    if not is_internal(file_of_module(module)):
        return False
    try:
        if hash(a) == hash(b) and a == b:
            return True
    except Exception:  # an __eq__ may refuse: then the two count as different
        return False
    parts, others = (tuple(getattr(one, "__dict__", {}).items()) for one in (a, b))
    return bool(parts) and _alike(parts, others)


def _span_of(code: CodeType, path: str) -> Span | None:
    """Return the last place in `code` that stores to the changed thing, or else names it."""
    root, *steps = path.replace("[", ".").split(".")
    wanted = {root, *steps[:1]} if steps and steps[0].isidentifier() else {root}
    stored = named = None
    for here, instruction in instructions(code):
        if instruction.argval in wanted and "CONST" not in instruction.opname:
            named = span_of_code(here, instruction.offset)
            stored = named if instruction.opname.startswith("STORE") else stored
    return stored or named
