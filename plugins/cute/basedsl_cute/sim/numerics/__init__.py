"""Arithmetic of generated code: pure functions on NumPy scalars and arrays, exact to the bit.

Integers are signless and held as signed arrays; unsigned operations view them. NumPy's
floating-point warnings are off, and lanes that are masked out may hold anything. Generated code
calls all of these functions as `num.name`.
"""

from basedsl_cute.sim.numerics.floats import *  # noqa: F403
from basedsl_cute.sim.numerics.fused import *  # noqa: F403
from basedsl_cute.sim.numerics.integers import *  # noqa: F403
from basedsl_cute.sim.numerics.lanes import *  # noqa: F403
