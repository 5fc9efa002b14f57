"""The layout algebra needs no package: not NumPy, not MLIR, not CUDA's wheels, not the core."""

import subprocess
import sys

PROGRAM = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ImportError(f"{name} is not installed")

REFUSED = {"basedsl", "cuda", "llvmlite", "ml_dtypes", "nvidia", "numba_cuda_mlir", "numpy"}
sys.meta_path.insert(0, Refuse())
from basedsl_cute import algebra

layout = algebra.make_layout((4, 8), (8, 1))
print(layout, algebra.size(layout), algebra.coalesce(layout))
print(sorted(REFUSED & {name.partition(".")[0] for name in sys.modules}))
print("basedsl_cute.public" in sys.modules)
"""


def test_layouts_with_no_other_package():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "(4,8):(8,1) 32 (4,8):(8,1)\n[]\nFalse\n"
