#!/bin/bash
# test.sh - every check of tests/lint/run finds what it is there for: a small tree without violations passes, and each
# violation that is put into it is named.
# shellcheck disable=SC2016 # backticks below are Markdown
set -u
lint=$(cd "$(dirname "$0")" && pwd)/run
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$tree" || exit 1
failures=0

complain() {
  echo "FAIL: $*" >&2
  failures=$((failures + 1))
}

# A tree of four folders that breaks no rule.
write_tree() {
  rm -rf .git ./*
  mkdir -p base networks/graph plots cli build
  cat >README.md <<'END'
| folder | question | may include |
|---|---|---|
| `base/` | status | sqlite3 |
| `networks/` | what | base |
| `plots/` | pictures | base |
| `cli/` | commands | all |

### Plots

| plot | |
|---|---|
| `error` | predicted against measured |
| `comm` | crossover (planned) |
END
  cat >CMakeLists.txt <<'END'
hp_folder(base)
hp_folder(networks/graph SEES base) # a comment: SEES plots
hp_folder(plots SEES networks/graph)
END
  cat >base/status.h <<'END'
/* status.h - see graph.c and networks/graph/. */
#ifndef HP_STATUS_H
#define HP_STATUS_H
typedef enum hp_status {
  HP_OK = 0,
  HP_EREQUEUE = 75, /* please requeue */
} hp_status;
#endif
END
  mkdir -p docs machines costmodels traces
  printf 'const char hp_db_schema[] = "CREATE TABLE meta(key TEXT, value TEXT, PRIMARY KEY(key)) STRICT;";\n' \
    >base/schema.c
  printf 'TEXT(plan)\n' >traces/ledger.def
  printf 'int fields[] = {FIELD("nic", "latency", 0)};\n' >machines/machine_text.c
  printf '| `nic=K, latency=T` | |\n' >docs/machines.md
  printf 'int hp_row_infos[] = {\n    [0] = {"fit", 0},\n};\n' >costmodels/table.c
  cat >docs/formats.md <<'END'
### `meta`

| `key` | |
| `value` | |

### Rows

| `fit` | |

```c networks/graph/graph.c
int graph(int a);
...
```

### `history.db`

| `plan` | |
END
  printf '#include "base/status.h"\nint graph(int a);\nint graph(int a) { return a; }\n' >networks/graph/graph.c
  printf '#include "base/status.h"\n' >plots/plot.c
  printf 'COMMAND(plot, "pictures")\n' >cli/commands.def
  printf 'LATER(command, "tune", "search")\nLATER(plot, "comm", "crossover")\nLATER(exit_code, "75", "requeue")\n' \
    >cli/later.def
  cat >build/hplan <<'END'
#!/bin/sh
case "$*" in
tune | 'plot comm none.db') exit 69 ;;
plot\ *) echo "there is no plot '?'; there are error" >&2 ;;
esac
exit 2
END
  chmod +x build/hplan
  printf 'BasedOnStyle: LLVM\nColumnLimit: 0\n' >.clang-format
  printf 'build/\n' >.gitignore
  printf '[{"directory": "%s", "file": "networks/graph/graph.c", "command": "cc -I. -c networks/graph/graph.c"}]\n' "$tree" \
    >build/compile_commands.json
  printf 'Checks: "clang-analyzer-*"\n' >.clang-tidy
  git init -q .
  git add -A
}

# finds CHECK TEXT: the check fails and says TEXT. The tree is new afterwards.
finds() {
  "$lint" --root "$tree" --all "$1" >out 2>err && complain "$1 passes, '$2' was expected"
  grep -qF -- "$2" out || complain "$1 does not say '$2': $(cat out err)"
  write_tree
}

write_tree
"$lint" --root "$tree" --all >out 2>err || complain "the tree without violations: $(cat out err)"

seq 501 >base/long.def
finds limits 'base/long.def: 501 lines'
for i in $(seq 41); do : >"plots/$i.txt"; done
finds limits 'plots/: 42 files'
printf '/* %0110d */\n' 0 >plots/wide.h
finds limits 'plots/wide.h:1: a comment of 116 columns'

printf '#ifndef HP_STATUS_H\n#endif\n' >plots/status.h
finds names 'plots/status.h: base/status.h has the name'
printf '#ifndef HP_PLOT\n#endif\n' >plots/plot.h
finds names 'plots/plot.h: the guard is HP_PLOT, not HP_PLOT_H'
printf '#ifndef HP_PLOT_H\ntypedef enum hp_status { HP_BAD } hp_status;\n#endif\n' >plots/plot.h
finds names 'plots/plot.h: base/status.h defines hp_status, too'

if command -v clang-format-14 clang-format >/dev/null; then
  printf 'int  x;\n' >plots/plot.c
  finds formatting 'plots/plot.c:1'
fi

printf '#include "networks/graph/graph.h"\n' >plots/plot.c # its SEES list allows it, the table does not
finds arrows 'plots/plot.c:1: networks/graph/graph.h: the README says'
printf '\n#include "networks/graph/graph.h"\n' >base/status.c
finds arrows 'base/status.c:2'
sed -i 's/SEES base//' CMakeLists.txt
finds arrows 'networks/graph does not see base'
printf '#include <gsl/gsl_fit.h>\n' >plots/plot.c
finds arrows '<gsl/gsl_fit.h> is for'
mkdir -p exec && printf '#include "base/status.h"\n' >exec/run.c
finds arrows "no row for exec/"

printf '/* as gone.c does */\n' >plots/plot.c
finds references 'plots/plot.c:1: there is no gone.c'
printf '/* a string: */ const char *s = "gone.c";\n// see base/gone/\n' >plots/plot.c
finds references 'plots/plot.c:2: there is no base/gone'
printf 'See `docs/{gone,here}*.md`.\n' >>README.md
finds references 'there is no docs/here*.md'
printf 'true %s as gone.py\n' '#' >plots/x.sh
finds references 'plots/x.sh:1: there is no gone.py'

sed -i 's/int graph(int a);/int graph(long a);/' docs/formats.md
finds excerpts 'docs/formats.md:11: not in networks/graph/graph.c'

sed -i '/`value`/d' docs/formats.md
finds formats 'meta has value, which is not described'
sed -i 's/`fit`/`fat`/' docs/formats.md
finds formats 'Rows has no fat'
sed -i 's/"latency", 0/"delay", 0/' machines/machine_text.c
finds formats 'machines have delay, which is not described'

printf 'LATER(command, "plot", "there already")\n' >>cli/later.def
finds planned 'hplan plot: exit status 2, expected 69'
printf 'void f(void) { return HP_EREQUEUE; }\n' >plots/plot.c
finds planned 'exit code 75 is planned, but HP_EREQUEUE is used'
sed -i 's/ (planned)//' README.md
finds planned 'plot comm: planned, which the row does not say'
sed -i 's/crossover/crossover (planned)/; /comm/d' cli/later.def
finds planned 'plot comm: marked as planned'
sed -i 's/`error`/`terror`/' README.md
finds planned 'there is no plot terror'
sed -i '/`error`/d' README.md
finds planned 'the tables do not list the plot error'
printf '    $ hplan plot\n\n`hplan prune x`\n' >>README.md
finds planned 'there is no command hplan prune'
printf '`hplan plot --colour`\n' >>README.md
finds planned 'hplan plot has no option --colour'

if command -v clang-tidy >/dev/null; then
  printf 'int f(int a);\nint f(int a) {\n  int *p = 0;\n  return a ? *p : 0;\n}\n' >networks/graph/graph.c
  finds analysis 'networks/graph/graph.c:4: Dereference of null pointer'
fi
if command -v cppcheck >/dev/null; then
  printf 'int f(void);\nint f(void) {\n  int a[2] = {0, 0};\n  return a[2];\n}\n' >networks/graph/graph.c
  finds analysis '[arrayIndexOutOfBounds]'
fi

# Only changed files are analysed: a violation that was there before the base is not asked for.
if command -v cppcheck >/dev/null; then
  printf 'int f(void);\nint f(void) {\n  int a[2] = {0, 0};\n  return a[2];\n}\n' >networks/graph/graph.c
  git add -A
  git -c user.name=lint -c user.email=lint@localhost commit -q -m base
  "$lint" --root "$tree" --base HEAD analysis >out 2>err || complain "an unchanged file was analysed: $(cat out)"
  printf '\n' >>networks/graph/graph.c
  "$lint" --root "$tree" --base HEAD analysis >out 2>err && complain "a changed file was not analysed"
fi

[ "$failures" = 0 ] || exit 1
echo "every check of the lint finds its violations"
