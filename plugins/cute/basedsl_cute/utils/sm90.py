"""The public path of `basedsl_cute.utils.hopper_helpers`: both names are one module."""

import sys

from basedsl_cute.utils import hopper_helpers
from basedsl_cute.utils.hopper_helpers import *  # noqa: F403

sys.modules[__name__] = hopper_helpers
