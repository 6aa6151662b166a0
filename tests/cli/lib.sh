# shellcheck shell=bash
# lib.sh - sourced by the cli_*.sh scripts: a scratch folder to work in, and how a check fails. HPLAN is the binary.
: "${HPLAN:?path of the hplan binary}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export XDG_CACHE_HOME=$scratch/cache # no calibration of the machine's user
export XDG_STATE_HOME=$scratch/state # nor their history
unset HPLAN_NO_HISTORY
failures=0
# Debian's, if there is one: a version manager's takes a third of a second to start
[ ! -x /usr/bin/python3 ] || python3() { /usr/bin/python3 "$@"; }

# all TITLE: is this the whole suite (HPLAN_TIER=all, ./bootstrap test --all)? If not, says what is left for it.
#     if all "nine more strategies"; then ...; fi
#     for strategy in dp=2 stages=2 $(all "tiles, by MPI and NCCL" && echo sp=2x1,comm=mpi sp=2x1,comm=nccl); do ...
all() {
  [ "${HPLAN_TIER:-short}" = all ] && return
  echo "left for --all: $*" >&2
  return 1
}

# fixture NAME...: a copy of what tests/cli/fixtures.sh made once for all scripts.
fixture() {
  local name
  for name in "$@"; do
    cp "${HPLAN_FIXTURES:?folder of what tests/cli/fixtures.sh made}/$name" . || exit 1
  done
}

complain() {
  echo "FAIL: $*" >&2
  failures=$((failures + 1))
}

# expect CODE WORDS...: runs hplan; its stdout lies in ./out, its stderr in ./err afterwards.
expect() {
  local want=$1 got
  shift
  timeout -k 5 1200 "$HPLAN" "$@" >out 2>err </dev/null
  got=$?
  [ "$got" = "$want" ] || complain "hplan $*: exit $got, expected $want: $(head -c 400 err)"
}

# Ends the script where plans cannot be executed.
need_executor() {
  [ -x "$(dirname "$HPLAN")/hplan-exec" ] && return
  echo "no hplan-exec in this build: nothing to test"
  exit 0
}

# conclude WORDS...: the script's last command.
conclude() {
  [ "$failures" = 0 ] || {
    echo "$failures failures" >&2
    exit 1
  }
  echo "$*"
}
