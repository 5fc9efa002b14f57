"""The operation that reads what a request to cancel a cluster's launch brought (PTX ISA,
"clusterlaunchcontrol.query_cancel").

The step `lower-cute` keeps it: the simulator runs it, `ptx-only` makes instructions of it. The
request is an operation of the nvvm dialect.
"""

from __future__ import annotations

from basedsl import operand, result
from basedsl_cute.dialect.cute_op import CuteOp, Value

_ADDRESS, _RESPONSE = "!llvm.ptr<3>", "vector<4xi32>"


class LaunchResponse(CuteOp, name="launch_response"):
    """Load the response of 16 bytes at an address, as whether a launch was cancelled and the index
    (x, y, z) of its first block. The index is defined only if one was.

        %r = "cute.launch_response"(%address) : (!llvm.ptr<3>) -> vector<4xi32>
    """

    address: Value = operand()
    values: Value = result(alias="type")

    def verify(self) -> str | None:
        if str(self.address.type) != _ADDRESS:
            return f"the address is {self.address.type}, not {_ADDRESS}"
        if str(self.values.type) != _RESPONSE:
            return f"the response is {self.values.type}, not {_RESPONSE}"
        return None
