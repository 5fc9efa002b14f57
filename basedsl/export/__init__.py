"""Export of compiled functions ahead of time: an object file and a header for C, and back."""

from basedsl.export.export import Export, export_to_c
from basedsl.export.loaded import LoadedFunction, LoadedModule, load_module
from basedsl.export.metadata import MetadataError

__all__ = [
    "Export",
    "LoadedFunction",
    "LoadedModule",
    "MetadataError",
    "export_to_c",
    "load_module",
]
