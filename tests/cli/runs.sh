# shellcheck shell=bash
# runs.sh - sourced after lib.sh by scripts that disturb runs: each run is in the background, in a folder of its own, and has no end, so that
# nothing comes too late; what is waited for is seen, not timed. Bounds are there to notice what hangs: ten times what a busy machine needs.
# For a run NAME: its process is ${run[NAME]} (timeout's), ${hplan[NAME]}, ${launcher[NAME]}; what it says lies in NAME/out and NAME/err.
# shellcheck disable=SC2034,SC2154 # of those who source this, and of lib.sh
declare -A run hplan launcher
plan=plan.db

# await WHAT COMMAND...: until the command succeeds.
await() {
  local what=$1 end=$((SECONDS + 120))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || {
      complain "$what: not in 120 s"
      return 1
    }
    sleep 0.03
  done
}

children_of() {
  tr -d ' ' 2>/dev/null <"/proc/$1/task/$1/children"
}

# ranks NAME: processes of its ranks
ranks() {
  local p
  for p in $(pgrep -x hplan-exec); do
    grep -qsF "$scratch/$1/" "/proc/$p/cmdline" && echo "$p"
  done
}

# rank NAME N: the process of that rank, by what mpirun has told it
rank() {
  local p
  for p in $(ranks "$1"); do
    grep -qsz "^OMPI_COMM_WORLD_RANK=$2\$" "/proc/$p/environ" && echo "$p"
  done
}

steps() {
  grep -c '"step"' "$1/out"
}

# has_steps NAME N: or will not have them, as it is over
has_steps() {
  [ "$(steps "$1")" -ge "$2" ] || ! kill -0 "${run[$1]}" 2>/dev/null
}

# runs_on PID: it is there, and not only to be waited for.
runs_on() {
  case $(ps -o stat= -p "$1" 2>/dev/null) in '' | Z*) return 1 ;; esac
}

# newest FOLDER: step of its newest checkpoint that was completed, 0: there is none
newest() {
  local step
  step=$(find "$1" -maxdepth 1 -name 'step-*[0-9]' 2>/dev/null | sed 's/.*step-0*//' | sort -n | tail -1)
  echo "${step:-0}"
}

# begin NAME OPTIONS...: a run without an end, in the background. It goes on in the folder, if that is there.
begin() {
  local name=$1
  mkdir -p "$name"
  : >"$name/out"
  timeout -k 5 900 "$HPLAN" run "$plan" --steps 100000000 --trace "$scratch/$name/run.db" --json "${@:2}" >"$name/out" 2>"$name/err" </dev/null &
  run[$name]=$!
}

# started NAME: it has done some steps.
started() {
  await "steps of $1" has_steps "$1" 3
  [ "$(steps "$1")" -ge 3 ] || complain "$1: the run does not start: $(cat "$1/err")"
  hplan[$1]=$(children_of "${run[$1]}")
  launcher[$1]=$(children_of "${hplan[$1]}")
}

start() {
  rm -rf "$1"
  begin "$@"
  started "$1"
}

no_ranks() {
  [ -z "$(ranks "$1")" ]
}

# over NAME CODE WORDS [LINES]: it ends with that code and a message that holds the words, on at most so many lines (2); no process and
# no scratch file are left.
over() {
  local got lines=${4:-2}
  wait "${run[$1]}"
  got=$?
  [ "$got" = "$2" ] || complain "$1, $3: exit $got, expected $2: $(cat "$1/err")"
  grep -q -- "$3" "$1/err" || complain "$1: no message says '$3': $(cat "$1/err")"
  [ "$(wc -l <"$1/err")" -le "$lines" ] || complain "$1, $3: $(wc -l <"$1/err") lines on stderr: $(cat "$1/err")"
  await "$1, $3: the end of ranks $(ranks "$1" | xargs)" no_ranks "$1"
  compgen -G "$1/*.tmp*" && complain "$1, $3: scratch files are left"
}
