"""Descriptions of arguments for TVM's calling convention, which this package does not use.

Compiled functions here bind their arguments themselves. Programs that replace the converter of
`cute._tvm_ffi_args_spec_converter` import these names; nothing calls what they put there.
"""

from dataclasses import dataclass

__all__ = ["ConstNone"]


@dataclass(frozen=True)
class ConstNone:
    """An argument that is None in every call: its value is compiled in."""

    name: str
