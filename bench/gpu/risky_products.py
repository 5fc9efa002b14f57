"""Products of which timings would help most: those that nobody has timed and at which the chosen
kernel is likeliest to be slower than cuBLAS.

    python bench/gpu/choice_timings.py --out rows.json --drawn 0 --products 480 \\
        --only $(python bench/gpu/risky_products.py --seeds 400 460 --products 480)

Products are drawn as by `shapes.py --random`, by all seeds of a range. For each, the networks of
`ops.hopper.model` tell how much longer than the best the chosen configuration may take, where they
differ; and networks that are fitted here to the timings guess how far cuBLAS's time is from the
best. Products that are drawn more often come sooner. It takes a minute and PyTorch, no GPU.
"""

import argparse
import collections
import math
import random
import statistics
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from choice_timings import as_the_model_takes, estimated_microseconds
from fit_choice import PROCESSORS, TIMINGS, read
from shapes import drawn

from basedsl_cute.ops.hopper import candidates, model

GOAL = 0.98  # of cuBLAS's time by ours, below which a product counts as behind
NEAR = 1.15  # times the shortest modelled time: others are not asked about
TILES = ((128, 256), (256, 128), (128, 128), (64, 128), (128, 64), (64, 64), (256, 256), (192, 128))
NETWORKS, NEURONS, STEPS = 4, (64, 32), 600


def main():
    options = arguments()
    timed = [p for p in read(TIMINGS) if p[1] == 1 and len(p[-1]) >= 3]
    known = {tuple(p[:5]) for p in timed}
    counts = collections.Counter(
        shape[1:] for seed in range(*options.seeds) for shape in drawn(200, seed)
    )
    low, high = options.microseconds
    unknown = [
        shape
        for shape in counts
        if shape not in known and shape[4] % 8 == 0 and low <= estimated_microseconds(*shape) < high
    ]
    guess, error = guessed_margins(timed, unknown)
    correction, risks = model.Correction.read(model.CORRECTION), {}
    for shape, margin in zip(unknown, guess, strict=True):
        behind = statistics.NormalDist(margin - regret(correction, shape), error).cdf(
            math.log(GOAL)
        )
        risks[shape] = behind * math.sqrt(counts[shape])
    order = sorted(unknown, key=risks.__getitem__, reverse=True)
    print(*(f"{modes}{m}x{n}x{k}" for modes, _, m, n, k in order[: options.products]))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs=2, type=int, default=(400, 460), help="first, end")
    parser.add_argument("--products", type=int, default=480)
    parser.add_argument("--microseconds", nargs=2, type=float, default=(0, 500), help="estimated")
    return parser.parse_args()


def regret(correction, shape):
    """The mean over the networks of how much longer, as a logarithm, the chosen configuration takes
    than what each finds best.
    """
    problem, facts = as_the_model_takes(*shape)
    table = candidates.candidates(problem).table
    times = model.modelled_time(table, facts)
    near = np.flatnonzero(times < NEAR * times.min())
    table = {name: column[near] for name, column in table.items()}
    terms = model.terms(table, facts)
    took = model.physical_time(terms, model.PHYSICAL)
    rows = model.inputs(table, facts, terms, took, model.PHYSICAL)
    chosen, found = int(times[near].argmin()), []
    for network in correction.networks:
        one = correction._replace(networks=(network,))
        logs = np.log(took * one.factor(rows))
        found.append(logs[chosen] - logs.min())
    return float(np.mean(found))


def guessed_margins(timed, unknown):
    """Logarithms of cuBLAS's time by the best of ours of the unknown products, and the standard
    deviation of such guesses, of a fifth of the timed products that were left out once.
    """
    x = np.array([features(*p[:5]) for p in timed])
    y = np.array([math.log(p[5] / min(row[-1] for row in p[6])) for p in timed])
    means, scales = x.mean(0), x.std(0) + 1e-3
    order = list(range(len(x)))
    random.Random(0).shuffle(order)
    left_out, rest = order[::5], [i for i in order if i not in set(order[::5])]
    x = (x - means) / scales
    error = float(np.std(guessed(x[rest], y[rest], x[left_out]) - y[left_out]))
    others = (np.array([features(*shape) for shape in unknown]) - means) / scales
    return guessed(x, y, others), error


def guessed(x, y, others):
    """The mean of what networks that learned `y` of `x` say of the others."""
    import torch
    from torch import nn

    x, y, others = (torch.tensor(a, dtype=torch.float32) for a in (x, y, others))
    found = []
    for seed in range(NETWORKS):
        torch.manual_seed(seed)
        wide, narrow = NEURONS
        net = nn.Sequential(
            nn.Linear(x.shape[1], wide), nn.SiLU(), nn.Linear(wide, narrow), nn.SiLU(),
            nn.Linear(narrow, 1),
        )  # fmt: skip
        descent = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.3)
        for step in range(STEPS):
            descent.param_groups[0]["lr"] = 3e-3 * (1 - step / STEPS)
            descent.zero_grad()
            nn.functional.huber_loss(net(x)[:, 0], y, delta=0.05).backward()
            descent.step()
        found.append(net(others)[:, 0].detach().numpy())
    return np.mean(found, axis=0)


def features(order, batches, m, n, k):
    """Facts of a product as numbers about as large as 1."""
    log2 = math.log2
    found = [
        *(log2(m) / 4, log2(n) / 4, log2(k) / 4, log2(m * n) / 6, log2(m * n * k) / 8),
        *(order == x for x in ("kk", "kn", "mn", "mk")),
        *(m <= 64, m <= 16, log2(max(m, n) / min(m, n)) / 3),
    ]
    for rows, columns in TILES:
        tiles = -(-m // rows) * -(-n // columns)
        rounds = tiles / PROCESSORS
        found += [min(rounds, 2), rounds / math.ceil(rounds), m * n / (tiles * rows * columns)]
        found += [log2(tiles) / 5, 2 * rounds / math.ceil(2 * rounds)]
    return [float(value) for value in found]


if __name__ == "__main__":
    sys.exit(main())
