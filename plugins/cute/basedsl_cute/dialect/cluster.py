"""The op that stores into another block of the cluster (PTX ISA 9.7.9.13, "st.async"), with an IR
sample. `lower-cute` leaves it: the simulator runs it, `ptx-only` makes an instruction of it.
"""

from __future__ import annotations

from basedsl_cute.dialect.declare import Operands, op

STORED = {"i32": 4, "i64": 8, "vector<4xi32>": 16}  # bytes
_ADDRESS = "!llvm.ptr<7>"


@op("dsmem_store")
class DsmemStore:
    """A thread stores a value into shared memory of a block of the cluster; its bytes count at an
    mbarrier there when they have arrived.

        "cute.dsmem_store"(%target, %barrier, %value)
            : (!llvm.ptr<7>, !llvm.ptr<7>, vector<4xi32>) -> ()
    """

    operands = ("target", "barrier", "value")

    @staticmethod
    def verify(op: Operands) -> str | None:
        for what in ("target", "barrier"):
            kind = getattr(op, what).type
            if str(kind) != _ADDRESS:
                return f"the {what} is {kind}, not {_ADDRESS}"
        if str(op.value.type) not in STORED:
            return f"the value is {op.value.type}, not {', '.join(STORED)}"
        return None
