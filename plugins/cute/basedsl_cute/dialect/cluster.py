"""The operation that stores into another block of the cluster (PTX ISA 9.7.9.13, "st.async").

The step `lower-cute` keeps it: the simulator runs it, `ptx-only` makes an instruction of it.
"""

from __future__ import annotations

from basedsl import operand
from basedsl_cute.dialect.cute_op import CuteOp, Value

STORED = {"i32": 4, "i64": 8, "vector<4xi32>": 16}  # bytes
_ADDRESS = "!llvm.ptr<7>"


class DsmemStore(CuteOp, name="dsmem_store"):
    """Store a value of one thread into shared memory of a block of the cluster. Its bytes count at
    an mbarrier there when they have arrived.

        "cute.dsmem_store"(%target, %barrier, %value)
            : (!llvm.ptr<7>, !llvm.ptr<7>, vector<4xi32>) -> ()
    """

    target: Value = operand()
    barrier: Value = operand()
    value: Value = operand()

    def verify(self) -> str | None:
        for what in ("target", "barrier"):
            kind = getattr(self, what).type
            if str(kind) != _ADDRESS:
                return f"the {what} is {kind}, not {_ADDRESS}"
        if str(self.value.type) not in STORED:
            return f"the value is {self.value.type}, not {', '.join(STORED)}"
        return None
