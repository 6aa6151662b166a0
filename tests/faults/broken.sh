#!/bin/bash
# broken.sh - folders with images that cannot be read, run --on-broken: in training a run with such a file is, bit for bit, one in which the next
# file lies in its place, whatever the strategy and though no tile reads all of it; evaluation does without it; each is named once;
# where they are too many the run ends.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" || exit 1
# shellcheck source=tests/cli/runs.sh
. "$(dirname "$0")/../cli/runs.sh" || exit 1
need_executor

# Two classes of 8 noisy images of 48 x 48. `good` is as `bad`, but for what lies in the place of what is broken: in training the
# next file, in the test split nothing. masked: 8 pairs; of the fourth the mask has another size.
python3 - <<'PY'
import os, random, shutil, struct, zlib
def png(path, h, w, value):
    chunk = lambda t, d: struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
    rows = b"".join(b"\0" + bytes(value() for _ in range(w)) for _ in range(h))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", h, w, 8, 0, 0, 0, 0)) +
                           chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
draw = random.Random(19)
for split in ("train", "test"):
    for k, name in enumerate("ab"):
        for i in range(8):
            png(f"bad/{split}/{name}/{i}.png", 48, 48, lambda: draw.randrange(120) + 120 * k)
for i in range(8):
    png(f"badmask/train/images/{i}.png", 48, 48, lambda: draw.randrange(256))
    png(f"badmask/train/masks/{i}.png", 48, 48 - (i == 3), lambda: draw.randrange(2))
shutil.copytree("bad", "good")
shutil.copytree("badmask", "goodmask")
shutil.copy("good/train/a/4.png", "good/train/a/3.png")
os.remove("good/test/b/7.png")
for kind in ("images", "masks"):
    shutil.copy(f"goodmask/train/{kind}/4.png", f"goodmask/train/{kind}/3.png")
def cut(path): # in its last tenth: the upper tiles do not see it
    whole = open(path, "rb").read()
    open(path, "wb").write(whole[:len(whole) * 9 // 10])
cut("bad/train/a/3.png")
open("bad/test/b/7.png", "wb").write(b"<html>no image</html>")
PY

run() { expect "$1" run "$2.db" --force --no-history --json --trace trace.db "${@:3}"; }
# key FILE NAME: of its last line
key() { tail -n 1 "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1]))' "$2"; }
losses() { python3 -c 'import json, sys; print(*["%.4f" % j["loss"] for j in map(json.loads, open(sys.argv[1])) if "step" in j])' "$1"; }
named() { # FILE TIMES
  local n
  n=$(grep -c "^note: left out: $1[: ]" err)
  [ "$n" = "$2" ] || complain "$1 is named $n times, expected $2: $(head -c 600 err)"
}
says() { grep -q -- "$1" err || complain "no word of '$1': $(head -c 600 err)"; }

for strategy in dp=1 sp=2x1 $(all "three more strategies" && echo dp=2,bn=all sp=1x2 stages=2); do
  name=${strategy%,bn=all}
  expect 0 simulate --net cnn --image 32 --classes 2 --machine local --batch 4 --strategy $strategy --out "$name.db"
  run 0 "$name" --data good --steps 6 --save good.st
  losses out >good.loss
  run 0 "$name" --data bad --steps 6 --save bad.st --on-broken skip
  cmp -s good.st bad.st || complain "$strategy: other weights than with the next file in the place of the broken one"
  losses out >bad.loss
  cmp -s good.loss bad.loss || complain "$strategy: other losses: $(cat good.loss bad.loss)"
  [ -e first.loss ] || cp bad.loss first.loss
  python3 -c 'import sys
one, other = [[float(x) for x in open(f).read().split()] for f in sys.argv[1:]]
assert len(one) == len(other) == 6 and all(abs(a - b) < 1e-3 for a, b in zip(one, other))' first.loss bad.loss ||
    complain "$strategy: other losses than one rank: $(cat first.loss bad.loss)"
  named bad/train/a/3.png 1
  [ "$(key out images_left_out)" = 1 ] || complain "$strategy: $(tail -n 1 out) does not say how many images are left out"
  [ "$(python3 -c 'import sqlite3; print(*sqlite3.connect("trace.db").execute(
    "select value from counter where name = ?", ("images_left_out",)).fetchone())')" = 1.0 ] || complain "$strategy: not in the trace"
done

# go_on PLAN: a run that goes on from a checkpoint is the run without a break, also from one that ended where the broken file came.
go_on() {
  local plan=$1
  rm -rf saved ended
  run 0 "$plan" --data bad --steps 6 --on-broken skip --save whole.st
  run 0 "$plan" --data bad --steps 3 --on-broken skip --checkpoint saved --every 3
  run 0 "$plan" --data bad --steps 6 --on-broken skip --checkpoint saved --resume --save resumed.st
  cmp -s whole.st resumed.st || complain "a run that went on ended with other weights"
  run 65 "$plan" --data bad --steps 6 --checkpoint ended --every 1
  says '^hplan: bad/train/a/3.png: '
  run 0 "$plan" --data bad --steps 6 --on-broken skip --checkpoint ended --resume --save resumed.st
  cmp -s whole.st resumed.st || complain "a run that went on where it had met the broken file ended with other weights"
}

# evaluate PLAN: 15 images of 16
evaluate() {
  local plan=$1 accuracy loss
  run 0 "$plan" --data good --steps 6 --eval
  accuracy=$(key out accuracy)
  loss=$(key out eval_loss)
  run 0 "$plan" --data bad --steps 6 --eval --on-broken skip
  python3 -c 'import sys; assert all(abs(float(a) - float(b)) < 1e-5 for a, b in zip(sys.argv[1::2], sys.argv[2::2]))' \
    "$accuracy" "$(key out accuracy)" "$loss" "$(key out eval_loss)" || complain "evaluation: $(tail -n 1 out), expected $accuracy, $loss"
  [ "$(key out eval_images) $(key out test_images) $(key out images_left_out)" = "15 16 2" ] || complain "evaluation: $(tail -n 1 out)"
  named bad/train/a/3.png 1
  named bad/test/b/7.png 1
  expect 0 run "$plan.db" --force --no-history --trace trace.db --data bad --steps 2 --on-broken skip
  grep -q '^images left out since they cannot be read: 1$' out || complain "the summary does not say how many are left out: $(cat out)"
}

for plan in dp=1 $(all "goes on and evaluates on two ranks" && echo dp=2); do
  go_on "$plan"
  evaluate "$plan"
done

# A mask belongs to its image.
for strategy in dp=1 $(all "masks of tiles" && echo sp=2x1); do
  expect 0 simulate --net unet:8 --image 32 --classes 2 --machine local --batch 4 --strategy "$strategy" --out masked.db
  run 0 masked --data goodmask --steps 4 --save good.st
  run 0 masked --data badmask --steps 4 --save bad.st --on-broken skip
  cmp -s good.st bad.st || complain "masks: other weights than with the next pair in the place of the broken one"
  named badmask/train/masks/3.png 1
done

# Of 16 images 1 % is one, rounded up.
cp bad/test/b/7.png bad/train/b/0.png
run 65 dp=1 --data bad --steps 2 --on-broken skip
says '2 of the first [0-9]* images .* at most 1 (1 %)'
says '^broken: bad/train/'
run 0 dp=1 --data bad --steps 2 --on-broken skip:10
run 0 dp=1 --data good --steps 2 --on-broken skip:0
for image in bad/train/*/*.png; do cp bad/test/b/7.png "$image"; done
run 65 dp=1 --data bad --steps 2 --on-broken skip:100

# Signals end the search: with checkpoints as one that comes between steps, though there is nothing to save.
python3 - <<'PY'
import os, struct, zlib
side, links = 3000, 8000 # minutes
chunk = lambda t, d: struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
packed, row = zlib.compressobj(1), b"\0" + bytes(i * 7 % 256 for i in range(side * 3))
rows = b"".join(packed.compress(row) for _ in range(side)) + packed.flush()
os.makedirs("long/train/a")
with open("long/train/a/0.png", "wb") as f:
    f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + chunk(b"IDAT", rows) +
            chunk(b"IEND", b""))
for i in range(1, links):
    os.link("long/train/a/0.png", f"long/train/a/{i}.png")
PY
ends() { # CODE OPTIONS: a run to which SIGTERM is sent while it looks
  local code=0
  : >err # an earlier run's would be taken for this one's
  timeout -k 5 600 "$HPLAN" run dp=1.db --force --no-history --trace trace.db --data long --steps 2 --on-broken skip "${@:2}" >out 2>err </dev/null &
  local pid=$!
  await "a run that looks" grep -q 'are read once before' err
  kill -TERM "$(children_of $pid)"
  wait $pid || code=$?
  [ "$code" = "$1" ] || complain "SIGTERM, ${*:2}: exit $code, expected $1: $(cat err)"
}
ends 143
ends 75 --checkpoint interrupted
compgen -G 'interrupted/step-*' && complain "a checkpoint of no step"

run 2 dp=1 --data good --on-broken often
run 2 dp=1 --data good --on-broken skip:101
run 2 dp=1 --data synthetic --on-broken skip
conclude "images that cannot be read are left out, the same on all ranks"
