#!/bin/bash
# cli_faults.sh - what may go wrong during a run: killed, stopped and interrupted ranks, full disks. Each ends by itself, with one
# message and the documented exit code; no process is left, the trace so far is readable, earlier files are intact.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
# shellcheck source=tests/cli/runs.sh
. "$(dirname "$0")/runs.sh" || exit 1
need_executor
mounted=
cleanup() {
  [ -n "$mounted" ] && umount "$mounted"
  rm -rf "$scratch"
}
trap cleanup EXIT

# of_ranks N: plans for so many
of_ranks() {
  case $1 in 1) strategy=dp=1 ;; 2) strategy=dp=2 ;; 4) strategy=dp=2,stages=2 ;; esac
  plan=plan-$1.db
  [ -e "$plan" ] || expect 0 simulate --net cnn --image 8 --classes 2 --machine local --batch 4 --strategy "$strategy" --out "$plan"
}

readable() {
  timeout -k 5 120 "$HPLAN" compare "$1/run.db" >shown 2>&1 || complain "$1: the trace is not readable: $(cat shown)"
}

# --- who is stopped is named by the others or, where these are late or there are none, by hplan; never a rank that did not stop.
# The runs wait for their deadline beside what follows: it is one that ranks on a busy machine keep. ---
deadline=5

# stop_rank NAME RANKS VICTIM
stop_rank() {
  of_ranks "$2"
  start "$1" --deadline $deadline --metrics "$scratch/$1/run.prom"
  "$HPLAN" status "$scratch/$1/run.db" >shown 2>&1 || complain "status of a run: $(cat shown)"
  grep -q '^step [0-9]* of 100000000, loss' shown || complain "status shows no step: $(cat shown)"
  "$HPLAN" status "$scratch/$1/run.db" --json | python3 -c '
import json, sys
s, n = json.load(sys.stdin), int(sys.argv[1])
assert s["up"] == 1 and s["ranks"] == n and len(s["rank"]) == n and s["step"] >= 1 and s["mean_step_s"] > 0, s' "$2" ||
    complain "status --json"
  kill -STOP "$(rank "$1" "$3")"
}

# named NAME RANKS VICTIM
named() {
  over "$1" 124 "stalled: \(rank $3 gives no sign of life\|stopped for [0-9]* s by SIGSTOP, or a suspended job: rank $3 (\)"
  grep -q '^hplan_run_up 0$' "$1/run.prom" || complain "metrics of a run that is over: $(cat "$1/run.prom")"
  "$HPLAN" diagnose "$1/run.db" --json | python3 -c '
import json, sys
d, n, victim = json.load(sys.stdin), *map(int, sys.argv[1:])
assert d["culprit"] in (-1, victim) and len(d["rank"]) == n and not d["complete"], d' "$2" "$3" ||
    complain "diagnose names another rank than $3: $("$HPLAN" diagnose "$1/run.db")"
  readable "$1"
  expect 65 status "$1/run.db" # it is over
}

stop_rank one_of_two 2 1
start all_of_two --deadline $deadline
mapfile -t victims < <(ranks all_of_two)
kill -STOP "${victims[@]}"
start launcher_of_two --deadline $deadline
mapfile -t victims < <(ranks launcher_of_two)
kill -STOP "${launcher[launcher_of_two]}" "${victims[@]}" # these, too, as they would poll
of_ranks 1
start the_only_one --deadline $deadline
kill -STOP "${hplan[the_only_one]}" # it could not look meanwhile: that does not count
kill -STOP "$(ranks the_only_one)"
kill -CONT "${hplan[the_only_one]}"

# --- a rank is killed: the run goes on by itself as often as it may, and what it saved goes on to the weights of one that was not
# disturbed ---
of_ranks 2
expect 2 run "$plan" --restarts 2
restarts=1
all "two restarts" && restarts=2
start restarted --deterministic --checkpoint "$scratch/saved" --every 20 --restarts $restarts
has_restarted() {
  [ "$(grep -c '^hplan: restart' restarted/err)" = "$1" ]
}
for restart in $(seq $restarts); do
  await "25 steps" has_steps restarted $(($(steps restarted) + 25)) # and so a checkpoint
  kill -9 "$(rank restarted 1)"
  await "restart $restart" has_restarted "$restart"
done
grep -q "^hplan: restart $restarts of $restarts, from the newest checkpoint" restarted/err || complain "no restart: $(cat restarted/err)"
await "25 steps" has_steps restarted $(($(steps restarted) + 25))
kill -9 "$(rank restarted 1)"
over restarted 137 "^hplan: rank 1 died (signal 9" $((2 + 4 * restarts))
readable restarted
until=$(($(newest saved) + 5))
expect 0 run "$plan" --steps $until --deterministic --save parts.st --trace parts.db --checkpoint saved --resume
expect 0 run "$plan" --steps $until --deterministic --save whole.st --trace whole.db
cmp whole.st parts.st || complain "other weights after restarts"

# --- ranks that srun starts without PMIx are alone each, and the plan is for more ---
SLURM_NTASKS=2 SLURM_PROCID=0 timeout -k 5 120 "$(dirname "$HPLAN")/hplan-exec" "$plan" --steps=1 >out 2>err
got=$?
[ $got = 3 ] && grep -q 'needs 2 ranks, started with 1: srun --mpi=pmix -n 2' err || complain "a rank that is alone: exit $got: $(cat err)"

# --- what a run would start ---
expect 0 run "$plan" --steps 3 --dry-run --json --trace dry.db
python3 -c 'import json; d = json.load(open("out")); assert d["ranks"] == 2 and "--steps=3" in d["command"] and "mpirun" in d["command"][0], d' ||
  complain "dry run: $(cat out)"
[ ! -e dry.db ] && ! pgrep -f "hplan-exec.*$scratch/dry.db" || complain "a dry run starts ranks"

# --- signals to hplan: SIGNAL:RANKS; of more than one leftovers.sh and kills.sh, too ---
for case in TERM:1 INT:1 $(all "signals to a run of four ranks" && echo TERM:4 INT:4); do
  signal=${case%:*} ranks=${case#*:}
  of_ranks "$ranks"
  start signalled
  kill -s "$signal" "${hplan[signalled]}"
  over signalled $((128 + $(kill -l "$signal"))) "ended by signal $(kill -l "$signal")"
  readable signalled
done

# --- four ranks: each is named, by those of its group and of other stages; what is left where hplan is killed, leftovers.sh asks, too ---
if all "of four ranks one is killed or stopped, or their launcher, or hplan"; then
  of_ranks 4
  for victim in 0 3; do
    start killed
    kill -9 "$(rank killed $victim)"
    over killed 137 "rank $victim died (signal 9"
    readable killed
  done
  for victim in 0 2; do
    stop_rank stopped 4 $victim
    named stopped 4 $victim
  done
  start stopped --deadline $deadline
  mapfile -t victims < <(ranks stopped)
  kill -STOP "${victims[@]}"
  over stopped 124 "stopped for [0-9]* s by SIGSTOP, or a suspended job: rank [0-9] (process [0-9]*) and 3 more"
  start stopped --deadline $deadline
  kill -STOP "${launcher[stopped]}"
  over stopped 124 "stopped for [0-9]* s by SIGSTOP, or a suspended job: the launcher"
  start killed
  kill -9 "${launcher[killed]}"
  over killed 137 "died (signal 9"
  start killed
  kill -9 "${hplan[killed]}"
  await "the end of ranks whose hplan was killed" no_ranks killed
  wait "${run[killed]}"
fi

# --- folders that are missing, full disks: RANKS ---
disks() {
  of_ranks "$1"
  expect 73 run "$plan" --steps 3 --trace r.db --save no/such/w.safetensors
  [ ! -e r.db ] && [ -z "$(cat out)" ] || complain "a missing folder is noticed after training: $(cat out)"
  expect 0 run "$plan" --steps 3 --trace earlier.db
  before=$(sha256sum <earlier.db)
  timeout -k 5 120 "$HPLAN" run "$plan" --steps 3 --json --trace "$scratch/earlier.db" >/dev/full 2>err
  [ $? = 74 ] || complain "/dev/full: $(cat err)"
  [ "$before" = "$(sha256sum <earlier.db)" ] || complain "/dev/full: the earlier trace has changed"
  [ -n "$mounted" ] || return
  mount -o remount,size=1m small
  cp "$plan" small/run.db
  expect 74 run "$plan" --steps 3 --trace r.db --checkpoint small/saved # before anything starts
  grep -q 'checkpoints in small/saved need .*, 3 of .* each, and .* are free there' err || complain "no room for checkpoints: $(cat err)"
  [ ! -e small/saved ] || complain "a refused run has made the folder of its checkpoints"
  before=$(sha256sum <small/run.db)
  timeout -k 5 600 "$HPLAN" run "$plan" --steps 100000000 --trace small/run.db >out 2>err
  [ $? = 74 ] || complain "full disk under the trace: $(cat err)"
  dd if=/dev/zero of=small/fill bs=64k 2>/dev/null
  expect 74 run "$plan" --steps 3 --save small/w.safetensors --trace r.db # before anything starts
  grep -q -- '--save small/w.safetensors needs .*, and .* are free there' err && [ ! -e r.db ] || complain "no room for weights: $(cat out err)"
  rm small/fill
  mount -o remount,size=8m small
  # the disk fills while the run goes on: that cannot come to its end before what it says is read, 3000 lines being more than pipes hold
  mkdir -p filled
  rm -f r.db gate && mkfifo gate
  timeout -k 5 600 "$HPLAN" run "$plan" --steps 3000 --json --save small/w.safetensors --trace "$scratch/filled/r.db" --deadline 300 >gate 2>filled/err &
  run[filled]=$!
  exec 3<gate
  read -r -t 120 <&3 || complain "no step: $(cat filled/err)"
  dd if=/dev/zero of=small/fill bs=64k 2>/dev/null
  cat <&3 >out
  exec 3<&-
  over filled 74 "small/w.safetensors.* failed: No space left on device"
  [ "$(wc -l <out)" -gt 2500 ] || complain "the run has not got to its end: $(tail -n 2 out)"
  grep -q 'the trace up to there is in .*r.db' filled/err && "$HPLAN" compare filled/r.db | grep -q ', [0-9]* steps .*status 74' ||
    complain "full disk under --save: the trace is lost: $(cat filled/err)"
  [ "$before" = "$(sha256sum <small/run.db)" ] || complain "full disk: the earlier run.db has changed"
  ls -d small/*.tmp* small/w* 2>/dev/null && complain "full disk: pieces are left"
  rm -rf small/* filled
}
if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=1m tmpfs small 2>/dev/null; then
  mounted=$scratch/small
else
  echo "no tmpfs can be mounted here: full disks under files are not tested"
fi
for ranks in 1 $(all "full disks under four ranks" && echo 4); do disks "$ranks"; done

# --- those that were stopped above ---
named one_of_two 2 1
over all_of_two 124 "stopped for [0-9]* s by SIGSTOP, or a suspended job: rank [01] (process [0-9]*) and 1 more"
over launcher_of_two 124 "stopped for [0-9]* s by SIGSTOP, or a suspended job: the launcher"
over the_only_one 124 "stopped for [0-9]* s by SIGSTOP, or a suspended job: rank 0"
conclude "all faults ended well"
