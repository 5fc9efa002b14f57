"""The results of tuning, kept on disk: which parameters were the fastest, by what was tuned."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import platformdirs

from basedsl_cute.device import driver
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.dsl.machine import current_target

Config = dict[str, Any]


def folder() -> Path:
    """Return the folder of kept results: below the cache's, which `CUTE_DSL_CACHE_DIR` names."""
    base = CUTE.options.cache_dir
    root = Path(platformdirs.user_cache_dir("basedsl", appauthor=False)) if base is None else base
    return root / "tuning"


def key_of(function: Any, params: Mapping[str, Sequence[Any]], changing: Any) -> str | None:
    """Return the key of a tuning: the function's text, what was tried, what the arguments are like,
    the device and the versions. None where results are not kept: with `cache=0`, for a function
    without a file, or values that have no text of their own.
    """
    if not CUTE.options.cache:
        return None
    from importlib import metadata  # only tuning asks

    plain = getattr(function, "fn", function)
    try:
        source = inspect.getsource(plain)
        tried = json.dumps({name: list(values) for name, values in params.items()})
    except (OSError, TypeError):
        return None
    parts = (
        f"{plain.__module__}.{plain.__qualname__}",
        source,
        tried,
        repr(changing),
        _device(),
        metadata.version("basedsl-cute"),
        CUTE.options.output_key(),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _device() -> str:
    target = current_target()
    if target.is_gpu and driver.is_available():
        return f"{target.name} {driver.device(driver.current_device()).name}"
    return target.name


def read(key: str | None) -> Config | None:
    """Return the kept result; None if there is none that can be read."""
    if key is None:
        return None
    try:
        found = json.loads((folder() / f"{key}.json").read_text("utf-8"))
        best = found["best"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return best if isinstance(best, dict) else None


def write(key: str | None, name: str, best: Config) -> None:
    """Keep a result. A folder that cannot be written keeps none."""
    if key is None:
        return
    text = json.dumps({"function": name, "device": _device(), "best": best}, indent=1)
    try:
        where = folder()
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(
            "w", dir=where, suffix=".partial", delete=False, encoding="utf-8"
        ) as partial:
            partial.write(text)
        os.replace(partial.name, where / f"{key}.json")
    except OSError:
        return
