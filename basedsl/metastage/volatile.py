"""Functions of libraries that reach outside of the program: clocks, entropy, files, processes.

Static code calls them while compiling. Code that was traced with such an answer is for one call;
in captured control flow, which is traced once however often it runs, they are refused.
"""

from __future__ import annotations

import builtins
import datetime
import dis
import functools
import pathlib
import random
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from basedsl.location import Span, file_of_module, is_internal, span_of_code
from basedsl.metastage.namespaces import named_in

_FUNCTIONS = {
    "builtins": ("input", "open"),
    "gc": (
        *("enable", "disable", "isenabled", "get_count", "get_threshold", "set_threshold"),
        *("get_objects", "get_stats", "set_debug", "get_debug"),
    ),
    "glob": ("glob", "iglob"),
    "io": ("open", "open_code", "FileIO"),
    "locale": ("setlocale", "getlocale", "localeconv"),
    "numpy": (
        *("load", "save", "savez", "savez_compressed", "loadtxt", "savetxt", "genfromtxt"),
        *("fromfile", "memmap"),
    ),
    "os": (
        *("urandom", "getrandom", "times", "getloadavg", "getcwd", "chdir", "umask"),
        *("open", "read", "write", "close", "pipe", "truncate", "listdir", "scandir", "walk"),
        *("stat", "lstat", "access", "chmod", "chown", "utime", "link", "symlink", "readlink"),
        *("mkdir", "makedirs", "rmdir", "removedirs", "remove", "unlink", "rename", "renames"),
        *("replace", "system", "popen", "fork", "kill", "putenv", "unsetenv", "startfile"),
        *("execl", "execv", "execve", "execvp", "spawnl", "spawnv", "posix_spawn", "waitpid"),
    ),
    "os.path": (
        *("exists", "lexists", "isfile", "isdir", "islink", "ismount", "getsize", "getmtime"),
        *("getatime", "getctime", "samefile"),
    ),
    "random": ("SystemRandom",),
    "resource": ("getrusage", "getrlimit", "setrlimit"),
    "secrets": ("choice", "randbelow", "randbits", "token_bytes", "token_hex", "token_urlsafe"),
    "shutil": (
        *("copy", "copy2", "copyfile", "copytree", "move", "rmtree", "disk_usage", "which"),
        *("make_archive", "unpack_archive"),
    ),
    "signal": ("signal", "getsignal", "alarm", "setitimer", "getitimer", "raise_signal"),
    "socket": ("socket", "create_connection", "create_server", "getaddrinfo", "gethostbyname"),
    "subprocess": (
        *("run", "call", "check_call", "check_output", "getoutput", "getstatusoutput", "Popen"),
    ),
    "sys": (
        *("getrecursionlimit", "setrecursionlimit", "getswitchinterval", "setswitchinterval"),
        *("getrefcount", "gettrace", "settrace", "getprofile", "setprofile", "getallocatedblocks"),
    ),
    "tempfile": (
        *("NamedTemporaryFile", "TemporaryFile", "TemporaryDirectory", "SpooledTemporaryFile"),
        *("mkstemp", "mkdtemp", "mktemp"),
    ),
    "threading": ("active_count", "current_thread", "enumerate", "main_thread", "stack_size"),
    "time": (
        *("time", "perf_counter", "monotonic", "process_time", "thread_time", "clock_gettime"),
        *("time_ns", "perf_counter_ns", "monotonic_ns", "process_time_ns", "thread_time_ns"),
        *("clock_gettime_ns", "localtime", "gmtime", "ctime", "sleep"),
    ),
    "tracemalloc": ("start", "stop", "is_tracing", "get_traced_memory", "take_snapshot"),
    "urllib.request": ("urlopen", "urlretrieve"),
    "uuid": ("uuid1", "uuid4"),
}
_NAMES = frozenset(name for names in _FUNCTIONS.values() for name in names)
_KINDS = (types.FunctionType, types.BuiltinFunctionType, type)
_METHODS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (datetime.date, ("now", "today", "utcnow")),
    (
        pathlib.Path,
        (
            *("open", "read_text", "read_bytes", "write_text", "write_bytes", "touch", "mkdir"),
            *("rmdir", "unlink", "rename", "replace", "exists", "is_file", "is_dir", "iterdir"),
            *("glob", "rglob", "stat", "chmod", "symlink_to", "hardlink_to", "cwd", "home"),
        ),
    ),
)


_METHOD_NAMES = frozenset(name for _, names in _METHODS for name in names)
_ASKED = _NAMES | _METHOD_NAMES
_UNKNOWN: Any = object()


class _Made:
    """An object of a class with such methods, as a call of the class makes one."""

    def __init__(self, cls: type, path: str) -> None:
        self.cls = cls
        self.path = path


class OutsideCall(NamedTuple):
    """A use of one of these functions in code: the function as written there, and the place."""

    path: str
    code: types.CodeType
    offset: int

    @property
    def span(self) -> Span:
        """The place in the source."""
        return span_of_code(self.code, self.offset)


def is_volatile(value: Any) -> bool:
    """Return True for one of these functions, or a source of random numbers without a state."""
    cls: Any = type(value)
    if not issubclass(cls, _KINDS):
        return issubclass(cls, random.SystemRandom)
    name = value.__name__
    if name not in _NAMES:
        return False
    for module, names in _FUNCTIONS.items():
        if name in names and value is getattr(sys.modules.get(module, builtins), name, None):
            return True
    return False


def _has_volatile(owner: Any, name: str) -> bool:
    """Return True if `owner.name` reads a clock or a file: of classes of dates, of paths."""
    if isinstance(owner, _Made):
        owner = object.__new__(owner.cls)
    cls: Any = owner if issubclass(type(owner), type) else type(owner)
    return any(
        name in methods and issubclass(cls, base) and (cls is owner or base is not datetime.date)
        for base, methods in _METHODS
    )


def outside_calls(function: types.FunctionType) -> Iterator[OutsideCall]:
    """Yield where a function's own code names one of these functions, by the values that its
    globals and closure have now.
    """
    values: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            continue
    yield from _calls_in(function.__code__, function.__globals__, values)


def _calls_in(
    code: types.CodeType, scope: dict[str, Any], values: dict[str, Any]
) -> Iterator[OutsideCall]:
    if _may_call(code, scope, values):
        values = dict(values)
        yield from _scan(code, scope, values)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _calls_in(constant, scope, values)


def _may_call(code: types.CodeType, scope: dict[str, Any], values: dict[str, Any]) -> bool:
    """Return False for code in which `_scan` would find nothing. Most functions of a program name
    an attribute that is asked for, such as `load`, but of something else; to disassemble them would
    take a tenth of a first call.
    """
    names = named_in(code)  # of functions in it too, whose closures it fills
    held = [*values.values(), *map(scope.get, code.co_names)]
    if any(map(is_volatile, held)):
        return True
    if _ASKED.isdisjoint(names):
        return False
    if not _DECIDED_BY_SCAN.isdisjoint(names) or _imports(code):
        return True
    held += map(scope.get, names)
    return any(_leads_to_volatile(one, names, set()) for one in held)


def _leads_to_volatile(owner: Any, names: Iterable[str], seen: set[int]) -> bool:
    """Return True if an attribute of a module or class, or one of that, is such a function, and all
    are called by these names.
    """
    if not isinstance(owner, _OWNERS) or id(owner) in seen:
        return False
    seen.add(id(owner))
    if isinstance(owner, types.ModuleType) and is_internal(file_of_module(owner)):
        return False
    table = vars(owner)
    found = [table[name] for name in names if name in table]
    return any(is_volatile(one) or _leads_to_volatile(one, names, seen) for one in found)


def _imports(code: types.CodeType) -> bool:
    return _IMPORT in code.co_code[::2] or any(
        _imports(one) for one in code.co_consts if isinstance(one, types.CodeType)
    )


_OWNERS = (types.ModuleType, type)
_DECIDED_BY_SCAN = _METHOD_NAMES | frozenset(_FUNCTIONS["builtins"])
_IMPORT = dis.opmap["IMPORT_NAME"]
_OF_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
_OF_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_PASSED = ("CACHE", "PUSH_NULL", "PRECALL", "EXTENDED_ARG")


@functools.lru_cache(maxsize=1024)
def _steps(code: types.CodeType) -> tuple[tuple[str, Any, int], ...]:
    """Return the name, argument and offset of each instruction. A compilation asks several times,
    and disassembling takes longest of what it does for guards.
    """
    return tuple((one.opname, one.argval, one.offset) for one in dis.get_instructions(code))


def _scan(
    code: types.CodeType, scope: dict[str, Any], values: dict[str, Any]
) -> Iterator[OutsideCall]:
    current, path = _UNKNOWN, ""
    made: _Made | None = None
    for kind, name, offset in _steps(code):
        if isinstance(current, type) and issubclass(current, pathlib.Path):
            made = _Made(current, path)
        if kind in _OF_GLOBALS:
            current, path = scope.get(name, getattr(builtins, name, _UNKNOWN)), name
        elif kind == "IMPORT_NAME":
            current, path = sys.modules.get(name, _UNKNOWN), name
            continue
        elif kind.startswith("STORE_") and current is not _UNKNOWN:
            values[name] = current
            current, made = _UNKNOWN, None
        elif kind.startswith(("LOAD_FAST", "LOAD_DEREF")):
            current, path = values.get(name, _UNKNOWN) if type(name) is str else _UNKNOWN, str(name)
        elif kind in _OF_ATTRIBUTES and current is not _UNKNOWN:
            path = f"{path}.{name}"
            if _has_volatile(current, name):
                yield OutsideCall(path, code, offset)
            known = isinstance(current, _OWNERS)
            current = vars(current).get(name, _UNKNOWN) if known else _UNKNOWN
        elif kind in _PASSED:
            continue
        elif kind.startswith("CALL") and made is not None:
            current, path = made, made.path
        else:
            current = _UNKNOWN
        if current is not _UNKNOWN and is_volatile(current):
            yield OutsideCall(path, code, offset)
