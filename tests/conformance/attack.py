"""Programs that people write, run by Python and by a DSL: results, exceptions and state compared.

A file of `attacks/` holds programs below lines `#% name`. Each is a module with `program(n, x)`,
called several times; `jit` is the DSL's decorator, for helpers. Lines `#> WORDS` below the name say
what does not give what Python gives, and where:

    #> refused: a dynamic Boolean is used        an error of the DSL with these words
    #> cute-kernel differs: floats as in IEEE 754     a licensed difference, in one DSL

A program with sections `#: setup`, `#: body` and `#: result` is four: the body stands straight, in
a branch and in a loop that the run time decides, and in a helper. What lines say of one of them
alone begins with its name: `#> loop refused: ...`.
"""

from __future__ import annotations

import functools
import linecache
import math
import re
import sys
import textwrap
import types
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from basedsl.errors import CompilerBug, DSLError

FOLDER = Path(__file__).parent / "attacks"
HEAD = """
import abc, array, bisect, cmath, collections, contextlib, copy, dataclasses, datetime, decimal
import enum, fractions, functools, heapq, io, itertools, json, math, numbers, operator, queue
import random, re, statistics, string, struct, sys, textwrap, types, typing, weakref
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList
from collections import defaultdict, deque, namedtuple
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple
import numpy as np
"""
CALLS = ((2, 1.5), (0, -0.5), (3, 2.0), (2, 1.5), (1, -0.0), (2, 1.5))


class Attack(NamedTuple):
    """A program: its name, its text, and for each DSL ("" for all) what is expected of it."""

    name: str
    text: str
    expected: dict[str, str]

    def expects(self, dsl: str) -> str:
        """Return "" for what Python does, or "refused: WORDS", "differs: WHY"."""
        return self.expected.get(dsl, self.expected.get("", ""))


def attacks(file: Path) -> list[Attack]:
    """Return the programs of a file, those of snippets included."""
    found = []
    for part in re.split(r"^#% ?", file.read_text(), flags=re.MULTILINE)[1:]:
        name, _, text = part.partition("\n")
        notes = re.findall(r"^#> (.*)$", text, flags=re.MULTILINE)
        text = re.sub(r"^#> .*\n", "", text, flags=re.MULTILINE)
        for place, program in _programs(text):
            expected = dict(filter(None, (_note(line, place) for line in notes)))
            found.append(Attack(f"{name}/{place}" if place else name, program, expected))
    return found


_NOTE = re.compile(r"(?:(straight|branch|loop|helper) )?(?:([\w,-]+) )?((?:refused|differs): .*)")


def _note(line: str, place: str) -> tuple[str, str] | None:
    match = _NOTE.fullmatch(line)
    assert match is not None, line
    only, dsl, what = match.groups()
    return None if only and only != place else (dsl or "", what)


def _programs(text: str) -> list[tuple[str, str]]:
    if "\n#: result\n" not in text and not text.startswith("#: setup\n"):
        return [("", text)]
    first, *rest = re.split(r"^#: (\w+)\n", text, flags=re.MULTILINE)
    part = dict(zip(rest[::2], rest[1::2], strict=True))
    setup, body = (textwrap.indent(part.get(key, ""), "    ") for key in ("setup", "body"))
    result, inner = part["result"].strip(), textwrap.indent(body, "    ")
    start, end = f"{first}\ndef program(n, x):\n    r = 0\n{setup}", f"    return {result}\n"
    helper = f"{first}\n@jit\ndef helper(n, x, r):\n{setup}{body}    return {result}\n"
    call = "def program(n, x):\n    if n > 0:\n        return helper(n, x, 0)\n"
    return [
        ("straight", start + body + end),
        ("branch", f"{start}    if n > 1:\n{inner}{end}"),
        ("loop", f"{start}    for i in range(n):\n{inner}{end}"),
        ("helper", f"{helper}{call}    return helper(2, x, 1)\n"),
    ]


def outcome(conformance: Any, attack: Attack) -> str:
    """Return "" where the DSL does what Python does, "refused: MESSAGE" for an error that points
    into the program, and "differs: HOW" for anything else.
    """
    filename = f"<{attack.name}>"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        python = _load(attack.text, f"{filename} in Python", lambda fn: fn)
        dsl = _load(attack.text, filename, conformance.jit)
        compiled = conformance.entry(dsl["program"])
        for args in CALLS:
            expected, error = _run(python["program"], args)
            found, refusal = _run(compiled, args)
            told = _compared(conformance, filename, expected, error, found, refusal)
            if told is not None:
                return told and f"{told} (for {args})"
            left, kept = _state(python), _state(dsl)
            if left != kept:
                names = [name for name in left if left[name] != kept.get(name)]
                return (
                    f"differs: Python leaves {[left[n] for n in names]}, the DSL {names}: "
                    + str([kept.get(n) for n in names])
                )
    return ""


def _compared(
    conformance: Any, filename: str, expected: Any, error: Any, found: Any, refusal: Any
) -> str | None:
    """Return None if a call did what Python does; "" if there is nothing more to compare."""
    if isinstance(refusal, CompilerBug):
        return f"differs: a bug, {refusal}"
    if error is not None and refusal is not None:
        if isinstance(refusal, type(error)) or _is_same_class(type(refusal), type(error)):
            return None
        if not conformance.raises and type(error).__name__ in str(refusal):
            return ""
    if isinstance(refusal, DSLError | TypeError) and hasattr(refusal, "span"):
        places = filename in str(refusal)
        return f"{'refused' if places else 'differs: elsewhere'}: {refusal}"
    if refusal is not None and any(filename in note for note in _notes(refusal)):
        return f"refused: {refusal}"
    if error is not None or refusal is not None:
        return f"differs: Python {expected!r} {error!r}, the DSL {found!r} {refusal!r}"
    if not _alike(conformance, expected, found):
        return f"differs: Python {expected!r}, the DSL {found!r}"
    return None


def _is_same_class(found: type, expected: type) -> bool:
    """Return True for one class of the program, which Python and the DSL load apart."""
    return found.__name__ == expected.__name__ and found.__module__.startswith("attack_")


def _notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])


def _run(program: Any, args: tuple[Any, ...]) -> tuple[Any, BaseException | None]:
    try:
        return program(*args), None
    except Exception as error:
        return None, error


def _load(text: str, filename: str, jit: Any) -> dict[str, Any]:
    text = HEAD + text
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    module = types.ModuleType("attack_" + re.sub(r"\W", "_", filename))
    module.__dict__["jit"] = jit
    sys.modules[module.__name__] = module  # `dataclasses` looks there
    try:
        exec(compile(text, filename, "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module.__dict__


_HEAD_NAMES: dict[str, Any] = {}
exec(HEAD, _HEAD_NAMES)
_OURS = {
    *_HEAD_NAMES,
    "program",
    "jit",
    "helper",
    "__warningregistry__",
    *vars(types.ModuleType("x")),
}


def _state(module: dict[str, Any]) -> dict[str, str]:
    return {name: _shown(value) for name, value in module.items() if name not in _OURS}


def _shown(x: Any, depth: int = 6) -> str:
    """Return text that tells two states of an object apart, and not two objects of one state."""
    if depth == 0 or isinstance(x, int | float | str | bytes | bool | None | complex):
        return repr(x) if depth else "..."
    show = functools.partial(_shown, depth=depth - 1)
    kind = type(x).__name__
    if isinstance(x, types.ModuleType) or (hasattr(x, "fn") and hasattr(x, "variants")):
        return "function" if hasattr(x, "fn") else x.__name__
    if isinstance(x, types.FunctionType):
        own = {k: v for k, v in vars(x).items() if not k.startswith("__")}
        return f"function{show((x.__defaults__, own))}" if own or x.__defaults__ else "function"
    if isinstance(x, list | tuple | collections_deque):
        return f"{kind}({', '.join(map(show, x))})" + (
            show(vars(x)) if hasattr(x, "__dict__") else ""
        )
    if isinstance(x, dict):
        inner = ", ".join(f"{show(k)}: {show(v)}" for k, v in x.items())
        return f"{kind}{{{inner}}}" + (show(vars(x)) if hasattr(x, "__dict__") else "")
    if isinstance(x, set | frozenset):
        return f"{kind}{sorted(map(show, x))}"
    if isinstance(x, type):
        plain = (int, float, str, list, dict, set, tuple)
        return x.__name__ + show(
            {k: v for k, v in vars(x).items() if not k.startswith("_") and isinstance(v, plain)}
        )
    text = kind if type(x).__repr__ is object.__repr__ else repr(x)
    text = re.sub(r"0x[0-9a-fA-F]+|attack_\w+|<|>", "", text)
    text = re.sub(r"@\w+\.jit (\w+)|function (\w+)( at )?", "function", text)
    if kind in _WITHOUT_CONTENTS:
        return kind
    slots = [s for b in type(x).__mro__ for s in _names(vars(b).get("__slots__", ()))]
    parts = {s: getattr(x, s, None) for s in slots if not s.startswith("__")}
    return text + show({**getattr(x, "__dict__", {}), **parts})


collections_deque = _HEAD_NAMES["deque"]
# What they hold names the module, or is an object of the machine.
_WITHOUT_CONTENTS = ("Logger", "TypeVar", "Generator", "scheduler", "_lru_cache_wrapper", "partial")


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _alike(conformance: Any, a: Any, b: Any) -> bool:
    """True if two results are one, up to the precision of the DSL's floats."""
    alike = functools.partial(_alike, conformance)
    if isinstance(a, float) and isinstance(b, float):
        if a != a or b != b:
            return a != a and b != b
        if a == b:
            return math.copysign(1, a) == math.copysign(1, b)
        close = 1e-12 if conformance.float_bits == 64 else 3e-5
        return math.isclose(a, b, rel_tol=close, abs_tol=close)
    if type(a) is not type(b):
        return type(a).__name__ == type(b).__name__ and _shown(a) == _shown(b)
    if isinstance(a, list | tuple | collections_deque):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[k], b[k]) for k in a)
    return bool(a == b)
