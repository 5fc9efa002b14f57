"""LLVM IR files beside the C files that they are compiled from; `make native` regenerates them all.

    python -m basedsl.native_call.build basedsl/native_call/call.c [another.c ...]

The compiler is clang as the package `ziglang` brings it, in the version that the extra `native`
pins: any machine makes the same text with it. Users need no compiler: the IR is part of the
package, and llvmlite makes machine code of it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
HEADER = HERE / "object_layout.h"
COMPILER = (sys.executable, *"-m ziglang cc -target x86_64-linux-gnu".split())
FLAGS = (
    "-O2 -g0 -S -emit-llvm -ffreestanding -fno-strict-aliasing -fno-stack-protector "
    "-fno-unwind-tables -fno-asynchronous-unwind-tables -fno-vectorize -fno-slp-vectorize "
    "-fno-unroll-loops -fno-sanitize=all -w"
)


def source_digest(source: Path) -> str:
    """The SHA-256 of a C file and the header it includes; the first line of its IR repeats it."""
    return hashlib.sha256(HEADER.read_bytes() + source.read_bytes()).hexdigest()


def first_line(source: Path) -> str:
    """The first line of the IR of a C file: the file and the digest that it was compiled at."""
    return f"; made of {source.name} {source_digest(source)}"


def portable(llvmir: str) -> str:
    """Without what only holds for the machine of the compiler: target, tuning, metadata."""
    lines = []
    for line in llvmir.splitlines():
        if line.startswith(("; ModuleID", "source_filename", "target ", "attributes #", "!")):
            continue
        line = re.sub(r" #\d+(?=$| |,)", "", line)
        line = re.sub(r", !\S+ !\d+", "", line)
        line = re.sub(r" (?:dso_local |local_unnamed_addr)", " ", line)
        if not line.startswith("; Function Attrs"):
            lines.append(line.rstrip().replace(")  {", ") {"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def llvm_ir(source: Path) -> str:
    """The text of the IR file of a C file.

    Raises `subprocess.CalledProcessError` if the C file does not compile.
    """
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.ll"
        options = [*FLAGS.split(), "-I", str(HEADER.parent), "-o", str(made)]
        subprocess.run([*COMPILER, *options, str(source)], check=True)
        return f"{first_line(source)}\n{portable(made.read_text())}"


def main(sources: list[str]) -> int:
    """Regenerates the IR files of some C files; 1 without the compiler."""
    if importlib.util.find_spec("ziglang") is None:
        print("no compiler: run make native, or pip install -e '.[native]'", file=sys.stderr)
        return 1
    for source in map(Path, sources):
        source.with_suffix(".ll").write_text(llvm_ir(source))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
