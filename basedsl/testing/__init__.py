"""Helpers for tests of the core and of plugins: FileCheck in process, golden files, a GPU probe,
marks of slow parameters.
"""

from basedsl.testing.filecheck import filecheck
from basedsl.testing.golden import Golden
from basedsl.testing.hardware import why_no_gpu
from basedsl.testing.slow import slow_but
from basedsl.testing.trace_log import TraceLog

__all__ = ["Golden", "TraceLog", "filecheck", "slow_but", "why_no_gpu"]
