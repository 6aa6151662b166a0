#!/bin/bash
# cli_replay.sh - hplan bench replay: wrong words are explained; the bytes that ranks hand out are those of the formulas, by
# every back end that counts; no step is shorter than its compute; a mix is compared with the best single back end. No other
# time is asserted.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1

expect 2 bench replay
expect 2 bench replay dlrn
expect 2 bench replay dlrm:batch
expect 2 bench replay moe:top=99
expect 2 bench replay dlrm --gpus 1
expect 2 bench replay dlrm --comm nccl
expect 2 bench replay dlrm --comm alltoall:nosuch
expect 2 bench replay dlrm --rounds 0
expect 2 bench replay dlrm --as nosuchmachine
expect 3 bench replay dlrm --machine thesis-a100
expect 3 bench replay dlrm:batch=1000000,tables=4000,dim=4000 --gpus 2
grep -q "smaller batch" err || complain "too much memory: no fix is said: $(cat err)"
need_executor

# volumes NETWORK RANKS WAYS: volumes equal these formulas, by every way that counts, some of which are mixes
volumes() {
  expect 0 bench replay "$1" --gpus "$2" --comm "$3" --rounds 1 --seconds 0.05 --as thesis-a100 --json
  python3 - "$@" <<'PY' || complain "bench replay $*: $(head -c 600 out)"
import json, sys
o = json.load(open("out"))
want = {v["operation"]: v["sent_bytes"] for v in o["volumes"]}
n, asked = int(sys.argv[2]), sys.argv[3].split(",")
if sys.argv[1].startswith("dlrm"):
    top = 32 + 6 * 5 // 2
    params = 14 * 512 + 513 * 256 + 257 * 32 + (top + 1) * 1024 + 1025 * 1024 + 1025 * 512 + 513 * 256 + 257
    closed = {"alltoall": 2 * n * (n - 1) * 2048 * -(-5 // n) * 32 * 4, "allreduce": 2 * (n - 1) * 4 * params}
else:
    closed = {"alltoall": 2 * 4 * (n - 1) * 1024 * 128 * 2 * 4, "allreduce": 2 * 2 * (n - 1) * 16 * 128 * 128 * 4}
assert want == closed, (want, closed)
ways = {s["comm"]: s for s in o["series"]}
assert list(ways) == asked and all(s["mix"] == ("+" in name) for name, s in ways.items()), list(ways)
for name, s in ways.items():
    assert len(s["rounds_s"]) == 1 and all(t > 0 for t in s["rounds_s"]), s
    assert (name == o["best_single"]) != ("to_single" in s), s
    for op, bytes_ in want.items():
        counts = not (name == "mpi" or f"{op}:mpi" in name)
        assert (s.get(f"sent_{op}_bytes") == bytes_) if counts else f"sent_{op}_bytes" not in s, (name, s)
assert not ways[o["best_single"]]["mix"]
PY
}
dlrm=dlrm:batch=2048,tables=5,dim=32 moe=moe:layers=2,hidden=128,tokens=1024,top=2
volumes $dlrm 2 own,mpi,allreduce:own+alltoall:mpi
volumes $moe 2 own
if all "four ranks, by shared memory, too"; then
  for what in $dlrm $moe; do volumes "$what" 4 own,mpi,shm,allreduce:own+alltoall:mpi,allreduce:shm+alltoall:own; done
fi
# compute as long as a machine says whose devices do 1 Gflop/s: 6 times parameters times samples of this time, at least
cat >slow.machine <<'END'
name=slow; nodes=1; node=2 x slow
device=slow, memory=8GB, fp32=1GFLOP/s, bandwidth=1TB/s
END
expect 0 bench replay dlrm:batch=8,tables=2,dim=16 --gpus 2 --rounds 1 --seconds 0.05 --comm "own$(all "slow compute, by MPI" && echo ,mpi)" --as slow.machine --json
python3 - <<'PY' || complain "steps are shorter than their compute: $(cat out)"
import json
top = 16 + 3
params = 14 * 512 + 513 * 256 + 257 * 16 + (top + 1) * 1024 + 1025 * 1024 + 1025 * 512 + 513 * 256 + 257
least = 6 * 8 * params / 1e9
for s in json.load(open("out"))["series"]:
    assert min(s["rounds_s"]) >= least and s["predicted_s"] >= least, (least, s)
PY
ways=(--comm "own,allreduce:own+alltoall:mpi")
all "every mix of two back ends" && ways=() # what is measured where nothing is asked for
expect 0 bench replay moe:layers=1,hidden=16,tokens=16 --gpus 2 --rounds 2 --seconds 0.01 "${ways[@]}"
grep -q "^the best mix, .*interval" out || complain "no verdict on mixing: $(cat out)"
grep -q "own: the same" out || complain "no count beside the formula: $(cat out)"
conclude "bench replay: volumes counted equal their formulas"
