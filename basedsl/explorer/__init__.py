"""The explorer: a local page with the stages of a file's functions, which follows the file."""

from basedsl.explorer.command import EXPLORE_COMMAND

__all__ = ["EXPLORE_COMMAND"]
