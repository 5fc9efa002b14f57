"""The command `basedsl`: what is installed, stages of a function, compiled code on disk."""

from basedsl.cli.command_line import main

__all__ = ["main"]
