#!/bin/bash
# browser.sh - the report's page in a headless browser (browser.py): of a run, of a pipeline, of hostile names. Exits 77 without one.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh" || exit 1
need_executor
for program in chromium chromedriver; do
  command -v $program >/dev/null || {
    echo "$program is not installed"
    exit 77
  }
done
here=$HPLAN_SOURCE/tests/report
fixture run.db
expect 0 simulate --net cnn --image 28 --machine thesis-a100 --gpus 1,2,4 --out sweep.db
expect 0 report sweep.db -o sweep.html
expect 0 report run.db sweep.db -o run.html
expect 0 simulate --net resnet18 --image 224 --machine thesis-a100 --strategy dp=2,stages=4,micro=4 --batch 16 --out pipe.db
expect 0 report pipe.db -o pipe.html
hostile='run<img src=x onerror=window.owned=1>.db'
cp run.db "$hostile"
python3 "$here/hostile.py" "$hostile"
expect 0 report "$hostile" -o hostile.html
timeout -k 5 600 python3 "$here/browser.py" run.html sweep.html pipe.html hostile.html || complain "the pages in the browser"
conclude "the pages hold in the browser"
