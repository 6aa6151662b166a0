#!/bin/bash
# flips.sh - a plan.db, a run.db and a checkpoint in which one byte is another: every command that reads them refuses the file (65
# and one message), or says what it says of the undamaged one. FLIPS=N: so many places of each file (3; 8 in the whole suite), evenly spaced over those that
# are not zero, as most of a small database is empty; more than a file has bytes: all of them. At each the lowest bit, the highest or
# all are inverted.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" || exit 1
need_executor

expect 0 simulate --net cnn --image 8 --classes 2 --machine local --batch 4 --strategy dp=2 --out plan.db
expect 0 run plan.db --deterministic --steps 2 --trace run.db --checkpoint saved --every 2 --no-history
cat >flips.py <<'END'
import glob, os, re, subprocess, sys
hplan, places = os.environ["HPLAN"], int(os.environ["FLIPS"])
MASKS = (0x01, 0x80, 0xff)
reads = {"plan.db": ["explain plan.db --json", "run plan.db --steps 2 --dry-run --json", "export plan.db --csv -o -"],
         "run.db": ["compare run.db --json", "export run.db --csv -o -"]}
# `run --resume` and `export` take what `verify` takes (checkpoints/shards.h)
for path in sorted(glob.glob("saved/step-*/*")):
    reads[path] = ["checkpoint verify saved", "checkpoint export saved -o -"]

def said(words):
    r = subprocess.run([hplan] + words.split(), capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
    return r.returncode, re.sub(rb"tmp-\w+", b"", r.stdout), r.stderr.decode("utf-8", "replace")

def put(path, at, byte):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(bytes([byte]))

failures, refused, same = [], {path: 0 for path in reads}, 0
for path, commands in reads.items():
    data = open(path, "rb").read()
    whole = {c: said(c) for c in commands}
    for c, (code, out, err) in whole.items():
        if code != 0 or not out:
            failures.append(f"{c}: exit {code} of the undamaged file: {err}")
    held = range(len(data)) if places >= len(data) else [at for at, byte in enumerate(data) if byte]
    step = max(1, len(held) // places)
    for at in held[step // 2::step]:
        for mask in MASKS:
            put(path, at, data[at] ^ mask)
            for c in commands:
                code, out, err = said(c)
                if code == 65 and err.startswith("hplan: ") and len(err.splitlines()) == 1:
                    refused[path] += 1
                elif (code, out) == whole[c][:2]:
                    same += 1
                else:
                    failures.append(f"{c}, byte {at} of {path} changed by {mask:02x}: exit {code}, {len(out)} bytes, {err[:200]!r}")
        put(path, at, data[at])
    if not refused[path]:
        failures.append(f"{path}: nothing is ever refused")
print(f"{sum(refused.values())} refused, {same} as the undamaged file")
print("\n".join(failures[:20]))
sys.exit(bool(failures))
END
export FLIPS=${FLIPS:-$(all "more places in files" && echo 8 || echo 3)}
python3 flips.py >shown 2>&1 || complain "flips: $(cat shown)"
conclude "$(head -1 shown)"
