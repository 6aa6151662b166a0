#!/bin/bash
# reading.sh - ranks that read large images, or files that never come: as long as rows come others wait, however long that takes;
# where none do, the run ends with the rank named, and with what its process waits for.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/lib.sh
. "$here/../cli/lib.sh" || exit 1
need_executor
deadline=5 # one that ranks of a busy machine keep, as long as nobody hangs

# png FILE SIDE: black, one bit a pixel.
png() {
  mkdir -p "$(dirname "$1")"
  python3 - "$1" "$2" <<'END'
import struct, sys, zlib
side = int(sys.argv[2])
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
packed, row = zlib.compressobj(9), bytes(1 + (side + 7) // 8)
rows = b"".join(packed.compress(row) for _ in range(side)) + packed.flush()
open(sys.argv[1], "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)) +
                              chunk(b"IDAT", rows) + chunk(b"IEND", b""))
END
}

# waited FOLDER: the first step has taken longer than the deadline
waited() {
  timeout -k 5 900 "$HPLAN" run dp=2.db --data "$1" --no-shuffle --steps 1 --deadline $deadline --no-history --trace "$1.db" --json >"$1.out" 2>"$1.err" </dev/null ||
    complain "$1: exit $?: $(cat "$1.err")"
  python3 - "$1.out" $deadline <<'END'
import json, sys
steps = [json.loads(line) for line in open(sys.argv[1]) if line.startswith('{"step"')]
sys.exit(not steps[0]["step_s"] > float(sys.argv[2]))
END
}

# hangs NAME HOW STRATEGY WORDS: the run ends by itself, with 124 and these words.
hangs() {
  local got
  HANG=$2 LD_PRELOAD=$scratch/hang_open.so timeout -k 5 600 "$HPLAN" run "$3.db" --data hung --steps 2 --deadline $deadline --no-history --trace "$1.db" >"$1.out" 2>"$1.err" </dev/null
  got=$?
  [ $got = 124 ] || complain "$1: exit $got, expected 124: $(cat "$1.err")"
  grep -q -- "$4" "$1.err" || complain "$1: no message says '$4': $(cat "$1.err")"
  compgen -G "$1*.tmp*" && complain "$1: scratch files are left"
}

for strategy in dp=1 dp=2; do
  expect 0 simulate --net cnn --image 28 --classes 2 --machine local --batch 2 --strategy $strategy --out $strategy.db
done
for name in slow_rows hang_open; do
  cc -shared -fPIC -O1 -o $name.so "$here/$name.c" -ldl || complain "no library $name"
done
png slow/train/a/slow.png 28
png slow/train/b/small.png 28
png hung/train/a/hang.png 28
png hung/train/b/small.png 28

# beside each other, as they wait: each counts its failures in a subshell
(
  failures=0
  export SLOW_MS=250 LD_PRELOAD=$scratch/slow_rows.so # 7 s
  waited slow || complain "28 rows took no longer than the deadline"
  exit $failures
) &
slow=$!
(
  failures=0
  hangs sleep sleep dp=2 'rank [01] gives no sign of life in `load image.*` of step 1: its process waits for a file that yields nothing'
  exit $failures
) &
sleeps=$!
hangs disk disk dp=1 'no rank has moved for [0-9]* s as a disk or file system does not answer: rank 0 (process [0-9]*)'
wait $slow
failures=$((failures + $?))
wait $sleeps
failures=$((failures + $?))

if all "a disk that does not answer, one rank of two"; then
  hangs disk_of_two disk dp=2 'rank [01] gives no sign of life in `load image.*` of step 1: its process waits in the kernel for a disk or file system'
fi
# one that is large: 0.3 MB, 6 s at 400 million pixels a second; larger where that is no more than the deadline
if all "a large image"; then
  deadline=3 side=50000
  png large/train/b/small.png 28
  png large/train/a/large.png $side
  while ! waited large && [ "$failures" = 0 ] && [ $side -lt 400000 ]; do
    side=$((side * 3 / 2))
    png large/train/a/large.png $side
  done
fi
conclude "who reads is waited for, who hangs is named"
