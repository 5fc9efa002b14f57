"""`basedsl cache list` and `basedsl cache clear`."""

from __future__ import annotations

import argparse
import json
import time

from basedsl.cache.store import CacheStore, default_folder
from basedsl.options import Options
from basedsl.plugin import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "clear"), help="show the entries, or remove all")
    parser.add_argument("--dir", help="the folder, if not the one that the environment asks for")


def _run(parsed: argparse.Namespace) -> int:
    options = Options.from_environment(**({"cache_dir": parsed.dir} if parsed.dir else {}))
    store = CacheStore(options.cache_dir or default_folder(), options.cache_size * 2**20)
    if parsed.action == "clear":
        print(f"removed {store.clear()} entries from {store.folder}")
        return 0
    entries = store.entries()
    for one in entries:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.used))
        print(f"{used}  {one.size / 1024:8.1f} KiB  {_described(store, one.key)}")
    total = sum(one.size for one in entries)
    print(
        f"{len(entries)} entries, {total / 2**20:.1f} of {options.cache_size} MiB, in "
        f"{store.folder}"
    )
    return 0


def _described(store: CacheStore, key: str) -> str:
    content = store.read(key, touch=False)
    if content is None:
        return "(gone)"
    try:
        head = json.loads(content[: content.index(b"\n")])
        return f"{head['dsl']}  {head['function']}({head['shown']})"
    except (ValueError, KeyError):
        return "(code of the library itself)"


CACHE_COMMAND = Command("cache", "list or remove the compiled code on disk", _configure, _run)
