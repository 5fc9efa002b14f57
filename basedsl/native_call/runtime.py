"""The machine code of `call.c`, loaded once in a process.

It is optional: on another interpreter, or without a JIT compiler, calls go through Python.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import re
import struct
import threading
from pathlib import Path
from typing import Any

from basedsl.cache.store import CacheStore, default_folder
from basedsl.errors import DSLError
from basedsl.native_call import object_layout
from basedsl.objectstage import native
from basedsl.options import Options

_METH_FASTCALL_KEYWORDS = 0x80 | 0x02
_lock = threading.Lock()


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class EntryAddress(bytes):
    """The address of an entry's table, as `call.c` reads it; `owner` keeps the table alive."""

    owner: Any


class Runtime:
    """The loaded machine code of `call.c`."""

    def __init__(self) -> None:
        self._code = load_llvmir((Path(__file__).parent / "call.ll").read_text())
        self._method = _MethodDef(b"call", self.address("call"), _METH_FASTCALL_KEYWORDS, None)

    def address(self, name: str) -> int:
        """Return the address of the C function `basedsl_<name>`."""
        return self._code.address_of(f"basedsl_{name}")

    def callable(self, entry: int, owner: Any) -> Any:
        """Return a built-in function that calls by the table at address `entry` (a `NativeEntry`),
        and keeps `owner` alive.
        """
        return _builtin(self._method, entry, owner)


def native_function(address: int, table: int, keep: Any) -> Any:
    """Return a built-in function that calls the C function at `address`, of CPython's kind
    METH_FASTCALL | METH_KEYWORDS; its `self` are bytes, the address `table`. The objects in `keep`
    live as long. None where native calls do not work.
    """
    if runtime() is None:
        return None
    method = _MethodDef(b"native", address, _METH_FASTCALL_KEYWORDS, None)
    return _builtin(method, table, (method, keep))


def _builtin(method: _MethodDef, table: int, owner: Any) -> Any:
    new = ctypes.pythonapi.PyCMethod_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p]
    address = EntryAddress(struct.pack("P", table))
    address.owner = owner
    return new(ctypes.addressof(method), address, None, None)


def load_llvmir(text: str) -> native.LoadedObject:
    """Compile and load `text`, LLVM IR that uses CPython's C API, such as a plugin's unpackers."""
    # The text was optimised when it was made.
    return native.load_object(
        compile_kept_llvmir(text, native.NativeTarget(opt_level=0)), _symbols(text)
    )


def compile_kept_llvmir(text: str, target: native.NativeTarget | None = None) -> bytes:
    """Return the object code of `text`, LLVM IR that the library brings, from the disk cache if it
    is there. `target` is the machine and the optimisation level, by default this machine and 2.
    """
    target = target or native.NativeTarget()
    options = Options.from_environment()
    if not options.cache:
        return native.compile_llvmir(text, target)
    store = CacheStore(options.cache_dir or default_folder(), options.cache_size * 2**20)
    key = hashlib.sha256(f"{target.describe()}\n{text}".encode()).hexdigest()
    found = store.read(key)
    if found is None:
        found = native.compile_llvmir(text, target)
        store.write(key, found)
    return found


def _symbols(text: str) -> dict[str, int]:
    """Return the addresses of the names of CPython's C API that the code uses."""
    values = {
        "PyLong_Type": int,
        "PyFloat_Type": float,
        "PyTuple_Type": tuple,
        "PyBytes_Type": bytes,
        "PyUnicode_Type": str,
        "_Py_TrueStruct": True,
        "_Py_FalseStruct": False,
        "_Py_NoneStruct": None,
    }
    found = {name: id(value) for name, value in values.items()}
    for name in re.findall(r"^declare [^@]*@(Py\w+)\(", text, re.MULTILINE):
        function = getattr(ctypes.pythonapi, name)
        found[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return found


_runtimes: list[Runtime | None] = []


def runtime() -> Runtime | None:
    """Return the machine code of `call.c`; None where native calls do not work."""
    if not _runtimes:
        with _lock:
            if not _runtimes:
                _runtimes.append(_load_runtime())
    return _runtimes[0]


def _load_runtime() -> Runtime | None:
    if not object_layout.supported():
        return None
    try:
        return Runtime()
    except (DSLError, OSError, AttributeError, KeyError):
        return None


@functools.cache
def unpacker(name: str) -> int:
    """Return the address of the unpacker `basedsl_unpack_<name>` of `call.c`."""
    loaded = runtime()
    assert loaded is not None
    return loaded.address(f"unpack_{name}")
