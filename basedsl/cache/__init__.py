"""Compiled code on disk: the folder of its files, and text that stands for values in a key.

Functions of files are kept, under the user's cache folder unless the option `cache_dir` names
another, until the option `cache_size` is reached; the option `cache` turns it off. What is kept of
a compilation, and under which key, is in `basedsl.cache.entry`.
"""

from basedsl.cache.store import CacheWarning, Store, default_folder

__all__ = ["CacheWarning", "Store", "default_folder"]
