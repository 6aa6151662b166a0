#!/bin/bash
# cli_standin_calibrate.sh - `hplan calibrate --device cuda` whole, on the stand-in for a GPU: rows of every precision
# and back end under the GPU's own name, with driver and status; plans are then predicted from them; several
# ranks on one GPU (AccDP) compute what one rank does.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor
HPLAN_CUDA=$(dirname "$HPLAN")/tests/standin/libhplan-cuda-standin.so
[ -e "$HPLAN_CUDA" ] || {
  echo "there is no stand-in (it needs a C++ compiler): nothing to test"
  exit 0
}
export HPLAN_CUDA HPLAN_STANDIN_SEED=5 OMPI_MCA_mpi_yield_when_idle=1

# calibrate_some N WORDS...: the first N of its runs, whatever they take: in no time one is made, and the next call goes on
calibrate_some() {
  local n=$1 k
  for ((k = 0; k < n; k++)); do expect 0 calibrate --device cuda "${@:2}" --seconds 0.001; done
}

# a machine that was never measured says what to do
expect 69 simulate --machine local-cuda --net cnn --image 28
grep -q "hplan calibrate --device cuda" err || complain "$(cat err)"

# messages by back end, between two GPUs; within one by MPI alone
export HPLAN_STANDIN_GPUS=2
table=$XDG_CACHE_HOME/hplan/local-cuda.cost
rows=("p2p pcie mpi" "p2p pcie nccl" "collective pcie allreduce mpi r2 n2" "collective pcie allreduce nccl r2 n2")
if all "every collective between GPUs"; then
  expect 0 calibrate --device cuda --comm -e 4Ki -f 16 -n 2 -w 0
  rows+=("collective pcie allgather nccl r2 n2")
else
  calibrate_some 5 -e 4Ki -f 16 -n 2 -w 0 # all-reduces by three back ends, messages by two
fi
for row in "${rows[@]}"; do
  grep -q "^$row | measured" "$table" || complain "no row '$row'"
done
grep -q "^status cluster$" "$table" || complain "status: $(head -5 "$table")"

# compute: every precision, and the share that two ranks of a GPU take of it; messages within it
export HPLAN_STANDIN_GPUS=1
rows=("compute stand-in-for-a-gpu fwd.conv .* f32" "share stand-in-for-a-gpu fwd.conv" "p2p same-gpu mpi")
if all "compute in every precision, inference"; then
  image=12
  expect 0 calibrate --device cuda --net cnn --image $image --batch 1 -o one.cost
  rows+=("compute stand-in-for-a-gpu infer.conv .* u8" "compute stand-in-for-a-gpu infer.conv .* bf16")
else
  image=4
  calibrate_some 6 --net cnn --image $image --batch 1 -o one.cost # in four precisions; beside another rank; on tiles
fi
grep -q "^p2p same-gpu mpi | measured" one.cost || complain "no messages within a GPU"
grep -q nccl one.cost && complain "NCCL within one GPU"
grep -q "^driver .*, \(MPS\|time slices\)$" one.cost || complain "driver: $(head -5 one.cost)"
grep -q "^status one GPU$" one.cost || complain "status: $(head -5 one.cost)"
for row in "${rows[@]}"; do
  grep -q "^$row" one.cost || complain "no row '$row'"
done
expect 0 simulate --net cnn --image $image --device cuda --machine one.machine --cost one.cost --strategy clients=2
grep -q "machine local-cuda: 1 x 1 stand-in-for-a-gpu; costs: one.cost of .*, one GPU" out || complain "$(head -1 out)"

# however short the time, the batch that was asked for comes first
calibrate_some 1 --compute --net cnn --image $image --batch 2 -o two.cost
grep -q "^compute .* fwd.conv k3x3 s1 d1 g1 i3 o32 f32 w$image .*| $((2 * image * image)):" two.cost || complain "two images were not measured first"

# AccDP: two ranks of each of two GPUs, as one rank that splits the batch likewise; NCCL refuses them before a run
export HPLAN_STANDIN_GPUS=2
net=(--net cnn --image 8 --batch 4)
all "AccDP with images of 28x28" && net=(--net cnn --image 28 --batch 8)
for strategy in dp=1,micro=4 dp=2,clients=2; do
  expect 0 simulate "${net[@]}" --device cuda --machine local --strategy "$strategy" --out p.db
  expect 0 run p.db --steps 2 --no-dropout --deadline 100 --json --trace r.db
  grep '"step":' out | sed 's/.*"loss": *\([0-9.e-]*\).*/\1/' >"$strategy.loss"
  rm -f r.db
done
python3 - <<'PY' || complain "clients=2: other losses than one rank's"
a, b = ([float(x) for x in open(n + ".loss")] for n in ("dp=1,micro=4", "dp=2,clients=2"))
assert len(a) == len(b) == 2 and all(abs(x - y) < 1e-4 for x, y in zip(a, b)), (a, b)
PY
expect 3 simulate --net cnn --image 28 --device cuda --machine dgx-h200 --strategy dp=2,clients=2,comm=nccl
grep -q "E-COMM" err || complain "clients=2 by NCCL: $(cat err)"
# four ranks on a GPU have a quarter of it each
expect 3 simulate --net resnet101 --image 4096 --batch 4 --device cuda --machine dgx-h200 --strategy clients=4
grep -q "E-MEM.*has 3[0-9]\.[0-9] GB" err || complain "clients=4: $(cat err)"
conclude "calibration and AccDP on the stand-in"
