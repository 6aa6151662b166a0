#!/bin/bash
# cli_nonfinite.sh - numbers that are not finite: a step with them changes nothing where it is skipped, on any number of ranks; what
# came first is named, for parameters and images that are made so large; and what cannot be done is said. HPLAN is the binary.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../lib.sh" || exit 1
need_executor

# Images of black, one of white: divided by a std of 3e-39 a white pixel is just finite, and sums of some are not. A batch of 4, in
# order: step 3 has it.
python3 - <<'PY'
import os, struct, zlib
def png(path, v, n=32):
    chunk = lambda t, d: struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
    rows = b"".join(b"\0" + bytes([v] * n) for _ in range(n))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", n, n, 8, 0, 0, 0, 0)) +
                           chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for split in ("train", "test"):
    for i in range(16):
        folder = f"d/{split}/{'ab'[i // 8]}"
        os.makedirs(folder, exist_ok=True)
        png(f"{folder}/{i:02d}.png", 255 if i == 9 and split == "train" else 0)
PY
images=(--data d --no-shuffle --mean 0 --std 3e-39 --lr 0.01)

# plan NAME STRATEGY [OPTIONS]
plan() { expect 0 simulate --net resnet-v1-20 --image 32 --classes 2 --machine local --batch 4 --strategy "$2" "${@:3}" --out "$1.db"; }
# run CODE NAME [OPTIONS]
run() { expect "$1" run "$2.db" --force --json --no-history --trace trace.db "${@:3}"; }
said() { grep -q -- "$1" "$2" || complain "no word of '$1': $(tail -n 2 "$2" | head -c 600)"; }

plan one dp=1,micro=2 --clip-norm --optimizer adamw
plan two dp=2 --clip-norm
plan stages stages=2,micro=2 --clip-norm
plan parts dp=2,zero=2 --clip-norm
for name in one two $(all "stages, and parts of the state: steps that are skipped" && echo stages parts); do
  run 0 "$name" "${images[@]}" --steps 2 --on-nan skip --save before.st
  said '"skipped_steps":0' out
  run 0 "$name" "${images[@]}" --steps 3 --on-nan skip --save after.st
  cmp -s before.st after.st || complain "$name: a step that was skipped changed what is saved"
  said '"step":3,"loss":null.*"skipped":true,"not_finite":"the output of layer conv1 in the forward pass' out
  said '"skipped_steps":1' out
done
for name in one $(all "several ranks: what comes after a step that is skipped" && echo two stages parts); do
  run 0 "$name" "${images[@]}" --steps 3 --on-nan skip --save before.st
  run 0 "$name" "${images[@]}" --steps 4 --on-nan skip --save after.st
  cmp -s before.st after.st && complain "$name: nothing is learnt after a step that was skipped"
  run 3 "$name" "${images[@]}" --steps 4
  said 'the loss of step 3 is not a finite number.*: the output of layer conv1 in the forward pass' err
  run 3 "$name" "${images[@]}" --steps 4 --on-nan skip:1
  said '1 steps in a row, the last of them step 3,.*: the output of layer conv1' err
done
run 0 one "${images[@]}" --steps 3 --on-nan skip
said 'layer conv1 in the forward pass (micro-batch ' out

# A run that goes on from a checkpoint after a skipped step is the run without a break.
run 0 one "${images[@]}" --steps 4 --on-nan skip --save whole.st
run 0 one "${images[@]}" --steps 3 --on-nan skip --checkpoint saved --every 3
run 0 one "${images[@]}" --steps 4 --on-nan skip --checkpoint saved --resume --save resumed.st
grep -q "the run begins" err && complain "nothing to go on from: $(cat err)"
said '"skipped_steps":1' out
cmp -s whole.st resumed.st || complain "a run that went on after a skipped step ended with other weights"

# spoil IN OUT NAME NUMBER: the first element of a parameter
spoil() {
  python3 - "$@" <<'PY'
import json, struct, sys
path, out, name, number = sys.argv[1:]
data = bytearray(open(path, "rb").read())
n = struct.unpack_from("<Q", data)[0]
at = 8 + n + json.loads(data[8:8 + n])[name]["data_offsets"][0]
struct.pack_into("<f", data, at, float(number))
open(out, "wb").write(data)
PY
}
# A scale of batch norm that is finite, and what it scales is not: normalised numbers are larger than 1.2 somewhere.
run 0 one --data synthetic --steps 1 --save good.st
for layer in layer1.1.bn1 $(all "another layer" && echo layer2.0.bn1); do
  spoil good.st bad.st "$layer.weight" 3e38
  for plan in one stages $(all "a parameter on two replicas" && echo two); do
    run 3 $plan --data synthetic --steps 9 --init bad.st --on-nan skip:2
    said "2 steps in a row, the last of them step 2,.*: the output of layer $layer in the forward pass" err
  done
  run 3 one --data synthetic --steps 9 --init bad.st
  said "of step 1 is not a finite number.*: the output of layer $layer in the forward pass" err
done
spoil good.st bad.st conv1.weight nan
run 65 one --data synthetic --steps 9 --init bad.st --on-nan skip
said "conv1.weight' holds a value that is not a finite number" err

# Where the plan does not wait, the last layer's gradient is what is left to see.
plan plain dp=2
run 3 plain "${images[@]}" --steps 4
said 'the loss of step 3 is not a finite number.*: of all gradients, from the last layer on, that of fc\.' err

run 3 plain "${images[@]}" --steps 4 --on-nan skip
said '--clip-norm' err
run 2 one --on-nan skip:0
run 2 one --on-nan often
said 'stop, skip, skip:N or go-on' err
conclude "numbers that are not finite: skipped and named"
