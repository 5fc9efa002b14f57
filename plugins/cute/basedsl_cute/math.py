"""The public path of `basedsl_cute.tensors.math`: both names are one module."""

import sys

from basedsl_cute.tensors import math
from basedsl_cute.tensors.math import *  # noqa: F403

sys.modules[__name__] = math
