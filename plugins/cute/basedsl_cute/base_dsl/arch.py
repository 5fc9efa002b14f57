"""The path `base_dsl.arch` of `basedsl_cute.arch`: both names are one module."""

import sys

from basedsl_cute import arch
from basedsl_cute.arch import *  # noqa: F403

sys.modules[__name__] = arch
