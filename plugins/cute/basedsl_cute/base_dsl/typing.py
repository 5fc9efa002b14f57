"""The public path of `basedsl_cute.compat.typing`: both names are one module."""

import sys

from basedsl_cute.compat import typing
from basedsl_cute.compat.typing import *  # noqa: F403

sys.modules[__name__] = typing
