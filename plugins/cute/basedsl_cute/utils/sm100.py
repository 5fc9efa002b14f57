"""The public path of `basedsl_cute.utils.blackwell_helpers`: both names are one module."""

import sys

from basedsl_cute.utils import blackwell_helpers
from basedsl_cute.utils.blackwell_helpers import *  # noqa: F403

sys.modules[__name__] = blackwell_helpers
