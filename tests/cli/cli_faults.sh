#!/bin/bash
# cli_faults.sh - what may go wrong during a run: killed, stopped and interrupted ranks, full disks. Each ends soon, with one
# message and the documented exit code; no process is left, the trace so far is readable, earlier files are intact.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor
mounted=
cleanup() {
  [ -n "$mounted" ] && umount "$mounted"
  rm -rf "$scratch"
}
trap cleanup EXIT

# Processes of this test's runs: their command lines name the scratch folder.
ours() {
  pgrep -f "hplan-exec.*$scratch" | while read -r pid; do
    case $(ps -o comm= -p "$pid") in hplan-exec) echo "$pid" ;; esac
  done
}

# start OPTIONS...: hplan run in the background, until it has done some steps.
start() {
  : >out
  timeout -k 5 100 "$HPLAN" run plan.db --steps 10000000 --trace "$scratch/run.db" --json "$@" >out 2>err </dev/null &
  run=$!
  for _ in $(seq 200); do
    [ "$(grep -c '"step"' out)" -ge 3 ] && return
    sleep 0.1
  done
  complain "the run does not start: $(cat err)"
}

# finish CODE SECONDS WORDS: the run ends by then with that code and a message that holds the words.
finish() {
  local want=$1 limit=$2 words=$3 begin=$SECONDS got
  wait "$run"
  got=$?
  [ "$got" = "$want" ] || complain "$words: exit $got, expected $want: $(cat err)"
  [ $((SECONDS - begin)) -le "$limit" ] || complain "$words: took $((SECONDS - begin)) s, at most $limit s wanted"
  grep -q -- "$words" err || complain "no message says '$words': $(cat err)"
  [ "$(wc -l <err)" -le 2 ] || complain "$words: $(wc -l <err) lines on stderr: $(cat err)"
  [ -z "$(ours)" ] || complain "$words: processes are left: $(ours | tr '\n' ' ')"
  ls -d "$scratch"/*.tmp* 2>/dev/null && complain "$words: scratch files are left"
}

readable() {
  timeout -k 5 60 "$HPLAN" compare run.db >shown 2>&1 || complain "$1: the trace is not readable: $(cat shown)"
}

nth_rank() { # ranks were started in order
  ours | sort -n | sed -n "$1p"
}

timeout -k 5 60 "$HPLAN" simulate --net cnn --image 28 --classes 10 --machine local --batch 16 --strategy dp=2,stages=2 --out plan.db >/dev/null ||
  complain "no plan"

# --- F1: a rank is killed ---
for victim in 1 4; do
  start
  kill -9 "$(nth_rank $victim)"
  finish 137 15 "rank $((victim - 1)) died (signal 9"
  readable "killed rank"
done

# --- who waited for whom: never a rank that did not stop ---
for victim in 1 3; do
  start --deadline 4 --metrics "$scratch/run.prom"
  "$HPLAN" status "$scratch/run.db" >shown 2>&1 || complain "status of a run: $(cat shown)"
  grep -q '^step [0-9]* of 10000000, loss' shown || complain "status shows no step: $(cat shown)"
  "$HPLAN" status "$scratch/run.db" --json | python3 -c '
import json, sys
s = json.load(sys.stdin)
assert s["up"] == 1 and s["ranks"] == 4 and len(s["rank"]) == 4 and s["step"] >= 1 and s["mean_step_s"] > 0, s' ||
    complain "status --json"
  kill -STOP "$(nth_rank $victim)"
  finish 124 15 "rank $((victim - 1)) gives no sign of life"
  grep -q '^hplan_run_up 0$' run.prom || complain "metrics of a run that is over: $(cat run.prom)"
  "$HPLAN" diagnose run.db --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["culprit"] in (-1, int(sys.argv[1])) and len(d["rank"]) == 4 and not d["complete"], d' $((victim - 1)) ||
    complain "diagnose names another rank than $((victim - 1)): $("$HPLAN" diagnose run.db)"
done
expect 65 status run.db # it is over
expect 0 run plan.db --steps 3 --dry-run --json
python3 -c 'import json; d = json.load(open("out")); assert d["ranks"] == 4 and "--steps=3" in d["command"] and "mpirun" in d["command"][0], d' ||
  complain "dry run: $(cat out)"
[ -z "$(ours)" ] || complain "a dry run starts ranks"

# --- all ranks are stopped, or their launcher: nobody but hplan is left to notice ---
start --deadline 2
mapfile -t ranks < <(ours)
kill -STOP "${ranks[@]}"
finish 124 15 "stopped for [0-9]* s by SIGSTOP, or a suspended job: rank [0-9] (process [0-9]*) and 3 more"
start --deadline 2
kill -STOP "$(pgrep -f "^mpirun.*$scratch")"
finish 124 15 "stopped for [0-9]* s by SIGSTOP, or a suspended job: the launcher"

# --- a rank dies twice: the run goes on by itself, and ends with the weights of one that was not disturbed ---
expect 2 run plan.db --restarts 2
expect 0 run plan.db --steps 300 --deterministic --save whole.st --trace whole.db
timeout -k 5 100 "$HPLAN" run plan.db --steps 300 --deterministic --save parts.st --trace "$scratch/run.db" --checkpoint saved --every 20 \
  --restarts 3 --json >out 2>err </dev/null &
run=$!
for restart in 1 2; do
  for _ in $(seq 200); do
    [ "$(grep -c '"step"' out)" -ge $((60 * restart)) ] && [ "$(grep -c restart err)" = $((restart - 1)) ] && break
    sleep 0.05
  done
  kill -9 "$(nth_rank 2)" 2>/dev/null || complain "no rank to kill before restart $restart"
done
wait "$run" || complain "a run with restarts: exit $?: $(cat err)"
grep -q '^hplan: restart 2 of 3, from the newest checkpoint' err || complain "no second restart: $(cat err)"
cmp whole.st parts.st || complain "other weights after restarts"
rm -rf saved ./*-[0-9].db

# --- F19: ranks that srun starts without PMIx are alone each, and the plan is for more ---
SLURM_NTASKS=4 SLURM_PROCID=0 timeout -k 5 60 "$(dirname "$HPLAN")/hplan-exec" plan.db --steps=1 >out 2>err
got=$?
[ $got = 3 ] && grep -q 'needs 4 ranks, started with 1: srun --mpi=pmix -n 4' err || complain "a rank that is alone: exit $got: $(cat err)"

# --- F3: the launcher is killed, then hplan itself ---
start
kill -9 "$(pgrep -f "^mpirun.*$scratch")"
finish 137 15 "died (signal 9"
start
kill -9 "$(pgrep -f "^$HPLAN run plan.db.*$scratch")"
sleep 5
[ -z "$(ours)" ] || complain "hplan killed: ranks are left: $(ours | tr '\n' ' ')"
wait "$run"
rm -rf "$scratch"/run.db.tmp*

# --- F4: a rank is stopped; the right one is named although all others wait ---
start --deadline 3
kill -STOP "$(nth_rank 3)"
finish 124 20 "stalled: rank 2 gives no sign of life"
readable "stopped rank"

# --- F9: signals to hplan ---
for signal in TERM INT; do
  number=$(kill -l $signal)
  start
  kill -s $signal "$(pgrep -f "^$HPLAN run plan.db.*$scratch")"
  finish $((128 + number)) 15 "ended by signal $number"
  readable "SIG$signal"
done

# --- F6: folders that are missing, full disks ---
expect 73 run plan.db --steps 3 --trace r.db --save no/such/w.safetensors
[ ! -e r.db ] && [ -z "$(cat out)" ] || complain "a missing folder is noticed after training: $(cat out)"
before=$(sha256sum <run.db)
timeout -k 5 60 "$HPLAN" run plan.db --steps 3 --json --trace "$scratch/run.db" >/dev/full 2>err
[ $? = 74 ] || complain "/dev/full: $(cat err)"
[ "$before" = "$(sha256sum <run.db)" ] || complain "/dev/full: the earlier run.db has changed"
if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=2m tmpfs small 2>/dev/null; then
  mounted=$scratch/small
  cp run.db small/run.db 2>/dev/null || cp plan.db small/run.db
  expect 74 run plan.db --steps 3 --trace r.db --checkpoint small/saved # before anything starts
  grep -q 'checkpoints in small/saved need .*, 3 of .* each, and .* are free there' err || complain "no room for checkpoints: $(cat err)"
  [ ! -e small/saved ] || complain "a refused run has made the folder of its checkpoints"
  before=$(sha256sum <small/run.db)
  timeout -k 5 60 "$HPLAN" run plan.db --steps 10000000 --trace small/run.db >out 2>err
  [ $? = 74 ] || complain "full disk under the trace: $(cat err)"
  dd if=/dev/zero of=small/fill bs=64k 2>/dev/null
  expect 74 run plan.db --steps 3 --save small/w.safetensors --trace r.db # before anything starts
  grep -q -- '--save small/w.safetensors needs .*, and .* are free there' err && [ ! -e r.db ] || complain "no room for weights: $(cat out err)"
  rm small/fill
  mount -o remount,size=8m small
  timeout -k 5 60 "$HPLAN" run plan.db --steps 300 --json --save small/w.safetensors --trace r.db >out 2>err &
  run=$!
  for _ in $(seq 200); do
    [ "$(grep -c '"step"' out)" -ge 3 ] && break
    sleep 0.05
  done
  dd if=/dev/zero of=small/fill bs=64k 2>/dev/null # meanwhile
  finish 74 60 "small/w.safetensors.* failed: No space left on device"
  grep -q 'the trace up to there is in r.db' err && "$HPLAN" compare r.db | grep -q ', 299 steps .*status 74' || complain "full disk under --save: the trace is lost: $(cat err)"
  [ "$before" = "$(sha256sum <small/run.db)" ] || complain "full disk: the earlier run.db has changed"
  ls -d small/*.tmp* small/w* 2>/dev/null && complain "full disk: pieces are left"
  [ -z "$(ours)" ] || complain "full disk: processes are left"
else
  echo "no tmpfs can be mounted here: full disks under files are not tested"
fi

conclude "all faults ended well"
