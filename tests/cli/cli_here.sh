#!/bin/bash
# cli_here.sh - `run` starts nothing that is not here: fewer nodes, cores or bytes than the plan asks for are refused with the
# figures and a command that works; --force overrides the machine, never the memory; --fit-here shrinks the plan; what fits runs.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor
cpus=$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep=",")')
expect 0 doctor --json
cores=$(jq .cores out)
cnn="--net cnn --image 28 --classes 10"

says() { # WORDS...: each is in the message, which is one line
  [ "$(wc -l <err)" = 1 ] || complain "not one line: $(cat err)"
  for word in "$@"; do grep -q -- "$word" err || complain "no '$word' in: $(cat err)"; done
}

# no process starts and nothing is written
refused() {
  rm -f run.db
  expect 3 run "$@"
  [ -e run.db ] && complain "a refused run left run.db"
  ls -d ./*.tmp* 2>/dev/null && complain "a refused run left its scratch folder"
}

# --- a cluster that is not here; the command that the message names works ---
# shellcheck disable=SC2086
expect 0 simulate $cnn --machine thesis-a100 --device cpu --gpus 64 --batch 128 --strategy dp=64 --out cluster.db
refused cluster.db
says thesis-a100 "64 ranks of at most .* on 32 nodes" "here is 1 node with $cores core" -- --hostfile -- --force
advice=$(sed -n 's/.*hplan \(simulate [^;]*\);.*/\1/p' err)
# shellcheck disable=SC2086
expect 0 $advice --out here.db
expect 0 run here.db --steps 1

# --- cores: more of them than are here, unless the plan was made so ---
# shellcheck disable=SC2086
HWLOC_SYNTHETIC="core:64 pu:1" expect 0 simulate $cnn --machine local --batch 128 --strategy dp=64 --out many.db
if [ "$cores" -lt 64 ]; then
  refused many.db
  says "local" "64 ranks of at most .* on 1 node with 64 cores each" "$cores core"
fi
if [ "$cores" -lt 4 ]; then
  # shellcheck disable=SC2086
  expect 0 simulate $cnn --machine local --batch 8 --strategy dp=4 --out shared.db
  expect 0 run shared.db --steps 1
fi
if [ "$cores" -ge 2 ]; then
  # shellcheck disable=SC2086
  expect 0 simulate $cnn --machine local --batch 8 --strategy dp=2 --out two.db
  taskset -c "${cpus%%,*}" "$HPLAN" run two.db --steps 1 >out 2>err
  [ $? = 3 ] || complain "two ranks run on one core unasked"
  says "with 1 core, limited by the affinity"
  taskset -c "${cpus%%,*}" "$HPLAN" run two.db --steps 1 --force >out 2>err || complain "--force does not: $(cat err)"
fi
# a small plan of another machine runs where its figures are met
# shellcheck disable=SC2086
expect 0 simulate $cnn --machine thesis-a100 --gpus 2 --batch 8 --strategy dp=2 --out two.db
[ "$cores" -lt 2 ] || expect 0 run two.db --device cpu --steps 1

# --- memory: more than is free, forced or not ---
cat >large.machine <<'END'
name=large; nodes=1; node=1 x cpu, shm=1GB/s, latency=0; cores=1; nic=1 x 1GB/s, tcp, latency=0
device=cpu, memory=1000TB, fp32=1TFLOP/s, bandwidth=100GB/s, launch=0
END
expect 0 simulate --net resnet18 --image 512 --machine large.machine --device cpu --batch 65536 --strategy dp=1 --out large.db
for force in --no-shuffle --force; do
  refused large.db "$force"
  says "is for large and needs .* TB of memory" "1 rank" "are free" "hplan simulate --net resnet18 --image 512 .* --batch 65536"
done

expect 0 simulate --net resnet18 --image 512 --mode infer --machine large.machine --device cpu --batch 262144 --strategy dp=1 --out large.db
expect 3 eval large.db --batch 262144 --random-weights
says "resnet18 .* needs .* TB of memory" "smaller --batch"

# --- the nodes of a hostfile ---
printf 'one slots=2\ntwo slots=2 # a comment\n\none slots=2\n' >hosts
refused cluster.db --hostfile hosts
says "here are 2 nodes"
printf 'localhost slots=1\n' >hosts
if [ "$cores" -ge 2 ]; then
  refused two.db --device cpu --hostfile hosts
  says "2 ranks, hosts has 1 slot"
  printf 'localhost slots=2\n' >hosts
  expect 0 run two.db --device cpu --hostfile hosts --steps 1
fi
printf 'one max_slots=9 slots=1\n' >hosts
refused two.db --device cpu --hostfile hosts
says "2 ranks, hosts has 1 slot"
: >hosts
expect 65 run cluster.db --hostfile hosts
expect 65 run cluster.db --hostfile "$scratch/none"
# An address of this machine is this node, whose cores count; another machine's are its own. What stands in for mpirun
# says what it is asked for.
mkdir standin
printf '#!/bin/sh\necho "mpirun $*" >"%s/asked"\nexit 1\n' "$scratch" >standin/mpirun
chmod +x standin/mpirun
if [ "$cores" -lt 64 ]; then
  for address in 127.0.0.1 127.0.1.1 $(ip -o -4 addr show scope global 2>/dev/null | sed 's/.* inet \([0-9.]*\).*/\1/'); do
    echo "$address slots=64" >hosts
    refused many.db --hostfile hosts
    says "64 cores each" "here is 1 node with $cores core"
  done
  echo "192.0.2.1 slots=64" >hosts # of no machine: RFC 5737
  PATH=$scratch/standin:$PATH expect 70 run many.db --hostfile hosts --steps 1
  grep -q "mpirun -n 64 " asked || complain "mpirun was asked for: $(cat asked)"
fi

# Ranks yield while they wait where a node has more of them than cores, wherever the others are.
yields() { # RANKS LINE...: does mpirun have them yield?
  local ranks=$1
  shift
  printf '%s\n' "$@" >hosts
  rm -f asked
  PATH=$scratch/standin:$PATH expect 70 bench comm --gpus "$ranks" --hostfile hosts
  grep -q "mpirun -n $ranks .*--hostfile hosts" asked || complain "mpirun was asked for: $(cat asked)"
  grep -q 'mpi_yield_when_idle 1' asked
}
full="slots=$cores" over="slots=$((cores + 1))"
yields $((2 * cores)) "192.0.2.1 $full" "192.0.2.2 $full" && complain "a rank for every core of two nodes yields"
yields $((2 * cores)) "192.0.2.1" "192.0.2.2" && complain "a rank for every core of two nodes without slots yields"
yields $((2 * cores)) "192.0.2.1 $over" "192.0.2.2 $full" || complain "more ranks than cores on a node do not yield"
yields $((2 * cores + 1)) "192.0.2.1 $full" "192.0.2.2 $full" || complain "more ranks than slots do not yield"
yields $((2 * cores + 1)) "192.0.2.1" "192.0.2.2" || complain "more ranks than cores on two nodes do not yield"

# mpirun ends with 255, not a signal's number, where it cannot reach a node
printf '#!/bin/sh\necho -----\necho No daemon on two.\necho -----\nexit 255\n' | sed 's/^echo.*/& >\&2/' >standin/mpirun
PATH=$scratch/standin:$PATH expect 69 bench comm --gpus 2 --hostfile hosts
says "the launcher failed (exit code 255): No daemon on two."

# --- a batch job's share ---
SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=31 refused cluster.db --device cpu
says "64 ranks of at most .* on 32 nodes" "here are 31 nodes"
# shellcheck disable=SC2086
expect 0 simulate $cnn --machine local --batch 8 --strategy dp=1 --out small.db
SLURM_MEM_PER_NODE=32 refused small.db
says "of 33.6 MB are free, limited by SLURM_MEM_PER_NODE"

# --- --fit-here runs plans of other machines on this one: on no more ranks than there are cores, with the losses that the whole plan has,
# from its checkpoint on, too; what does not fit is refused with what limits it ---
# of_cluster NAME STRATEGY [OPTIONS]: of a cluster
of_cluster() {
  expect 0 simulate "${net[@]}" --image 16 --classes 10 --machine thesis-a100 --batch 8 --strategy "$2" --out "$1.db" "${@:3}"
}
# losses FILE: of the steps from the third on
losses() {
  jq -c 'select(.step >= 3) | .loss' "$1" 2>/dev/null
}
# close A B TOLERANCE
close() {
  paste "$1" "$2" | awk -v t="$3" '{ d = $1 - $2; if (NF != 2 || (d < 0 ? -d : d) > t * $1) bad = 1 } END { exit bad || NR != 2 }'
}

# in float64: the losses are those of all ranks, to 1e-9
net=(--net cnn) strategy="dp=2,stages=2"
all "fitted: a larger network, of eight ranks" && net=(--net resnet18) strategy="dp=4,stages=2"
of_cluster fits "$strategy" --device ref
expect 0 run fits.db --force --json --steps 4 --lr 0.001 --trace whole-run.db --checkpoint saved --every 2 --keep 9
losses out >whole
rm -r saved/step-000000000004
expect 0 run fits.db --fit-here --json --steps 4 --lr 0.001 --checkpoint saved --resume --trace fit.db
losses out >fitted
close whole fitted 1e-9 || complain "other losses: $(paste whole fitted)"
# its trace holds the plan that ran
expect 0 explain fit.db --json
[ "$(jq .ranks out)" -le "$cores" ] || complain "more ranks than cores: $(jq -c .strategy out)"

net=(--net resnet18)
of_cluster big dp=4,stages=2 --device ref
expect 3 run big.db --steps 1
grep -q -- --fit-here err || complain "the refusal does not name --fit-here: $(cat err)"
if [ "$cores" = 2 ]; then
  expect 0 run big.db --fit-here --steps 1 --dry-run
  grep -q "fitted to 2 cores on 1 node: dp=4,stages=2 -> stages=2,micro=4; batch 8 as before: the same results but for rounding" err ||
    complain "what became of the plan is not said: $(cat err)"
fi

# what a GPU has and a core has not
net=(--net cnn)
of_cluster gpu dp=8,prec=bf16
expect 0 run gpu.db --fit-here --steps 1 --trace gpu-run.db
grep -q "on device cpu.*the results differ, as its numbers have another precision" err || complain "$(cat err)"

# a network of text has no image to name
expect 0 simulate --net gpt:2,32,2,16,64 --machine dgx-h100 --gpus 2 --batch 4 --strategy dp=2 --out text.db
expect 3 run text.db --steps 1
again=$(sed -n 's/.*plan for this machine: hplan \([^;]*\);.*/\1/p' err)
[ -n "$again" ] || complain "no command that plans for this machine: $(cat err)"
# shellcheck disable=SC2086 # words
expect 0 $again --strategy dp=1 --out again.db
expect 0 run again.db --steps 1 --trace again-run.db
grep -q ' sequences/s$' out || complain "the rate of a text: $(cat out)"
# nor does a machine of few cores take the batch of thousands of GPUs
expect 0 simulate --net resnet50 --machine summit --gpus 1536 --batch 98304 --strategy dp=1536 --out many.db
expect 3 run many.db --steps 1
again=$(sed -n 's/.*plan for this machine: hplan \([^;]*\);.*/\1/p' err)
[[ $again == *" --batch $((64 * cores)) "* ]] || complain "of 98304 images on 1536 GPUs $cores cores are to take: $again"

# what fits stays; what cannot fit is refused
expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 8 --strategy dp=1 --out small.db
expect 0 run small.db --fit-here --steps 1 --trace small-run.db
grep -q fitted err && complain "a plan that fits was changed: $(cat err)"
SLURM_MEM_PER_NODE=32 expect 3 run big.db --fit-here --steps 1 --trace none.db
[ "$(wc -l <err)" = 1 ] && grep -q "nothing like it fits on .*E-MEM.*has 33.6 MB" err || complain "$(cat err)"
[ ! -e none.db ] || complain "a refused run left a trace"

# an allocation of two nodes: both are used
if [ "$cores" = 2 ]; then
  SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 expect 0 run big.db --fit-here --steps 1 --launcher mpirun --dry-run
  grep -q "fitted to 4 cores on 2 nodes: dp=4,stages=2 -> dp=2,stages=2,micro=2" err || complain "two nodes: $(cat err)"
fi

# --- a real control group, where this user may make one ---
group=/sys/fs/cgroup/memory/hplan-test-$$ limit=memory.limit_in_bytes
[ -d /sys/fs/cgroup/memory ] || group=/sys/fs/cgroup/hplan-test-$$ limit=memory.max
if mkdir "$group" 2>/dev/null && [ -e "$group/$limit" ]; then
  trap 'rmdir "$group"; rm -rf "$scratch"' EXIT
  within() { bash -c 'echo $BASHPID >"$0/cgroup.procs" && exec "$@"' "$group" "$HPLAN" "$@" >out 2>err; }
  expect 0 simulate --net resnet18 --image 1024 --machine local --batch 2 --strategy dp=1 --out host.db # 800 MB
  echo 400000000 >"$group/$limit"
  within run host.db --steps 1
  [ $? = 3 ] || complain "a plan of more than the control group's memory runs: $(cat err)"
  says "400 MB are free, limited by $group/$limit"
  within simulate --net resnet18 --image 224 --machine local --batch 2 --strategy dp=1 --out group.db ||
    complain "no plan within 400 MB: $(cat err)"
  within run group.db --steps 1 || complain "what was planned within 400 MB does not run: $(cat err)"
  within doctor --json && [ "$(jq .memory_bytes out)" -le 400000000 ] || complain "doctor does not see the group's limit"
else
  rmdir "$group" 2>/dev/null
  echo "note: no control group of our own can be made here; tests/machines/test_cgroup.c reads files in their place"
fi
conclude "nothing starts that is not here"
