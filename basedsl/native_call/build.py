"""Makes `call.ll` of `call.c`, after a change of it: `python -m basedsl.native_call.build`.

Another C file, of a plugin's unpackers, may be named in its place.

Needs a clang: `pip install ziglang`, or one named in the variable CC. Users need neither: the
result is part of the package, and llvmlite makes code of it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FLAGS = (
    "-O2 -g0 -S -emit-llvm -ffreestanding -fno-strict-aliasing -fno-stack-protector "
    "-fno-unwind-tables -fno-asynchronous-unwind-tables -fno-vectorize -fno-slp-vectorize "
    "-fno-unroll-loops -fno-sanitize=all -w"
)


def source_digest(source: Path = HERE / "call.c") -> str:
    """Of `call.c`; the first line of `call.ll` repeats it."""
    return hashlib.sha256(source.read_bytes()).hexdigest()


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


def main(source: Path = HERE / "call.c") -> int:
    compiler = shlex.split(
        os.environ.get("CC", f"{sys.executable} -m ziglang cc -target x86_64-linux-gnu")
    )
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.ll"
        command = [*compiler, *FLAGS.split(), "-o", str(made), str(source)]
        subprocess.run(command, check=True)
        text = portable(made.read_text())
    source.with_suffix(".ll").write_text(f"; made of {source.name} {source_digest(source)}\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
