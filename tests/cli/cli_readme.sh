#!/bin/bash
# cli_readme.sh - the README's commands work: every line of its console blocks that begins with "$ hplan" is run, in
# order, in one scratch folder, and must exit 0. Commands and exit codes it lists must be the program's.
# shellcheck disable=SC2016 # backticks and $ below are the README's
set -u
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh" || exit 1
: "${HPLAN_SOURCE:?folder of the sources}"
readme=$HPLAN_SOURCE/README.md
PATH=$(dirname "$HPLAN"):$PATH

mapfile -t lines < <(sed -n '/^```console/,/^```$/{s/^\$ \(hplan .*\)/\1/p}' "$readme")
[ ${#lines[@]} -ge 2 ] || complain "the README shows ${#lines[@]} hplan commands"
for line in "${lines[@]}"; do
  start=$SECONDS
  timeout -k 5 300 bash -c "$line" >out 2>err </dev/null
  code=$?
  echo "$((SECONDS - start)) s: $line"
  [ "$code" = 0 ] || complain "exit $code: $line: $(tail -c 400 err)"
done

"$HPLAN" help >commands
while read -r command; do
  grep -q "^  $command " commands || complain "the README lists '$command', hplan help does not"
done < <(sed -n '/^## Commands/,/^Results/{s/^| `\([a-z]*\)` |.*/\1/p}' "$readme")
while read -r command; do
  grep -q "^| \`$command\` |" "$readme" || complain "hplan help lists '$command', the README does not"
done < <(sed -n '/^Commands:/,/^$/{s/^  \([a-z]*\) .*/\1/p}' commands)

while read -r folder; do
  [ -d "$HPLAN_SOURCE/$folder" ] || complain "the README names the folder $folder, which does not exist"
done < <(sed -n '/^## Where things are/,$ {s/^| `\([a-z/]*\)` |.*/\1/p}' "$readme")

conclude "the README's commands work"
