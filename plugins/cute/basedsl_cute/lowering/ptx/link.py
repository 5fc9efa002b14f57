"""Libraries that kernels are linked with: LLVM bitcode, PTX, LTO-IR, machine code, archives.

Bitcode is linked by LLVM before it makes PTX, as CUDA's own math library is. With all others ptxas
makes a relocatable object of the kernels, and nvlink, which comes with the package
nvidia-cuda-nvcc, an executable of it and the libraries. LTO-IR, which nvcc and NVRTC make with
-dlto, becomes PTX first, by libnvvm; the kernels, which are machine code, call it. A library's name
without a folder is also looked for in the CUDA toolkit, which has libcudadevrt.a.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from basedsl import DSLError, DSLRuntimeError, OptionError, Span
from basedsl_cute.lowering.ptx import ptxas

BITCODE = ".bc"
_LTO = ".ltoir"
_ELF, _ARCHIVE = b"\x7fELF", b"!<arch>\n"
#: How files of each kind that nvlink takes begin.
_LINKED: dict[str, bytes] = {
    ".ptx": b"", ".cubin": _ELF, ".o": _ELF, ".a": _ARCHIVE, ".fatbin": b"\x50\xed\x55\xba",
    _LTO: b"\xedCN\x7f",
}  # fmt: skip
_BITCODE_BEGINS = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
_CUDA_MACHINE = 190  # e_machine of an ELF file with code for GPUs


def check_libraries(paths: Sequence[str]) -> None:
    """Raise OptionError, naming it, for a library that is not there or of a kind that cannot be
    linked.
    """
    for name in paths:
        path = _find(name)
        if path.suffix not in (BITCODE, *_LINKED):
            kinds = ", ".join((BITCODE, *_LINKED))
            raise OptionError(
                f"the option link_libraries names {name!r}, whose kind cannot be linked",
                hint=f"these can: {kinds}",
            )
        if not path.is_file():
            raise OptionError(
                f"the option link_libraries names {name!r}, which is no file",
                hint="name each library by its path, separated by commas",
            )
        with path.open("rb") as file:
            begin = file.read(8)
        if not begin.startswith(
            _BITCODE_BEGINS if path.suffix == BITCODE else _LINKED[path.suffix]
        ):
            raise OptionError(
                f"the option link_libraries names {name!r}, which is no {path.suffix} file inside"
            )


def _find(name: str) -> Path:
    """Find a library: at its path, else, for a name without a folder, in the CUDA toolkit."""
    path = Path(name)
    if path.is_file() or path.parent != Path():
        return path
    return ptxas.find_toolkit_library(name) or path


def stamps(paths: Sequence[str]) -> tuple[str, ...]:
    """Return text for the cache key that changes with the libraries."""
    found = []
    for name in paths:
        try:
            stat = os.stat(_find(name))
        except OSError:
            continue
        found.append(f"{name} {stat.st_size} {stat.st_mtime_ns}")
    return tuple(found)


def bitcode_of(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the libraries that LLVM links."""
    return tuple(str(_find(path)) for path in paths if path.endswith(BITCODE))


def linked_of(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the libraries that nvlink links."""
    return tuple(str(_find(path)) for path in paths if not path.endswith(BITCODE))


_UNDEFINED = re.compile(r"Undefined reference to '([^']+)'")
_OTHER_ARCH = re.compile(r"Input file '([^']+)' arch does not match|not found in '([^']+)'")
_OTHER_LTO = re.compile(r"(\S+\.ltoir): parse Invalid value")
_NEWER_PTX = "SM version specified by .target is higher"
_UNREADABLE = re.compile(r"Could not open input file '([^']+)'")


def link(
    assembly: ptxas.Assembly, paths: Sequence[str], arch: str, span: Span | None = None
) -> ptxas.Assembly:
    """Link relocatable machine code with libraries. Raises DSLError for a symbol that none of them
    has and for a library of another architecture, DSLRuntimeError without nvlink.
    """
    import subprocess

    found = ptxas.find_nvlink()
    if found is None:
        raise DSLRuntimeError(
            "there is no nvlink to link libraries with",
            hint="pip install nvidia-cuda-nvcc, or set CUDA_TOOLKIT_PATH to a CUDA toolkit",
        )
    with tempfile.TemporaryDirectory(prefix="basedsl-") as name:
        folder = Path(name)
        source, target = folder / "kernel.o", folder / "linked.cubin"
        source.write_bytes(assembly.cubin)
        lto = [path for path in paths if path.endswith(_LTO)]
        files = [file for path in paths if path not in lto for file in _files_of(path, folder)]

        def nvlink(*arguments: str) -> None:
            command = [str(found), f"-arch={arch}", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise _refused(done.stdout + done.stderr, arch, paths, span)

        if lto:
            # Linking for relocation keeps functions that only the kernels call. Linked with machine
            # code in one step, CUDA 13.0 drops them.
            files.append(str(folder / "lto.ptx"))
            nvlink("-lto", _nvvm_path(folder), "-r", "-emit-ptx", *lto, "-o", files[-1])
        nvlink(str(source), *files, "-o", str(target))
        return ptxas.Assembly(target.read_bytes(), assembly.kernels, assembly.warnings)


def _nvvm_path(folder: Path) -> str:
    """Return nvlink's option for the folder of libnvvm, which it makes. Raises DSLRuntimeError
    without libnvvm.
    """
    libnvvm = ptxas.find_libnvvm()
    if libnvvm is None:
        raise DSLRuntimeError(
            "there is no libnvvm to link LTO-IR with",
            hint="pip install nvidia-nvvm, or set CUDA_TOOLKIT_PATH to a CUDA toolkit",
        )
    # nvlink looks for it where a CUDA toolkit has it, which the package nvidia-nvvm has not.
    (folder / "lib64").mkdir()
    (folder / "lib64" / "libnvvm.so").symlink_to(libnvvm)
    return f"-nvvmpath={folder}"


def _files_of(path: str, folder: Path) -> list[str]:
    """Return the files to give nvlink for a library.

    Of archives it takes members that are host objects with code for GPUs inside, as nvcc makes
    them, and passes over plain machine code: that is unpacked.
    """
    library = Path(path)
    if library.suffix != ".a":
        return [str(library)]
    members = [data for data in _members(library.read_bytes()) if _is_device_object(data)]
    files = [str(library)]
    for i, data in enumerate(members):
        member = folder / f"{i}.{library.name}.o"
        member.write_bytes(data)
        files.append(str(member))
    return files


def _is_device_object(data: bytes) -> bool:
    return data[:4] == _ELF and int.from_bytes(data[18:20], "little") == _CUDA_MACHINE


def _members(archive: bytes) -> Iterator[bytes]:
    """The contents of the files in an `ar` archive (format: ar(5)): each follows a header of 60
    bytes that has its size in bytes 48 to 58, and begins at an even offset.
    """
    at = len(_ARCHIVE)
    while at + 60 <= len(archive):
        size = int(archive[at + 48 : at + 58])
        yield archive[at + 60 : at + 60 + size]
        at += 60 + size + size % 2


def _refused(said: str, arch: str, paths: Sequence[str], span: Span | None) -> DSLError:
    other = _OTHER_ARCH.search(said)
    if other is not None:
        name = _library_of(other[1] or other[2])
        return DSLError(
            f"the library {name} has no code for {arch}",
            span,
            hint=f"compile it for {arch}, or link its PTX",
        )
    newer = _OTHER_LTO.search(said)
    if newer is not None:
        return DSLError(
            f"the library {Path(newer[1]).name} is LTO-IR that libnvvm cannot read for {arch}",
            span,
            hint=f"make it with -arch={arch.replace('sm_', 'compute_')}, by this CUDA or an older",
        )
    if _NEWER_PTX in said:
        names = " or ".join(Path(path).name for path in paths if path.endswith(".ptx"))
        return DSLError(
            f"the library {names} is PTX for a newer GPU than {arch}",
            span,
            hint=f"compile it for {arch}: the line '.target' of PTX says for which GPU it is",
        )
    unreadable = _UNREADABLE.search(said)
    if unreadable is not None:
        return DSLError(f"nvlink cannot read the library {_library_of(unreadable[1])}", span)
    missing = _UNDEFINED.search(said)
    if missing is not None:
        symbol = missing[1].encode()
        # nvlink passes over the members of archives that are for other architectures.
        named_by = tuple(Path(path).name for path in paths if symbol in Path(path).read_bytes())
        return ptxas.UndefinedFunction(missing[1], span, named_by)
    return DSLError(f"nvlink cannot link for {arch}: {' '.join(said.split())[:400]}", span)


def _library_of(path: str) -> str:
    """The name of the library that a file given to nvlink is, or was unpacked from."""
    return re.sub(r"^\d+\.(.+\.a)\.o$", r"\1", Path(path).name)
