#!/bin/bash
# decoders.sh - the processes that decode a rank's images: one that crashes in the middle of a file ends the run with 65 and the file's
# name, one that is killed with 137; and none outlives its rank, however that ends.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" || exit 1
need_executor

# black, one bit a pixel: seconds of work in 0.3 MB
mkdir -p large/train/a large/train/b
python3 - large/train/a/large.png large/train/b/other.png <<'END'
import struct, sys, zlib
side = 50000
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
packed, row = zlib.compressobj(1), bytes(1 + (side + 7) // 8)
rows = b"".join(packed.compress(row) for _ in range(side)) + packed.flush()
for name in sys.argv[1:]:
    open(name, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)) +
                           chunk(b"IDAT", rows) + chunk(b"IEND", b""))
END
expect 0 simulate --net cnn --image 28 --classes 2 --machine local --batch 2 --strategy dp=2 --out plan.db

# below PID NAME: the processes that it has started, and these, of that name
below() {
  local p
  for p in $(pgrep -P "$1"); do
    [ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$2" ] && echo "$p"
    below "$p" "$2"
  done
}

# At least so many of the run's processes of that name, in $found.
await() {
  for _ in $(seq 300); do
    mapfile -t found < <(below "$run" "$2")
    [ "${#found[@]}" -ge "$1" ] && return
    sleep 0.1
  done
  complain "no $1 processes $2"
}

# decodes: the process that starts decoders, and a decoder of it that works
decodes() {
  for decoder in "${found[@]}"; do
    starter=$(awk '{print $4}' "/proc/$decoder/stat")
    [ "$(cat "/proc/$starter/comm" 2>/dev/null)" = hplan-decode ] && return
  done
  complain "no decoder among ${found[*]}"
}

# fails WHOM SIGNAL CODE WORDS: the run, when one of them is sent this
fails() {
  timeout -k 5 120 "$HPLAN" run plan.db --data large --no-shuffle --steps 1 --no-history >out 2>err </dev/null &
  run=$!
  await 4 hplan-decode # of two ranks, each with one that starts them
  decodes
  case $1 in
  decoder) kill -s "$2" "$decoder" ;;
  starter) kill -s "$2" "$starter" ;;
  rank) kill -s "$2" "$(awk '{print $4}' "/proc/$starter/stat")" ;;
  esac
  wait $run
  local got=$? p
  [ $got = "$3" ] || complain "$1, $2: exit $got, expected $3: $(cat err)"
  grep -q -- "$4" err || complain "$1, $2: no message says '$4': $(cat err)"
  for _ in $(seq 50); do
    left=
    for p in "${found[@]}"; do [ "$(cat "/proc/$p/comm" 2>/dev/null)" = hplan-decode ] && left+=" $p"; done
    [ -z "$left" ] && return
    sleep 0.1
  done
  complain "$1, $2: decoders are left:$left"
}

fails decoder SEGV 65 '[a-z]*\.png: its decoder died of signal 11'
fails decoder KILL 137 '[a-z]*\.png: its decoder, process [0-9]*, was killed'
fails starter KILL 137 '[a-z]*\.png: the process that starts decoders was killed'
fails rank KILL 137 'rank [01]'
conclude "decoders that die are named, and none outlives its rank"
