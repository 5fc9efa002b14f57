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


@dataclass(frozen=True)
class Disassemble:
    """The step `sass`: machine code -> text."""

    options: str

    def __call__(self, op: Any, context: PipelineContext) -> str:
        return disassemble(context.artifacts["cubin"], self.options)
