"""The disk cache of compiled code.

Code of functions that are defined in files is stored below the user's cache folder, or in the
folder that the option `cache_dir` names, up to `cache_size` MiB. The option `cache` turns it off.
`basedsl.cache.entry` makes the keys and the contents of the entries.
"""

from basedsl.cache.store import CacheStore, CacheWarning, default_folder

__all__ = ["CacheStore", "CacheWarning", "default_folder"]
