#!/bin/bash
# cli_sql.sh - every query of docs/sql.md gives rows, by sqlite3 and the views of cli/python/hplan/views.sql; the views say what the
# spans of hplan export --csv say; and they leave the file as it was.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../lib.sh" || exit 1
need_executor
fixture run.db
cp run.db earlier.db
views=$HPLAN_SOURCE/cli/python/hplan/views.sql
query() { sqlite3 -readonly -bail -init "$views" run.db; }

awk '/^```sql$/ {n++; inside = 1; next} /^```$/ {inside = 0} inside {print >("query" n ".sql")}' "$HPLAN_SOURCE/docs/sql.md"
queries=0
for file in query*.sql; do
  query <"$file" >rows 2>err || complain "$(head -1 "$file"): $(cat err)"
  [ ! -e losses.csv ] || mv losses.csv rows
  if grep -q '1.2 \*' "$file"; then
    continue # whether a step was slow is the machine's affair
  fi
  [ -s rows ] || complain "no rows: $(cat "$file")"
  queries=$((queries + 1))
done
[ "$queries" -ge 10 ] || complain "docs/sql.md shows $queries queries"

expect 0 export run.db --csv -o spans.csv
PYTHONPATH=$HPLAN_SOURCE/cli/python python3 "$HPLAN_SOURCE/tests/cli/databases/views.py" run.db spans.csv ||
  complain "the views differ from hplan export --csv"
cmp -s run.db earlier.db || complain "run.db has changed"
conclude "$queries queries"
