"""ptxas: PTX text to machine code, with its report of resources and its errors.

It comes with the package nvidia-cuda-nvcc; a CUDA toolkit's is taken otherwise. Where there is
none the driver compiles PTX when it loads it (`runtime.driver`).
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from basedsl import DSLError, DSLRuntimeError, Span

_VERBOSE = frozenset(("-v", "--verbose"))

# glibc's allocator (its manual, "Memory Allocation Tunables") asks for large pages, and for 64 MiB
# at a time: page faults are 4 (large kernels) to 27 % (small ones) of ptxas. Other C libraries, and
# versions that do not know a name, ignore it.
_LARGE_PAGES = {"GLIBC_TUNABLES": f"glibc.malloc.hugetlb=1:glibc.malloc.top_pad={64 << 20}"}
TOOLKIT_VARIABLES = ("CUDA_TOOLKIT_PATH", "CUDA_HOME", "CUDA_PATH")


@dataclass(frozen=True)
class PtxasResources:
    """The resources of one kernel, as ptxas -v reports them. Sizes are bytes."""

    registers: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    stack: int = 0
    static_smem: int = 0
    barriers: int = 0
    constant: int = 0

    @property
    def spills(self) -> bool:
        return bool(self.spill_stores or self.spill_loads)


@dataclass(frozen=True)
class Assembly:
    """Machine code of a module, the resources of its kernels by name, and ptxas's warnings."""

    cubin: bytes
    kernels: dict[str, PtxasResources] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def find_ptxas() -> Path | None:
    """Find the ptxas of the toolkit that CUDA_TOOLKIT_PATH names, of the installed package, of
    PATH, or of a toolkit that CUDA_HOME or CUDA_PATH names.
    """
    return find_tool("ptxas", "nvidia.cu13", "nvidia.cuda_nvcc")


def find_nvlink() -> Path | None:
    """Find nvlink, which links kernels with device libraries, in the places of `find_ptxas`."""
    return find_tool("nvlink", "nvidia.cu13", "nvidia.cuda_nvcc")


def find_nvdisasm() -> Path | None:
    """Find nvdisasm, which shows machine code as text, in the places of `find_ptxas`."""
    return find_tool("nvdisasm", "nvidia.cu13", "nvidia.cuda_nvdisasm")


def find_tool(name: str, *packages: str) -> Path | None:
    """Find a program of the CUDA toolkit: in the toolkit that CUDA_TOOLKIT_PATH names, a package,
    PATH, or another toolkit in the environment.
    """
    return _find_tool(name, packages, *(os.environ.get(v) for v in (*TOOLKIT_VARIABLES, "PATH")))


@functools.cache
def _find_tool(
    name: str, packages: tuple[str, ...], first: str | None, *others: str | None
) -> Path | None:
    folders = [Path(first) / "bin"] if first else []
    folders += [folder / "bin" for folder in _package_folders(*packages)]
    *roots, path = others
    on_path = shutil.which(name, path=path)
    folders += [Path(on_path).parent] if on_path else []
    folders += [Path(root) / "bin" for root in roots if root]
    return next((folder / name for folder in folders if (folder / name).exists()), None)


def find_toolkit_library(name: str) -> Path | None:
    """Find a library of the CUDA toolkit, such as libcudadevrt.a, in the places of `find_ptxas`."""
    tool = find_ptxas()
    if tool is None:
        return None
    root = tool.resolve().parents[1]
    folders = [root / "lib64", root / "lib", *_package_folders("nvidia.cu13", "nvidia.cuda_nvcc")]
    paths = [folder / name for folder in folders] + [f / "lib" / name for f in folders[2:]]
    return next((path for path in paths if path.is_file()), None)


def find_libnvvm() -> Path | None:
    """Find the library that makes machine code of LTO-IR, in the places of `find_ptxas`; None
    without one.
    """
    tool = find_ptxas()
    if tool is None:
        return None
    packages = _package_folders("nvidia.cu13", "nvidia.cuda_nvcc")
    folders = [tool.resolve().parents[1] / "nvvm" / "lib64", *(f / "lib" for f in packages)]
    found = [path for folder in folders for path in sorted(folder.glob("libnvvm.so*"))]
    return found[0] if found else None


def toolkit_version() -> tuple[int, int] | None:
    """Return the CUDA version of the ptxas that is used; None without one."""
    found = find_ptxas()
    return None if found is None else _version_of(found)


@functools.cache
def _version_of(found: Path) -> tuple[int, int] | None:
    import subprocess

    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"release (\d+)\.(\d+)", said)
    return None if match is None else (int(match[1]), int(match[2]))


def find_libdevice() -> Path | None:
    """Find libdevice.10.bc, in the toolkit that CUDA_TOOLKIT_PATH names, the package nvidia-nvvm or
    another toolkit in the environment.
    """
    return _find_libdevice(*(os.environ.get(v) for v in TOOLKIT_VARIABLES))


@functools.cache
def _find_libdevice(first: str | None, *others: str | None) -> Path | None:
    folders = [Path(first) / "nvvm"] if first else []
    folders += [f / "nvvm" for f in _package_folders("nvidia.cu13", "nvidia.cuda_nvcc")]
    folders += [Path(root) / "nvvm" for root in (*others, "/usr/local/cuda") if root]
    for folder in folders:
        found = folder / "libdevice" / "libdevice.10.bc"
        if found.exists():
            return found
    return None


def _package_folders(*packages: str) -> list[Path]:
    folders: list[Path] = []
    for package in packages:
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        if spec is not None:
            folders += [Path(p) for p in spec.submodule_search_locations or ()]
    return folders


class Running:
    """ptxas at work on one PTX text; `finish` waits for it. Dropping it ends the process."""

    def __init__(self, ptx: str, arch: str, line_info: bool, options: tuple[str, ...]) -> None:
        found = find_ptxas()
        if found is None:
            raise DSLRuntimeError(
                "there is no ptxas to compile PTX with",
                hint="pip install 'basedsl-cute[cuda]', or set CUDA_HOME to a CUDA toolkit",
            )
        import subprocess

        self.ptx = ptx
        self.arch = arch
        self._folder = tempfile.TemporaryDirectory(prefix="basedsl-", ignore_cleanup_errors=True)
        source = Path(self._folder.name, "kernel.ptx")
        source.write_text(_with_register_limit(ptx, options))
        self._is_verbose = not _VERBOSE.isdisjoint(options)
        self._target = Path(self._folder.name, "kernel.cubin")
        command = [
            str(found),
            f"-arch={arch}",
            "-v",
            *options,
            str(source),
            "-o",
            str(self._target),
        ]
        if line_info:
            command.insert(1, "-lineinfo")
        try:
            self._process: subprocess.Popen[str] | None = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=_LARGE_PAGES | os.environ,
            )
        except OSError as error:
            self._folder.cleanup()
            raise DSLRuntimeError(
                f"ptxas cannot be started: {error}",
                hint="pip install 'basedsl-cute[cuda]', or set CUDA_HOME to a CUDA toolkit",
            ) from None

    def finish(self) -> Assembly:
        """Wait for the machine code. Raises DSLError with the PTX line that ptxas refuses, and the
        Python line it came from if the PTX carries line information.
        """
        process = self._process
        assert process is not None, "finished twice"
        report, _ = process.communicate()
        self._process = None
        if self._is_verbose:  # the user has asked ptxas to say what it reports in any case
            print(report, end="", file=sys.stderr)
        try:
            if process.returncode:
                raise _refused(self.ptx, self.arch, report)
            return Assembly(self._target.read_bytes(), read_report(report), _warnings(report))
        finally:
            self._folder.cleanup()

    def stop(self) -> None:
        """End the process, if it still runs, and remove its files."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
            self._folder.cleanup()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            self.stop()


def _with_register_limit(ptx: str, options: tuple[str, ...]) -> str:
    """Return PTX whose kernels say what `--maxrregcount` asks for, because ptxas ignores the option
    for kernels that say the size of their blocks.
    """
    limit = re.search(r"(?:^| )(?:--?maxrregcount)[= ](\d+)", " ".join(options))
    if limit is None:
        return ptx
    return re.sub(r"^\.reqntid [\d, ]+$", rf"\g<0> .maxnreg {limit[1]}", ptx, flags=re.MULTILINE)


def start(
    ptx: str, arch: str, *, line_info: bool = False, options: tuple[str, ...] = ()
) -> Running:
    """Start ptxas on PTX for `arch` ("sm_90a") beside this process. `options` go to it as they
    are. Raises DSLRuntimeError without a ptxas.
    """
    return Running(ptx, arch, line_info, options)


def assemble(
    ptx: str, arch: str, *, line_info: bool = False, options: tuple[str, ...] = ()
) -> Assembly:
    """Compile PTX to machine code: `start`, and wait."""
    return start(ptx, arch, line_info=line_info, options=options).finish()


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def read_report(text: str) -> dict[str, PtxasResources]:
    """Read the resources of each kernel from the output of `ptxas -v`."""
    kernels: dict[str, PtxasResources] = {}
    name, frame = "", (0, 0, 0)
    for line in text.splitlines():
        if entry := _ENTRY.search(line):
            name, frame = entry[1], (0, 0, 0)
        elif found := _FRAME.search(line):
            frame = (int(found[1]), int(found[2]), int(found[3]))
        elif name and "Used " in line:
            kernels[name] = PtxasResources(
                registers=_number(r"Used (\d+) registers", line),
                stack=frame[0],
                spill_stores=frame[1],
                spill_loads=frame[2],
                static_smem=_number(r"(\d+) bytes smem", line),
                barriers=_number(r"used (\d+) barriers", line),
                constant=sum(int(n) for n in re.findall(r"(\d+) bytes cmem", line)),
            )
            name = ""
    return kernels


def _number(pattern: str, line: str) -> int:
    found = re.search(pattern, line)
    return int(found[1]) if found else 0


def _warnings(report: str) -> tuple[str, ...]:
    lines = [line for line in report.splitlines() if "warning" in line or "Potential" in line]
    return tuple(line.partition(":")[2].strip() for line in lines)


class UndefinedFunction(DSLError):
    """A call of a function that nothing defines; `name` is its symbol, `named_by` are libraries
    that name it without having its code for the architecture.
    """

    def __init__(self, name: str, span: Span | None = None, named_by: tuple[str, ...] = ()) -> None:
        super().__init__(
            f"a kernel calls '{name}', which nothing that is linked defines",
            span,
            notes=tuple(
                (f"{library} names it, without code for this architecture", None)
                for library in named_by
            ),
            hint='name a library that has it: the option LinkLibraries("lib.cubin")',
        )
        self.name = name
        self.named_by = named_by


_UNRESOLVED = re.compile(r"Unresolved extern function '([^']+)'")


def _refused(ptx: str, arch: str, output: str) -> DSLError:
    unresolved = _UNRESOLVED.search(output)
    if unresolved is not None:
        return UndefinedFunction(unresolved[1])
    found = re.search(r"line (\d+); (?:error|fatal)\s*:\s*(.*)", output)
    if found is None:
        said = " ".join(output.split())[:400]
        return DSLError(f"ptxas cannot compile for {arch}: {said}")
    number = int(found[1])
    lines = ptx.splitlines()
    text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return DSLError(
        f"ptxas cannot compile for {arch}: {found[2].strip()}",
        span=source_line(lines, number),
        notes=((f"line {number} of the PTX: {text}", None),),
        hint="the instruction may need another architecture; the stage 'ptx' has the whole text",
    )


# PTX ISA 11.5.5, ".loc": file, line and column, and those of the call of an inlined function.
_PLACE = re.compile(r"(?:\.loc|inlined_at)\s+(\d+)\s+(\d+)\s+(\d+)")


def _place(files: dict[int, str], file: str, line: str, column: str) -> Span | None:
    name = files.get(int(file))
    if name is None or int(line) == 0:
        return None
    return Span(name, int(line), max(0, int(column) - 1))


def source_line(lines: list[str], number: int) -> Span | None:
    """Find the Python line that line `number` of a PTX text comes from, by its `.loc` directives;
    its caller is where that was inlined.
    """
    files = {
        int(m[1]): m[2] for line in lines if (m := re.match(r'\s*\.file\s+(\d+)\s+"([^"]*)"', line))
    }
    for line in reversed(lines[:number]):
        if re.match(r"\s*\.loc\s", line):
            places = [_place(files, *m.groups()) for m in _PLACE.finditer(line)]
            if places[0] is None:
                return None
            callers = tuple(place for place in places[1:] if place is not None)
            return dataclasses.replace(places[0], callers=callers)
        if re.match(r"\s*\.(visible|entry|func)", line):
            return None
    return None
