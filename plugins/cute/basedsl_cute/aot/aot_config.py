"""The flags that exported functions are linked with, for Makefiles and shells.

    cc main.c add.o $(python -m basedsl_cute.aot.aot_config --ldflags --libs) -o main

An exported object needs libcuda alone, which the driver brings; where only the CUDA toolkit is
installed, programs are linked with its stub.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from basedsl import DSLRuntimeError
from basedsl_cute.device.driver import has_library
from basedsl_cute.lowering.ptx.ptxas import find_toolkit_library

LIBRARY = "libcuda.so"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the flags that are asked for, on one line each. Returns the exit status, which is 1
    after an error.
    """
    parser = argparse.ArgumentParser(prog="aot_config", description=__doc__.partition("\n")[0])
    parser.add_argument("--libdir", action="store_true", help="the folder of libcuda")
    parser.add_argument("--ldflags", action="store_true", help="flags that let the linker find it")
    parser.add_argument("--libs", action="store_true", help="the libraries")
    parser.add_argument("--target", help="the host that is linked for, such as linux-aarch64")
    parser.add_argument("--with-tvm-ffi", action="store_true", help="accepted without effect")
    given = parser.parse_args(arguments)
    if not (given.libdir or given.ldflags or given.libs):
        parser.error("say what to print: --libdir, --ldflags or --libs")
    try:
        lines = flags(given.libdir, given.ldflags, given.libs, given.target)
    except DSLRuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


def flags(libdir: bool, ldflags: bool, libs: bool, target: str | None = None) -> list[str]:
    """Return the chosen flags. Raises DSLRuntimeError for another `target` than this host, and
    where no libcuda is found.
    """
    here = f"linux-{platform.machine()}"
    if target not in (None, here):
        raise DSLRuntimeError(
            f"no flags for {target!r}: objects are exported for the host, {here}",
            hint="export and link on a machine of that kind",
        )
    folder = libcuda_folder() if libdir or ldflags else None
    return [
        text
        for chosen, text in (
            (libdir, str(folder)),
            (ldflags, f"-L{folder}"),
            (libs, "-lcuda"),
        )
        if chosen
    ]


def libcuda_folder() -> Path:
    """Return the folder of the libcuda.so to link with: of LIBRARY_PATH, the driver's, or the
    toolkit's stub. Raises DSLRuntimeError if there is none.
    """
    folders = [Path(one) for one in os.environ.get("LIBRARY_PATH", "").split(":") if one]
    folders += [
        Path("/usr/lib") / f"{platform.machine()}-linux-gnu",
        Path("/usr/lib64"),
        Path("/usr/lib"),
        Path("/usr/local/cuda/lib64/stubs"),
    ]
    found = next((folder for folder in folders if (folder / LIBRARY).exists()), None)
    if found is None:
        stub = find_toolkit_library(f"stubs/{LIBRARY}")
        found = None if stub is None else stub.parent
    if found is None:
        known = "; the linker does not find the driver's own" if has_library() else ""
        raise DSLRuntimeError(
            f"there is no {LIBRARY} to link with{known}",
            hint="install the CUDA toolkit, which has a stub, and set CUDA_HOME or LIBRARY_PATH",
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
