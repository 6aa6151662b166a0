#!/usr/bin/env python3
"""frameworks.py - fits the rates of frameworks' kernels (costmodels/data/frameworks) to published throughput, and scores them.

    tests/accuracy/frameworks.py [--hplan build/hplan] [--data ../shared/data/throughput.csv] [--write [residuals]] [--rows]

Each published row is simulated for one device by the framework's profile, its time taken apart by kind of kernel; then one
multiplier for each of PARAMETERS is fitted, to logarithms, so that the sums are what was measured. --write divides the rows
of the tables by them: run again, they are all 1; and makes each row's residual what nine of ten points that rest on it are
within when they are left out by fifths, which --write residuals does alone. Scores: of all rows, of a fifth left out in turn, of each device and each
group left out. --rows prints every row. Needs numpy and scipy (Debian: python3-scipy).
"""
import argparse
import collections
import csv
import math
import pathlib
import random
import re
import sqlite3
import statistics
import subprocess
import tempfile

import numpy
from scipy.optimize import least_squares

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = ROOT / "costmodels/data/frameworks"
# devices whose libraries have the same kernels: the classes whose rows are fitted together
FAMILY = {"v100": ["v100-16"], "t4": ["t4"], "a100": ["a100-40"], "ga10": ["rtx-3090", "a10"],
          "ada": ["rtx-4090", "l40s", "l4"], "h100": ["h100"]}
MEMBERS = {"v100-16": "v100", "v100-32": "v100", "t4": "t4", "a100-40": "a100", "a100-80": "a100", "a100-80-pcie": "a100", "a30": "a100",
           "a10": "ga10", "rtx3090": "ga10", "rtx4090": "ada", "l4": "ada", "l40s": "ada", "h100": "h100", "h100-pcie": "h100"}
TYPES = {"fp16": ["f16", "bf16"], "tf32": ["tf32"], "fp32": ["f32"]}
STEP_S = 3e-3
# what the rows were before anything was fitted: parts of the data sheet's rates; by operation where it is of memory
BASE = {"v100-16": (0.78, 0.85), "t4": (0.78, 0.75)}
OTHERS, OF_MEMORY = (0.5, 0.8), (0.5, 0.8)
# how far a multiplier is drawn to 1 (a spread of its logarithm), and the least it may be: no kernel is faster than the data
# sheet, but that of cards that are sold by a clock which they exceed
SPREAD = {"conv": 0.25, "gradient": 0.1, "norm": 0.4, "dense": 0.25, "attention": 0.4, "layernorm": 0.6}
LEAST = {"conv": 0.5, "gradient": 0.9, "dense": 0.5, "norm": 0.45, "norm:pytorch": 0.75, "attention": 0.5, "layernorm": 0.85}
BOOST = {"ga10": 0.9, "ada": 0.9}
SPREAD_OF_DEVICES = 0.02
# residuals: of so many points or of more rows' points, and no less, since half of the devices have points of one network alone
FEW, LEAST_RESIDUAL = 10, 0.15

# of experiments/table-2.1.txt and resnet50-nvidia.txt: PyTorch on an A100, where the 209 rows have none of float32 in inference
ELSEWHERE = [("resnet-v2-110", 256, 64, "infer", "fp32", "thesis-a100", 145.22), ("resnet-v2-110", 256, 64, "infer", "fp16", "thesis-a100", 224.85),
             ("resnet50", 224, 256, "train", "fp32", "dgx-a100", 938)]


def elsewhere():
    for k, (net, image, batch, mode, precision, machine, value) in enumerate(ELSEWHERE):
        yield {"id": f"e{k}", "group": "elsewhere", "network": net, "hplan_net": net, "image": str(image), "batch_global": str(batch),
               "batch_per_gpu": str(batch), "mode": mode, "precision": precision, "machine": machine, "value": str(value), "device": "a100-40",
               "gpus": "1", "nodes": "1", "framework": "PyTorch", "framework_version": "1.13", "layout": "NCHW",
               "units": "tf32" if precision == "fp32" else precision}


def profile(row):
    """What --as takes for a published row: by framework, version and layout, as its source says, before its figure was looked at."""
    name, version, last = row["framework"], row["framework_version"], row["layout"] == "NHWC"
    if name.startswith("MXNet"):
        return "mxnet-graphs" if version.startswith("22") else "mxnet"
    if name.startswith("TensorFlow"):
        return "tensorflow-1.15"
    if name.startswith("torch.compile"):
        return "pytorch-2-compiled"
    if "timm" in name:
        return "pytorch-2" if version.startswith("2") else "pytorch-1.13" + ("-channels-last" if last else "")
    return "pytorch-1.13"


def options(row, gpus=None):
    """of hplan simulate"""
    batch = row["batch_global"] if gpus is None else str(int(float(row["batch_per_gpu"])))
    found = ["--net", row["hplan_net"], "--image", row["image"], "--batch", batch, "--machine", row["machine"], "--strategy",
             f"dp={gpus or row['gpus']}", "--prec", row["precision"], "--as", profile(row)]
    return found + (["--mode", "infer"] if row["mode"] == "infer" else []) + ([] if row["device"].startswith("cpu") else ["--device", "cuda"])


def kinds_of(hplan, row):
    """{"fwd.conv": seconds, ...} of one device's step"""
    with tempfile.TemporaryDirectory() as folder:
        plan = f"{folder}/plan.db"
        subprocess.run([hplan, "simulate", *options(row, 1), "--no-fold", "--jitter", "0", "--out", plan], check=True, capture_output=True, text=True)
        db = sqlite3.connect(plan)
        steps = db.execute("select count(distinct iter) from span where rank = 0").fetchone()[0]
        found = collections.Counter()
        for op, label, ns in db.execute("select op, label, sum(t1_ns - t0_ns) from span join task using (run, role, task) "
                                        "where rank = 0 group by op, label"):
            dense = re.search("conv", op) and re.search(r"[.](attn|self_attention|mlp|reduction)", label)
            found[op.split(".")[0] + ".dense" if dense else op] += ns / 1e9 / steps
        db.close()
        return found


def parameters_of(row, op):
    """names of the multipliers of a kernel's time"""
    family, name = MEMBERS.get(row["device"], "cpu"), profile(row)
    phase, _, kind = op.partition(".")
    if family == "cpu":
        return ["cpu:dense"] if kind in ("dense", "linear", "attention") else ["cpu:conv"] if kind == "conv" else []
    if kind == "conv":
        found = [f"conv:{family}:{row.get('units', row['precision'])}"]
        if phase in ("bwd", "bwdw"):
            found.append(f"gradient:{family}")
        if row["mode"] == "infer" and name == "tensorflow-1.15":
            found.append(f"infer:{name}:{row['precision']}")
        return found
    if kind == "dense":
        return [f"dense:{family}"]
    if kind in ("attention", "layernorm"):
        return [f"{kind}:pytorch-1"] if name.startswith("pytorch-1") else []
    if kind == "bn":
        return [f"norm:{name.split('-')[0]}"]
    return []


def step_of(row):
    """name of the step's own time, or None"""
    name, infer = profile(row), row["mode"] == "infer"
    return f"step:{name}" if infer and name in ("mxnet", "tensorflow-1.15") else None


def slowest(row):
    """How much longer the slowest of its devices is expected to take than their mean: row `jitter` of costmodels/data/shipped.cost."""
    n, normal, grid = int(row["gpus"]), statistics.NormalDist(), numpy.linspace(-8, 8, 2001)
    density = [n * normal.pdf(z) * normal.cdf(z) ** (n - 1) for z in grid]
    return 1 + SPREAD_OF_DEVICES * float(numpy.dot(grid, density) * (grid[1] - grid[0]))


def least_of(name):
    kind, of = name.split(":")[:2]
    return LEAST.get(name, LEAST.get(kind, 0.05)) * BOOST.get(of, 1)


class Fit:
    def __init__(self, rows, kinds, done):
        self.names = {}
        self.points = []
        self.done = done
        for row in rows:
            measured = float(row["batch_global"]) / float(row["value"])
            terms = collections.Counter()
            for op, seconds in kinds[row["id"]].items():
                terms[tuple(self.index(n) for n in parameters_of(row, op))] += seconds
            step = step_of(row)
            self.points.append((row, terms, step and self.index(step), slowest(row), measured))

    def index(self, name):
        return self.names.setdefault(name, len(self.names))

    def seconds(self, x, point):
        _, terms, step, slower, _ = point
        total = sum(s * math.exp(sum(x[k] for k in names)) for names, s in terms.items())
        total += 0 if step is None else STEP_S * math.exp(x[step])
        return total * slower

    def solve(self, points):
        """Logarithms of what the tables are to be multiplied by; what they were already multiplied by counts, too."""
        kinds = [n.split(":")[0] for n in self.names]
        spread = numpy.array([SPREAD.get(k, 0.4) for k in kinds])
        done = numpy.array([self.done.get(n, 0) for n in self.names])
        least = numpy.array([math.log(least_of(n)) for n in self.names]) - done

        def residuals(x):
            return numpy.append([math.log(self.seconds(x, p) / p[4]) / (0.02 if p[0]["group"] == "elsewhere" else 0.05) for p in points],
                                (x + done) / spread)
        start = numpy.maximum(0, least + 1e-6)
        return least_squares(residuals, start, bounds=(least, least + 6), loss="soft_l1", f_scale=2).x

    def errors(self, x, points):
        """of images per second"""
        return [p[4] / self.seconds(x, p) - 1 for p in points]

    def left_out(self, parts):
        """of all points, in their order"""
        found = [0] * len(self.points)
        for part in parts:
            x = self.solve([p for k, p in enumerate(self.points) if k not in part])
            for k in part:
                found[k] = self.errors(x, [self.points[k]])[0]
        return found

    def fifths(self):
        order = list(range(len(self.points)))
        random.Random(1).shuffle(order)
        return [set(order[k::5]) for k in range(5)]

    def residual(self, names, errors):
        """of a row with these multipliers: of the points that have all of them, any of them, or of all points; how many have all"""
        wanted = {self.names[n] for n in names if n in self.names}
        rests = [set().union(*terms) for _, terms, *_ in self.points]
        ways = [[wanted and wanted <= r for r in rests], [wanted & r for r in rests], [True for _ in rests]]
        parts = [[abs(math.log1p(e)) for e, has in zip(errors, way) if has] for way in ways]
        return max(LEAST_RESIDUAL, numpy.quantile(next(p for p in parts if len(p) >= FEW), 0.9)), len(parts[0])

    def by(self, key):
        parts = collections.defaultdict(set)
        for k, p in enumerate(self.points):
            parts[key(p[0])].add(k)
        return list(parts.values())


def said(title, errors):
    print(f"{title:28} {len(errors):4} rows, mean error {100 * statistics.mean(map(abs, errors)):5.1f} %, "
          f"within 15 %: {100 * statistics.mean(abs(e) <= 0.15 for e in errors):3.0f} %, "
          f"nine of ten within a factor of {math.exp(numpy.quantile([abs(math.log1p(e)) for e in errors], 0.9)):.2f}")


def names_of(path, device, op, kind):
    """multipliers of a table's row"""
    phase, _, layer = op.partition(".")
    family = next((f for f, classes in FAMILY.items() if device in classes), device)
    precision = next((p for p, types in TYPES.items() if kind in types), "")
    if device == "cpu":
        return ["cpu:conv" if layer == "conv" else "cpu:dense"]
    if layer == "conv":
        return ([f"conv:{family}:{precision}"] + ([f"gradient:{family}"] if phase in ("bwd", "bwdw") else []) +
                ([f"infer:tensorflow-1.15:{precision}"] if phase == "infer" and path.stem == "tensorflow" else []))
    if layer == "dense":
        return [f"dense:{family}"]
    return [f"norm:{path.stem.split('-')[0]}"] if layer == "bn" else [f"{layer}:{path.stem}"]


def rows_of_tables():
    """(file, line, names, [what the numbers were at first], [what they are])"""
    for path in sorted(TABLES.glob("*.cost")):
        for k, line in enumerate(path.read_text().split("\n")):
            if not line.startswith(("efficiency ", "tile ")) or "frameworks.py" not in line:
                continue
            _, device, op, kind = line.split(" | ")[0].split(" ")[:4]
            op = ".dense" if op == "dense" else op
            base = BASE.get(device, OF_MEMORY if device in ("*", "cpu") else OTHERS)
            yield path, k, names_of(path, device, op, kind), base, [float(re.search(f" {n}:([0-9.e-]+)", " " + line.split(" | ")[2])[1]) for n in ("flops", "bytes")]


def done_so_far():
    """{name: logarithm of what the tables were multiplied by}, the least squares of their rows"""
    rows = list(rows_of_tables())
    names = sorted({n for row in rows for n in row[2]})
    matrix = [[float(n in row[2]) for n in names] for row in rows]
    found = numpy.linalg.lstsq(numpy.array(matrix), numpy.array([math.log(row[3][0] / row[4][0]) for row in rows]), rcond=None)[0]
    return dict(zip(names, found))


def rewrite_residuals(fit, errors):
    for path, k, names, _, _ in list(rows_of_tables()):
        lines = path.read_text().split("\n")
        residual, points = fit.residual(names, errors)
        lines[k] = re.sub(r" [|] paper [0-9.]+ [0-9]+ ", f" | paper {residual:.2f} {points} ", lines[k])
        path.write_text("\n".join(lines))


def rewrite(fit, x):
    """Divides the rates of rows by the multipliers of what they are of."""
    for path, k, names, _, now in list(rows_of_tables()):
        factor = math.exp(sum(x[fit.names[n]] for n in names if n in fit.names))
        lines = path.read_text().split("\n")
        device = lines[k].split(" ")[1]
        of_memory = now[1] / factor if device == "*" else min(1.0, now[1] / factor)  # of "*" more is counted than some kernels move
        lines[k] = re.sub("flops:[^ ]+ bytes:[^ ]+", f"flops:{now[0] / factor:.3g} bytes:{of_memory:.3g}", lines[k])
        path.write_text("\n".join(lines))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--hplan", default=str(ROOT / "build/hplan"))
    p.add_argument("--data", default=str(ROOT.parent / "shared/data/throughput.csv"))
    p.add_argument("--write", nargs="?", const="all", choices=("all", "residuals"), help="change the tables")
    p.add_argument("--rows", action="store_true", help="print every row")
    o = p.parse_args()
    with open(o.data, encoding="utf-8") as f:
        rows = list(csv.DictReader(f)) + list(elsewhere())
    kinds = {row["id"]: kinds_of(o.hplan, row) for row in rows}
    fit = Fit(rows, kinds, done_so_far())
    x = fit.solve(fit.points)
    for name, k in sorted(fit.names.items()):
        x_all = x[k] + fit.done.get(name, 0)
        unit = f" x {STEP_S * 1e3:.0f} ms" if name.startswith("step") else ""
        print(f"  {name:32} {math.exp(x[k]):6.3f}, {math.exp(x_all):6.3f} in all{unit}")
    said("as the tables are", fit.errors(numpy.zeros(len(fit.names)), fit.points))
    said(f"fitted, {len(fit.names)} numbers", fit.errors(x, fit.points))
    fifths = fit.left_out(fit.fifths())
    said("a fifth left out", fifths)
    said("each network left out", fit.left_out(fit.by(lambda r: r["network"])))
    said("each device left out", fit.left_out(fit.by(lambda r: r["device"])))
    said("each group left out", fit.left_out(fit.by(lambda r: r["group"])))
    for key, part in ((k, [p for p in fit.points if p[0]["group"] == k]) for k in dict.fromkeys(r["group"] for r in rows)):
        said("  " + key, fit.errors(x, part))
    if o.rows:
        for point, error in zip(fit.points, fit.errors(x, fit.points)):
            row = point[0]
            print(row["id"], row["group"], row["network"], row["image"], row["device"], row["precision"], row["batch_per_gpu"], row["gpus"], f"{100 * error:+.1f} %")
    if o.write == "all":
        rewrite(fit, x)
    if o.write:
        rewrite_residuals(fit, fifths)


if __name__ == "__main__":
    main()
