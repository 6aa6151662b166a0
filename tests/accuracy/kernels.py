#!/usr/bin/env python3
"""Rates of library kernels on GPUs, fitted to measured ones: rows `tile` and `attend` of costmodels/data/shipped.cost.

Reads DEVICE.KIND.csv.gz (columns and source in their first lines) from --data, fits the models of costmodels/gpu/tiles.c
and costmodels/gpu/gpu_attention.c to each device by Nelder-Mead on the mean error of the logarithm, and prints the rows on
standard output. On standard error: errors on the half of the shapes that the fit has not seen (nine of ten are within
the row's residual), and of whole devices that are predicted from their data sheet with a relative's row. The same figures
every time. Needs numpy.
"""
import argparse
import csv
import gzip
import os
import re
import sys

import numpy as np

# class of the row: file, multiprocessors, flop/s in 16 bits and bytes/s of its data sheet, cache (bytes; 0: its rate is not
# seen in the figures), the device whose row stands in when it is left out
DEVICES = {
    "a100-40": ("a100_sxm", 108, 312e12, 2039e9, 0, "h100"),
    "b200": ("b200_sxm", 148, 2250e12, 8000e9, 0, "h100"),
    "h100": ("h100_sxm", 132, 989.5e12, 3350e9, 0, "h200"),
    "h200": ("h200_sxm", 132, 989.5e12, 4800e9, 0, "h100"),
    "l40s": ("l40s", 142, 362e12, 864e9, 96e6, "rtx-pro-6000"),
    "rtx-pro-6000": ("rtx_pro_6000_server", 188, 503.8e12, 1597e9, 128e6, "l40s"),
}
BYTES = 2  # of an element
ROWS, COLS, LEAST = 256, 128, 64  # the largest tile of a product, the least side of one


def halvings(side, least):
    n = 0
    while side / 2 ** (n + 1) >= least:
        n += 1
    return range(n + 1)


def power_mean(a, b, p):
    return (a ** p + b ** p) ** (1 / p)


def from_memory(amount, moved, cache, rate, cached):
    return moved * amount / (rate * np.where(amount < cache, cached, 1))


def cache_fields(device, p):
    cache = DEVICES[device][4]
    return f"cache:{cache:.3g} cached:{p['cached'] if cache else 1:.3g}"


class Products:
    """y (m x n) = x (m x k) w (k x n): costmodels/gpu/tiles.c."""

    # name, start, least, most
    fields = (("penalty", 0.95, 0.3, 1), ("fill", 100, 0, 2000), ("depth", 200, 64, 1e5), ("split", 2, 0, 50),
              ("flops", 0.85, 0.01, 1), ("bytes", 0.85, 0.01, 1), ("launch", 2.5, 0.1, 50), ("power", 2.5, 1, 20),
              ("cached", 2, 1, 20))

    @staticmethod
    def load(device):
        rows, source = read(device, "gemm")
        x = [[float(r[c]) for c in ("m", "n", "k", "us")] for r in rows if r["gemm_dtype"] == "bfloat16"]
        return np.array(x), source

    @staticmethod
    def seconds(p, x, device):
        _, units, peak, bandwidth, cache, _ = DEVICES[device]
        m, n, k = x.T[:3]
        rate = bandwidth * p["bytes"]
        best = np.full(len(m), np.inf)
        for i in halvings(ROWS, LEAST):
            for j in halvings(COLS, LEAST):
                rows, cols = ROWS / 2 ** i, COLS / 2 ** j
                tiles = np.ceil(m / rows) * np.ceil(n / cols)
                most = np.maximum(1, np.minimum(np.floor(units / tiles), np.floor(k / p["depth"])))
                for splits in (1, most):  # whole sums, or as many parts as there is room for
                    waves = np.ceil(tiles * splits / units)
                    part = np.maximum(1, k / splits) + p["fill"]
                    t = 2 * waves * part * rows * cols * units / (peak * p["flops"] * p["penalty"] ** (i + j))
                    t += np.where(splits > 1, p["split"] * 1e-6 + splits * 8 * m * n / rate, 0)
                    best = np.minimum(best, t)
        maps = from_memory(BYTES * (m * k + m * n), 1, cache, rate, p["cached"])
        weights = from_memory(BYTES * k * n, 1, cache / 6, rate, p["cached"])
        return p["launch"] * 1e-6 + power_mean(best, maps + weights, p["power"])

    @staticmethod
    def variants(device):
        return ({},)

    @staticmethod
    def row(device, p):
        return (f"rows:{ROWS} cols:{COLS} least:{LEAST} penalty:{p['penalty']:.3g} fill:{p['fill']:.3g} "
                f"depth:{p['depth']:.3g} split:{p['split']:.3g}e-6 flops:{p['flops']:.3g} bytes:{p['bytes']:.3g} "
                f"launch:{p['launch']:.3g}e-6 power:{p['power']:.3g} {cache_fields(device, p)}")


class Attention:
    """Queries of heads by all keys ("encoder") or those before them ("context"): costmodels/gpu/gpu_attention.c."""

    fields = (("penalty", 0.6, 0.3, 1), ("fill", 60, 0, 2000), ("softmax", 150, 0, 5000), ("flops", 0.8, 0.01, 1),
              ("bytes", 0.7, 0.01, 1), ("launch", 8, 0.1, 50), ("power", 1.5, 1, 20), ("cached", 1.5, 1, 20))
    LEAST = 16

    def __init__(self, causal):
        self.causal = causal
        self.kind = "context_attention" if causal else "encoder_attention"
        self.moved = 3 if causal else 1  # keys and values are written to a cache and read there, too

    def load(self, device):
        rows, source = read(device, self.kind)
        x = []
        for r in rows:
            if r["attn_dtype"] != "bfloat16" or r.get("kv_cache_dtype", "bfloat16") != "bfloat16":
                continue
            heads = float(r["num_heads"])
            x.append([float(r["batch_size"]), float(r["isl"]), heads, float(r.get("num_key_value_heads") or heads),
                      float(r["head_dim"]), float(r.get("window_size") or 0), float(r["us"])])
        return np.array(x), source

    def seconds(self, p, x, device):
        _, units, peak, bandwidth, cache, _ = DEVICES[device]
        samples, queries, heads, kv_heads, channels, window = x.T[:6]
        amount = BYTES * 2 * channels * samples * queries * (heads + kv_heads)
        moved = (heads + p.get("moved", self.moved) * kv_heads) / (heads + kv_heads)
        keys = queries
        if self.causal:
            seen = np.where((window > 0) & (window < queries), window, queries)
            keys = (seen * (seen + 1) / 2 + (queries - seen) * seen) / queries
        one = queries == 1  # heads that share keys are the queries then
        groups = samples * np.where(one, kv_heads, heads)
        rows = np.where(one, heads / kv_heads, queries)
        best = np.full(len(rows), np.inf)
        for i in halvings(p["rows"], self.LEAST):
            tile = p["rows"] / 2 ** i
            waves = np.ceil(np.ceil(rows / tile) * groups / units)
            read_keys = keys + tile / 2 if self.causal else 64 * np.ceil(keys / 64)
            flops = 4 * 32 * np.ceil(channels / 32) + p["softmax"]
            best = np.minimum(best, waves * tile * (read_keys + p["fill"]) * flops * units /
                              (peak * p["flops"] * p["penalty"] ** i))
        memory = from_memory(amount, moved, cache, bandwidth * p["bytes"], p["cached"])
        return p["launch"] * 1e-6 + power_mean(best, memory, p["power"])

    @staticmethod
    def variants(device):
        return tuple({"rows": rows} for rows in (128, 192, 256))

    def row(self, device, p):
        return (f"rows:{p['rows']:.3g} penalty:{p['penalty']:.3g} fill:{p['fill']:.3g} softmax:{p['softmax']:.3g} "
                f"moved:{p.get('moved', self.moved)} flops:{p['flops']:.3g} bytes:{p['bytes']:.3g} launch:{p['launch']:.3g}e-6 "
                f"power:{p['power']:.3g} {cache_fields(device, p)}")


def read(device, kind):
    path = os.path.join(options.data, f"{DEVICES[device][0]}.{kind}.csv.gz")
    if not os.path.exists(path):
        return [], ""
    with gzip.open(path, "rt") as f:
        head = f.readline()
        found = re.match(r"# (.*?); measured by (.*?) \((.*?)\), commit (\w+), \w+ of (\S+) (\S+);", head)
        if not found:
            sys.exit(f"{path}: the first line does not say where it is from")
        return list(csv.DictReader(f)), "{1}, {2}, commit {3}, {4} {5} on an {0}".format(*found.groups())


def nelder_mead(f, x, step, evaluations):
    """Nelder, Mead 1965, with the coefficients of Lagarias et al. 1998."""
    simplex = [x] + [x + step * e for e in np.eye(len(x))]
    values = [f(s) for s in simplex]
    used = len(values)
    while used < evaluations:
        order = np.argsort(values, kind="stable")
        simplex, values = [simplex[i] for i in order], [values[i] for i in order]
        centre = np.mean(simplex[:-1], axis=0)
        away = centre - simplex[-1]
        trial, used = centre + away, used + 1
        value = f(trial)
        if value < values[0]:
            further = centre + 2 * away
            second, used = f(further), used + 1
            if second < value:
                trial, value = further, second
        elif value >= values[-2]:
            trial = centre + (0.5 if value < values[-1] else -0.5) * away
            value, used = f(trial), used + 1
            if value >= values[-1]:
                simplex = [simplex[0]] + [(s + simplex[0]) / 2 for s in simplex[1:]]
                values = [values[0]] + [f(s) for s in simplex[1:]]
                used += len(x)
                continue
        simplex[-1], values[-1] = trial, value
    best = int(np.argmin(values))
    return simplex[best], values[best]


def parameters(model, point, more):
    """From logarithms, within their bounds."""
    return {**{name: np.exp(np.clip(v, np.log(max(low, 1e-9)), np.log(most)))
               for (name, _, low, most), v in zip(model.fields, point)}, **more}


def fit(model, device, x):
    best, least = None, np.inf
    for more in model.variants(device):
        def error(point, more=more):
            return np.mean(np.abs(np.log(model.seconds(parameters(model, point, more), x, device) * 1e6 / x[:, -1])))
        point = np.log([start for _, start, _, _ in model.fields])
        for step in (0.5, -0.2, 0.2, -0.3, 0.1):
            point, value = nelder_mead(error, point, step, 500)
        if value < least:
            best, least = parameters(model, point, more), value
    return {name: float(f"{value:.3g}") for name, value in best.items()}  # as they are printed


def errors(model, p, x, device):
    return np.abs(model.seconds(p, x, device) * 1e6 / x[:, -1] - 1)


def say(name, device, e, what):
    print(f"{name:10} {device:13} {len(e):5} {np.median(e):7.1%} {np.mean(e):7.1%} {np.quantile(e, 0.9):7.1%}  {what}",
          file=sys.stderr)


def main():
    rows = []
    print("kernel     device        shapes  median    mean  9 of 10", file=sys.stderr)
    for name, kind, model in (("products", "tile dense", Products()), ("attention", "attend attention", Attention(False)),
                              ("causal", "attend causal", Attention(True))):
        fitted, shapes = {}, {}
        for device in DEVICES:
            x, source = model.load(device)
            if not len(x):
                continue
            shapes[device] = x
            shown = np.random.default_rng(1).random(len(x)) < 0.5
            e = errors(model, fit(model, device, x[shown]), x[~shown], device)
            say(name, device, e, "half of the shapes never shown")
            fitted[device] = p = fit(model, device, x)
            word, rates = kind.split()
            for dtype in ("bf16", "f16"):
                rows.append(f"{word} {device} {rates} {dtype} | paper {np.quantile(e, 0.9):.2f} {len(x)} never run: {source}"
                            f"{'' if dtype == 'bf16' else ', bf16'} | {model.row(device, p)}")
        if name == "attention":
            whole = fitted
        for device in fitted if name == "causal" else ():
            if device not in whole:  # nothing was measured without a mask
                p, source = {**fitted[device], "moved": 1}, model.load(device)[1]
                rows += [f"attend {device} attention {dtype} | guess 0.5 0 never run: as with a mask, {source} | "
                         f"{model.row(device, p)}" for dtype in ("bf16", "f16")]
        for device, x in shapes.items():
            relative = DEVICES[device][5]
            if relative in fitted:
                say(name, device, errors(model, fitted[relative], x, device), f"the device never shown: as {relative}")
    print("\n".join(sorted(rows)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--data", default=os.path.join(here, "..", "..", "..", "shared", "data", "gpu-kernels"))
    options = parser.parse_args()
    main()
