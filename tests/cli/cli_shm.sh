#!/bin/bash
# cli_shm.sh - comm=shm in real runs: the same weights, bit for bit, as with messages by MPI; ranks have each other's
# memory; nothing of it is left after a rank was killed; what does not fit is refused before it is taken.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor
unset SLURM_MEM_PER_NODE SLURM_MEM_PER_CPU

# Processes of this test's runs, and how often each has mapped memory of hplan that has no name.
ours() {
  pgrep -f "hplan-exec.*$scratch" | while read -r pid; do
    case $(ps -o comm= -p "$pid") in hplan-exec) echo "$pid" ;; esac
  done
}
mappings() {
  grep -c "memfd:hplan" "/proc/$1/maps" 2>/dev/null
}

# Memory that has a name with hplan in it, of whoever: what is there before these runs is not theirs.
names() {
  find /dev/shm -mindepth 1 -name '*hplan*' 2>/dev/null | sort
}
before=$(names)

# plan NAME STRATEGY OPTIONS...: NAME.db
plan() {
  local name=$1 strategy=$2
  shift 2
  expect 0 simulate --machine local --strategy "$strategy" --out "$name.db" "$@"
}

# final FIELD FILE: of the last line that a run printed
final() {
  python3 -c 'import json, sys
print(*json.loads(open(sys.argv[2]).read().strip().split("\n")[-1])[sys.argv[1]])' "$1" "$2"
}

# --- the same weights, by messages and by sums ---
while IFS='|' read -r strategy options; do
  for comm in own shm; do
    # shellcheck disable=SC2086
    plan $comm "$strategy,comm=$comm" $options
    expect 0 run $comm.db --steps 4 --json --save $comm.safetensors
    cp out $comm.json
  done
  cmp -s own.safetensors shm.safetensors || complain "$strategy: weights differ between comm=own and comm=shm"
  for bytes in $(final direct_bytes own.json); do
    [ "${bytes%.*}" = 0 ] || complain "$strategy, comm=own: $bytes bytes went straight"
  done
  for bytes in $(final direct_bytes shm.json); do
    [ "${bytes%.*}" -gt 0 ] || complain "$strategy, comm=shm: no bytes went straight: $(cat shm.json)"
  done
  rm -f ./*.safetensors
done <<'STRATEGIES'
stages=2|--net cnn --image 28 --classes 10 --batch 16
sp=2x1|--net unet:4 --image 32 --batch 2
stages=2,sp=1x2|--net resnet18 --image 64 --batch 2
STRATEGIES

# --- without it: --no-ipc ---
plan shm stages=2,comm=shm --net cnn --image 28 --classes 10 --batch 16
expect 0 run shm.db --steps 4 --json --no-ipc
[ "$(final direct_bytes out | tr -d ' .')" -eq 0 ] || complain "--no-ipc: bytes went straight: $(cat out)"

# --- each of the ranks has its memory and its inbox, and the other's; a killed one leaves nothing ---
timeout -k 5 100 "$HPLAN" run shm.db --steps 10000000 --trace "$scratch/run.db" --json >out 2>err </dev/null &
run=$!
for _ in $(seq 600); do
  [ "$(grep -c '"step"' out)" -ge 3 ] && break
  sleep 0.1
done
ranks=$(ours)
[ "$(wc -w <<<"$ranks")" = 2 ] || complain "2 ranks expected: $ranks: $(cat err)"
for pid in $ranks; do
  [ "$(mappings "$pid")" = 4 ] || complain "rank $pid has $(mappings "$pid") mappings: $(grep memfd "/proc/$pid/maps")"
done
kill -9 "$(head -n 1 <<<"$ranks")"
wait "$run"
[ $? = 137 ] || complain "killed rank: $(cat err)"
for pid in $ranks; do
  [ -d "/proc/$pid" ] && complain "rank $pid is left, with $(mappings "$pid") mappings"
done
left=$(comm -13 <(echo "$before") <(names))
[ -z "$left" ] || complain "names are left in /dev/shm: $left"

# --- no room: Slurm's limit is one that the ranks see; `hplan run` would not start them ---
ranks_alone() {
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 SLURM_MEM_PER_NODE=4 timeout -k 5 60 \
    mpirun --oversubscribe --mca btl self,vader -n 2 "$(dirname "$HPLAN")/hplan-exec" "$1" --steps 2 >out 2>err </dev/null
}
plan own stages=2,comm=own --net cnn --image 28 --classes 10 --batch 16
ranks_alone own.db || complain "comm=own needs no room: $(cat err)"
ranks_alone shm.db && complain "no room: the ranks run"
grep -q "the 2 ranks of its node reserve [0-9]* bytes of memory at the start, 4194304 are free; comm=own" err ||
  complain "no room: $(cat err)"
[ "$(grep -c '^hplan: ' err)" = 1 ] || complain "no room: one message expected: $(cat err)"

conclude "ranks share their memory, and leave nothing"
