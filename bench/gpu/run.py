"""`make gpu-bench`: every benchmark that needs a GPU, one after another.

Each memory-bound kernel: GB/s, the ratio to a device-to-device copy of the same bytes, the ratio to
PyTorch's kernel. The GEMMs: TFLOP/s and the ratio to cuBLAS, registers, spills, occupancy.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

from basedsl.testing.hardware import why_no_gpu

HERE = Path(__file__).parent
PROGRAMS = ("gpu/memory_bound.py", "gpu/gemm.py", "gpu/ampere_gemm.py", "compile.py")


def main():
    reason = why_no_gpu()
    if reason:
        print(f"make gpu-bench needs an NVIDIA GPU: {reason}", file=sys.stderr)
        return 1
    if "--check" in sys.argv:
        return 0
    if importlib.util.find_spec("torch") is None:
        print("the benchmarks compare with PyTorch: pip install torch", file=sys.stderr)
        return 1
    worst = 0
    for name in PROGRAMS:
        print(f"== bench/{name}", flush=True)
        done = subprocess.run([sys.executable, str(HERE.parent / name)])
        worst = max(worst, abs(done.returncode))
        print(flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
