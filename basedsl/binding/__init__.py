"""Binding of calls: signatures, argument types, static values, and results."""

from basedsl.binding.argument_types import argument_type
from basedsl.binding.arguments import (
    AdaptedArgument,
    ArgumentType,
    NumericArgument,
    PartsArgument,
    StaticArgument,
    TreeArgument,
    is_plainly_static,
    static_key,
    static_parts,
)
from basedsl.binding.constexpr import Constexpr, constexpr_type
from basedsl.binding.memref import memref_array
from basedsl.binding.result_types import ResultType
from basedsl.binding.results import Results
from basedsl.binding.signature import Each, Parameter, Signature
from basedsl.binding.unpacker import Unpacker

__all__ = [
    "AdaptedArgument",
    "ArgumentType",
    "Constexpr",
    "Each",
    "NumericArgument",
    "Parameter",
    "PartsArgument",
    "ResultType",
    "Results",
    "Signature",
    "StaticArgument",
    "TreeArgument",
    "Unpacker",
    "argument_type",
    "constexpr_type",
    "is_plainly_static",
    "memref_array",
    "static_key",
    "static_parts",
]
