"""Compiled code kept on disk: what makes an entry the right one, its file, the folder of files."""

from basedsl.cache.store import CacheWarning, Store, default_folder

__all__ = ["CacheWarning", "Store", "default_folder"]
