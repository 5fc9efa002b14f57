"""Fit the numbers of `ops.hopper.model`, by which `ops.matmul` chooses a Hopper kernel, to timings.

    python bench/gpu/fit_choice.py [--timings FILE ...] [--add rows.json ...] [--check] [--write]

The timings lie in bench/results: a line for each product, with its contiguous modes, batches, M, N,
K, the microseconds of cuBLAS, and for each configuration the numbers of `model.COLUMNS` and its
microseconds. `choice_timings.py` measures more of them, `--add` takes its output into the file.

First the numbers of the physical time, by least squares (Levenberg and Marquardt) of the logarithms
within each product, since the choice needs no more than their differences; slow configurations
count less. Then the networks that correct it, by gradient descent with PyTorch, on a processor:
four minutes of two cores. `--check` leaves a quarter of the products out, four times, and tells
what choosing among the measured configurations of those would cost: the time of the best of them
by that of the chosen one ("regret"), and cuBLAS's by it. `--write` writes model_numbers.py
and model_correction.npz.

For another GPU: measure there, with `choice_timings.py --out rows.json` for a few hundred products,
and fit to a new file of these alone. `ops.hopper.candidates` lists what may be chosen; what is new
there has to be measured and fitted before it is chosen well.
"""

import argparse
import gzip
import itertools
import json
import math
import random
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from shapes import SHAPES

from basedsl_cute.ops.hopper import model

ROOT = Path(__file__).resolve().parents[2]
TIMINGS = ROOT / "bench" / "results" / "2026-11-23-choice.jsonl.gz"
NUMBERS = Path(model.__file__).with_name("model_numbers.py")
PROCESSORS = 132
FOLDS = 4
NETWORKS = 4
LAYERS = (48, 32)
STEPS = 1800
CENTRED = 0.6  # the part of a product's mean error that is none: it is the same for all of them
FAR = 0.15  # errors beyond it, of a logarithm, count less than their squares
WATCHED = 12  # times that the rows of shapes.py count, which are reported
FIXED = ("of_each",)  # 64 bytes in a cycle: all measured grids are wider than that bounds


class Timings:
    """Configurations and times of products, as arrays with an element for each."""

    def __init__(self, products):
        self.products = products
        rows = [(i, *row) for i, p in enumerate(products) for row in p[-1]]
        columns = np.array([row[1:-1] for row in rows], dtype=np.int64).T
        self.table = dict(zip(model.COLUMNS, columns, strict=True))
        self.of = np.array([row[0] for row in rows])
        self.log = np.log([row[-1] for row in rows])
        facts = [
            (m, n, k, batches, int(order[0] == "k"), int(order[1] == "k"))
            for order, batches, m, n, k, *_ in products
        ]
        self.facts = model.Products(*np.array(facts).T[:, self.of], PROCESSORS)
        self.terms = model.terms(self.table, self.facts)
        self.best = np.full(len(products), np.inf)
        np.minimum.at(self.best, self.of, self.log)
        watched = {(order, *extents) for _, order, *extents in SHAPES}
        often = np.array([WATCHED if tuple(p[:5]) in watched else 1 for p in products])
        self.weights = np.exp(-8 * (self.log - self.best[self.of])) * often[self.of]

    def centred(self, errors, part):
        """The errors without a part of the mean of their product."""
        total = np.bincount(self.of, self.weights, len(self.best))
        mean = np.bincount(self.of, errors * self.weights, len(self.best)) / total
        return errors - part * mean[self.of]


def main():
    options = arguments()
    products = [p for path in options.timings for p in read(path)]
    if options.add:
        products = joined(products, [row for path in options.add for row in measured(path)])
        write_timings(options.timings[0], products)
    timings = Timings(products)
    print(f"{len(timings.log)} timings of {len(products)} products")
    if options.check:
        check(products)
    numbers, correction = fitted(timings)
    report("fitted to all", products, predicted(timings, numbers, correction), timings)
    if options.write:
        NUMBERS.write_text(text_of(numbers, len(timings.log), len(products)))
        correction.write(model.CORRECTION)
    return 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timings", nargs="+", type=Path, default=[TIMINGS])
    parser.add_argument("--add", nargs="*", type=Path, help="outputs of choice_timings.py")
    parser.add_argument("--check", action="store_true", help="on products that are left out")
    parser.add_argument("--write", action="store_true", help="write what `ops.hopper.model` reads")
    return parser.parse_args()


def read(path):
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def write_timings(path, products):
    lines = "".join(json.dumps(p, separators=(",", ":")) + "\n" for p in products)
    path.write_bytes(gzip.compress(lines.encode(), 9, mtime=0))


def measured(path):
    """The rows of an output of `choice_timings.py`, as those of the file."""
    return json.loads(Path(path).read_text())


def joined(products, more):
    """All products, each once, with the configurations of both; the later times are kept. Those of
    another run, whose clock may be another, are by as much longer as cuBLAS's is.
    """
    found = {}
    for *product, cublas, rows in (*products, *more):
        kept = found.setdefault(tuple(product), [cublas, {}])
        kept[1].update({tuple(row[:-1]): row[-1] * kept[0] / cublas for row in rows})
    return [
        [*product, cublas, [[*columns, took] for columns, took in rows.items()]]
        for product, (cublas, rows) in found.items()
    ]


def fitted(timings):
    """The numbers of the physical time, and the correction."""
    numbers = physical(timings)
    took = model.physical_time(timings.terms, numbers)
    rows = model.inputs(timings.table, timings.facts, timings.terms, took, numbers)
    means, scales = rows.mean(0), rows.std(0) + 1e-3
    scales[np.ptp(rows, axis=0) == 0] = 1e9  # what was the same in all says nothing of another one
    rows = (rows - means) / scales
    wanted = timings.log - np.log(took)
    networks = tuple(network(rows, wanted, timings, seed) for seed in range(NETWORKS))
    return numbers, model.Correction(means, scales, networks)


def physical(timings, rounds=40):
    """The numbers of `physical_time` that leave the least errors, found from those of today."""
    names = list(model.PHYSICAL)
    start = np.log([model.PHYSICAL[name] for name in names])
    free = np.array([name not in FIXED for name in names])

    def errors(x):
        took = model.physical_time(timings.terms, dict(zip(names, np.exp(x), strict=True)))
        found = timings.centred(np.log(took) - timings.log, CENTRED)
        far = np.sqrt(np.minimum(1, FAR / np.maximum(np.abs(found), 1e-9)))
        near_start = 1e-3 * math.sqrt(len(found)) * (x - start)
        return np.concatenate([found * far * np.sqrt(timings.weights), near_start])

    x, damping = start, 1e-2
    now = errors(x)
    for _ in range(rounds):
        jacobian = np.stack([(errors(x + 1e-4 * e) - now) / 1e-4 for e in np.eye(len(x))], 1)
        square, slope = jacobian.T @ jacobian, jacobian.T @ now
        for _ in range(8):
            damped = square + damping * np.diag(np.diag(square) + 1e-9)
            step = np.clip(np.linalg.solve(damped, -slope), -0.5, 0.5) * free
            then = errors(x + step)
            if then @ then < now @ now:
                break
            damping *= 4
        else:
            break
        is_last = 1 - (then @ then) / (now @ now) < 1e-6
        x, now, damping = x + step, then, damping * 0.3
        if is_last:
            break
    return dict(zip(names, np.exp(x).tolist(), strict=True))


def network(rows, wanted, timings, seed):
    """The layers of a network that learned the wanted logarithms."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    x, y, w = (torch.tensor(a, dtype=torch.float32) for a in (rows, wanted, timings.weights))
    of = torch.tensor(timings.of)
    zeros = torch.zeros(len(timings.best))
    total = zeros.scatter_add(0, of, w) + 1e-9
    extents = (rows.shape[1], *LAYERS)
    hidden = [part for a, b in itertools.pairwise(extents) for part in (nn.Linear(a, b), nn.SiLU())]
    last = nn.Linear(LAYERS[-1], 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    net = nn.Sequential(*hidden, last)
    descent = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=0.1)
    for step in range(STEPS):
        descent.param_groups[0]["lr"] = 4e-3 * (1 - step / STEPS)
        descent.zero_grad()
        error = net(x)[:, 0] - y
        error = error - 0.7 * (zeros.scatter_add(0, of, error * w) / total)[of]
        loss = nn.functional.huber_loss(error, torch.zeros_like(error), reduction="none", delta=0.1)
        ((loss * w).sum() / w.sum()).backward()
        descent.step()
    return tuple(
        (part.weight.detach().numpy().T.astype(float), part.bias.detach().numpy().astype(float))
        for part in net
        if isinstance(part, nn.Linear)
    )


def predicted(timings, numbers, correction):
    """Microseconds of each configuration."""
    took = model.physical_time(timings.terms, numbers)
    rows = model.inputs(timings.table, timings.facts, timings.terms, took, numbers)
    return took * correction.factor(rows)


def check(products):
    """Tell the cost of choosing for products that were not fitted to."""
    order = list(range(len(products)))
    random.Random(0).shuffle(order)
    took, physics, every = [], [], []
    for fold in range(FOLDS):
        begin = time.time()
        left_out = [products[i] for i in order[fold::FOLDS]]
        rest = [p for p in products if p not in left_out]
        numbers, correction = fitted(Timings(rest))
        timings = Timings(left_out)
        took += predicted(timings, numbers, correction).tolist()
        physics += model.physical_time(timings.terms, numbers).tolist()
        every += left_out
        print(f"  {fold + 1} of {FOLDS}: {time.time() - begin:.0f} s", flush=True)
    timings = Timings(every)
    report("left out, physical", every, np.array(physics), timings)
    report("left out", every, np.array(took), timings)


def report(name, products, took, timings):
    """Tell the regret, and cuBLAS's time by that of the chosen and of the best configuration."""
    regrets, chosen, best = [], [], []
    for i, product in enumerate(products):
        own = np.flatnonzero(timings.of == i)
        if len(own) < 3:
            continue
        pick = math.exp(timings.log[own[took[own].argmin()]])
        least = math.exp(timings.best[i])
        regrets.append(least / pick)
        chosen.append(product[-2] / pick)
        best.append(product[-2] / least)

    def mean(x):
        return math.exp(np.log(x).mean())

    print(
        f"{name}: regret {mean(regrets):.4f}, worst {min(regrets):.3f}; cuBLAS by the chosen "
        f"{mean(chosen):.4f}, {sum(x < 0.97 for x in chosen)} of {len(chosen)} below 0.97; by the "
        f"best {mean(best):.4f}, {sum(x < 0.97 for x in best)} below",
        flush=True,
    )


def text_of(numbers, timings, products):
    """The text of model_numbers.py."""
    lines = [
        '"""The numbers of `ops.hopper.model`, as bench/gpu/fit_choice.py found them from',
        f"{timings} timings of {products} products on an H200.",
        '"""',
        "",
        "PHYSICAL = {",
        *(f'    "{name}": {digits(x)},' for name, x in numbers.items()),
        "}",
    ]
    return "\n".join(lines) + "\n"


def digits(x):
    return f"{x:.3g}" if abs(x) > 1e-9 else "0"


if __name__ == "__main__":
    sys.exit(main())
