"""Measure parts of K that a second kernel adds up, or the blocks that multiplied them.

    python bench/gpu/added_parts.py --out rows.json [the options of choice_timings.py]

Takes turns as `choice_timings.py` does: cuBLAS, what is chosen, and of the best parts of K by the
model each with and without `inside`; and further tiles of few products.
"""

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import choice_timings

WEAK = (
    "kn512x512x65536 kk1024x1024x8192 mn480x1536x8192 mn672x1536x4096 kk256x256x65536 "
    "mn768x2048x8192 kn512x512x32768 kk384x512x65536 kk640x512x65536 kn640x640x65536 "
    "kn256x256x131072 kn512x1536x50304 kk1024x1024x4096 kk192x24576x6144 mn1728x2560x8192 "
    "mn800x5120x8192 mn1280x5120x8192 mn384x3072x8192 kk1024x768x6144 kk512x768x16384 "
    "kn256x768x32000 kk512x2560x8192 kn768x768x65536 kk256x10752x7168 kk1536x1536x8192 "
    "kk512x1024x65536 kk256x1280x8192 kk256x1280x4096 kn256x1024x151936 mk512x512x65536 "
    "mn320x2560x8192 kk192x2560x5120 kk512x2048x4096 mn1280x2048x8192 kk512x1024x3584 "
    "kk1024x5376x7168 mn352x1024x4096 kk256x9216x3072"
).split()
PAIRS = 4


def configurations(shape, options, draw):
    """The chosen configuration, and those of parts of K of either kind."""
    from basedsl_cute.ops.hopper import candidates, heuristics, model
    from basedsl_cute.ops.hopper.config import Config, filled_config

    order, _, m, n, k = shape
    of_a, of_b = order[0] == "k", order[1] == "k"
    of_longer = (of_a, of_b) if m > n else (of_b, of_a)
    processors = choice_timings.PROCESSORS
    problem = heuristics.Problem(m, n, k, 1, 16, 16, processors, True, False, *of_longer)
    found = candidates.candidates(problem)
    facts = model.Products(m, n, k, 1, int(of_a), int(of_b), processors)
    times = model.modelled_time(found.table, facts)
    chosen = heuristics.choose_hopper_kernel(problem)[1]
    picked, kinds = [chosen], {}
    for row in times.argsort():
        cfg = found.at(int(row), problem)
        if not isinstance(getattr(cfg, "gemm", None), Config):
            continue
        if cfg.parts > 32 or blocks_of(cfg, problem) > processors:
            continue
        kind = choice_timings.kind_of(cfg)[:2]
        if len(kinds) == PAIRS or times[row] > 1.5 * times.min() or kinds.get(kind, 0):
            continue
        kinds[kind] = 1
        if times[row] < 1.2 * times.min():
            picked.append(cfg)
        picked.append(replace(cfg, inside=True))
        if len(kinds) < 3 and n % 128 == 0 and m % 128 and cfg.gemm.tile[0] == 128:
            turned = replace(cfg.gemm, swap=True)
            picked.append(replace(cfg, gemm=turned, inside=True))
    if (shape[0], m, n, k) in EXTRA:
        for rows, columns, consumers, cluster, swap in EXTRA[(shape[0], m, n, k)]:
            cfg = filled_config(rows, columns, 16, consumers, cluster=cluster)
            picked.append(replace(cfg, swap=swap, deferred=False, along_m=cluster[0] > cluster[1]))
    return list(dict.fromkeys(picked))


EXTRA = {
    ("kk", 192, 24576, 6144): [(192, 192, 3, (1, 2), False), (192, 192, 3, (2, 1), True)],
    ("mn", 1728, 2560, 8192): [(192, 192, 3, (1, 2), False), (192, 192, 3, (2, 1), True)],
    ("mn", 480, 1536, 8192): [(64, 96, 1, (4, 1), True), (64, 96, 1, (2, 1), True)],
    ("mn", 672, 1536, 4096): [(128, 64, 2, (2, 1), True), (128, 64, 2, (4, 1), True)],
    ("kk", 1024, 1024, 8192): [(128, 64, 2, (4, 1), False), (128, 64, 2, (1, 4), False)],
    ("kk", 256, 9216, 3072): [(128, 144, 2, (1, 2), False), (256, 72, 2, (1, 2), False)],
}


def blocks_of(cfg, problem):
    """The blocks of a configuration of parts."""
    (rows, columns, _), (cm, cn) = cfg.gemm.tile, cfg.gemm.cluster
    across = -(-problem.m // (rows * cm)) * cm
    return cfg.parts * across * -(-problem.n // (columns * cn)) * cn


def columns_with_kind(configs, plain):
    """The table of configurations, with whether their blocks add up parts as the last column."""
    table = plain(configs)
    table["inside"] = [int(getattr(cfg, "inside", False)) for cfg in configs]
    return table


def main():
    from basedsl_cute.ops.hopper import model

    plain, columns = model.columns_of, model.COLUMNS
    choice_timings.configurations = configurations
    measured = choice_timings.measured

    def measured_too(torch, shape, configs):
        model.columns_of = lambda given: columns_with_kind(given, plain)
        model.COLUMNS = (*columns, "inside")
        try:
            return measured(torch, shape, configs)
        finally:
            model.columns_of, model.COLUMNS = plain, columns

    choice_timings.measured = measured_too
    return choice_timings.main()


if __name__ == "__main__":
    if "--only" not in sys.argv:
        sys.argv += ["--only", *WEAK]
    sys.exit(main())
