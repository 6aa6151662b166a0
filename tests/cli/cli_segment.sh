#!/bin/bash
# cli_segment.sh - training with a class per pixel through the command line: however the image, the batch and the net
# are split, losses, accuracy and intersection over union are one rank's (float64); and a U-Net learns.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor
here=$(cd "$(dirname "$0")" && pwd)

python3 "$here/../support/make_discs.py" discs 40 52 8 3

# --- any split gives the same numbers: the masks have pixels that do not count, and the last test batch is not full ---
expect 0 simulate --net unet:2 --image 40x52 --classes 2 --machine local --device ref --batch 4 --strategy micro=2 --out one.db
expect 0 run one.db --steps 8 --lr 0.1 --data discs --eval --json
cp out one.json
for strategy in sp=2x1,micro=2 stages=2,micro=2,sched=1f1b $(all "five more ways to split a batch of masks" &&
  echo sp=1x3,micro=2 sp=2x2,micro=2 dp=2 dp=2,sp=2x1 sp=2x1,stages=2,micro=2,sched=gpipe); do
  expect 0 run one.db --plan "$strategy" --steps 8 --lr 0.1 --data discs --eval --json
  python3 - one.json out <<'PY' || complain "$strategy: not one rank's numbers"
import json, sys
one, other = ([json.loads(l) for l in open(f)] for f in sys.argv[1:])
assert len(one) == len(other) == 9, (len(one), len(other))
for a, b in zip(one, other):
    for key in ("loss", "accuracy", "eval_loss", "iou"):
        assert (key in a) == (key in b) and abs(a.get(key, 0) - b.get(key, 0)) <= 1e-9, (key, a, b)
assert 0.5 < other[8]["iou"] <= 1 and other[8]["peak_bytes"] == other[8]["planned_bytes"], other[8]
PY
done

# --- it learns: discs are brighter than the background, smaller than the noise ---
expect 0 simulate --net unet:4 --image 40x52 --classes 2 --machine local --batch 4 --strategy dp=1 --out cpu.db
expect 0 run cpu.db --epochs 30 --lr 0.05 --data discs --eval --json
python3 - out <<'PY' || complain "the U-Net does not learn: $(tail -1 out)"
import json, sys
final = json.loads(open(sys.argv[1]).read().splitlines()[-1])
assert final["iou"] > 0.8 and final["accuracy"] > 0.9, final
PY

# --- for people; synthetic maps; masks scaled with their images ---
expect 0 run cpu.db --steps 1 --data discs --eval
grep -q 'intersection over union of the foreground' out || complain "the summary has no intersection over union: $(cat out)"
expect 0 run cpu.db --steps 1
expect 0 run cpu.db --steps 1 --data discs --resize 60

# --- refusals: what does not fit is said before the run ---
expect 65 run cpu.db --data fashion-mnist
grep -q '{train,test}/{images,masks}' err || complain "classes for a map of labels: $(cat err)"
expect 0 simulate --net cnn --image 40x52 --classes 2 --machine local --batch 4 --strategy dp=1 --out cnn.db
expect 65 run cnn.db --data discs
grep -q 'class folders' err || complain "masks for a classifier: $(cat err)"
rm discs/train/masks/003.png
expect 65 run cpu.db --data discs
grep -q 'masks/003.png is missing' err || complain "a mask that is missing: $(cat err)"

conclude "segmentation passed"
