"""Native CPU code through llvmlite: LLVM IR text to object code, object code to addresses.

`compile_llvmir` and `load` are two halves, so that object code can be kept on disk and loaded by
another process without a compiler run. `objectstage.lowering` makes the LLVM IR of a module.

No fast-math anywhere: floats mean what IEEE 754 says. llvmlite is imported on first use.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib
import importlib.util
import itertools
import os
import platform
import re
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from basedsl.errors import CompilerBug, DSLRuntimeError
from basedsl.objectstage import elf_loader, narrow_floats, object_file, snapshot

BITCODE = "llvm-bitcode"

_lock = threading.RLock()
_library_numbers = itertools.count()


@dataclass(frozen=True)
class NativeTarget:
    """The processor that code is made for. Empty `cpu` and None `features` mean this machine's.

    `opt_level` is LLVM's 0 to 3; vectorisers run from 2 on, as in clang. `triple` is another
    machine, such as "aarch64-unknown-linux-gnu": then `cpu` and `features` are its own, by default
    "generic" and none, and the object code cannot be loaded here.
    """

    opt_level: int = 2
    cpu: str = ""
    features: str | None = None
    triple: str = ""

    def describe(self) -> str:
        """Return text that identifies the code, for the key of a disk cache. Loads nothing."""
        digest = hashlib.sha256(
            repr((self.cpu, self.features, self.triple, _this_machine())).encode()
        )
        stats = [(str(path), path.stat()) for path, _ in libraries()]
        made_by = [(path, found.st_size, found.st_mtime_ns) for path, found in stats]
        machine = self.triple or platform.machine()
        return f"{machine} {digest.hexdigest()[:12]} O{self.opt_level} {made_by}"


# The lines of /proc/cpuinfo that say what code a processor runs, on x86 and on ARM.
_CPU_LINES = re.compile(
    r"^(?:vendor_id|cpu family|model|model name|stepping|flags|Features|CPU \w+)\s*:.*$",
    re.MULTILINE,
)


@functools.cache
def _this_machine() -> str:
    """Return text that identifies this machine's processor: the system's, or else LLVM's."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            found = _CPU_LINES.findall(file.read(8192).partition("\n\n")[0])
    except OSError:
        found = []
    return "\n".join(found) or f"{_llvm().get_host_cpu_name()} {_host_features()}"


@functools.cache
def _llvm() -> Any:
    try:
        llvm = importlib.import_module("llvmlite.binding")
    except ModuleNotFoundError as error:
        raise DSLRuntimeError(
            "code for the CPU needs llvmlite, which is not installed", hint="pip install llvmlite"
        ) from error
    with _lock:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    return llvm


def begin_import() -> None:
    """Import the part of llvmlite that needs none of its `libraries()`, while those are being
    mapped.
    """
    with contextlib.suppress(ImportError):  # compiling says what is missing
        importlib.import_module("llvmlite.ir")


@functools.cache
def libraries() -> tuple[tuple[Path, int], ...]:
    """Return the shared library that llvmlite will load, and dlopen's mode."""
    spec = importlib.util.find_spec("llvmlite")
    folders = (spec.submodule_search_locations if spec else None) or ()
    paths = [Path(folder, "binding", "libllvmlite.so") for folder in folders]
    return tuple((path, os.RTLD_NOW | os.RTLD_LOCAL) for path in paths if path.exists())


@functools.cache
def _make_runtime_libraries_visible() -> None:
    # Generated code calls libm by name (sin, fmod, expm1, ...) and, for 128-bit integers and some
    # narrow floats, the compiler's own run-time library.
    if sys.platform.startswith("linux"):
        for name in ("libm.so.6", "libgcc_s.so.1"):
            try:
                ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
            except OSError:  # another libc, or no libgcc: only code that needs the name fails
                continue


@functools.cache
def _host_features() -> str:
    features: str = _llvm().get_host_cpu_features().flatten()
    return features


@functools.cache
def _machine(target: NativeTarget) -> Any:
    llvm = _llvm()
    if target.triple:
        cpu, features, where = target.cpu or "generic", target.features or "", _foreign(target)
    else:
        cpu = target.cpu or llvm.get_host_cpu_name()
        features = _host_features() if target.features is None else target.features
        where = llvm.Target.from_triple(llvm.get_process_triple())
    return where.create_target_machine(
        cpu=cpu,
        features=features,
        opt=target.opt_level,
        reloc="pic",
        codemodel="small",
        jit=not target.triple,
    )


def _foreign(target: NativeTarget) -> Any:
    """Return LLVM's target of another machine. Raises DSLRuntimeError if it has none."""
    llvm = _llvm()
    with _lock:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    try:
        return llvm.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise DSLRuntimeError(f"LLVM makes no code for {target.triple!r}: {error}") from None


# LLVM IR -> object code ----------------------------------------------------------------------


def parse(llvmir: str) -> Any:
    """Return an llvmlite module in its own context, verified.

    The text may come from a newer LLVM than llvmlite's: attributes that it does not know are hints
    or restate properties of the callee, and are dropped.
    """
    llvm = _llvm()
    text = llvmir
    for _ in range(64):
        try:
            module = llvm.parse_assembly(text, llvm.create_context())
            module.verify()
            return module
        except RuntimeError as error:
            older = _without_unknown_attribute(text, str(error))
            if older is None:
                raise CompilerBug(
                    f"llvmlite does not accept the LLVM IR: {_told(error)}",
                    hint="the 'llvmir' stage of the compiled object has the text",
                ) from None
            text = older
    raise CompilerBug("the LLVM IR has more than 64 attributes that llvmlite does not know")


_KEEP = frozenset({"strictfp", "convergent", "noduplicate", "returns_twice", "naked", "noinline"})


def _without_unknown_attribute(text: str, message: str) -> str | None:
    """Return `text` without the attribute at the position of a parse error, if it is a droppable
    one.
    """
    found = re.search(r":(\d+):(\d+): error: ", message)
    if found is None:
        return None
    number, column = int(found[1]) - 1, int(found[2]) - 1
    lines = text.split("\n")
    if number >= len(lines) or not lines[number].startswith("attributes #"):
        return None
    line = lines[number]
    # An unknown word is reported at itself, or at what follows it.
    for word in reversed(list(re.finditer(r"[\w.]+(\([^()]*\))?", line))):
        if word.start() <= column and word.start() > line.index("{"):
            if word[0] in _KEEP:
                return None
            lines[number] = line[: word.start()] + line[word.end() :]
            return "\n".join(lines)
    return None


def _loops_of(llvmir: str) -> int:
    """Return the number of jumps back, which MLIR's translation marks by numbering its blocks."""
    here = loops = 0
    for line in llvmir.splitlines():
        if line[:1].isdigit():
            here = int(line.partition(":")[0])
        elif line.startswith("  br "):
            loops += min(map(int, _LABEL.findall(line)), default=here + 1) <= here
    return loops


_LABEL = re.compile(r"label %(\d+)")

#: Above this, `-O1`: the time that `-O2` takes grows with the square of the number of loops that
#: follow one another, as it expresses the results of each by those before.
MOST_LOOPS = 100


def optimise(llvmir: str, target: NativeTarget) -> bytes:
    """Return bitcode of the module after LLVM's standard pipeline for `target`."""
    llvm = _llvm()
    newpassmanagers = importlib.import_module("llvmlite.binding.newpassmanagers")
    with _lock:
        if llvmir.count("\n  br ") > MOST_LOOPS and _loops_of(llvmir) > MOST_LOOPS:
            target = replace(target, opt_level=min(target.opt_level, 1))
        machine = _machine(target)
        module = parse(llvmir)
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        tuning = llvm.create_pipeline_tuning_options(target.opt_level)
        tuning.loop_vectorization = tuning.slp_vectorization = target.opt_level >= 2
        builder = llvm.create_pass_builder(machine, tuning)
        passes = builder.getModulePassManager()
        passes.run(module, builder)
        # llvmlite 0.50 never frees it (60 KiB): ObjectRef's empty method comes first in its MRO.
        newpassmanagers.NewPassManager._dispose(passes)
        passes.detach()
        bitcode: bytes = module.as_bitcode()
        return bitcode


def emit_object(bitcode: bytes, target: NativeTarget) -> bytes:
    """Return relocatable object code of optimised bitcode."""
    llvm = _llvm()
    with _lock:
        module = llvm.parse_bitcode(bitcode, llvm.create_context())
        code: bytes = _machine(target).emit_object(module)
        return code


def assembly(bitcode: bytes, target: NativeTarget | None = None) -> str:
    """Return the machine's assembly of optimised bitcode, for people."""
    llvm = _llvm()
    with _lock:
        module = llvm.parse_bitcode(bitcode, llvm.create_context())
        text: str = _machine(target or NativeTarget()).emit_assembly(module)
        return text


def compile_llvmir(llvmir: str, target: NativeTarget | None = None) -> bytes:
    """Return the object code of the LLVM IR `llvmir` for `target`, by default this machine."""
    target = target or NativeTarget()
    return emit_object(optimise(llvmir, target), target)


def _read_bitcode(data: bytes) -> str:
    llvm = _llvm()
    with _lock:
        return str(llvm.parse_bitcode(data, llvm.create_context()))


snapshot.register_reader(BITCODE, _read_bitcode)


# Object code -> addresses --------------------------------------------------------------------


class LoadedObject:
    """Object code in memory. Addresses are valid for as long as this object lives.

    `object_bytes` is the object file that was loaded; `code` finds addresses in it. `symbols` are
    the addresses that were bound to undefined names; the caller keeps their targets alive.
    """

    def __init__(self, object_bytes: bytes, symbols: dict[str, int], code: Any) -> None:
        self.object_bytes = object_bytes
        self.symbols = symbols
        self._code = code
        self._lookups: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"LoadedObject({len(self.object_bytes)} B)"

    def address_of(self, name: str) -> int:
        """Return the address of the function or variable `name` of this code; KeyError if it has
        none.
        """
        found = self._lookups.get(name)
        if found is None:
            try:
                found = self._lookups[name] = self._code.address_of(name)
            except KeyError:
                raise KeyError(f"native code has no symbol {name!r}") from None
        return found

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """Return the function `name` as one of ctypes, which keeps the code alive. `result` and
        `arguments` are ctypes types.
        """
        function: Any = ctypes.CFUNCTYPE(result, *arguments)(self.address_of(name))
        function.native_code = self
        return function


def load_object(object_bytes: bytes, symbols: Mapping[str, int] | None = None) -> LoadedObject:
    """Link object code, the bytes of an object file (`object_bytes`), into this process.

    Undefined names are looked up in `symbols` first, which maps them to addresses, then in the
    process (libm among it). Raises DSLRuntimeError that names the missing ones.
    """
    _make_runtime_libraries_visible()
    bound = {**_built_in_symbols, **(symbols or {})}
    file = object_file.read_object_file(object_bytes)
    if file is None:
        return LoadedObject(object_bytes, bound, _LinkedByLLVM(object_bytes, bound, ()))
    names = file.names()
    bound = {name: bound[name] for name in names.undefined if name in bound}
    missing = []
    for name in sorted(names.undefined - bound.keys()):
        found = _narrow_float(name) if name in narrow_floats.NAMES else _in_process(name)
        if found is None:
            missing.append(name)
        else:
            bound[name] = found
    if missing:
        raise DSLRuntimeError(
            f"native code needs {', '.join(missing)}, which this process does not have",
            hint="bind the name to an address: load(object, symbols={name: address})",
        )
    code = elf_loader.load_image(file, bound.__getitem__)
    return LoadedObject(
        object_bytes, bound, code or _LinkedByLLVM(object_bytes, bound, names.defined)
    )


class _LinkedByLLVM:
    """Object code that `elf_loader` cannot load, linked by LLVM instead."""

    def __init__(self, object_bytes: bytes, bound: dict[str, int], defined: Iterable[str]) -> None:
        self._name = f"basedsl{next(_library_numbers)}"
        builder = _llvm().JITLibraryBuilder().add_object_img(object_bytes)
        for name in defined:
            builder.export_symbol(name)
        builder.add_current_process()
        for symbol, address in bound.items():
            builder.import_symbol(symbol, address)
        self._trackers = []
        with _lock:
            try:
                self._trackers.append(builder.link(_jit(), self._name))
            except RuntimeError as error:
                raise DSLRuntimeError(f"native code cannot be linked: {_told(error)}") from None

    def address_of(self, name: str) -> int:
        with _lock:
            try:
                tracker = _jit().lookup(self._name, name)
            except RuntimeError as error:
                raise KeyError(name) from error
        self._trackers.append(tracker)
        address: int = tracker[name]
        return address


@functools.cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _in_process(name: str) -> int | None:
    function = getattr(_process(), name, None)
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


def _narrow_float(name: str) -> int:
    return _narrow_floats().address_of(name)


@functools.cache
def _narrow_floats() -> LoadedObject:
    with _lock:
        return load_object(compile_llvmir(narrow_floats.LLVMIR))


_built_in_symbols: dict[str, int] = {}


def provide_symbol(name: str, address: int) -> None:
    """Bind `name` to `address` in all code loaded from now on. The target of the address must live
    for ever.
    """
    _built_in_symbols[name] = address


@functools.cache
def _jit() -> Any:
    llvm = _llvm()
    with _lock:
        # One for the life of the process; each piece of code is a library of its own in it.
        return llvm.create_lljit_compiler(_machine(NativeTarget()), suppress_errors=True)


def _told(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    found = [line for line in lines if "error" in line and not line.startswith("LLVM IR")]
    return (found or lines or ["no reason given"])[0].removeprefix("<string>:")
