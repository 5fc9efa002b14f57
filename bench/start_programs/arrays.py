"""Helpers of the programs of cute: the examples' folder, and arrays where the target has them."""

import json
import sys
from pathlib import Path
from time import perf_counter

import basedsl_cute as cute
from basedsl_cute.dsl.cute import CUTE

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "cute"))
ON_GPU = "(sm_" in cute.target_description()


def array(values):
    """A PyTorch tensor on the GPU, or the NumPy array itself for the simulator."""
    if not ON_GPU:
        return values
    import torch

    made = torch.from_numpy(values).cuda()
    torch.cuda.synchronize()
    return made


def first_call(function, *args):
    """Call, wait, and print milliseconds and what was compiled or loaded."""
    start = perf_counter()
    function(*args)
    cute.synchronize()
    print(json.dumps([(perf_counter() - start) * 1e3, dict(CUTE.counts)]))
