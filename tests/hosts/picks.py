"""picks.py - is what a cost table calls the fastest way of a collective the fastest, in a measurement of its own?

    picks.py TABLE.cost BENCH.json [SMALLEST BYTES]

BENCH.json is `hplan bench comm --backend all --json` over the ranks that TABLE.cost was calibrated for. For every operation and
size: the table's pick against the best of all and against MPI's library, as the median over turns, in which all ways were
measured one after the other. Figures, no verdict.
"""

import json
import math
import statistics
import sys


def rows_of(path, ranks, per_node):
    """{operation: {way: [(bytes, seconds)]}} of the table's collectives among these ranks."""
    found = {}
    with open(path, encoding="utf-8") as table:
        for line in table:
            if not line.startswith("collective "):
                continue
            key, _, points = line.split(" | ")
            _, _, op, way, r, n = key.split()
            if (r, n) != ("r%d" % ranks, "n%d" % per_node):
                continue
            found.setdefault(op, {})[way] = [tuple(map(float, p.split(":"))) for p in points.split()]
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
        if series["mode"] != "pipelined" or series["op"] in ("sendrecv", "barrier"):
            continue
        way = series["backend"] + ("." + series["algorithm"] if series["algorithm"] else "")
        for row in series["rows"]:
            turns = (row.get("in_place") or row)["turns_s"]
            cells.setdefault((series["op"], row["bytes"]), {})[way] = turns
    return cells


def main():
    with open(sys.argv[2], encoding="utf-8") as f:
        bench = json.load(f)
    least = float(sys.argv[3]) if len(sys.argv) > 3 else 4096
    table = rows_of(sys.argv[1], bench["ranks"], bench["per_node"])
    late, gain = [], []
    for (op, size), ways in sorted(turns_of(bench).items()):
        known = {w: p for w, p in table.get(op, {}).items() if w in ways}
        if size < least or not known:
            continue
        pick = min(known, key=lambda w: at(known[w], size))
        medians = {w: statistics.median(t) for w, t in ways.items()}
        best = min(medians, key=medians.get)
        late.append(statistics.median(a / b for a, b in zip(ways[pick], ways[best])))
        gain.append(statistics.median(a / b for a, b in zip(ways[pick], ways["mpi"])))
        print("%-14s %9d B: pick %-18s %9.1f us, x%.2f of mpi; best %-18s: pick x%.2f"
              % (op, size, pick, 1e6 * medians[pick], gain[-1], best, late[-1]))
    print("%d cells: pick at most 10 %% slower than the best in %d, worst x%.2f; against mpi x%.3f in the geometric mean"
          % (len(late), sum(r <= 1.1 for r in late), max(late), math.exp(statistics.mean(map(math.log, gain)))))


main()
