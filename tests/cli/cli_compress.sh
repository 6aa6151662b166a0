#!/bin/bash
# cli_compress.sh - compress= on the command line: planned, explained and run on cpu and ref, which send the same codes;
# refused where it cannot be. HPLAN is the binary; hplan-exec lies beside it.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor

net=(--net cnn --image 28 --classes 10 --machine local --batch 8)
for strategy in dp=2,compress=allreduce:int8 $(all "codecs of low rank, of stages and of halos" &&
  echo dp=2,compress=allreduce:powersgd:2 stages=2,micro=2,compress=stage:fp16 sp=2x1,compress=halo:zfp16); do
  for device in cpu ref; do
    expect 0 simulate "${net[@]}" --gpus 2 --device $device --strategy $strategy --out $device.db
    expect 0 explain $device.db
    grep -q "${strategy##*=}: .* between ranks, .* to encode and decode; pays below" out || complain "$strategy: explain does not say what it saves"
    grep -qE " (encode|project) " out || complain "$strategy: nothing is encoded"
    expect 0 run $device.db --steps 3 --lr 0.05 --json --trace $device-run.db
    cp out $device.json
  done
  # a coarse bound: a value on the edge of two codes may fall to either side
  python3 - cpu.json ref.json <<'PY' || complain "$strategy: cpu and ref differ"
import json, sys
cpu, ref = ([json.loads(l) for l in open(f)] for f in sys.argv[1:])
assert len(cpu) == len(ref) == 4, (len(cpu), len(ref))
for a, b in zip(cpu[:3], ref[:3]):
    assert abs(a["loss"] - b["loss"]) <= 1e-2, (a, b)
assert cpu[3]["peak_bytes"] == cpu[3]["planned_bytes"], cpu[3]
PY
done

# --- where it cannot be ---
refused() { # STRATEGY WORDS OPTIONS...
  local strategy=$1 words=$2
  shift 2
  timeout -k 5 120 "$HPLAN" simulate --net cnn --image 28 "$@" --strategy "$strategy" >out 2>&1
  grep -q "$words" out || complain "$strategy $*: $(tail -n 3 out)"
}
refused dp=2,compress=allreduce:bf16 "device cuda has no such codec" --machine thesis-a100 --gpus 2
refused stages=2,compress=stage:bf16 "folded for inference" --machine local --gpus 2 --mode infer
refused sp=2x1,compress=halo:zfp31 "halo:zfp31 makes .* in blocks of 4 x 4" --machine local --gpus 2 --net mobilenetv2 --image 35
refused compress=bf16 "for example compress=allreduce:bf16+halo:int8" --machine local
refused dp=2,compress=halo:powersgd:2 "no codec for halo" --machine local
refused dp=2,compress=allreduce:zfp8 "no codec for allreduce" --machine local
# where ranks wait for gradients, what codecs and averages would gain is said, and is what they do gain
cat >slow.machine <<'END'
name=slow; nodes=4; node=1 x core; cores=1; nic=1 x 12.5MB/s, slow, latency=50us
device=core, memory=8GB, fp32=100GFLOP/s, bandwidth=20GB/s; cpu
END
slow=(--net cnn --image 28 --machine slow.machine --device cpu --batch 32)
expect 0 simulate "${slow[@]}" --strategy dp=4 --json --out slow.db
cp out slow.json-out
expect 0 simulate "${slow[@]}" --strategy dp=4,compress=allreduce:int8 --json --out slow8.db
python3 - <<'PY' || complain "gains of codecs are not those of their strategies: $(head -c 300 slow.json-out)"
import json
a, b = json.load(open("slow.json-out")), json.load(open("out"))
gain = a["gains"]["compress=allreduce:int8"]
step = lambda o: o["candidates"][0]["step_s"]
assert gain > 1.5 and abs(gain - step(a) / step(b)) < 1e-9 * gain, (gain, step(a), step(b))
assert a["gains"]["sync=local:8"] > 1.5, a["gains"]
PY
conclude "compressed messages are planned, explained, run and refused"
