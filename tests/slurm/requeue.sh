#!/bin/bash
# requeue.sh - a job script of `hplan sbatch` on a real Slurm: its time ends, it is queued again, it goes on, and ends with the weights
# of a run without a break. By hand, as root: HPLAN=build/hplan tests/slurm/requeue.sh. Needs slurm-wlm, munge, dataset-fashion-mnist.
# A minute is Slurm's shortest limit: 3 to 5 minutes in all.
# shellcheck source=tests/slurm/lib.sh
. "$(dirname "$0")/lib.sh"

# --- a rank on each of two nodes, started by srun ---
"$HPLAN" simulate --net cnn --image 28 --batch 64 --gpus 2 --strategy dp=2 --out two.db --machine \
  'nodes=2; node=1 x cpu; cores=1; nic=1 x 10Gb/s; device=cpu, memory=4GB, fp32=60GFLOP/s, bandwidth=10GB/s' >/dev/null
"$HPLAN" sbatch two.db -t 5 -J two -- "${train[@]}" --steps 30 --save two.st >two.sh
end_of "$(sbatch --parsable two.sh)"
[ -s two.st ] || die "two nodes: no weights"

# --- without PMIx every rank believes that it is alone: refused ---
srun --quiet --mpi=none -N2 -n2 hplan-exec two.db --steps=1 >alone.log 2>&1 && die "ranks without PMIx ran"
grep -q 'srun --mpi=pmix' alone.log || die "ranks without PMIx: the message does not say what to do"

# --- the time ends: saved, queued again, gone on ---
"$HPLAN" simulate --net cnn --image 28 --batch 64 --gpus 2 --strategy dp=2 --machine local --out plan.db >/dev/null
# so many steps as take three jobs' time here and now
seconds=$(date +%s)
"$HPLAN" run plan.db --launcher mpirun "${train[@]}" --steps 300 --trace few.db >few.log
seconds=$(($(date +%s) - seconds + 1))
steps=${STEPS:-$((300 * 90 / seconds))}
"$HPLAN" run plan.db --launcher mpirun "${train[@]}" --steps "$steps" --save whole.st --trace whole.db >whole.log
"$HPLAN" sbatch plan.db -t 1 --notice 30 -J cnn -- "${train[@]}" --steps "$steps" --save parts.st >job.sh
job=$(sbatch --parsable job.sh)
end_of "$job"
restarts=$(scontrol -o show job "$job" | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p')
[ "$restarts" -ge 1 ] || die "the job was over before its time: STEPS=$((10 * steps)) $0"
cmp whole.st parts.st || die "other weights than those of a run without a break"
grep -q 'could not be queued again' "cnn-$job.log" && die "it was queued again, and said that it could not be"
for attempt in $(seq 0 "$restarts"); do
  [ -s "cnn-$attempt.db" ] || die "attempt $attempt left no trace"
done
echo "queued again $restarts times: the weights are those of a run without a break, bit for bit; $(wc -l <"cnn-$job.log") lines of log"
