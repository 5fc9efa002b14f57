"""Logging by the options."""

from __future__ import annotations

import logging

from basedsl.logs import ROOT, configure_logs
from basedsl.options import Options


def test_what_options_installed_goes_with_them() -> None:
    root = logging.getLogger(ROOT)
    configure_logs(Options())
    before = root.level, list(root.handlers)
    configure_logs(Options(log_to_console=True, log_level="debug"))
    assert root.level == logging.DEBUG and len(root.handlers) == len(before[1]) + 1
    configure_logs(Options())
    assert (root.level, list(root.handlers)) == before
