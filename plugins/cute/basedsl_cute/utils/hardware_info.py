"""The public path of `basedsl_cute.dsl.hardware_info`: both names are one module."""

import sys

from basedsl_cute.dsl import hardware_info
from basedsl_cute.dsl.hardware_info import *  # noqa: F403

sys.modules[__name__] = hardware_info
