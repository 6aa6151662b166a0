#!/bin/bash
# cli_version.sh - the version is that of git's newest tag; without a tag, outside git and inside of somebody else's checkout it is the
# file's. The Spack recipe is Python.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../lib.sh" || exit 1
file=$HPLAN_SOURCE/cli/packaging/version.cmake
git() { command git -c user.name=a -c user.email=b -c init.defaultBranch=main "$@"; }
# says FOLDER PATTERN
says() {
  cmake -D "SOURCE=$scratch/$1" -P "$file" | grep -Eq -- "-- $2\$" || complain "$1: $(cmake -D "SOURCE=$scratch/$1" -P "$file"), not $2"
}
own=$(sed -n 's/^set(HPLAN_RELEASE \(.*\))$/\1/p' "$file")
mkdir -p outside tagged/vendored
says outside "$own $own"
git -C tagged init -q
git -C tagged commit -q --allow-empty -m one
says tagged "$own $own\+1\.[0-9a-f]{12}"
git -C tagged tag v9.8.7
says tagged "9.8.7 9.8.7"
git -C tagged commit -q --allow-empty -m two
git -C tagged tag version-of-something-else
says tagged "9.8.7 9.8.7\+1\.[0-9a-f]{12}"
says tagged/vendored "$own $own"
python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$HPLAN_SOURCE/cli/packaging/spack/package.py" || complain "the Spack recipe"
grep -q "^## Unreleased\|^## $own" "$HPLAN_SOURCE/CHANGELOG.md" || complain "CHANGELOG.md says nothing of $own"
conclude "versions"
