#!/bin/bash
# whole.sh [BUILD] - what ./bootstrap test --all covers that ./bootstrap test does not: tests that are in the whole suite alone, and
# the cases that a script or a law leaves for it (`all "TITLE"`, `law_all("TITLE")`). BUILD: a build with its tests, build/.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}

names() { (cd "$build" && ctest -N "$@") | sed -n 's/^ *Test *#[0-9]*: *//p' | sort; }
echo "in the whole suite alone:"
comm -13 <(names) <(names -C All) | grep -v '^long/' | sed 's/^/  /'
laws=$(names -C All | grep -c '^long/' || true)
echo "  $laws laws over ten times the draws; every law over three times those of the short tier; all of it under the sanitizers, laws with the draws of the short tier"
echo "  the kernels for every architecture of CUDA, optimised; a hundred plans by both compilers"
echo "cases left for it:"
grep -rnoE '((if|!|&&|\|\||\$\() *all|law_all\(|words_all\() ?"[^"]+"' tests --include='*.sh' --include='test_*.c' --exclude=lib.sh |
  sed -E 's/^tests\/([^:]*):[0-9]+:[^"]*"(.*)"$/  \1: \2/' | sort -u
