"""The public path of `basedsl_cute.interop.torch`: both names are one module."""

import sys

from basedsl_cute.interop import torch
from basedsl_cute.interop.torch import *  # noqa: F403

sys.modules[__name__] = torch
