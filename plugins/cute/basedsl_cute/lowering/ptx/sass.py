"""Machine code as text, by nvdisasm, which comes with the package nvidia-cuda-nvdisasm."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from basedsl import DSLRuntimeError, PipelineContext
from basedsl_cute.lowering.ptx.line_maps import of_sass
from basedsl_cute.lowering.ptx.ptxas import find_nvdisasm


def disassemble(cubin: bytes, options: str) -> str:
    """Disassemble `cubin` by nvdisasm. Raises DSLRuntimeError where it is missing or fails."""
    found = find_nvdisasm()
    if found is None:
        raise DSLRuntimeError(
            "there is no nvdisasm to show machine code with",
            hint="pip install nvidia-cuda-nvdisasm, or set CUDA_HOME to a CUDA toolkit",
        )
    import subprocess

    with tempfile.TemporaryDirectory(prefix="basedsl-") as folder:
        source = Path(folder, "kernel.cubin")
        source.write_bytes(cubin)
        command = [str(found), *shlex.split(options), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DSLRuntimeError(
            f"nvdisasm failed: {done.stderr.strip()}", hint="the option is --nvdisasm-options"
        )
    return done.stdout


# An instruction after its address: "/*0040*/  @!P0 LDG.E R4, desc[UR4][R2.64] ;".
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)")


def histogram(sass: str) -> Counter[str]:
    """Count the instructions in machine code as text, most frequent first."""
    return Counter(dict(Counter(_INSTRUCTION.findall(sass)).most_common()))


_FUNCTION = re.compile(r"\.text\.(\S+):")
# Stores to and loads from a thread's local memory, where spilled registers are.
_LOCAL = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(?:STL|LDL)\b")


def spill_line(cubin: bytes, name: str, file: str) -> tuple[str, int] | None:
    """Return the Python line from which most accesses of local memory in the kernel `name` come: a
    line of `file` if one is among the calls that led there. None without nvdisasm or line tables.
    """
    if find_nvdisasm() is None:
        return None
    code = of_sass(disassemble(cubin, "-g"))
    counts: Counter[tuple[str, int]] = Counter()
    kernel = ""
    for line, places in zip(code.text.splitlines(), code.places, strict=True):
        if found := _FUNCTION.match(line):
            kernel = found[1]
        if kernel == name and places and _LOCAL.match(line):
            counts[next((one for one in places if one[0] == file), places[0])] += 1
    return counts.most_common(1)[0][0] if counts else None


@dataclass(frozen=True)
class Disassemble:
    """The step `sass`: machine code -> text."""

    options: str

    def __call__(self, op: Any, context: PipelineContext) -> str:
        return disassemble(context.artifacts["cubin"], self.options)
