"""The public path of `basedsl_cute.interop.cuda`: both names are one module."""

import sys

from basedsl_cute.interop import cuda
from basedsl_cute.interop.cuda import *  # noqa: F403

sys.modules[__name__] = cuda
