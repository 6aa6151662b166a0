#!/bin/bash
# cli_sbatch.sh - the job scripts that hplan sbatch writes: what batch systems read in them, and what they do with signals, with an hplan and a
# scontrol of known behaviour. HPLAN is the binary.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1

expect 0 simulate --net cnn --image 28 --batch 8 --gpus 2 --machine 'nodes=2; node=1 x a100-40' --strategy dp=2 --out "it's \$(touch pwned).db"
for kind in slurm pbs plain; do
  expect 0 sbatch "it's \$(touch pwned).db" -t 1:00:00 --kind $kind -m 'a,b' -- --data "t'x y" --epochs 9
  cp out $kind.sh
  bash -n $kind.sh || complain "sbatch --kind $kind: no shell script: $(cat $kind.sh)"
  if command -v shellcheck >/dev/null; then
    shellcheck -e SC2016 $kind.sh >err || complain "sbatch --kind $kind: $(cat err)"
  fi
done
for line in '--nodes=2' '--ntasks=2' '--ntasks-per-node=1' '--gpus-per-node=1' '--time=1:00:00' '--signal=B:USR1@120' '--requeue'; do
  grep -qx "#SBATCH $line" slurm.sh || complain "sbatch: no $line: $(cat slurm.sh)"
done
grep -qx '#PBS -l select=2:ncpus=1:mpiprocs=1:ngpus=1' pbs.sh || complain "sbatch --kind pbs: $(cat pbs.sh)"
grep -q 'sleep 3480' pbs.sh || complain "sbatch --kind pbs: nobody signals: $(cat pbs.sh)"
mkdir -p jobs
cat >jobs/hplan <<'EOP'
#!/bin/bash
printf '%s\n' "$@" >words
trap 'echo saved >>log; exit 75' USR1 TERM
touch started
[ -z "${ENDS-}" ] || exit "$ENDS"
while :; do sleep 0.05; done
EOP
cat >jobs/scontrol <<'EOP'
#!/bin/bash
if [ "$1" = -o ]; then
  echo "JobId=$4 JobState=RUNNING Reason=None PreemptTime=${PREEMPTED:-None}"
  exit
fi
echo "$*" >>log
exit "${REFUSES:-0}"
EOP
printf '#!/bin/bash\ntrue\n' >jobs/module
printf '#!/bin/bash\n[ "$1" = 60 ] || exec /bin/sleep "$1"\n' >jobs/sleep
chmod +x jobs/*
# awaits PROCESS: does it catch USR1 and TERM?
awaits() {
  local mask
  mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
  [ $((0x$mask & 0x4200)) = $((0x4200)) ]
}
# job KIND SIGNAL: its script with that signal once hplan runs, and both heed signals; sets status
job() {
  rm -f log started
  PATH=$PWD/jobs:$PATH SLURM_JOB_ID=17 bash "$1.sh" 2>err &
  local script=$!
  if [ "$2" != none ]; then
    for _ in $(seq 1200); do [ -e started ] && awaits $script && break; sleep 0.05; done
    kill -s "$2" $script
  fi
  wait $script
  status=$?
}
job slurm USR1
[ $status = 0 ] && [ "$(tr '\n' ' ' <log)" = 'saved requeue 17 ' ] || complain "a job whose time is nearly over: $status, $(cat log err)"
[ "$(sed -n 2p words)" = "it's \$(touch pwned).db" ] && [ "$(tail -4 words | head -2 | tr '\n' ' ')" = "--data t'x y " ] ||
  complain "words of a job: $(cat words)"
REFUSES=1 job slurm USR1
[ $status = 75 ] && grep -q 'submit it once more' err || complain "a job that cannot be queued again: $status, $(cat err)"
job slurm TERM
[ $status = 75 ] && [ "$(cat log)" = saved ] || complain "a job that is cancelled: $status, $(cat log)"
# a signal before the script knows its run
# shellcheck disable=SC2016
sed 's/^run=\$!$/kill -s TERM $$; until [ -e started ]; do sleep 0.05; done; run=$!/' slurm.sh >early.sh
job early none
[ $status = 75 ] && [ "$(cat log)" = saved ] || complain "a job that is cancelled as its run begins: $status, $(cat log err)"
PREEMPTED=2026-01-02T03:04:05 job slurm TERM
[ $status = 0 ] && [ "$(tr '\n' ' ' <log)" = 'saved requeue 17 ' ] || complain "a job that makes room: $status, $(cat log err)"
ENDS=3 job slurm none
[ $status = 3 ] && [ ! -e log ] || complain "a job that fails: $status"
job plain USR1
[ $status = 75 ] && [ "$(cat log)" = saved ] || complain "a plain job: $status, $(cat log)"
[ ! -e pwned ] || complain "a name in a job script was executed"
expect 2 sbatch "it's \$(touch pwned).db" -t soon
expect 2 sbatch "it's \$(touch pwned).db" -t 1:00
expect 2 sbatch "it's \$(touch pwned).db" --kind lsf
expect 2 sbatch "it's \$(touch pwned).db" --partition 'a b'
if [ -x "$(dirname "$HPLAN")/hplan-exec" ]; then # which judges them
  for wrong in '--lr-schedule cosin' '--steps -3' '--std 0' '--on-nan foo' '--on-broken skip:200' '--device gpu' '--clip-norm -1' '--bands x' \
    '--launcher foo' '--resize -4' '--keep 0' '--epochs 2 --steps 3' '--every soon'; do
    # shellcheck disable=SC2086 # words
    expect 2 sbatch "it's \$(touch pwned).db" -t 1:00:00 -- $wrong
    [ ! -s out ] || complain "sbatch -- $wrong: a script all the same"
  done
  expect 0 sbatch "it's \$(touch pwned).db" -t 1:00:00 -- --lr-schedule cosine --steps 3 --std 0.2 --on-nan skip:3 --keep 3 --resize 28 --bands 1
fi

conclude "jobs save, go into the queue again and say how they ended"
