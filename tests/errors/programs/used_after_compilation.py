import basedsl_toy as toy
from basedsl.testing import TraceLog

kept = TraceLog()  # out of sight of what tracing may change


@toy.jit
def leak(n: toy.Int64):
    kept.append(n)
    return n


leak(3)
kept[0] + 1
