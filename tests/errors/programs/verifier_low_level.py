import basedsl_cute as cute
from basedsl import current_trace


def low_level(n):
    trace = current_trace("low level")
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
