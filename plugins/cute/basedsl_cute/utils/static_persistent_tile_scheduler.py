"""The public path of `basedsl_cute.utils.tile_scheduler`: both names are one module."""

import sys

from basedsl_cute.utils import tile_scheduler
from basedsl_cute.utils.tile_scheduler import *  # noqa: F403

sys.modules[__name__] = tile_scheduler
