import basedsl_cute as cute
from basedsl import current_trace


def low_level(n):
    trace = current_trace("low level")
    index = trace.ir.IndexType.get()
    operation = trace.ir.Operation
    trace.emit(operation.create, "tensor.empty", results=[trace.ir.Type.parse("tensor<4xf32>")])


@cute.jit
def host(n: cute.Int32):
    low_level(n)
    return n


host(3)
