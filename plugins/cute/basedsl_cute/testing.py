"""The public path of `basedsl_cute.interop.testing`: both names are one module."""

import sys

from basedsl_cute.interop import testing
from basedsl_cute.interop.testing import *  # noqa: F403

sys.modules[__name__] = testing
