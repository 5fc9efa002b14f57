"""`basedsl_cute.ops`: whole kernels, ready to call; each picks one for its arrays."""

from basedsl_cute.ops.flash.attention import attention
from basedsl_cute.ops.flash.gradients import attention_backward
from basedsl_cute.ops.gemm.block_scaled import BlockScaled, quantize
from basedsl_cute.ops.gemm.matmul import matmul
from basedsl_cute.ops.layer.cross_entropy import linear_cross_entropy
from basedsl_cute.ops.layer.gated import gated_linear
from basedsl_cute.ops.layer.norm import layer_norm, rms_norm
from basedsl_cute.ops.layer.rotary import rotary
from basedsl_cute.ops.layer.sampling import sample
from basedsl_cute.ops.layer.softmax import softmax
from basedsl_cute.ops.layer.topk import topk

__all__ = [
    "BlockScaled",
    "attention",
    "attention_backward",
    "gated_linear",
    "layer_norm",
    "linear_cross_entropy",
    "matmul",
    "quantize",
    "rms_norm",
    "rotary",
    "sample",
    "softmax",
    "topk",
]
