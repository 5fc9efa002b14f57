import basedsl_cute as cute
from basedsl.testing import TraceLog

kept = TraceLog()  # out of sight of what tracing may change


@cute.jit
def keeps(n: cute.Int32):
    kept.append(n)
    return n


@cute.jit
def uses(n: cute.Int32):
    return n + kept[0]


keeps(1)
uses(2)
