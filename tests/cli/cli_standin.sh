#!/bin/bash
# cli_standin.sh - `hplan run --device cuda` whole, on the stand-in for a GPU (tests/standin/): losses and outputs are
# the CPU's, over strategies and back ends, with messages straight between memories, through page-locked memory and
# through NCCL; a peer that hangs is found.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor
HPLAN_CUDA=$(dirname "$HPLAN")/tests/standin/libhplan-cuda-standin.so
[ -e "$HPLAN_CUDA" ] || {
  echo "there is no stand-in (it needs a C++ compiler): nothing to test"
  exit 0
}
export HPLAN_CUDA HPLAN_STANDIN_GPUS=4 HPLAN_STANDIN_SEED=5 OMPI_MCA_mpi_yield_when_idle=1
cnn=(--net cnn --image 8 --batch 2)
all "images of 28x28, batches of 8" && cnn=(--net cnn --image 28 --batch 8)

# run_on DEVICE STRATEGY NAME SIMULATE-OPTION...: makes the plan, runs it, leaves NAME.json. The stand-in needs much longer than is
# predicted of a GPU: ranks have patience
run_on() {
  local device=$1 strategy=$2 name=$3
  shift 3
  expect 0 simulate --machine local --gpus 4 --device "$device" --strategy "$strategy" --out "$name.db" "$@"
  # shellcheck disable=SC2086 # words are words
  expect 0 run "$name.db" --steps 3 --no-dropout --deadline 100 --json --trace "$name.run.db" $output
  cp out "$name.json"
  rm -f "$name.run.db"
}

# losses_agree NAME NAME BOUND
losses_agree() {
  python3 - "$@" <<'PY' || complain "$1 and $2 differ"
import json, sys
a, b = ([json.loads(l)["loss"] for l in open(n + ".json") if "step" in json.loads(l)] for n in sys.argv[1:3])
assert len(a) == len(b) == 3 and all(abs(x - y) <= float(sys.argv[3]) for x, y in zip(a, b)), (a, b)
PY
}

# messages_go NAME STRAIGHT: all messages of NAME's plan went straight from each rank, three steps of them, or none did. The
# rest of what a rank sent is no program's message: the metric of a step, which is all-reduced, and what ranks agree on.
messages_go() {
  python3 - "$@" <<'PY' || complain "$1: other bytes went straight"
import json, sqlite3, sys
name, straight = sys.argv[1:]
final = [json.loads(l) for l in open(name + ".json")][-1]
sends = [n for (n,) in sqlite3.connect(name + ".db").execute(
    "select sum(case op when 'send' then bytes else 0 end) from task group by role order by role")]
assert len(sends) == len(final["sent_bytes"]) == 3 and min(sends) > 0, sends
assert final["direct_bytes"] == [3 * n if straight == "all" else 0 for n in sends], (final, sends)
assert all(sent > 3 * n for sent, n in zip(final["sent_bytes"], sends)), (final, sends)
PY
}

output=
# float32 rounding over three steps; what comm= says changes nothing at all
for strategy in $(all "one rank, halves of a batch, stages" && echo dp=1 dp=2 stages=2,micro=2) sp=2x1; do
  run_on cpu "$strategy" cpu "${cnn[@]}"
  run_on cuda "$strategy,comm=mpi" mpi "${cnn[@]}"
  losses_agree cpu mpi 1e-4
  [ "$strategy" = dp=1 ] && continue
  run_on cuda "$strategy,comm=nccl" nccl "${cnn[@]}"
  losses_agree mpi nccl 0
done
# ranks whose timings prefer different kernels all use those of the first
for engines in 3 3@0 3@1; do
  HPLAN_STANDIN_ENGINES=$engines run_on cuda dp=2,comm=mpi "engines-$engines" "${cnn[@]}"
done
losses_agree engines-3 engines-3@0 0
[ "$(grep -o '"loss": *[^,}]*' engines-3.json)" != "$(grep -o '"loss": *[^,}]*' engines-3@1.json)" ] ||
  complain "the stand-in's engines do not differ: nothing was tested"
# one that cannot use those says so, whatever else is prepared, and no rank waits for it
HPLAN_STANDIN_ENGINES=3 HPLAN_STANDIN_FAIL=adopt:1@1 expect 69 run engines-3.db --steps 1 --eval
grep -q "an engine of another rank does not run here" err || complain "engines one rank cannot use: $(cat err)"
# the same bits and bytes straight and through the host, for some pairs or all; a pipeline has messages alone, and a
# run's own figures
pipeline() { run_on cuda stages=3,micro=2,comm=mpi "$1" "${cnn[@]}"; }
# with an MPI that takes device pointers: nothing is staged, unless asked for
gpu_mpi() {
  local sanitize=${ASAN_OPTIONS:-}
  export LD_PRELOAD=${HPLAN_CUDA%/*}/libhplan-gpu-mpi.so ASAN_OPTIONS=$sanitize:verify_asan_link_order=0
  pipeline "$1"
  unset LD_PRELOAD
  export ASAN_OPTIONS=$sanitize
}
pipeline straight
HPLAN_STANDIN_FAIL=cudaIpcOpenMemHandle:2@2 pipeline mixed
output=--no-ipc pipeline asked
output=--no-ipc gpu_mpi aware
routes=(straight mixed asked aware)
if all "three more routes of messages"; then
  HPLAN_STANDIN_FAIL=mapping:1@1 pipeline wrong
  HPLAN_STANDIN_FAIL=cudaIpcGetMemHandle:1 pipeline staged
  output="--no-ipc --no-gpu-mpi" gpu_mpi unaware
  routes+=(wrong staged unaware)
fi
for route in "${routes[@]}"; do
  case $route in
    straight | aware) messages_go "$route" all ;;
    staged | asked | unaware) messages_go "$route" none ;;
  esac
  losses_agree straight "$route" 0
done
python3 - "${routes[@]}" <<'PY' || complain "messages: other bytes by another route"
import json, sys
final = {n: json.loads(open(n + ".json").readlines()[-1]) for n in sys.argv[1:]}
assert all(f["sent_bytes"] == final["straight"]["sent_bytes"] for f in final.values()), final
# without its pairs of ranks 1 and 2, or 0 and 1
most = sum(final["straight"]["direct_bytes"])
assert all(0 < sum(final[n]["direct_bytes"]) < most for n in {"mixed", "wrong"} & set(final)), final
PY
if all "a back end for each kind of message"; then
  run_on cuda sp=2x1,comm=halo:mpi+stage:mpi+allreduce:nccl+stats:nccl mixed "${cnn[@]}"
  losses_agree mpi mixed 0
fi

# 8-bit inference: the last layer alone is float
cases=("sp=2x1,comm=nccl cnn 8")
all "ResNet-18 in 8 bits, tiles of 28x28" && cases=("dp=1 resnet18 32" "sp=2x1,comm=nccl cnn 28")
for case in "${cases[@]}"; do
  read -r strategy net image <<<"$case"
  plain=${strategy%,comm=*}
  output="--output cpu.npy" run_on cpu "$plain,prec=int8" cpu --net "$net" --image "$image" --mode infer --batch 1
  output="--output cuda.npy" run_on cuda "$strategy,prec=int8" cuda --net "$net" --image "$image" --mode infer --batch 1
  python3 - <<'PY' || complain "int8, $strategy: other outputs than the CPU's"
import array
a, b = (array.array("f", open(n, "rb").read()[128:]) for n in ("cpu.npy", "cuda.npy"))
most = max(map(abs, a))
assert len(a) == len(b) and most > 0 and all(abs(x - y) <= 1e-5 * most for x, y in zip(a, b)), (a[:4], b[:4])
PY
  rm -f cpu.npy cuda.npy
done

# a vocabulary that ranks share, in no equal parts
output=
words=(--net "gpt:1,16,2,8,65" --batch 2) strategies=("tp=2,comm=nccl")
all "heads and stages together, four ranks" &&
  words=(--net "gpt:2,32,4,16,65" --batch 4) strategies=("tp=2,stages=2,micro=2,comm=nccl" tp=4)
run_on cpu dp=1 words-cpu "${words[@]}"
for strategy in "${strategies[@]}"; do
  run_on cuda "$strategy" words "${words[@]}"
  losses_agree words-cpu words 1e-5
done

# transformers, after a step of training, since a ViT's head begins with zeros; what is between quantised maps is real, and a
# byte now and then its neighbour
nets=("vit:1,16,2,7 --image 28") precisions=int8
all "transformers in float32, a text's" && nets=("vit:2,24,3,8 --image 32" "gpt:2,32,4,16,64") precisions="fp32 int8"
for case in "${nets[@]}"; do
  read -ra net <<<"--net $case --batch 2"
  output="--lr 0.1 --save w.safetensors" run_on cpu dp=1 start "${net[@]}"
  for prec in $precisions; do
    output="--init w.safetensors --output cpu.npy" run_on cpu "prec=$prec" cpu "${net[@]}" --mode infer
    output="--init w.safetensors --output cuda.npy" run_on cuda "sp=2x1,comm=nccl,prec=$prec" cuda "${net[@]}" --mode infer
    python3 - "$prec" <<'PY' || complain "${net[*]} in $prec: other outputs than the CPU's"
import array, sys
a, b = (array.array("f", open(n, "rb").read()[128:]) for n in ("cpu.npy", "cuda.npy"))
off = (sum((x - y) ** 2 for x, y in zip(a, b)) / sum(x * x for x in a)) ** 0.5
assert len(a) == len(b) and off <= {"fp32": 1e-5, "int8": 1e-2}[sys.argv[1]], (a[:4], b[:4], off)
PY
    rm -f cpu.npy cuda.npy
  done
done
output=

# a peer that stops coming in the second step: a message and 124, not a hang
HPLAN_STANDIN_FAIL=hang:20@1 expect 124 run nccl.db --steps 3 --deadline 1
grep -q "stalled" err || complain "a peer that hangs: $(cat err)"
# a copy from another's memory that never ends, the fifth, after two of trials: the same
if all "a copy between memories that hangs"; then
  HPLAN_STANDIN_FAIL=peer:5@1 expect 124 run straight.db --steps 3 --deadline 2
  grep -q "stalled" err || complain "a copy that hangs: $(cat err)"
fi
conclude "cuda on the stand-in: the CPU's losses and outputs"
