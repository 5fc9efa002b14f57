"""The command `basedsl`: what is installed, stages of a function, compiled code on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from basedsl.plugin import PluginManager

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None, manager: PluginManager | None = None) -> int:
    """Run the command that `arguments` say, by default those of the process, with the plugins of
    `manager`; return the exit status.
    """
    try:
        from basedsl.cli.command_line import main as run
    except KeyboardInterrupt:  # the modules take a moment
        return 130
    return run(arguments, manager)
