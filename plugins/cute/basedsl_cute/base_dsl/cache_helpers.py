"""The public path of `basedsl_cute.compat.cache_helpers`: both names are one module."""

import sys

from basedsl_cute.compat import cache_helpers
from basedsl_cute.compat.cache_helpers import *  # noqa: F403

sys.modules[__name__] = cache_helpers
