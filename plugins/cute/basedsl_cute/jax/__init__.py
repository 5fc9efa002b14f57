"""The public path of `basedsl_cute.interop.jax`: both names are one module."""

import sys

from basedsl_cute.interop import jax
from basedsl_cute.interop.jax import *  # noqa: F403

sys.modules[__name__] = jax
