#!/bin/bash
# reading.sh - ranks that read large images, or files that never come: as long as rows come others wait, however long that takes;
# where none do, the run ends with the rank named, and with what its process waits for.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" || exit 1
need_executor

# png FILE SIDE: black, one bit a pixel.
png() {
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

plan() {
  expect 0 simulate --net cnn --image 28 --classes 2 --machine local --batch 2 --strategy "$1" --out plan.db
}

# --- a large image: 0.3 MB that take longer to decode than the deadline, 6 s at 400 million pixels a second ---
deadline=3 # a busy machine leaves a rank without a core for a second
mkdir -p large/train/a large/train/b
png large/train/a/large.png 50000
png large/train/b/small.png 28
plan dp=2
expect 0 run plan.db --data large --no-shuffle --steps 1 --deadline $deadline --no-history --json
python3 - $deadline <<'END' || complain "the large image took no longer than the deadline: nothing was tested: $(cat out)"
import json, sys
steps = [json.loads(line) for line in open("out") if line.startswith('{"step"')]
assert steps[0]["step_s"] > float(sys.argv[1]), steps
END

# --- a file that never comes ---
cc -shared -fPIC -O1 -o hang.so "$(dirname "$0")/hang_open.c" -ldl || complain "no library that hangs"
mkdir -p hung/train/a hung/train/b
png hung/train/a/hang.png 28
png hung/train/b/small.png 28

# hangs HOW STRATEGY WORDS: the run ends by itself, with 124 and these words.
hangs() {
  plan "$2"
  local begin=$SECONDS
  HANG=$1 LD_PRELOAD=$scratch/hang.so timeout -k 5 60 "$HPLAN" run plan.db --data hung --steps 2 --deadline 2 --no-history >out 2>err </dev/null
  local got=$?
  [ $got = 124 ] || complain "$1 $2: exit $got, expected 124: $(cat err)"
  grep -q -- "$3" err || complain "$1 $2: no message says '$3': $(cat err)"
  [ $((SECONDS - begin)) -le 30 ] || complain "$1 $2: took $((SECONDS - begin)) s"
  ls -d "$scratch"/*.tmp* 2>/dev/null && complain "$1 $2: scratch files are left"
}
hangs sleep dp=2 'rank [01] gives no sign of life in `load image.*` of step 1: its process waits for a file that yields nothing'
hangs disk dp=2 'rank [01] gives no sign of life in `load image.*` of step 1: its process waits in the kernel for a disk or file system'
hangs disk dp=1 'no rank has moved for [0-9]* s as a disk or file system does not answer: rank 0 (process [0-9]*)'

conclude "who reads is waited for, who hangs is named"
