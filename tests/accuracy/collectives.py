#!/usr/bin/env python3
"""collectives.py - NCCL's times by operation, number of GPUs and size, as rows of costmodels/data/shipped.cost, and how far off they are.

    tests/accuracy/collectives.py DATA --rows                     the rows, sorted
    tests/accuracy/collectives.py DATA                            every second size left out; a whole GPU left out
    tests/accuracy/collectives.py DATA --hplan build/hplan        what `hplan bench comm --predict` says of every measured row

DATA is a folder of DEVICE.nccl.csv.gz: '# source', then op_name,nccl_dtype,num_gpus,message_size (elements),us.

The logarithm of a time over that of latency + bytes / rate is a Gaussian process over log2 bytes: a part is shared by all operations and
numbers of GPUs (where protocols change), one by the ring's three, one by those among as many GPUs, one is the operation's own (Rasmussen,
Williams 2006, 2.2; Matern 3/2; the lengths and widths were chosen with sizes left out at random). So is a size that was not measured of
one operation filled in by others. Rows are the mean at powers of two, without those that a line through the others meets within 4 %.
"""
import argparse
import collections
import csv
import gzip
import math
import pathlib
import subprocess
import sys

Point = collections.namedtuple("Point", "op ints ranks bytes us")
OPS = {"all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reducescatter", "alltoall": "alltoall"}
BYTES = {"half": 2, "int8": 1}
FROM = 1 << 20  # scores are of sizes from here on

# class of the rows -> GPUs they are of, the link's usual rate (machines/data_sheets.h)
CLASSES = {"nvswitch": (["a100_sxm"], 220e9), "nvswitch-h": (["h100_sxm", "h200_sxm"], 370.8e9), "b200": (["b200_sxm"], 721.8e9),
           "l40s": (["l40s"], 24e9), "pcie5": (["rtx_pro_6000_server"], 48e9)}
ON_PCIE = ["l40s", "pcie5"]
# whose integers are added by rings and whose floats by NVSwitches
ADDS_IN_SWITCHES = [("nvswitch-h", 8), ("b200", 8)]
MACHINES = {"a100_sxm": "dgx-a100", "h100_sxm": "dgx-h100", "h200_sxm": "dgx-h200",
            "b200_sxm": "nodes=1; node=8 x b200, nvswitch-b; device=b200, memory=180GB",
            "l40s": "nodes=1; node=8 x l40s, pcie4",
            "rtx_pro_6000_server": "nodes=1; node=8 x rtx-pro-6000-server, pcie5; device=rtx-pro-6000-server, memory=96GB"}


def read(folder, device):
    lines = gzip.open(folder / f"{device}.nccl.csv.gz", "rt").read().splitlines()
    rows = [Point(r["op_name"], r["nccl_dtype"] == "int8" and r["op_name"] == "all_reduce", int(r["num_gpus"]),
                  int(r["message_size"]) * BYTES[r["nccl_dtype"]], float(r["us"])) for r in csv.DictReader(lines[1:])]
    return lines[0].lstrip("# "), rows


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def merge(points):
    """One point for each operation, type, number of GPUs and size: GPUs of one link."""
    groups = collections.defaultdict(list)
    for p in points:
        groups[p[:4]].append(p.us)
    return [Point(*key, geometric_mean(us)) for key, us in sorted(groups.items())]


# --- the process ---

NOISE = 0.07


def matern(octaves, length):
    x = math.sqrt(3) * abs(octaves) / length
    return (1 + x) * math.exp(-x)


def covariance(a, b):
    """Width and length, in octaves, of each part."""
    d = math.log2(a.bytes / b.bytes)
    ring = a.op != "alltoall" and b.op != "alltoall"
    alike = a.ranks == b.ranks
    k = 0.135**2 * matern(d, 5.4)
    if ring or a.op == b.op:
        k += 0.19**2 * matern(d, 2.6)
        k += alike * 0.14**2 * matern(d, 1.1)
    if a.op == b.op and alike:
        k += 0.16**2 * matern(d, 6.4)
        k += (a.op == "all_reduce" and a.ints == b.ints) * 0.12**2 * matern(d, 2.7)
    return k


def lines_of(points):
    """Latency and rate of each operation and number of GPUs: of its smallest and of its largest sizes."""
    groups = collections.defaultdict(list)
    for p in points:
        groups[p.op, p.ranks].append(p)
    result = {}
    for key, group in groups.items():
        group.sort(key=lambda p: p.bytes)
        small = sorted(p.us for p in group if p.bytes <= 4096) or [group[0].us]
        large = sorted(p.us / p.bytes for p in group if p.bytes >= group[-1].bytes / 2)
        result[key] = small[len(small) // 2], large[len(large) // 2]
    return result


def cholesky(a):
    n = len(a)
    low = [[0.0] * n for _ in range(n)]
    for i in range(n):
        row = low[i]
        for j in range(i + 1):
            other = low[j]
            s = a[i][j] - sum(x * y for x, y in zip(row[:j], other[:j]))
            row[j] = math.sqrt(s) if i == j else s / other[j]
    return low


def solve(low, y):
    n = len(y)
    z = list(y)
    for i in range(n):
        z[i] = (z[i] - sum(x * v for x, v in zip(low[i][:i], z[:i]))) / low[i][i]
    for i in reversed(range(n)):
        z[i] = (z[i] - sum(low[k][i] * z[k] for k in range(i + 1, n))) / low[i][i]
    return z


class Fit:
    def __init__(self, points):
        self.points = points
        self.line = lines_of(points)
        n = len(points)
        k = [[covariance(points[i], points[j]) + (i == j) * NOISE**2 for j in range(i + 1)] for i in range(n)]
        self.weight = solve(cholesky(k), [math.log(p.us) - self.expected(p) for p in points])

    def expected(self, p):
        latency, per_byte = self.line[p.op, p.ranks]
        return math.log(latency + per_byte * p.bytes)

    def us(self, p):
        return math.exp(self.expected(p) + sum(w * covariance(p, q) for w, q in zip(self.weight, self.points)))


# --- rows ---

SIZES = [512 << i for i in range(21)]


def through(x, y, at):
    for i in range(1, len(x)):
        if at <= x[i] or i == len(x) - 1:
            return y[i - 1] + (y[i] - y[i - 1]) * (at - x[i - 1]) / (x[i] - x[i - 1])


def compact(x, y, within):
    """The fewest of the points such that lines through them meet the others within a part of these."""
    best = [(0, [0])] + [None] * (len(x) - 1)
    for j in range(1, len(x)):
        for i in range(j):
            met = all(abs(through([x[i], x[j]], [y[i], y[j]], x[k]) / y[k] - 1) <= within for k in range(i + 1, j))
            if met and (best[j] is None or best[i][0] + 1 < best[j][0]):
                best[j] = best[i][0] + 1, best[i][1] + [j]
    return best[-1][1]


def not_falling(values):
    """More bytes take no less: neighbours that fall get their geometric mean (pool adjacent violators)."""
    pools = []
    for v in values:
        pools.append([math.log(v), 1])
        while len(pools) > 1 and pools[-1][0] < pools[-2][0]:
            (b, n), (a, m) = pools.pop(), pools.pop()
            pools.append([(a * m + b * n) / (m + n), m + n])
    return [math.exp(v) for v, n in pools for _ in range(n)]


def three_digits(v):
    return float(f"{v:.3g}")


def row_of(fit, op, ranks, ints, residual, samples, source, name):
    us = [three_digits(v) for v in not_falling([fit.us(Point(op, ints, ranks, size, 0)) for size in SIZES])]
    kept = compact(SIZES, us, 0.04)
    key = f"collective {name} {OPS[op]} {'nccl.ring' if ints else 'nccl'} r{ranks} n{ranks}"
    return f"{key} | paper {residual:.2g} {samples} {source} | " + " ".join(f"{SIZES[i]}:{us[i]:g}e-6" for i in kept)


def left_out(points, fold):
    """Every second size of each operation and number of GPUs."""
    sizes = collections.defaultdict(set)
    for p in points:
        sizes[p.op, p.ints, p.ranks].add(p.bytes)
    order = {key: sorted(s) for key, s in sizes.items()}
    return [p for p in points if order[p.op, p.ints, p.ranks].index(p.bytes) % 2 == fold]


def errors_of(points):
    """Of times left out, point by point."""
    errors = []
    for fold in (0, 1):
        out = left_out(points, fold)
        fit = Fit([p for p in points if p not in set(out)])
        errors += [(p, fit.us(p) / p.us - 1) for p in out]
    return errors


def source_of(said, points, ints):
    devices = " and ".join(s.split(";")[0].removeprefix("NVIDIA ") for s in said)
    commit, nccl = said[0].split("commit ")[1].split(",")[0], said[0].split("vLLM/")[1].split(";")[0]
    return (f"never run: ai-dynamo/aiconfigurator (Apache-2.0), commit {commit}, {nccl}, {devices}, "
            f"{'integers, ' if ints else ''}fitted with the others of the link (tests/accuracy/collectives.py)")


def rows_of(folder):
    rows = []
    for name, (devices, _) in CLASSES.items():
        read_of = [read(folder, d) for d in devices]
        points = merge([p for _, rows in read_of for p in rows])
        fit = Fit(points)
        off = collections.defaultdict(list)
        for p, e in errors_of(points):
            off[p.op, p.ranks].append(abs(e))
        for op in OPS:
            for ranks in sorted({p.ranks for p in points if p.op == op}):
                for ints in [False] + [True] * (op == "all_reduce" and (name, ranks) in ADDS_IN_SWITCHES):
                    mine = sorted(off[op, ranks])
                    nine_of_ten = max(0.03, mine[int(0.9 * (len(mine) - 1))])
                    samples = sum(p.op == op and p.ranks == ranks for _, r in read_of for p in r)
                    source = source_of([s for s, _ in read_of], points, ints)
                    rows.append(row_of(fit, op, ranks, ints, nine_of_ten, samples, source, name))
    return sorted(rows)


# --- scores ---

def text_of(errors):
    if not errors:
        return "-"
    return f"{100 * sum(map(abs, errors)) / len(errors):5.1f} % ({100 * min(errors):+.0f} .. {100 * max(errors):+.0f})"


def show(title, errors):
    """errors: of (device, point)."""
    print(f"\n{title}, mean error from 1 MiB on (least .. most)")
    for device in sorted({d for d, _ in errors}):
        of = {op: [e for (d, p), es in errors.items() for e in es if d == device and p.op == op] for op in OPS}
        print(f"  {device:22}" + "".join(f"{op:>15} {text_of(of[op]):24}" for op in OPS))
    for op in OPS:
        print(f"  all {op:18}{text_of([e for (_, p), es in errors.items() for e in es if p.op == op])}")


def score_left_out(folder):
    errors = collections.defaultdict(list)
    for devices, _ in CLASSES.values():
        for device in devices:
            for p, e in errors_of(read(folder, device)[1]):
                if p.bytes >= FROM:
                    errors[device, p].append(e)
    show("every second size left out", errors)


def score_gpus_left_out(folder):
    """As hplan takes another link's rows: S bytes as S r'/r over a link of rate r'."""
    fits = {name: Fit(merge([p for d in devices for p in read(folder, d)[1]])) for name, (devices, _) in CLASSES.items()}
    errors = collections.defaultdict(list)
    for name, (devices, rate) in CLASSES.items():
        others = [o for o in CLASSES if o != name and (o in ON_PCIE) == (name in ON_PCIE)]
        near = min(others, key=lambda o: abs(math.log(CLASSES[o][1] / rate)))
        for device in devices:
            for p in read(folder, device)[1]:
                if p.bytes >= FROM:
                    errors[device, p].append(fits[near].us(p._replace(bytes=p.bytes * CLASSES[near][1] / rate)) / p.us - 1)
    show("a link's GPUs left out, from the nearest link of the kind", errors)


def predicted(hplan, device, ranks, ints):
    command = [hplan, "bench", "comm", "--predict", "--machine", MACHINES[device], "--gpus", str(ranks), "-b", "512", "-e", "512Mi",
               "-f", "2", "--op", ",".join(OPS.values()), "--datatype", "i8" if ints else "f16"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"{' '.join(command)}: {run.stderr}")
    times, op = {}, None
    for line in run.stdout.splitlines():
        if "Collective test starting" in line:
            op = line.split()[-1].removesuffix("_perf")
        elif line and line[0] != "#":
            times[op, int(line.split()[0])] = float(line.split()[5])
    return times


def score_hplan(folder, hplan):
    errors = collections.defaultdict(list)
    for devices, _ in CLASSES.values():
        for device in devices:
            points = read(folder, device)[1]
            for ranks in sorted({p.ranks for p in points}):
                times = {ints: predicted(hplan, device, ranks, ints) for ints in (False, True)}
                for p in points:
                    if p.ranks == ranks and p.bytes >= FROM:
                        errors[device, p].append(times[p.ints][p.op, p.bytes] / p.us - 1)
    show("hplan bench comm --predict", errors)


def main():
    parser = argparse.ArgumentParser(description="NCCL's times as rows, and how far off they are")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--hplan")
    o = parser.parse_args()
    if o.rows:
        print("\n".join(rows_of(o.data)))
    elif o.hplan:
        score_hplan(o.data, o.hplan)
    else:
        score_left_out(o.data)
        score_gpus_left_out(o.data)


if __name__ == "__main__":
    main()
