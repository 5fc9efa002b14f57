"""The disk cache of compiled code: its folder, and text that stands for values in a key.

Functions of files are kept, under the user's cache folder unless the option `cache_dir` names
another, until the option `cache_size` is reached; the option `cache` turns it off.
`basedsl.cache.entry` makes the keys and the contents of the entries.
"""

from basedsl.cache.store import CacheWarning, Store, default_folder

__all__ = ["CacheWarning", "Store", "default_folder"]
