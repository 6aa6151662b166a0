#!/bin/bash
# preempt.sh - a job whose nodes a more urgent one takes: with time to save (GRACE=N seconds of Slurm's GraceTime) or without (0), it is queued
# again, goes on when the other has ended, and ends with the weights of a run that nobody disturbed. One that is cancelled
# stays so. By hand, as root: HPLAN=build/hplan tests/slurm/preempt.sh. Needs what requeue.sh needs; two minutes for each.
# shellcheck source=tests/slurm/lib.sh
. "$(dirname "$0")/lib.sh"

"$HPLAN" simulate --net cnn --image 28 --batch 64 --gpus 2 --strategy dp=2 --machine local --out plan.db >/dev/null
steps=${STEPS:-700}
"$HPLAN" run plan.db --launcher mpirun "${train[@]}" --steps "$steps" --save whole.st --trace whole.db >whole.log

# starts NAME: a job that has saved a checkpoint
starts() {
  "$HPLAN" sbatch plan.db -t 10 --every 50 --notice 30 -J "$1" -- "${train[@]}" --steps "$steps" --save "$1.st" >"$1.sh"
  job=$(sbatch --parsable "$1.sh")
  for _ in $(seq 300); do
    compgen -G "$1*/step-*" >/dev/null && return
    sleep 0.2
  done
  die "$1: no checkpoint"
}

starts cnn
urgent=$(sbatch --parsable -p urgent -N2 --exclusive -o urgent.log --wrap 'sleep 3')
end_of "$urgent"
end_of "$job"
restarts=$(scontrol -o show job "$job" | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p')
[ "$restarts" = 1 ] || die "queued again $restarts times, expected 1"
cmp whole.st cnn.st || die "other weights than those of a run that nobody disturbed"

starts gone
scancel "$job"
for _ in $(seq 100); do
  state=$(scontrol -o show job "$job")
  case $state in *JobState=CANCELLED*) [[ $(squeue -h -j "$job" | wc -l) = 0 ]] && break ;; esac
  sleep 0.5
done
case $state in *Restarts=0*JobState=CANCELLED* | *JobState=CANCELLED*Restarts=0*) ;; *) die "a job that was cancelled: $state" ;; esac
echo "GraceTime ${GRACE:-0}: queued again, the weights are those of a run that nobody disturbed, bit for bit; one that was cancelled is not"
