#!/bin/bash
# cli_report.sh - hplan report: its words, what its page holds, and hostile names, which stay text. What a browser makes of the page:
# tests/report/browser.sh.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
need_executor
fixture train.db run.db

# data PAGE: the page's block of data, as JSON
data() {
  sed -n 's/.*<script type="application\/json" id="data">\(.*\)<\/script>$/\1/p' "$1"
}

# --- words ---
expect 2 report
grep -q 'hplan report run.db -o r.html' err || complain "report alone: $(cat err)"
expect 2 report run.db
expect 65 report missing.db -o r.html
grep -q missing.db err || complain "a missing file is not named: $(cat err)"
echo text >text.db
expect 65 report text.db -o r.html
[ -e r.html ] && complain "a page was written of no database"
expect 73 report run.db -o no/such/folder/r.html
cp run.db same.db
expect 2 report same.db -o same.db
grep -q overwrite err || complain "the page may take its source's place: $(cat err)"
cmp -s run.db same.db || complain "the source was changed"
expect 2 report run.db -o - --json
expect 0 report run.db -o r.html
[ -s out ] && complain "report writes to stdout: $(head -c 200 out)"
grep -q 'wrote r.html' err || complain "report does not say what it wrote"
expect 0 report run.db -o -
cmp -s out r.html || complain "-o - is another page than -o FILE"
expect 0 report run.db -o r.html --json
[ "$(jq -r '.kind + .file' out)" = reportr.html ] || complain "report --json: $(cat out)"

# --- its content security policy names its own style and script ---
python3 - r.html <<'EOP' || complain "the policy's digests are not those of the style and the script"
import base64, hashlib, re, sys
page = open(sys.argv[1], "rb").read()
for directive, part in ((b"style-src", b"style"), (b"script-src", b"script")):
    text, = re.findall(b"<%s>(.*?)</%s>" % (part, part), page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(text).digest())
    assert len(text) > 1000 and b"%s 'sha256-%s'" % (directive, digest) in page, directive
EOP

# --- what it holds ---
expect 0 compare run.db --json
cp out compare.json
expect 0 explain run.db --json
cp out explain.json
data r.html >data.json
python3 - data.json compare.json explain.json <<'EOP' || complain "the page's figures are not those of compare and explain"
import json, sys
page, compare, plan = (json.load(open(f)) for f in sys.argv[1:])
sides = {s["name"]: s for s in page["timeline"]["sides"]}
assert set(sides) == {"predicted", "measured"}, set(sides)
assert abs(page["error"]["step"]["predicted_s"] / compare["step"]["predicted_s"] - 1) < 1e-8
assert abs(page["error"]["step"]["measured_s"] / compare["step"]["measured_s"] - 1) < 1e-8
for side in sides.values(): # every task of the plan once on each rank
    for row in side["rows"]:
        assert len(row["spans"]) == 4 * len(plan["roles"][row["rank"] % len(plan["roles"])]["tasks"]), row["rank"]
        assert all(n >= 0 for n in row["spans"][2::4]) and all(n >= 0 for n in row["spans"][3::4])
for bar in page["memory"]["bars"]: # the parts are the whole, which the run observed
    assert sum(bar["parts"]) == bar["planned"] == plan["roles"][bar["rank"]]["memory_bytes"] == bar["observed"], bar
assert abs(sum(s["share"] for s in page["basis"]["shares"]) - 1) < 1e-8, page["basis"]
assert any(row["strategy"] == "dp=2" for row in page["candidates"]["rows"])
assert "hplan simulate" in page["scaling"]["command"] and page["scaling"]["absent"]
EOP
expect 0 simulate --net resnet18 --image 224 --machine thesis-a100 --strategy sp=2x1 --batch 2 --out tiles.db
expect 0 report tiles.db -o tiles.html
data tiles.html >tiles.json
python3 - data.json tiles.json <<'EOP' || complain "halos are where tiles are, and nowhere else"
import json, sys
for path, tiled in zip(sys.argv[1:], (False, True)):
    memory = json.load(open(path))["memory"]
    for bar in memory["bars"]:
        halos = dict(zip(memory["parts"], bar["peaks"]))["halos and messages"]
        assert (halos > 0) == tiled and sum(bar["parts"]) == bar["planned"], bar
EOP
[ "$(stat -c %s r.html)" -lt 3000000 ] || complain "the page of a small run has $(stat -c %s r.html) bytes"

# --- plain data parallelism is there, also where it is impossible; a sweep has its chart; a thousand ranks are few rows ---
expect 0 simulate --net cnn --image 28 --machine thesis-a100 --gpus 1,2,4 --out sweep.db
expect 0 simulate --net resnet18 --image 224 --machine thesis-a100 --strategy dp=512,stages=2 --batch 512 --out many.db
expect 0 report many.db sweep.db -o many.html
data many.html >data.json
python3 - data.json <<'EOP' || complain "a thousand ranks, and a sweep"
import json, sys
page = json.load(open(sys.argv[1]))
rows = page["timeline"]["sides"][0]["rows"]
assert len(rows) <= 32 and sum(r["ranks"] for r in rows) == 1024, [(r["rank"], r["ranks"]) for r in rows]
assert sum(b["ranks"] for b in page["memory"]["bars"]) == 1024, page["memory"]["bars"]
plain, = [r for r in page["candidates"]["rows"] if r["strategy"] == "dp=1024"]
assert plain["rejected"]["code"] == "E-BATCH", plain # 512 images on 1024 devices
curve, = page["scaling"]["curves"]
assert [p["devices"] for p in curve["points"]] == [1, 2, 4], curve
EOP
# what the page tells the reader to type is accepted, and asks about the same machine, size and batch
for plan in "--net cnn --image 28 --machine local --gpus 1 --batch 8 --strategy dp=1" \
  "--net gpt:2,64,2,64,500 --machine thesis-a100 --gpus 8 --batch 16 --strategy dp=8" \
  "--net resnet18 --image 96 --mode infer --prec int8 --machine nodes=2;node=3xa100-40 --gpus 6 --batch 12 --strategy dp=6"; do
  IFS=' ' read -r -a words <<<"$plan"
  expect 0 simulate "${words[@]}" --out plan.db
  expect 0 report plan.db -o plan.html
  data plan.html >data.json
  case $plan in *gpt*) samples=sequences ;; *) samples=images ;; esac
  jq -e --arg samples "$samples" '.samples == $samples and (.answer.sentence | test(" " + $samples + " is predicted.* " + $samples + "/s"))' \
    data.json >/dev/null || complain "$plan: not of $samples: $(jq .answer data.json)"
  for section in scaling pareto; do
    line=$(jq -r ".$section.command" data.json)
    line=${line#hplan }
    IFS=' ' read -r -a again <<<"${line/MACHINE/nodes=2;node=3xa100-40}"
    expect 0 "${again[@]}"
  done
done
[ "$(stat -c %s many.html)" -lt 3000000 ] || complain "the page of 1024 ranks has $(stat -c %s many.html) bytes"
if all "the page of 128 ranks"; then
  expect 0 simulate --net resnet101 --image 1024 --gpus 128 --machine thesis-a100 --out big.db
  expect 0 report big.db -o big.html
  [ "$(stat -c %s big.html)" -lt 3000000 ] || complain "the page of 128 ranks has $(stat -c %s big.html) bytes"
fi

# --- hostile names are text ---
hostile='run<img src=x onerror=window.owned=1>.db'
cp run.db "$hostile"
python3 "$HPLAN_SOURCE/tests/report/hostile.py" "$hostile"
expect 0 report "$hostile" -o hostile.html
for tag in '<script' '</script' '<img' '<style' '<!--'; do
  [ "$(grep -oF -- "$tag" hostile.html | wc -l)" = "$(grep -oF -- "$tag" r.html | wc -l)" ] || complain "a name is $tag"
done
data hostile.html | jq -e '.files[0] == "run<img src=x onerror=window.owned=1>.db" and
  (.timeline.sides | all(.tasks | all(.[0] | startswith("label</script>")))) and
  (.timeline.sides[1].host | startswith("host</script>")) and
  (.candidates.rows[0].note | startswith("note</script>"))' >/dev/null || complain "the hostile names are not in the page as they are"
conclude "report writes its page"
