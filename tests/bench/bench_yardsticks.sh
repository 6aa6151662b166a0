#!/bin/bash
# bench_yardsticks.sh - what sampling the machine's speed costs a run: the same plan with and without yardsticks, in turn.
#
#   tests/bench/bench_yardsticks.sh HPLAN [PAIRS]       path of the binary, beside its hplan-exec; 30 pairs, about 15 minutes
#   ONLY=REGEX tests/bench/bench_yardsticks.sh ...      workloads whose name matches
#
# A pair is one run with and one without, one straight after the other; which comes first alternates, and the workloads
# take turns. The figure of a run is its median step without the first quarter. Columns: the least of each side's medians;
# the median over pairs of with/without, and its 95 % interval (order statistics, of no assumed distribution); the same of
# rank 0's processor time in a step, the steadier figure where others use the machine; and the share of the run's time that
# the samples took, by processor time alone (flushes and waiting come on top). The last row is over all pairs. On a busy
# machine an interval of half a per cent needs hundreds of pairs.
set -uo pipefail
if [ $# -lt 1 ] || [ $# -gt 2 ] || [ ! -x "$1" ]; then
  echo "usage: $0 HPLAN [PAIRS]" >&2
  exit 2
fi
hplan=$(realpath "$1")
pairs=${2:-30}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export XDG_CACHE_HOME=$scratch/cache HPLAN_NO_HISTORY=1

# name, steps of a run, options of simulate
workloads=(
  "cnn 28x28|400|--net cnn --image 28 --batch 16 --strategy dp=1"
  "cnn 28x28 dp=2|400|--net cnn --image 28 --batch 32 --strategy dp=2"
  "resnet18 64x64 dp=2|16|--net resnet18 --image 64 --batch 8 --strategy dp=2"
)

# quietly WORDS...: shows what a command said only if it fails
quietly() {
  timeout -k 5 300 "$@" >said 2>complaint </dev/null && return
  echo "$0: $*: failed: $(tail -n 3 complaint)" >&2
  exit 1
}

# measure WORKLOAD PAIR SIDE STEPS [OPTION]: appends the figures of one run to ./figures
measure() {
  quietly "$hplan" run "plan-$1.db" --data synthetic --steps "$4" --trace run.db --no-history --json ${5:+"$5"}
  python3 - "$@" >>figures <<'PYTHON'
import json, sqlite3, statistics, sys
steps = [step for step in map(json.loads, open("said")) if "step" in step]
steps = steps[(len(steps) + 3) // 4 :]
db = sqlite3.connect("run.db")
# from before the first step to after the last
yards, elapsed_ns = db.execute("SELECT total(value), ifnull(max(t_ns) - min(t_ns), 0) FROM counter WHERE rank = 0 AND name LIKE 'yard_%'").fetchone()
print(*sys.argv[1:4], *(statistics.median(s[key] for s in steps) for key in ("step_s", "step_cpu_s")),
      1e9 * yards / max(1, elapsed_ns))
PYTHON
}

cat >table.py <<'PYTHON'
import math, statistics, sys
rows, names = [line.split() for line in open("figures")], sys.argv[1:]

def interval(values):
    """Median and its 95 % interval: the ranks between which it lies, by the binomial distribution of a half."""
    v, n = sorted(values), len(values)
    tail, low = 0.0, 0
    while low < n // 2 and tail + math.comb(n, low) / 2**n <= 0.025:
        tail += math.comb(n, low) / 2**n
        low += 1
    known = low > 0 # fewer than six values have no such interval
    return "%+6.2f %% %s" % (100 * statistics.median(v), "(%+.2f to %+.2f)" % (100 * v[low - 1], 100 * v[n - low]) if known else "(?)")

print("%-24s %10s %10s  %-28s %-28s %s" % ("workload", "with", "without", "step, 95 % interval", "processor time", "samples"))
every = [[], []]
for w, name in enumerate(names):
    side = {s: {int(p): (float(a), float(b)) for o, p, t, a, b, _ in rows if int(o) == w and t == s} for s in ("with", "without")}
    if not side["with"]:
        continue
    change = [[side["with"][p][k] / side["without"][p][k] - 1 for p in side["with"]] for k in (0, 1)]
    share = statistics.median(float(r[5]) for r in rows if int(r[0]) == w and r[2] == "with")
    least = ["%.3f ms" % (1e3 * min(v[0] for v in side[s].values())) for s in side]
    print("%-24s %10s %10s  %-28s %-28s %.2f %%" % (name, *least, interval(change[0]), interval(change[1]), 100 * share))
    for k in (0, 1):
        every[k] += change[k]
print("%-24s %10s %10s  %-28s %-28s" % ("all", "", "", interval(every[0]), interval(every[1])))
PYTHON

names=()
for i in "${!workloads[@]}"; do
  IFS='|' read -r name _ options <<<"${workloads[i]}"
  names+=("$name")
  # shellcheck disable=SC2086 # words
  [[ "$name" =~ ${ONLY:-.} ]] && quietly "$hplan" simulate --machine local $options --out "plan-$i.db"
done
: >figures
for ((pair = 0; pair < pairs; pair++)); do
  for i in "${!workloads[@]}"; do
    IFS='|' read -r name steps _ <<<"${workloads[i]}"
    [[ "$name" =~ ${ONLY:-.} ]] || continue
    if ((pair % 2)); then
      measure "$i" "$pair" with "$steps"
      measure "$i" "$pair" without "$steps" --no-yardsticks
    else
      measure "$i" "$pair" without "$steps" --no-yardsticks
      measure "$i" "$pair" with "$steps"
    fi
  done
done
python3 table.py "${names[@]}"
