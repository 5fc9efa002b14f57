"""The public path of `basedsl_cute.compat.cutlass_dsl`: both names are one module."""

import sys

from basedsl_cute.compat import cutlass_dsl
from basedsl_cute.compat.cutlass_dsl import *  # noqa: F403
from basedsl_cute.compat.numeric_types import *  # noqa: F403

sys.modules[__name__] = cutlass_dsl
