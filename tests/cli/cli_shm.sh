#!/bin/bash
# cli_shm.sh - comm=shm in real runs: the same weights, bit for bit, as with messages by MPI; ranks have each other's
# memory; nothing of it is left after a rank was killed; what does not fit is refused before it is taken.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
# shellcheck source=tests/cli/runs.sh
. "$(dirname "$0")/runs.sh" || exit 1
need_executor
unset SLURM_MEM_PER_NODE SLURM_MEM_PER_CPU

# How often a process has mapped memory of hplan that has no name.
mappings() {
  grep -c "memfd:hplan" "/proc/$1/maps" 2>/dev/null
}

# Memory that has a name with hplan in it, of whoever: what is there before these runs is not theirs.
names() {
  find /dev/shm -mindepth 1 -name '*hplan*' 2>/dev/null | sort
}
before=$(names)

# none_left: nor is what another's processes use.
none_left() {
  left=
  for name in $(comm -13 <(echo "$before") <(names)); do
    grep -qsF "$name" /proc/[0-9]*/maps || left+=" $name"
  done
  [ -z "$left" ]
}

# made NAME STRATEGY OPTIONS...: NAME.db
made() {
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
  [ -n "$strategy" ] || continue
  for comm in own shm; do
    # shellcheck disable=SC2086
    made $comm "$strategy,comm=$comm" $options
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
done <<END
stages=2|--net cnn --image 8 --classes 10 --batch 4
$(all "tiles, and stages of tiles" && echo 'sp=2x1|--net unet:4 --image 32 --batch 2
stages=2,sp=1x2|--net resnet18 --image 64 --batch 2')
END

# --- without it: --no-ipc ---
made shm stages=2,comm=shm --net cnn --image 8 --classes 10 --batch 4
expect 0 run shm.db --steps 4 --json --no-ipc
[ "$(final direct_bytes out | tr -d ' .')" -eq 0 ] || complain "--no-ipc: bytes went straight: $(cat out)"

# --- each of the ranks has its memory and its inbox, and the other's; a killed one leaves nothing ---
plan=shm.db
start killed
ranks=$(ranks killed)
[ "$(wc -w <<<"$ranks")" = 2 ] || complain "2 ranks expected: $ranks: $(cat killed/err)"
for pid in $ranks; do
  [ "$(mappings "$pid")" = 4 ] || complain "rank $pid has $(mappings "$pid") mappings: $(grep memfd "/proc/$pid/maps")"
done
kill -9 "$(head -n 1 <<<"$ranks")"
over killed 137 "died (signal 9"
for pid in $ranks; do
  runs_on "$pid" && complain "rank $pid is left, with $(mappings "$pid") mappings"
done
await "an end of names in /dev/shm" none_left || complain "names are left in /dev/shm:$left"

# --- no room: Slurm's limit is one that the ranks see; `hplan run` would not start them ---
ranks_alone() {
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 SLURM_MEM_PER_NODE=4 timeout -k 5 300 \
    mpirun --oversubscribe --mca btl self,vader -n 2 "$(dirname "$HPLAN")/hplan-exec" "$1" --steps 2 >out 2>err </dev/null
}
for comm in own shm; do made $comm stages=2,comm=$comm --net cnn --image 28 --classes 10 --batch 16; done
ranks_alone own.db || complain "comm=own needs no room: $(cat err)"
ranks_alone shm.db && complain "no room: the ranks run"
grep -q "the 2 ranks of its node reserve [0-9]* bytes of memory at the start, 4194304 are free; comm=own" err ||
  complain "no room: $(cat err)"
[ "$(grep -c '^hplan: ' err)" = 1 ] || complain "no room: one message expected: $(cat err)"

conclude "ranks share their memory, and leave nothing"
