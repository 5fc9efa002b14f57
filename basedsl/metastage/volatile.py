"""Functions of libraries that answer otherwise at each call: clocks, entropy, the user's input.

Static code calls them while compiling. Code that was traced with such an answer is for one call;
in captured control flow, which is traced once however often it runs, they are refused.
"""

from __future__ import annotations

import builtins
import datetime
import random
import sys
import types
from typing import Any

_FUNCTIONS = {
    "builtins": ("input",),
    "os": ("urandom", "getrandom", "times", "getloadavg"),
    "random": ("SystemRandom",),
    "secrets": ("choice", "randbelow", "randbits", "token_bytes", "token_hex", "token_urlsafe"),
    "time": (
        *("time", "perf_counter", "monotonic", "process_time", "thread_time", "clock_gettime"),
        *("time_ns", "perf_counter_ns", "monotonic_ns", "process_time_ns", "thread_time_ns"),
        *("clock_gettime_ns", "localtime", "gmtime", "ctime"),
    ),
    "uuid": ("uuid1", "uuid4"),
}
_NAMES = frozenset(name for names in _FUNCTIONS.values() for name in names)
#: Methods of the classes of dates that read the clock.
CLOCK_METHODS = ("now", "today", "utcnow")


def is_volatile(value: Any) -> bool:
    """Return True for one of these functions, or a source of random numbers without a state."""
    cls: Any = type(value)
    if issubclass(cls, random.SystemRandom):
        return True
    if not issubclass(cls, (types.FunctionType, types.BuiltinFunctionType, type)):
        return False
    name = value.__name__
    if name not in _NAMES:
        return False
    for module, names in _FUNCTIONS.items():
        if name in names and value is getattr(sys.modules.get(module, builtins), name, None):
            return True
    return False


def reads_clock(value: Any) -> bool:
    """Return True for a class of dates, whose methods may read the clock."""
    cls: Any = type(value)
    return issubclass(cls, type) and issubclass(value, datetime.date)
