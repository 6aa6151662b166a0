#!/bin/bash
# kills.sh - runs that are killed, and go on: their weights are, bit for bit, those of a run that was not. Killed are a rank, the launcher
# or hplan itself by SIGKILL, or hplan by SIGTERM, which saves and ends with 75. In the whole suite at random times, with every parallelism;
# by hand: HPLAN=build/hplan KILLS=500 tests/faults/kills.sh for that many (10), SEED=N for others.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" || exit 1
# shellcheck source=tests/cli/runs.sh
. "$(dirname "$0")/../cli/runs.sh" || exit 1
need_executor
kills=${KILLS:-10}
RANDOM=${SEED:-1}
net=(--net cnn --classes 10 --machine local)
strategies=("dp=2" "stages=2,micro=2,sched=1f1b" "sp=2x1" "stages=2,sched=gems" "dp=2,zero=1" "dp=2,zero=3" "dp=2,share=3:1,bn=all"
  "sp=1x2,cols=2:1,stages=1" "dp=2,stages=2,micro=2" "sp=2x2,halo=2" "dp=2,sync=local:3" "dp=2,compress=allreduce:int8" "dp=1,micro=2")
train=(--deterministic --no-history --force)

# --- each kind of kill once (of a rank: cli_faults.sh), of a run that has saved since it began: it goes on from there ---

# has_saved STEP: a later checkpoint than that, or the run is over
has_saved() {
  [ "$(newest saved)" -gt "$1" ] || ! kill -0 "${run[parts]}" 2>/dev/null
}

one_by_one() { # STRATEGY
  local whom code before got
  expect 0 simulate "${net[@]}" --image 8 --batch 4 --strategy "$1" --out plan.db
  for whom in $(all "a rank" && echo rank) mpirun hplan saver; do
    before=$(newest saved)
    rm -rf parts
    begin parts "${train[@]}" --checkpoint "$scratch/saved" --every 5 --resume
    started parts
    await "a checkpoint after step $before" has_saved "$before"
    code=137
    case $whom in
    rank) kill -9 "$(ranks parts | head -1)" ;;
    mpirun) kill -9 "${launcher[parts]}" ;;
    hplan) kill -9 "${hplan[parts]}" ;;
    saver) code=75 && kill "${hplan[parts]}" ;;
    esac
    wait "${run[parts]}" 2>/dev/null
    got=$?
    [ $got = $code ] || complain "$1, $whom: exit $got, expected $code: $(cat parts/err)"
    await "the end of ranks after a kill of $whom" no_ranks parts
  done
  steps=$(($(newest saved) + 3))
  expect 0 checkpoint verify saved
  expect 0 run plan.db "${train[@]}" --steps $steps --save parts.st --checkpoint saved --resume --trace parts.db
  expect 0 run plan.db "${train[@]}" --steps $steps --save whole.st --trace whole.db
  cmp whole.st parts.st || complain "$1: other weights"
}

# --- at random times ---

# descendants PID: the processes below it, one a line.
descendants() {
  local child
  cat /proc/"$1"/task/*/children 2>/dev/null | tr ' ' '\n' | while read -r child; do
    echo "$child"
    descendants "$child"
  done
}

# one_of NAME PID: a random process of that name below PID, or nothing.
one_of() {
  local found=() p
  for p in $(descendants "$2"); do
    case $(cat /proc/"$p"/comm 2>/dev/null) in "$1"*) found+=("$p") ;; esac
  done
  [ ${#found[@]} -eq 0 ] || echo "${found[RANDOM % ${#found[@]}]}"
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

# attempt: the run from its newest checkpoint on. It is struck once, unless that was done often enough; its exit code: $code.
attempt() {
  local pid hplan
  timeout -k 5 900 "$HPLAN" run plan.db "${train[@]}" --steps $steps --checkpoint saved --every $((1 + RANDOM % 4)) --resume --save parts.st \
    --trace "$scratch/parts/parts.db" >attempt.log 2>&1 &
  pid=$!
  if [ $killed -lt 4 ] && [ $n -lt "$kills" ]; then
    pause=$((RANDOM % took))
    sleep "$(printf '%d.%03d' $((pause / 1000)) $((pause % 1000)))"
    for _ in $(seq 20); do # ranks may not be there yet
      hplan=$(children_of $pid)
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
  wait $pid
  code=$?
  await "the end of ranks after a kill of ${whom:-nobody}" no_ranks parts
}

at_random() {
  local n=0 s begin took killed code whom steps=40
  local -A count=()
  while [ $n -lt "$kills" ] && [ "$failures" = 0 ]; do
    s=${strategies[RANDOM % ${#strategies[@]}]}
    rm -rf ./*
    mkdir parts
    expect 0 simulate "${net[@]}" --image 32 --batch 16 --strategy "$s" --out plan.db
    begin=${EPOCHREALTIME/./}
    expect 0 run plan.db "${train[@]}" --steps $steps --save whole.st --trace whole.db
    took=$(((${EPOCHREALTIME/./} - begin) / 1000)) killed=0 # ms
    for _ in $(seq 60); do
      attempt
      case $code in
      0) break ;;
      75 | 137 | 124 | 70 | 143) ;; # 75: saved; 137: hplan was killed, or a rank
      *) complain "$s: exit code $code: $(cat attempt.log)" ;;
      esac
    done
    [ "$code" -eq 0 ] || complain "$s: never ends"
    expect 0 checkpoint verify saved
    cmp whole.st parts.st || complain "$s: other weights after $killed kills"
    echo "$s: $killed kills, the same weights"
  done
  for whom in "${!count[@]}"; do echo "$whom: ${count[$whom]}"; done
  echo "$n kills"
}

one_by_one dp=2,zero=3
if [ -n "${KILLS:-}" ] || all "$kills kills at random times, of ${#strategies[@]} strategies"; then
  at_random
fi
conclude "runs that were killed go on to the same weights"
