"""`cute.launch_response` as PTX: one block of inline PTX."""

from __future__ import annotations

from typing import Any

from basedsl_cute.dialect.launch_control import LaunchResponse
from basedsl_cute.lowering.kernel.builder import Builder

_QUERY = "clusterlaunchcontrol.query_cancel"
_TEXT = f"""{{
.reg .b128 response;
.reg .pred there;
ld.shared.b128 response, [$4];
{_QUERY}.is_canceled.pred.b128 there, response;
selp.b32 $0, 1, 0, there;
mov.b32 $1, 0;
mov.b32 $2, 0;
mov.b32 $3, 0;
@there {_QUERY}.get_first_ctaid.v4.b32.b128 {{$1, $2, $3, _}}, response;
}}"""


def response_to_ptx(b: Builder, op: LaunchResponse) -> Any:
    """Emit the load of a response and the queries of it; return the vector of their results."""
    # The address is read before the results are written: "&".
    constraints = "=&r,=&r,=&r,=&r,r,~{memory}"
    types = [b.i32] * 4
    found = b.assembly(_TEXT, constraints, types, [op.address], has_side_effects=True)
    vector = b.emit("llvm.mlir.undef", [op.values.type])
    for i in range(4):
        word = b.extract_value(found, i, b.i32)
        vector = b.emit("llvm.insertelement", [op.values.type], [vector, word, b.constant(i)])
    return vector
