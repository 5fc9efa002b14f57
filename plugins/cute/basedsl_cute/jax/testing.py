"""The public path of `basedsl_cute.interop.jax.testing`: both names are one module."""

import sys

from basedsl_cute.interop.jax import testing
from basedsl_cute.interop.jax.testing import *  # noqa: F403

sys.modules[__name__] = testing
