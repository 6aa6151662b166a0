#!/bin/bash
# decoders.sh - the processes that decode a rank's images: one that crashes in the middle of a file ends the run with 65 and the file's
# name, one that is killed with 137; and none outlives its rank, however that ends.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/lib.sh
. "$here/../cli/lib.sh" || exit 1
# shellcheck source=tests/cli/runs.sh
. "$here/../cli/runs.sh" || exit 1
need_executor

# images of which every row takes a second
cc -shared -fPIC -O1 -o slow_rows.so "$here/slow_rows.c" -ldl || complain "no library slow_rows"
mkdir -p slow/train/a slow/train/b
python3 - slow/train/a/slow.png slow/train/b/slow-too.png <<'END'
import struct, sys, zlib
side = 2000
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = zlib.compress(bytes(side * (1 + (side + 7) // 8)), 1)
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

# decode PID: the run's processes that decode, in $found: of two ranks, each with one that starts them
decode() {
  mapfile -t found < <(below "$1" hplan-decode)
  [ "${#found[@]}" -ge 4 ] && reads_rows
}

# reads_rows: the process that starts decoders, and a decoder of it that is in the middle of a file, as it has that open
reads_rows() {
  for decoder in "${found[@]}"; do
    starter=$(awk '{print $4}' "/proc/$decoder/stat")
    [ "$(cat "/proc/$starter/comm" 2>/dev/null)" = hplan-decode ] || continue
    find "/proc/$decoder/fd" -lname '*slow*.png' 2>/dev/null | grep -q . && return
  done
  return 1
}

none_left() {
  local p
  for p in "${found[@]}"; do
    [ "$(cat "/proc/$p/comm" 2>/dev/null)" != hplan-decode ] || return 1
  done
}

# fails WHOM SIGNAL CODE WORDS: the run, when one of them is sent this
fails() {
  local got job
  SLOW_MS=1000 LD_PRELOAD=$scratch/slow_rows.so timeout -k 5 600 "$HPLAN" run plan.db --data slow --no-shuffle --steps 1 --no-history >out 2>err </dev/null &
  job=$!
  await "decoders at work" decode $job
  case $1 in
  decoder) kill -s "$2" "$decoder" ;;
  starter) kill -s "$2" "$starter" ;;
  rank) kill -s "$2" "$(awk '{print $4}' "/proc/$starter/stat")" ;;
  esac
  wait $job
  got=$?
  [ $got = "$3" ] || complain "$1, $2: exit $got, expected $3: $(cat err)"
  grep -q -- "$4" err || complain "$1, $2: no message says '$4': $(cat err)"
  await "$1, $2: the end of decoders ${found[*]}" none_left
}

fails decoder SEGV 65 'slow.*\.png: its decoder died of signal 11'
fails starter KILL 137 'slow.*\.png: the process that starts decoders was killed'
fails rank KILL 137 'rank [01]'
if all "a decoder that is killed"; then
  fails decoder KILL 137 'slow.*\.png: its decoder, process [0-9]*, was killed'
fi
conclude "decoders that die are named, and none outlives its rank"
