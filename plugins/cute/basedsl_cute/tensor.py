"""`cute.tensor`: the classes of tensors and vectors in kernels, which programs may extend.

`_Tensor` and `TensorSSA` are the classes of all tensors and vectors of a process: a method that a
program sets there, `__getitem__` too, is used from then on.
"""

from basedsl_cute.algebra import rank
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.tensor_ssa import ReductionOp, TensorSSA

__all__ = ["ReductionOp", "Tensor", "TensorSSA", "rank"]

_Tensor = Tensor
