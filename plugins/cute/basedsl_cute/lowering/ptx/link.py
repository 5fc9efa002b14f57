"""Libraries that kernels are linked with: LLVM bitcode, PTX, cubins, objects and static archives.

Bitcode is linked by LLVM before it makes PTX, as CUDA's own math library is. With all others ptxas
makes a relocatable object of the kernels, and nvlink, which comes with the package
nvidia-cuda-nvcc, an executable of it and the libraries.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from basedsl import DSLError, DSLRuntimeError, OptionError, Span
from basedsl_cute.lowering.ptx import ptxas

BITCODE = ".bc"
_LINKED = (".ptx", ".cubin", ".o", ".a", ".fatbin")


def check_libraries(paths: Sequence[str]) -> None:
    """Raise OptionError, naming it, for a library that is not there or of a kind that cannot be
    linked.
    """
    for name in paths:
        path = Path(name)
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


def stamps(paths: Sequence[str]) -> tuple[str, ...]:
    """Return text for the cache key that changes with the libraries."""
    found = []
    for name in paths:
        try:
            stat = os.stat(name)
        except OSError:
            continue
        found.append(f"{name} {stat.st_size} {stat.st_mtime_ns}")
    return tuple(found)


def bitcode_of(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the libraries that LLVM links."""
    return tuple(path for path in paths if path.endswith(BITCODE))


def linked_of(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the libraries that nvlink links."""
    return tuple(path for path in paths if not path.endswith(BITCODE))


_UNDEFINED = re.compile(r"Undefined reference to '([^']+)'")
_OTHER_ARCH = re.compile(r"Input file '([^']+)' arch does not match|not found in '([^']+)'")


def link(
    assembly: ptxas.Assembly, paths: Sequence[str], arch: str, span: Span | None = None
) -> ptxas.Assembly:
    """Link relocatable machine code with libraries. Raises DSLError for a symbol that none of them
    has and for a library of another architecture, DSLRuntimeError without nvlink.
    """
    from subprocess import run

    found = ptxas.find_nvlink()
    if found is None:
        raise DSLRuntimeError(
            "there is no nvlink to link libraries with",
            hint="pip install nvidia-cuda-nvcc, or set CUDA_TOOLKIT_PATH to a CUDA toolkit",
        )
    with tempfile.TemporaryDirectory(prefix="basedsl-") as folder:
        source, target = Path(folder, "kernel.o"), Path(folder, "linked.cubin")
        source.write_bytes(assembly.cubin)
        command = [str(found), f"-arch={arch}", str(source), *paths, "-o", str(target)]
        done = run(command, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode:
            raise _refused(said, arch, paths, span)
        return ptxas.Assembly(target.read_bytes(), assembly.kernels, assembly.warnings)


def _refused(said: str, arch: str, paths: Sequence[str], span: Span | None) -> DSLError:
    missing = _UNDEFINED.search(said)
    other = _OTHER_ARCH.search(said)
    if other is not None:
        name = other[1] or other[2]
        return DSLError(
            f"the library {Path(name).name} has no code for {arch}",
            span,
            hint=f"compile it for {arch}, or link its PTX",
        )
    if missing is not None:
        return ptxas.UndefinedFunction(missing[1], span)
    return DSLError(f"nvlink cannot link for {arch}: {' '.join(said.split())[:400]}", span)
