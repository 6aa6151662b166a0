#!/bin/bash
# bench_pairs.sh - two versions of hplan side by side: step times of five workloads on the cpu, CPU times of three searches.
#
#   tests/bench/bench_pairs.sh A B [PAIRS]          paths of the binaries, each beside its own hplan-exec; 20 pairs
#   ONLY=REGEX tests/bench/bench_pairs.sh A B ...   workloads whose name matches
#
# A pair is one run of A and one of B, one straight after the other; which comes first alternates, and the workloads take
# turns, so that neither version gets the machine's better minutes. Each binary plans for itself. The figure of a run is
# its median step without the first quarter, the figure of a search the CPU time of `simulate`, user and system. Columns:
# medians of A and of B; median of the pairs' B/A, and its middle half; the same median of CPU time, for runs that of the
# first rank, in which waiting counts: of one rank the steadier figure where others use the machine. Last come the geometric
# means over all. 20 pairs take about 20 minutes.
set -uo pipefail
if [ $# -lt 2 ] || [ $# -gt 3 ]; then
  echo "usage: $0 A B [PAIRS]" >&2
  exit 2
fi
binaries=()
for binary in "$1" "$2"; do
  if [ ! -x "$binary" ]; then
    echo "$0: $binary is no program" >&2
    exit 2
  fi
  binaries+=("$(realpath "$binary")")
done
pairs=${3:-20}
sides=(A B)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export XDG_CACHE_HOME=$scratch/cache # cuts do not follow a calibration of the machine's user
export HPLAN_NO_HISTORY=1 # nor do they enter theirs

# name, steps of a run or "search", options of simulate
workloads=(
  "cnn 28x28|150|--net cnn --image 28 --batch 64 --strategy dp=1"
  "resnet18 64x64 dp=2|16|--net resnet18 --image 64 --batch 8 --strategy dp=2"
  "unet:16 128x128 sp=2x1|10|--net unet:16 --image 128 --batch 1 --strategy sp=2x1"
  "resnet101 224x224 int8 inference|60|--net resnet101 --image 224 --batch 1 --mode infer --prec int8 --strategy dp=1"
  "amoebanetd:3,32 256x256 stages=2 1f1b|24|--net amoebanetd:3,32 --image 256 --batch 2 --strategy stages=2,micro=2,sched=1f1b"
  "search resnet101 512x512, 8 gpus|search|--gpus 8 --image 512 --machine thesis-a100 --device cuda"
  "search unet, 8 gpus|search|--gpus 8 --net unet --machine thesis-a100 --device cuda"
  "search resnet101 2048x2048, 16 gpus|search|--gpus 16 --image 2048 --machine thesis-a100 --device cuda"
)

# quietly WORDS...: shows what a command said only if it fails
quietly() {
  timeout -k 5 300 "$@" >said 2>complaint </dev/null && return
  echo "$0: $*: failed: $(tail -n 3 complaint)" >&2
  exit 1
}

# median_step: seconds and CPU seconds, of the JSON lines in ./said
median_step() {
  python3 -c '
import json, statistics
steps = [step for step in map(json.loads, open("said")) if "step" in step]
print(*(statistics.median(s[key] for s in steps[(len(steps) + 3) // 4 :]) for key in ("step_s", "step_cpu_s")))'
}

# cpu_time WORDS...: CPU seconds of a command, twice
cpu_time() {
  local TIMEFORMAT='%U %S'
  { time (quietly "$@" 2>&3); } 3>&2 2>cpu || return
  awk '{ print $1 + $2, $1 + $2 }' cpu
}

# measure SIDE STEPS OPTIONS...: the figure and the CPU seconds of one run, or search
measure() {
  local s=$1 steps=$2
  shift 2
  if [ "$steps" = search ]; then
    cpu_time "${binaries[s]}" simulate "$@" --out search.db
  else
    rm -f trace.db # not kept: older binaries have no --no-history
    quietly "${binaries[s]}" run "$plan-$s.db" --data synthetic --steps "$steps" --trace trace.db --json
    median_step
  fi
}

cat >table.py <<'PYTHON'
import math, statistics
from collections import defaultdict

rows = defaultdict(lambda: defaultdict(list))
for line in open("figures"):
    name, side, figures = line.rstrip("\n").split("|")
    rows[name][side].append([float(f) for f in figures.split()])
print(f"{'workload':38}{'A, ms':>10}{'B, ms':>10}{'B/A':>8}  {'middle half':14}{'CPU B/A':>9}")
medians = []
for name, row in rows.items():
    a, b = (1e3 * statistics.median(run[0] for run in row[side]) for side in "AB")
    ratios, cpu = (sorted(y[k] / x[k] for x, y in zip(row["A"], row["B"])) for k in (0, 1))
    medians.append((statistics.median(ratios), statistics.median(cpu)))
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    print(f"{name:38}{a:10.2f}{b:10.2f}{medians[-1][0]:8.3f}  {low:.3f} to {high:.3f}{medians[-1][1]:9.3f}")
wall, cpu = (math.exp(statistics.mean(map(math.log, m))) for m in zip(*medians))
print(f"{'geometric mean':58}{wall:8.3f}{'':16}{cpu:9.3f}")
PYTHON

chosen=()
for w in "${workloads[@]}"; do
  IFS='|' read -r name steps options <<<"$w"
  [[ $name =~ ${ONLY:-} ]] || continue
  plan=${#chosen[@]}
  chosen+=("$w")
  [ "$steps" = search ] && continue
  for s in 0 1; do
    # shellcheck disable=SC2086
    quietly "${binaries[s]}" simulate --machine local $options --out "$plan-$s.db"
  done
done
for ((i = 0; i < pairs; i++)); do
  for plan in "${!chosen[@]}"; do
    IFS='|' read -r name steps options <<<"${chosen[plan]}"
    for k in 0 1; do
      s=$(((k + i) % 2))
      # shellcheck disable=SC2086
      figures=$(measure "$s" "$steps" $options) || exit 1
      echo "$name|${sides[s]}|$figures" >>figures
    done
  done
  echo "pair $((i + 1)) of $pairs" >&2
done
lscpu | sed -n 's/^Model name: *//p'
echo "$(nproc) cores, $(date +%F), $pairs pairs"
for s in 0 1; do echo "${sides[s]}: ${binaries[s]}"; done
python3 table.py
