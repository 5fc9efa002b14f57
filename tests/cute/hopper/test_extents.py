"""Products called with extents that do not go together: known when compiled, or not."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute.ops.ampere import gemm as ampere_gemm
from basedsl_cute.ops.ampere import gemm_tma, sgemm
from basedsl_cute.ops.hopper import gemm as hopper_gemm
from basedsl_cute.ops.hopper import split_k_gemm
from basedsl_cute.runtime import from_dlpack

WRONG = {
    "K": ((64, 64), (64, 128), (64, 64), "their K differ"),
    "M": ((64, 64), (64, 64), (128, 64), "their M differ"),
    "N": ((64, 64), (64, 64), (64, 128), "their N differ"),
    "batches": ((64, 64, 2), (64, 64, 3), (64, 64, 2), "different numbers of batches"),
}
SMALL = (32, 32, 32), (2, 2)
CALLS = {
    "ampere": lambda a, b, c: ampere_gemm.gemm(a, b, c, 1, ampere_gemm.Config(*SMALL)),
    "ampere_tma": lambda a, b, c: gemm_tma.gemm(a, b, c, 1, gemm_tma.Config(*SMALL)),
    "hopper": lambda a, b, c: hopper_gemm.gemm(a, b, c, 1, hopper_gemm.Config((64, 64, 64), 2, 1)),
    "split": lambda a, b, c: split_k_gemm.gemm(a, b, c),
    "sgemm": lambda a, b, c: sgemm.sgemm(a, b, c),
}


@pytest.mark.parametrize("is_static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("case", WRONG)
def test_extents_that_disagree(monkeypatch, case, call, is_static):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    *shapes, message = WRONG[case]
    dtype = np.float32 if call == "sgemm" else np.float16
    tensors = []
    for shape in shapes:
        x = np.zeros((*shape[2:], *shape[:2]), dtype)
        x = from_dlpack(np.moveaxis(x, 0, 2) if len(shape) == 3 else x)
        tensors.append(x if is_static else x.mark_layout_dynamic(1))
    with pytest.raises(AssertionError if is_static else DSLError, match=message):
        CALLS[call](*tensors)
        cute.synchronize()
