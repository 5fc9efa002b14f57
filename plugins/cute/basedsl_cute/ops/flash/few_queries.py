"""The configuration for few queries: how blocks and warps share their keys.

Decoding is bound by memory: what counts is that all multiprocessors read, evenly, to the end, and
that little is between two calls. Figures are of one H200, bench/results/2026-11-23-attention.md.
"""

from __future__ import annotations

from dataclasses import replace

from basedsl_cute.hardware.targets import SYSTEM_SMEM, target_of
from basedsl_cute.ops.ampere.attention import Config

_MOST_SPLITS = 128
_SHARED = target_of("sm_90a").smem_per_sm
_RINGS = 192 * 1024  # bytes of these for keys and values
_MOST_STAGES = 6
_EVEN = 0.9  # of the places for blocks, those that must be taken for warps along keys
_LONG = 4096
# Blocks of a multiprocessor -> bytes of keys and values up to which what these warps save at the
# beginning and the end of a call is more than they lose while memory is busy, if keys are split.
_SPLITS_TELL = {1: 2**27, 2: 2**27, 4: 2**26}
_ALONE = 0.6  # of the multiprocessors, those that read as fast as all do with uneven blocks
_LONG_PAGES = 2**27  # bytes of keys and values in pages beyond which warps wait for their look-ups


def with_splits(config: Config, blocks: int, keys: int, processors: int) -> Config:
    """The configuration for few queries, with keys split so that all multiprocessors have as many
    loads in flight as they take: 4 blocks of 64 keys at a time where each has few tiles of keys,
    else 8 of 32.
    """
    blocks = max(blocks, 1)
    steps = -(-keys // config.tile[1])
    splits = min(_MOST_SPLITS, 4 * processors // blocks)
    if splits > steps // 4:
        splits = steps // 4
    else:
        config = replace(config, tile=(config.tile[0], 32))
        steps, resident = -(-keys // 32), 8 * processors
        splits = min(_MOST_SPLITS, resident // blocks)
        if splits < 2:
            # Blocks come one after the other: many short ones leave less of the last ones alone.
            splits = min(_MOST_SPLITS, -(-4 * resident // blocks), steps // 32)
    return _even(config, steps, splits)


def with_key_warps(
    config: Config,
    blocks: int,
    keys: int,
    widths: tuple[int, int],
    processors: int,
    paged: bool = False,
) -> Config | None:
    """The configuration of warps along keys for so many blocks without splits and heads of `widths`
    (keys, values), for multiprocessors with 228 KiB of shared memory; None where `with_splits` is
    faster: blocks that would lie unevenly, of long caches. Caches may be of pages (`paged`).
    """
    stage = 2 * 16 * sum(widths)
    pair = replace(config, tile=(config.tile[0], 16), key_warps=2, stages=2)
    # Warps of a multiprocessor: four such pairs, if they fit.
    together = 8 if 4 * (pair.smem_bytes(*widths) + SYSTEM_SMEM) <= _SHARED else 4
    stages = min(_MOST_STAGES, _RINGS // (together * stage))
    blocks, steps = max(blocks, 1), -(-keys // 16)

    def made(resident: int, splits: int) -> Config:
        warps = together // resident
        splits = min(splits, _MOST_SPLITS, steps // warps)
        alone = resident == 1 and splits < 2 and blocks > processors // 2
        found = replace(
            config,
            tile=(config.tile[0], 16),
            key_warps=warps,
            stages=stages,
            # What follows would take places beside blocks that fill their multiprocessors: the
            # blocks of another call lie unevenly then.
            overlap=config.overlap and not alone,
            early=config.overlap,
        )
        return _even(found, steps, splits)

    counts = [resident for resident in (1, 2, 4) if together // resident > 1]
    size = 2 * blocks * keys * sum(widths)
    if paged and size > _LONG_PAGES:
        if config.packed == 1 and keys > _LONG:
            return None  # not measured
        # Each warp looks its pages up between its loads. What is hidden by others' loads, of blocks
        # that are at other tiles, if these fill the multiprocessors.
        for resident in counts[1:]:
            splits = resident * processors // blocks
            if splits * blocks >= _EVEN * resident * processors:
                found = made(resident, splits)
                return replace(found, overlap=config.overlap and splits > 1, early=False)
        if blocks <= counts[-1] * processors:
            return None
    if blocks > processors:
        # Many blocks come one after the other: small ones, of which the last are short.
        for resident in counts[1:] if blocks <= counts[-1] * processors else counts[:0:-1]:
            places = resident * processors
            if blocks >= _EVEN * -(-blocks // places) * places:
                return made(resident, 1)
    else:
        for resident in counts:
            splits = resident * processors // blocks
            is_even = splits * blocks >= _EVEN * resident * processors
            if resident == 1 and splits == 2 and is_even and size <= _SPLITS_TELL[1] and not paged:
                splits = 1  # half of the multiprocessors, each with its neighbour's bandwidth
            if resident == 1 and splits == 1 and config.packed == 1 and keys > _LONG:
                return None  # one query for each head of keys: 4326 of 4378 GB/s
            if is_even and (resident == 1 or size <= _SPLITS_TELL[resident]):
                return made(resident, splits)
    if size > _SPLITS_TELL[4]:
        is_alone = not paged and _ALONE * processors <= blocks <= processors
        if is_alone and together == 8 and config.packed > 1:
            # Each by itself on a multiprocessor, of which some have none. With all warps that fit
            # there it reads no faster, and ends later.
            return replace(made(2, 1), overlap=False)
        return None
    return made(counts[-1], counts[-1] * processors // blocks)


def _even(config: Config, steps: int, splits: int) -> Config:
    """The configuration with so many splits of `steps` tiles of keys, or fewer: no block has less
    than the others, but for the last.
    """
    return config if splits < 2 else replace(config, splits=-(-steps // -(-steps // splits)))
