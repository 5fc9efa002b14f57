"""The name that programs import from `base_dsl.cache_helpers`: the compilations kept on disk."""

from __future__ import annotations

from basedsl import CachedCompilation, cached_compilations
from basedsl_cute.dsl.cute import CUTE


def load_cache_from_path(
    name: str = "CuTeDSL", capacity: int | None = None
) -> dict[str, CachedCompilation]:
    """Return the compilations of this DSL that are kept on disk, by their keys, those used last
    first, at most `capacity`. Each unpacks into its module and itself. `name` has no effect.
    """
    found = cached_compilations(CUTE.options.cache_dir)
    own = {key: one for key, one in found.items() if one.dsl == CUTE.name}
    return dict(list(own.items())[:capacity])
