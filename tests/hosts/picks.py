"""picks.py - is what a cost table calls the fastest way of a collective the fastest, in a measurement of its own?

    picks.py TABLE.cost BENCH.json [--least BYTES] [--workload allreduce:4194304+sendrecv:262144+alltoall:1048576]

BENCH.json is `hplan bench comm --backend all --json` over the ranks that TABLE.cost was calibrated for. For every operation and
size: the table's pick against the best of all and against MPI's library, as the median over turns, in which all ways were
measured one after the other. A workload is the sum of some cells: each by the table's pick against all by the best single back
end, with a bootstrap interval over the turns. Figures, no verdict.
"""

import argparse
import json
import math
import random
import statistics


def points_of(text):
    return [tuple(map(float, p.split(":"))) for p in text.split()]


def rows_of(path, ranks, per_node):
    """{operation: {way: [(bytes, seconds)]}} of the table's collectives among these ranks, and of messages."""
    found = {}
    with open(path, encoding="utf-8") as table:
        for line in table:
            key, *rest = line.split(" | ")
            words = key.split()
            if words[0] == "collective" and words[-2:] == ["r%d" % ranks, "n%d" % per_node]:
                found.setdefault(words[2], {})[words[3]] = points_of(rest[-1])
            if words[0] == "p2p" and per_node >= ranks:
                found.setdefault("sendrecv", {})[words[2] if len(words) > 2 else "mpi"] = points_of(rest[-1])
    return found


def at(points, size):
    """The line through the points, at a size."""
    if size <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if size <= x1:
            return y0 + (y1 - y0) * (size - x0) / (x1 - x0)
    (x0, y0), (x1, y1) = points[-2:]
    return y1 + (y1 - y0) * (size - x1) / (x1 - x0)


def turns_of(bench):
    """{(operation, bytes): {way: seconds of each turn}}, in place where that is measured, pipelined."""
    cells = {}
    for series in bench["series"]:
        if series["mode"] != "pipelined" or series["op"] == "barrier":
            continue
        way = series["backend"] + ("." + series["algorithm"] if series["algorithm"] else "")
        for row in series["rows"]:
            turns = (row.get("in_place") or row)["turns_s"]
            cells.setdefault((series["op"], row["bytes"]), {})[way] = turns
    return cells


def pick_of(table, op, size, ways):
    known = {w: p for w, p in table.get(op, {}).items() if w in ways}
    return min(known, key=lambda w: at(known[w], size)) if known else None


def show_picks(table, cells, least):
    late, gain = [], []
    for (op, size), ways in sorted(cells.items()):
        pick = pick_of(table, op, size, ways)
        if size < least or not pick or op == "sendrecv":
            continue
        medians = {w: statistics.median(t) for w, t in ways.items()}
        best = min(medians, key=medians.get)
        late.append(statistics.median(a / b for a, b in zip(ways[pick], ways[best])))
        gain.append(statistics.median(a / b for a, b in zip(ways[pick], ways["mpi"])))
        print(
            "%-14s %9d B: pick %-18s %9.1f us, x%.2f of mpi; best %-18s: pick x%.2f"
            % (op, size, pick, 1e6 * medians[pick], gain[-1], best, late[-1])
        )
    print(
        "%d cells: pick at most 10 %% slower than the best in %d, worst x%.2f; against mpi x%.3f in the geometric mean"
        % (len(late), sum(r <= 1.1 for r in late), max(late), math.exp(statistics.mean(map(math.log, gain))))
    )


def interval(ratios, rounds=2000):
    draw = random.Random(1)
    means = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return means[rounds // 40], means[-rounds // 40]


def show_workload(table, cells, text):
    items = [(word.split(":")[0], int(word.split(":")[1])) for word in text.split("+")]
    picks = [pick_of(table, op, size, cells[op, size]) for op, size in items]
    mixed = [sum(t) for t in zip(*(cells[item][pick] for item, pick in zip(items, picks)))]
    print("workload %s: %s, %.2f ms" % (text, "+".join(picks), 1e3 * statistics.median(mixed)))
    for single in ("mpi", "own", "shm"):
        ways = [single if single in cells[item] else "mpi" for item in items]
        alone = [sum(t) for t in zip(*(cells[item][way] for item, way in zip(items, ways)))]
        ratios = [a / m for a, m in zip(alone, mixed)]
        print("  all by %s: %.2f ms, x%.3f of the mix (%.3f to %.3f)"
              % ((single, 1e3 * statistics.median(alone), statistics.median(ratios)) + interval(ratios)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("bench")
    parser.add_argument("--least", type=float, default=4096)
    parser.add_argument("--workload")
    o = parser.parse_args()
    with open(o.bench, encoding="utf-8") as f:
        bench = json.load(f)
    table, cells = rows_of(o.table, bench["ranks"], bench["per_node"]), turns_of(bench)
    show_picks(table, cells, o.least)
    if o.workload:
        show_workload(table, cells, o.workload)


main()
