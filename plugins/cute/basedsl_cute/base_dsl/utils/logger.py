"""`base_dsl.utils.logger`: `log()` is the logger of the library, `logging.getLogger("basedsl")`."""

import logging

__all__ = ["log"]


def log() -> logging.Logger:
    """Return the logger above all of the library's: its level and handlers count for them."""
    return logging.getLogger("basedsl")
