#!/bin/bash
# cli_check.sh - `compare` and `check` say the same of the same two runs; what fails the gate and what does not.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor

# made FILE BATCH STEPS: a run of a small network
made() {
  expect 0 simulate --net cnn --image 28 --machine local --batch "$2" --strategy dp=1 --out p.db
  expect 0 run p.db --steps "$3" --trace "$1"
}
# sql FILE STATEMENT
sql() {
  python3 -c 'import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2])
c.execute("UPDATE meta SET value = ? WHERE key = ?", ("none", "content")); c.commit()' "$@"
}
# change_of FILE: the step's change as a table shows it
change_of() {
  awk '$1 == "step" { for (i = 2; i <= NF; i++) if ($i ~ /^[+-][0-9.]+%$/) print $i }' "$1"
}

made small.db 4 8
made large.db 64 8
made few.db 64 2
# slower whatever this machine did meanwhile
sql large.db "UPDATE span SET t0_ns = 100 * t0_ns, t1_ns = 100 * t1_ns"

# sixteen times the images, on a hundred times slower a machine: slower by the same number in both, the run against its baseline
expect 0 compare small.db large.db
grep -q "change: (B - A) / A" out || complain "compare does not say its sign: $(cat out)"
compared=$(change_of out)
expect 1 check large.db --baseline small.db --max-memory 1000%
checked=$(change_of out)
[ -n "$compared" ] && [ "$compared" = "$checked" ] || complain "compare says '$compared', check '$checked'"
[[ $compared == +* ]] || complain "slower is not +: $compared"
grep -q "^FAIL step is worse than the limit of 5%" out || complain "$(cat out)"
grep -q "different plans" err || complain "other plans are not said: $(cat err)"
grep -q "different \(hosts\|processors\)" err && complain "one machine: $(cat err)"

# a prediction has an error, two runs have a change
expect 0 compare small.db --json
python3 -c 'import json; s = json.load(open("out"))["step"]; assert s["change"] is None and abs(s["error"] -
(s["predicted_s"] - s["measured_s"]) / s["measured_s"]) < 1e-12' || complain "$(head -c 300 out)"
expect 0 compare small.db large.db --json
python3 -c 'import json; s = json.load(open("out"))["step"]; assert s["error"] is None and abs(s["change"] -
(s["measured_s"] - s["predicted_s"]) / s["predicted_s"]) < 1e-12' || complain "$(head -c 300 out)"

# faster is no regression, whatever its phases do; two steps tell nothing
expect 0 check small.db --baseline large.db
grep -q "^ok: no regression" out || complain "$(cat out)"
expect 0 check few.db --baseline small.db --max-memory 1000%
grep -q "not enough steps to tell.*7 and 2, 4 of each" out || complain "$(cat out)"
grep -q "^ok" out && complain "two steps are no proof: $(cat out)"

# where runs were made is stored, and said when it differs
expect 0 compare small.db --json
python3 -c 'import json; m = json.load(open("out"))["measured"]["made_on"]; assert m["host"] and m["processor"]' ||
  complain "no host: $(head -c 300 out)"
cp small.db elsewhere.db
sql elsewhere.db "UPDATE run SET processor = 'Abacus 9000', host = 'far-away' WHERE kind = 'exec'"
expect 0 check elsewhere.db --baseline small.db
grep -q "different processors.*Abacus 9000 (far-away)" err || complain "check: $(cat err)"
expect 0 compare small.db elsewhere.db
grep -q "different processors.*Abacus 9000 (far-away)" err || complain "compare: $(cat err)"

# runs that died, never ended, or lost their loss
for harm in "UPDATE run SET status = 137 WHERE kind = 'exec'" "UPDATE run SET status = -1 WHERE kind = 'exec'" \
  "UPDATE counter SET value = NULL WHERE name = 'loss'"; do
  cp small.db dead.db
  sql dead.db "$harm"
  expect 1 check dead.db --baseline small.db
  grep -q "^FAIL.*\(status 137\|incomplete\|final loss is not a finite number\)" out || complain "$harm: $(cat out)"
done

# --junit without its file takes the first of the runs for it
cp small.db kept.db
expect 73 check --junit kept.db small.db large.db --baseline small.db
grep -q "kept.db is a database" err || complain "--junit over a run: $(cat err)"
cmp -s small.db kept.db || complain "--junit replaced a run"
conclude "compare and check agree"
