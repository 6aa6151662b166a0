#!/bin/bash
# kills.sh - runs that are killed at random times, of every parallelism, and go on: their weights are, bit for bit, those of a run
# that was not. HPLAN=build/hplan tests/faults/kills.sh; KILLS=500 for that many (10), SEED=N for others.
# Killed are a rank, the launcher or hplan itself by SIGKILL, or hplan by SIGTERM, which saves and ends with 75.
set -euo pipefail
: "${HPLAN:?path of the hplan binary}"
HPLAN=$(realpath "$HPLAN")
kills=${KILLS:-10}
RANDOM=${SEED:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export XDG_CACHE_HOME=$work/cache XDG_STATE_HOME=$work/state
strategies=("dp=2" "stages=2,micro=2,sched=1f1b" "sp=2x1" "stages=2,sched=gems" "dp=2,zero=1" "dp=2,zero=3" "dp=2,share=3:1,bn=all"
  "sp=1x2,cols=2:1,stages=1" "dp=2,stages=2,micro=2" "sp=2x2,halo=2" "dp=2,sync=local:3" "dp=2,compress=allreduce:int8" "dp=1,micro=2")
steps=40
train=(--deterministic --steps "$steps" --no-history --force)
declare -A count=()
die() {
  echo "FAIL: $*" >&2
  cat "$work"/attempt.log >&2 || true
  exit 1
}

# descendants PID: the processes below it, one a line.
descendants() {
  local child
  cat /proc/"$1"/task/*/children 2>/dev/null | tr ' ' '\n' | while read -r child; do
    echo "$child"
    descendants "$child"
  done || true
}

# one_of NAME PID: a random process of that name below PID, or nothing.
one_of() {
  local all=() p
  for p in $(descendants "$2"); do
    case $(cat /proc/"$p"/comm 2>/dev/null) in "$1"*) all+=("$p") ;; esac
  done
  [ ${#all[@]} -eq 0 ] || echo "${all[RANDOM % ${#all[@]}]}"
}

# strike PID: kills what is drawn; sets `whom`.
strike() {
  local target
  case $((RANDOM % 5)) in
  0) whom=hplan target=$1 ;;
  1) whom=mpirun target=$(one_of mpirun "$1") ;;
  2) whom=saver target=$1 ;; # by SIGTERM
  *) whom=rank target=$(one_of hplan-exec "$1") ;;
  esac
  [ -n "$target" ] || return 1
  kill -"$([ $whom = saver ] && echo TERM || echo KILL)" "$target" 2>/dev/null || return 1
}

# ranks_here: those of runs in this folder.
ranks_here() {
  local p
  for p in $(pgrep hplan-exec || true); do
    [ "$(readlink /proc/"$p"/cwd)" != "$work" ] || echo "$p"
  done
}

# no_rank_left: within some seconds none runs on.
no_rank_left() {
  for _ in $(seq 50); do
    [ -n "$(ranks_here)" ] || return 0
    sleep 0.2
  done
  die "ranks go on 10 s after $whom was killed: $(ranks_here)"
}

n=0
while [ $n -lt "$kills" ]; do
  s=${strategies[RANDOM % ${#strategies[@]}]}
  rm -rf ./*
  "$HPLAN" simulate --net cnn --image 32 --batch 16 --classes 10 --strategy "$s" --machine local --out plan.db >simulate.log 2>&1 ||
    die "$s: $(cat simulate.log)"
  begin=${EPOCHREALTIME/./}
  timeout -k 5 300 "$HPLAN" run plan.db "${train[@]}" --save whole.st --trace whole.db >attempt.log 2>&1 || die "$s: the run that nobody kills"
  took=$(((${EPOCHREALTIME/./} - begin) / 1000)) # ms
  killed=0
  for _ in $(seq 60); do
    every=$((1 + RANDOM % 4))
    timeout -k 5 300 "$HPLAN" run plan.db "${train[@]}" --checkpoint saved --every $every --resume --save parts.st --trace parts.db \
      >attempt.log 2>&1 &
    timer=$!
    if [ $killed -lt 4 ] && [ $n -lt "$kills" ]; then
      wait=$((RANDOM % took))
      sleep "$(printf '%d.%03d' $((wait / 1000)) $((wait % 1000)))"
      for _ in $(seq 20); do # ranks may not be there yet
        hplan=$(cat /proc/$timer/task/*/children 2>/dev/null | tr -d ' ' || true)
        [ -n "$hplan" ] || break # the run is over
        if strike "$hplan"; then
          n=$((n + 1))
          killed=$((killed + 1))
          count[$whom]=$((${count[$whom]:-0} + 1))
          break
        fi
        sleep 0.05
      done
    fi
    code=0
    wait $timer || code=$?
    no_rank_left
    [ "$code" -ne 0 ] || break
    case $code in
    75 | 137 | 124 | 70 | 143) ;; # 75: saved; 137: hplan was killed, or a rank
    *) die "$s: exit code $code" ;;
    esac
  done
  [ "$code" -eq 0 ] || die "$s: never ends"
  "$HPLAN" checkpoint verify saved >verify.log 2>&1 || die "$s: $(cat verify.log)"
  cmp whole.st parts.st || die "$s: other weights after $killed kills"
  echo "$s: $killed kills, the same weights"
done
for whom in "${!count[@]}"; do echo "$whom: ${count[$whom]}"; done
echo "$n kills"
