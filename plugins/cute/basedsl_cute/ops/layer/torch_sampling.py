"""Sampling from PyTorch tensors: an operation that `torch.compile` knows.

This module imports PyTorch; `sample` imports it when it gets tensors of PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch

from basedsl_cute.ops.array_libraries import library
from basedsl_cute.ops.layer.sampling import draw
from basedsl_cute.ops.torch_operation import TorchOperation

_SCHEMA = (
    "(Tensor logits, SymInt seed, SymInt offset, Tensor? temperatures, Tensor? top_ks, "
    "Tensor? top_ps, Tensor? min_ps, float temperature, SymInt top_k, float top_p, float min_p) "
    "-> Tensor"
)


def torch_sample(logits: Any, seed: int, offset: int, arrays: Any, numbers: Any) -> Any:
    """Return the draws; the arguments are those of `draw`. A draw has no gradient."""
    temperature, top_k, *others = numbers
    return _operation(
        logits.detach(), seed, offset, *arrays, float(temperature), top_k, *map(float, others)
    )


def _run(logits: Any, seed: int, offset: int, *options: Any) -> Any:
    lib = library(logits, "sample")
    return draw(lib, logits, seed, offset, list(options[:4]), list(options[4:]))


def _fake(logits: Any, *options: Any) -> Any:
    """A result without elements."""
    return logits.new_empty(logits.shape[:-1], dtype=torch.int64)


_operation = TorchOperation("sample", _SCHEMA, _run, _fake)
