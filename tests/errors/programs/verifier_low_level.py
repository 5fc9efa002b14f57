import basedsl_cute as cute
from basedsl.tracing import require


def low_level(n):
    trace = require("low level")
    ir = trace.ir
    f32 = ir.F32Type.get()
    return trace.emit(
        ir.Operation.create, "arith.addf", operands=[n.ir_value(), n.ir_value()], results=[f32]
    )


@cute.jit
def host(n: cute.Int32):
    low_level(n)
    return n


host(3)
