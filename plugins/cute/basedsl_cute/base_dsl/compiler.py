"""The public path of `basedsl_cute.compat.compiler`: both names are one module."""

import sys

from basedsl_cute.compat import compiler
from basedsl_cute.compat.compiler import *  # noqa: F403

sys.modules[__name__] = compiler
