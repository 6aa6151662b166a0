#!/bin/bash
# cli_python.sh - cli/python: the code of docs/python.md runs, with pandas and without; every command that has --json is a function;
# what hplan refuses is an exception with its exit code; an option's value is one word whatever is in it.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../lib.sh" || exit 1
need_executor
export PYTHONPATH=$HPLAN_SOURCE/cli/python PYTHONDONTWRITEBYTECODE=1
# shellcheck disable=SC2016 # these backticks are the document's
sed -n '/^```python$/,/^```$/{/^```/!p}' "$HPLAN_SOURCE/docs/python.md" >document.py
[ "$(wc -l <document.py)" -ge 15 ] || complain "docs/python.md shows no code"

cat >without.py <<'PYTHON'
import sys
sys.modules["pandas"] = None
PYTHON
python3 document.py >out 2>err || complain "docs/python.md: $(tail -3 err)"
cat without.py document.py - >plain.py <<'PYTHON'
assert isinstance(steps, list) and len(steps) == 5, steps
assert [step["step"] for step in steps] == [0, 1, 2, 3, 4]
assert [step["loss"] for step in run["steps"]] == [step["loss"] for step in steps]
assert table is found["candidates"]
PYTHON
python3 plain.py >out 2>err || complain "without pandas: $(tail -3 err)"
if python3 -c 'import pandas' 2>/dev/null; then
  cat document.py - >framed.py <<'PYTHON'
import pandas
assert isinstance(steps, pandas.DataFrame) and list(steps["loss"]) == [step["loss"] for step in run["steps"]]
assert list(table["strategy"]) == [c["strategy"] for c in found["candidates"]]
PYTHON
  python3 framed.py >out 2>err || complain "with pandas: $(tail -3 err)"
fi

sed -nE 's/^COMMAND\((\w+),.*/\1/p' "$HPLAN_SOURCE/cli/commands.def" | while read -r command; do
  "$HPLAN" help --complete "$command" --json | grep -q . && echo "$command"
done | sort >with_json
python3 -c 'import hplan; print(*sorted(c.rstrip("_") for c in hplan.COMMANDS), sep="\n")' | sort >functions
cmp with_json functions || complain "the functions are not the commands with --json: $(diff with_json functions)"

python3 - >out 2>err <<'PYTHON' || complain "errors: $(tail -3 err)"
import hplan
for code, options in (2, {"net": "no such; $(net)"}), (3, {"net": "cnn", "image": 28, "gpus": 2, "strategy": "dp=4"}):
    try:
        hplan.simulate(machine="local", **options)
    except hplan.Error as error:
        assert error.code == code, (error.code, str(error))
    else:
        raise AssertionError(options)
open("text.db", "w").write("no database")
open("empty.db", "w").close()
for name, error in ("none.db", FileNotFoundError), (".", OSError), ("text.db", ValueError), ("empty.db", ValueError):
    try:
        hplan.read(name)
    except error:
        continue
    raise AssertionError(name)
# several files a side: the words come first, then each of a list
verdict = hplan.check("run.db", "run.db", baseline=["run.db", "run.db", "run.db"])
assert (verdict["run_samples"], verdict["baseline_samples"]) == (2, 3), verdict
assert hplan.report("run.db", output="r.html")["file"] == "r.html"
PYTHON
conclude "Python"
