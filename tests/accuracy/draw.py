"""draw.py - configurations by seed, from the distribution written down here.

1. `pairs` different (network, image) pairs, by the weights of NETS, an image of each with equal probability.
2. Configuration i takes pair i mod pairs; its mode (INFER), its ranks (RANKS), a family of strategies with that many
   ranks (FAMILIES), the family's values (VALUES) and the batch of the network are drawn independently.
3. What `hplan simulate --strategy` refuses, what is expected to take less than 1 ms or more than 1.5 s by the costs that
   hplan has without a calibration, and what was drawn before, is drawn again.

Batches are multiples of 3 or 5, so that no replica has 1, 2, 4, 8... images of a whole step: those are what calibration
runs. Networks whose steps take seconds on a core (VGG, transformers, large ResNets) are left out: rounds would not fit.
"""
import random

# network, weight, image sizes, global batches
NETS = [("cnn", 3, (28, 40, 64), (24, 48, 96)),
        ("resnet-v1-20", 1, (32,), (12, 24, 48)),
        ("resnet18", 3, (48, 64, 96), (6, 12, 24)),
        ("resnet34", 2, (64, 96), (6, 12)),
        ("resnet50", 2, (64, 96), (6, 12)),
        ("mobilenetv2", 2, (64, 96, 128), (6, 12, 24)),
        ("densenet121", 1, (64,), (6, 12)),
        ("unet:8", 2, (96, 128, 192), (3, 6, 12)),
        ("unet:16", 1, (96, 128), (3, 6)),
        ("amoebanetd:3,32", 1, (96, 128), (6, 12))]
INFER = 0.15
RANKS = {1: 4, 2: 10, 3: 2, 4: 4}
FAMILIES = {
    1: [(3, "dp=1"), (2, "dp=1,micro={micro}"), (1, "dp=1,recompute={recompute}"),
        (1, "dp=1,micro={micro},recompute={recompute}")],
    2: [(4, "dp=2"), (2, "dp=2,micro={micro}"), (1, "dp=2,recompute={recompute}"),
        (4, "stages=2,micro={many},sched={sched}"), (1, "stages=2"),
        (1, "stages=2,chunks=2,micro=6,sched=interleaved"), (2, "stages=2,micro={many},sched=gems"),
        (1, "stages=2,micro={many},sched={sched},recompute={recompute}"),
        (3, "sp={pair}"), (1, "sp={pair},halo=2"), (1, "sp={pair},overlap=interior"), (1, "sp={pair},bn=local"),
        (2, "stages=2,sp={pair},tail=shared"), (1, "stages=2,sp={pair},tail=shared,micro={micro}"),
        (2, "cp=2"), (1, "cp=2,micro={micro}"), (1, "bp=2")],
    3: [(1, "dp=3"), (2, "stages=3,micro={many},sched={sched}"), (2, "stages=2,sp={pair}"), (1, "sp=3x1")],
    4: [(2, "dp=4"), (2, "stages=4,micro={many},sched={sched}"), (1, "dp=2,stages=2,micro=3,sched={sched}"),
        (1, "sp=2x2"), (1, "dp=2,sp={pair}"), (1, "dp=2,cp=2"), (1, "stages=2,sp={pair},ldp=2")],
}
VALUES = {"micro": ("2", "3"), "many": ("3", "6"), "sched": ("gpipe", "1f1b", "zb"),
          "recompute": ("boundary", "full"), "pair": ("1x2", "2x1")}
SHORTEST_S, LONGEST_S = 1e-3, 1.5
TRAINING_ONLY = ("recompute=", "sched=1f1b", "sched=zb", "sched=gems")  # mean nothing without a backward pass
MOST_DRAWS = 4000


def weighted(rng, rows):
    return rng.choices(rows, [row[0] for row in rows])[0]


def draw_pairs(rng, n):
    """[(network, image, batches)], all different; at most as many as there are."""
    left = [(weight / len(images), net, image, batches) for net, weight, images, batches in NETS for image in images]
    pairs = []
    while left and len(pairs) < n:
        row = weighted(rng, left)
        left.remove(row)
        pairs.append(row[1:])
    return pairs


def draw_strategy(rng):
    ranks = rng.choices(list(RANKS), list(RANKS.values()))[0]
    text = weighted(rng, FAMILIES[ranks])[1]
    return text.format(**{name: rng.choice(values) for name, values in VALUES.items()}), ranks


def draw_configurations(seed, n, n_pairs, predict):
    """`n` problems with a strategy each. predict(problem, strategy): the expected step in seconds, None if illegal."""
    rng = random.Random(seed)
    pairs = draw_pairs(rng, n_pairs)
    found, seen = [], set()
    for _ in range(MOST_DRAWS):
        if len(found) == n:
            break
        net, image, batches = pairs[len(found) % len(pairs)]
        strategy, ranks = draw_strategy(rng)
        problem = {"net": net, "image": image, "batch": rng.choice(batches),
                   "mode": "infer" if rng.random() < INFER else "train"}
        key = (*problem.values(), strategy)
        if key in seen or (problem["mode"] == "infer" and any(word in strategy for word in TRAINING_ONLY)):
            continue
        seen.add(key)
        step_s = predict(problem, strategy)
        if step_s is not None and SHORTEST_S <= step_s <= LONGEST_S:
            found.append({**problem, "strategy": strategy, "ranks": ranks})
    return found
