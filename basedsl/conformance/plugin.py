"""The pytest plugin under the name by which earlier installations load it."""

from basedsl_pytest import *  # noqa: F403
