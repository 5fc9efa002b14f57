"""The public path of `basedsl_cute.compat.core`: both names are one module."""

import sys

from basedsl_cute.compat import core
from basedsl_cute.compat.core import *  # noqa: F403

sys.modules[__name__] = core
