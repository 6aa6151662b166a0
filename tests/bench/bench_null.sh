#!/bin/bash
# bench_null.sh - the executor's own cost: microseconds per task on the device that computes nothing (--device null), of
# one hplan or of two in turn, so that before and after meet the same machine.
#
#   tests/bench/bench_null.sh HPLAN [OTHER]            paths of the binaries; each lies beside its own hplan-exec
#   RUNS=30 ONLY=REGEX tests/bench/bench_null.sh ...    runs of each binary (15); workloads whose name matches
#
# Each binary plans for itself, since plan.db differs between versions. Columns, per workload and binary:
#   tasks        of a rank in a step, mean over the ranks
#   us/task      median step over tasks, median and least of the runs: with loading, messages and the bytes of collectives
#   us/dispatch  from the begin of a compute task to the begin of the next in its queue: median within a run, median and
#                least of the runs. Free of what the queue waits for, so the figure to watch
#   B/A          median over the pairs of runs, and of the least; which of a pair comes first alternates
# Ranks that share their cores with other programs wait for each other by time slices: then only us/dispatch and the least
# of us/task mean something.
set -uo pipefail
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: $0 HPLAN [OTHER]" >&2
  exit 2
fi
binaries=()
for binary; do
  [ -x "$binary" ] || {
    echo "$0: $binary is no program" >&2
    exit 2
  }
  binaries+=("$(realpath "$binary")")
done
sides=(A B)
runs=${RUNS:-15}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export XDG_CACHE_HOME=$scratch/cache # cuts do not follow a calibration of the machine's user
export HPLAN_NO_HISTORY=1 # nor do they enter theirs

# name, steps of a run, options of simulate
workloads=(
  "cnn, one rank|1000|--net cnn --image 28 --batch 8 --strategy dp=1"
  "resnet101, one rank|80|--net resnet101 --image 64 --batch 1 --strategy dp=1"
  "resnet18 64x64 dp=2|30|--net resnet18 --image 64 --batch 2 --strategy dp=2"
  "unet:4 sp=2x1|80|--net unet:4 --image 64 --batch 1 --strategy sp=2x1"
  "resnet101 stages=2 micro=4 1f1b|30|--net resnet101 --image 64 --batch 4 --strategy stages=2,micro=4,sched=1f1b"
  "amoebanetd:6,16 sp=2x1|20|--net amoebanetd:6,16 --image 64 --batch 1 --strategy sp=2x1"
)

# quietly WORDS...: shows what a command said only if it fails
quietly() {
  timeout -k 5 300 "$@" >said 2>&1 </dev/null && return
  echo "$0: $*: failed: $(tail -n 3 said)" >&2
  exit 1
}

# One run's figures: tasks, us/task, us/dispatch.
cat >figures.py <<'PYTHON'
import csv, json, statistics
from collections import defaultdict

steps = [json.loads(line) for line in open("steps.json")]
times = [s["step_s"] for s in steps if "step" in s]
warm_up = len(times) // 10 + 1
queue = defaultdict(list)  # begins of compute tasks
tasks = defaultdict(int)
spans = csv.reader(open("spans.csv"))
header = next(spans)
RANK, STEP, PHASE, BEGIN = (header.index(column) for column in ("rank", "iter", "phase", "t0_s"))
for span in spans:
    rank, step = span[RANK], int(span[STEP])
    if step < warm_up:
        continue
    tasks[rank, step] += 1
    if span[PHASE] not in ("transfer", "reduce"):  # queues beside that of compute tasks
        queue[rank, step].append((float(span[BEGIN]), span[PHASE] not in ("load", "store")))
gaps = []
for begins in queue.values():
    begins.sort()
    gaps += [b[0] - a[0] for a, b in zip(begins, begins[1:]) if a[1] and b[1]]
n = statistics.mean(tasks.values())
print(n, 1e6 * statistics.median(times[warm_up:]) / n, 1e6 * statistics.median(gaps))
PYTHON

cat >table.py <<'PYTHON'
import statistics
from collections import defaultdict

rows = defaultdict(lambda: defaultdict(list))
for line in open("figures"):
    name, side, figures = line.rstrip("\n").split("|")
    rows[name][side].append([float(f) for f in figures.split()])
sides = sorted({side for row in rows.values() for side in row})
print(f"{'workload':34}{'':3}{'tasks':>8}{'us/task':>11}{'least':>9}{'us/dispatch':>14}{'least':>9}")
for name, row in rows.items():
    for side in sides:
        tasks, task, dispatch = zip(*row[side])
        print(f"{name:34}{side:3}{tasks[0]:8.0f}{statistics.median(task):11.3f}{min(task):9.3f}"
              f"{statistics.median(dispatch):14.3f}{min(dispatch):9.3f}")
        name = ""
    if len(sides) == 2:
        task, dispatch = (statistics.median(b[k] / a[k] for a, b in zip(row["A"], row["B"])) for k in (1, 2))
        least = [min(b[k] for b in row["B"]) / min(a[k] for a in row["A"]) for k in (1, 2)]
        print(f"{'':34}{'B/A':11}{task:11.3f}{least[0]:9.3f}{dispatch:14.3f}{least[1]:9.3f}")
PYTHON

for w in "${workloads[@]}"; do
  IFS='|' read -r name steps options <<<"$w"
  [[ $name =~ ${ONLY:-} ]] || continue
  for ((s = 0; s < ${#binaries[@]}; s++)); do
    # shellcheck disable=SC2086
    quietly "${binaries[s]}" simulate --machine local --device null $options --out "$s.db"
  done
  for ((i = 0; i < runs; i++)); do
    for ((k = 0; k < ${#binaries[@]}; k++)); do
      s=$(((k + i) % ${#binaries[@]}))
      rm -f trace.db # not kept: older binaries have no --no-history
      quietly "${binaries[s]}" run "$s.db" --data synthetic --steps "$steps" --trace trace.db --json
      mv said steps.json
      quietly "${binaries[s]}" export --csv trace.db -o spans.csv
      figures=$(python3 figures.py) || exit 1
      echo "$name|${sides[s]}|$figures" >>figures
    done
  done
done
lscpu | sed -n 's/^Model name: *//p'
echo "$(nproc) cores, $(date +%F), $runs runs of each"
for ((s = 0; s < ${#binaries[@]}; s++)); do
  echo "${sides[s]}: ${binaries[s]}"
done
python3 table.py
