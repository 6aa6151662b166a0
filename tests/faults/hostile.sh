#!/bin/bash
# hostile.sh - what strangers send, and what users get wrong: names of devices and pipes, long lists, numbers that are too large, data of
# other kinds, and texts that would be commands to a terminal, a shell, a spreadsheet, gnuplot or a browser.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" || exit 1

expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 16 --strategy dp=1 --out plan.db

# --- numbers ---
expect 3 simulate --net cnn --image 28 --machine local --batch 65536 --strategy micro=65536
grep -q 'micro=65536 is 65536 passes a step, at most 4096; fix: micro=4096' out err || complain "too many passes: $(cat out err)"
expect 3 simulate --net cnn --image 28 --machine local --batch 1099511627776 --strategy dp=1
grep -q 'a micro-batch of 1099511627776 samples, at most 2147483647' out err || complain "too many samples: $(cat out err)"
expect 3 simulate --net resnet18 --image 224 --machine thesis-a100 --batch 1099511627776 --strategy micro=1024
grep -q 'bytes of 1099511627776 samples in a replica' out err || complain "too many bytes: $(cat out err)"
expect 2 simulate --net cnn --image 28 --machine local --batch 16 --memory-limit 0
expect 0 simulate --net resnet18 --image 32 --batch 1 --machine local --strategy dp=1 --out one.db
grep -q 'note: batch norm layer4.*averages over a single value' out || complain "one value per channel: $(cat out)"
expect 0 simulate --net resnet18 --image 64 --batch 1 --machine local --strategy dp=1 --out one.db
grep -q 'single value' out && complain "several values per channel"

# --- what is no file ---
mkfifo pipe && mkdir folder folder.npy && mknod device c 1 3 2>/dev/null
for name in pipe folder device; do
  [ -e $name ] || continue
  before=$(stat -c %F-%i $name)
  for words in "simulate --net cnn --image 28 --batch 16 --machine $name" "simulate --onnx $name --batch 16 --machine local" \
    "simulate --net cnn --image 28 --batch 16 --machine local --cost $name" "run $name" "compare $name" "check $name --baseline $name" \
    "run plan.db --init $name" "export $name --csv" "calibrate --import $name" "run plan.db --hostfile $name --dry-run"; do
    # shellcheck disable=SC2086
    timeout -k 5 120 "$HPLAN" $words >out 2>err </dev/null
    case $? in 65 | 2) ;; *) complain "$words: exit $?: $(cat err)" ;; esac
  done
  for words in "simulate --net cnn --image 28 --batch 16 --machine local --strategy dp=1 --out $name" "run plan.db --steps 2 --trace $name" \
    "run plan.db --steps 2 --save $name" "run plan.db --steps 2 --metrics $name" "plot timeline plan.db -o $name" "sbatch plan.db -o $name"; do
    # shellcheck disable=SC2086
    timeout -k 5 120 "$HPLAN" $words >out 2>err </dev/null
    case $? in 73 | 2) ;; *) complain "$words: exit $?: $(cat err)" ;; esac
  done
  [ "$before" = "$(stat -c %F-%i $name)" ] || complain "$name is another thing now"
done

# --- texts: in every field of a database, through every output ---
expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 16 --strategy dp=2 --top 3 --out two.db
cat >texts.py <<'EOF'
import csv, glob, json, os, re, shutil, sqlite3, subprocess, sys
import xml.dom.minidom
hplan = os.environ["HPLAN"]
texts = ["\x1b]0;CANARY\x07\x1b[31m", "`touch CANARY`", "$(touch CANARY)", "'; touch CANARY; '", "\"; system(\"touch CANARY\"); \"",
         "a\nEOD\n!touch CANARY\n", "</script><script>CANARY</script>", "<img src=x onerror=CANARY>", "=cmd|'touch CANARY'!A1",
         "@SUM(CANARY)", "\u202eCANARY\u2028\u0085", "%s%n%100000d", "\\n\\x1b[31m\\", "{/:Bold CANARY}_^&", "../../CANARY", "x" * 5000]
# what a text stands in (docs/formats.md)
shown_columns = {"candidate": ["note"], "rejected": ["example", "lim", "fix"], "cost": ["origin"],
                 "run": ["strategy", "machine", "device", "version", "started", "host", "processor"], "task": ["label"]}
# and what has to be a word of hplan's
checked_columns = {"candidate": ["strategy"], "rejected": ["code"], "task": ["op", "phase"], "counter": ["name"],
                   "meta": ["value"]}
outputs = [["explain"], ["explain", "--json"], ["why", "X.db", "dp=1"], ["compare"], ["compare", "--json"], ["check", "X.db", "--baseline", "X.db"],
           ["export", "X.db", "--csv", "-o", "out.csv"], ["export", "X.db", "--chrome", "-o", "out.json"], ["sbatch"],
           ["plot", "timeline", "X.db", "-o", "out.svg"], ["plot", "memory", "X.db", "-o", "out.svg"], ["plot", "scaling", "X.db", "-o", "out.svg"],
           ["export", "X.db", "--nsys", "-o", "out.sqlite"], ["diagnose"], ["history"]]
failures, reached = [], set()
for base in sys.argv[1:]:
    for i, text in enumerate(texts):
        shutil.copy(base, "X.db")
        db = sqlite3.connect("X.db")
        for table, names in list(shown_columns.items()) + (list(checked_columns.items()) if i % 5 == 4 else []):
            for name in names:
                db.execute(f"UPDATE {table} SET {name} = ?", (text,))
        db.execute("UPDATE meta SET value = 'none' WHERE key = 'content'")
        db.commit()
        db.close()
        for words in outputs:
            for old in glob.glob("out.*"):
                os.unlink(old)
            command = words if "X.db" in words else words[:1] + ["X.db"] + words[1:] if words[0] != "history" else words
            r = subprocess.run([hplan] + command, capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
            where = f"{base}, text {i}, {' '.join(words)}"
            if r.returncode not in (0, 1, 2, 3, 65, 69):
                failures.append(f"{where}: exit {r.returncode}: {r.stderr[:200]}")
            shown = (r.stdout + r.stderr).decode("utf-8", "replace")
            bad = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufffd]", shown)
            if bad:
                failures.append(f"{where}: prints {bad.group()!r}: {shown[max(0, bad.start() - 60):bad.end() + 20]!r}")
            if "CANARY" in shown or any(b"CANARY" in open(f, "rb").read() for f in glob.glob("out.*")):
                reached.add(words[0])
            if "--json" in words and r.returncode in (0, 1) and r.stdout:
                json.loads(r.stdout)
            if words[0] == "sbatch" and r.returncode == 0:
                subprocess.run(["bash", "-n"], input=r.stdout, check=True)
            for made in glob.glob("out.*"):
                if made.endswith(".svg"):
                    svg = xml.dom.minidom.parse(made)
                    if any("CANARY" in e.toxml() for e in svg.getElementsByTagName("script")):
                        failures.append(f"{where}: a script")
                    if any(a.lower().startswith("on") and "CANARY" in v for e in svg.getElementsByTagName("*") for a, v in e.attributes.items()):
                        failures.append(f"{where}: an attribute")
                if made.endswith(".json"):
                    json.load(open(made))
                if made.endswith(".csv"):
                    for row in csv.reader(open(made, newline="")):
                        if any(c[:1] in "=@+\t\r" or (c[:1] == "-" and not re.fullmatch(r"-[\d.e+-]*", c)) for c in row if c):
                            failures.append(f"{where}: a formula in {row}")
            if glob.glob("**/CANARY*", recursive=True) or os.path.exists("../CANARY") or os.path.exists("../../CANARY"):
                failures.append(f"{where}: a command was run")
                [os.unlink(f) for f in glob.glob("**/CANARY*", recursive=True)]
if not {"export", "plot"} <= reached:  # else the texts are where nobody looks
    failures.append(f"texts only reach {sorted(reached)}")
print("\n".join(failures[:20]))
sys.exit(len(failures) > 0)
EOF
if all "texts in plans that did not run"; then
  python3 texts.py two.db >shown 2>&1 || complain "texts: $(cat shown)"
fi

need_executor

# --- data ---
python3 - <<'EOF'
import os, struct, zlib
def png(path, w, h):
    raw = zlib.compressobj(1)
    row = b"\0" * (w + 1)
    body = b"".join(raw.compress(row) for _ in range(h)) + raw.flush()
    chunk = lambda t, d: struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 0, 0, 0, 0)) + chunk(b"IDAT", body) + chunk(b"IEND", b""))
for split in ("train", "test"):
    for c in "ab":
        os.makedirs(f"mix/{split}/{c}")
        for i in range(8):
            png(f"mix/{split}/{c}/{i}.png", 28, 28)
            open(f"mix/{split}/{c}/{i}.bmp", "wb").write(b"BM")
os.makedirs("list")
for i in range(400):
    png(f"list/an-image-with-a-long-name-{i:04}.png", 28, 28)
EOF
expect 0 run plan.db --data mix --steps 1 --trace mix.db
grep -q 'note: --data mix: 16 files are left out, as mix/train/a/.*\.bmp' err || complain "files that are no images: $(cat err)"

# a list of more than 4,095 bytes; a folder in place of the output
expect 0 simulate --net cnn --image 28 --classes 10 --machine local --batch 16 --strategy dp=1 --mode infer --out infer.db
expect 0 run plan.db --steps 1 --save w.st --trace w.db
list=$(printf '%s,' list/*)
timeout -k 5 300 "$HPLAN" run infer.db --init w.st --data "${list%,}" --output all.npy --trace all.db >out 2>err || complain "a long list: $(cat err)"
python3 -c 'import struct
d = open("all.npy", "rb").read(); n = struct.unpack("<H", d[8:10])[0]
assert b"(400, 10" in d[:n + 10], d[:n + 10]' || complain "a long list is cut"
expect 73 run infer.db --init w.st --data list/an-image-with-a-long-name-0000.png --output folder.npy
grep -q 'folder.npy is a folder' err || complain "a folder as output: $(cat err)"

# what is written meanwhile is no link to somewhere else
echo precious >target
ln -s target o.npy.part
expect 73 run infer.db --init w.st --output o.npy
ln target p.npy.part
expect 73 run infer.db --init w.st --output p.npy
[ "$(cat target)" = precious ] || complain "the target of a link is overwritten"

# the same texts in a run, beside a prediction
expect 0 run two.db --steps 3 --trace both.db
python3 texts.py both.db >shown 2>&1 || complain "texts of a run: $(cat shown)"

conclude "strangers are refused, or shown as they are"
