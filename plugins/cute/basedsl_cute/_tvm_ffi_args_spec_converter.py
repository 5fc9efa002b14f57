"""`cute._tvm_ffi_args_spec_converter`: names that programs replace or extend.

Calls here do not go through TVM's calling convention, and parameters that are declared Constexpr
are compiled in without a conversion: what programs put here has no effect.
"""

from typing import Any

from basedsl_cute.hardware.unsupported import NotOfferedError

NumericToTVMFFIDtype: dict[Any, str] = {}
AcceptableNumericTypesForScalar: list[Any] = []


def _convert_single_arg(arg: Any, arg_name: str, arg_type: Any, ctx: Any) -> Any:
    raise NotOfferedError(
        "_convert_single_arg() describes arguments for TVM's calling convention, which is not used",
        hint=f"annotate {arg_name!r} as Constexpr, or leave it as it is: no conversion is needed",
    )
