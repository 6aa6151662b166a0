#!/bin/bash
# cli_install.sh - `cmake --install` leaves an hplan that works where it was put: plans, runs, and finds its GPU part.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../lib.sh" || exit 1
build=$(dirname "$HPLAN")
cmake --install "$build" --prefix "$scratch/a place" >log 2>&1 || complain "cmake --install: $(tail -3 log)"
HPLAN="$scratch/a place/bin/hplan"
[ -e "$scratch/a place/share/doc/hplan/README.md" ] || complain "no README: $(ls -R "$scratch/a place/share")"
[ -e "$scratch/a place/share/doc/hplan/docs/commands.md" ] || complain "no docs"
expect 0 experiments --list # finds those of the installation
expect 0 simulate --net cnn --image 28 --machine local --batch 4 --strategy dp=1
(unset HPLAN && PATH=/usr/bin:/bin PYTHONPATH="$scratch/a place/lib/python3/dist-packages" python3 -c 'import hplan
assert hplan.program().endswith("a place/bin/hplan"), hplan.program()
assert hplan.read("plan.db")["candidate"] is not None') || complain "the Python package does not work where it was put"
need_executor
expect 0 run plan.db --steps 1
if [ -e "$build/libhplan-cuda.so" ]; then
  "$scratch/a place/bin/hplan-exec" --version | grep -q "a place/.*lib/hplan/libhplan-cuda.so" ||
    complain "the GPU part is not found: $("$scratch/a place/bin/hplan-exec" --version)"
fi
conclude "hplan installs"
