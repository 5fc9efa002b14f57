"""One evaluator for each Blackwell op of the vector file, in the notation of ``evaluators``."""

from . import (
    collective_builders,
    copies,
    descriptors,
    matrix_instructions,
    scale_factors,
    shared_memory,
    sm_120,
)
from .common import EVALUATORS, arguments

__all__ = [
    "EVALUATORS",
    "arguments",
    "collective_builders",
    "copies",
    "descriptors",
    "matrix_instructions",
    "scale_factors",
    "shared_memory",
    "sm_120",
]
