"""Plugins: the hooks that they answer, and the manager that finds and asks them."""

from basedsl.plugin.hookspecs import GROUP, AdapterEntry, Command, DSLEntry, hookimpl
from basedsl.plugin.manager import (
    Broken,
    PluginError,
    PluginManager,
    dsl_names,
    get_dsl,
    plugin_manager,
)

__all__ = [
    "GROUP",
    "AdapterEntry",
    "Broken",
    "Command",
    "DSLEntry",
    "PluginError",
    "PluginManager",
    "dsl_names",
    "get_dsl",
    "hookimpl",
    "plugin_manager",
]
