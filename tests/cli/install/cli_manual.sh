#!/bin/bash
# cli_manual.sh - cmake --install leaves a manual page for every command, which groff sets without a warning and man shows, and
# completion for bash, zsh and fish, tried with a TAB in each shell that is here.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../lib.sh" || exit 1
here=$HPLAN_SOURCE/tests/cli/install
cmake --install "$(dirname "$HPLAN")" --prefix "$scratch/prefix" >log 2>&1 || complain "cmake --install: $(tail -3 log)"
share=$scratch/prefix/share

# --- pages ---
while read -r page; do
  [ -s "$share/man/man1/$page.1" ] || complain "there is no page $page(1)"
done < <(sed -nE 's/^COMMAND\((\w+),.*/hplan-\1/p; s/^SUBCOMMAND\((\w+), (\w+),.*/hplan-\1-\2/p' "$HPLAN_SOURCE/cli/commands.def")
for page in "$share"/man/man1/*.1 "$share"/man/man7/*.7; do
  groff -man -ww -z -Tutf8 "$page" >warnings 2>&1 || complain "groff fails on $page"
  [ ! -s warnings ] || complain "groff warns of $page: $(head -2 warnings)"
  if command -v lexgrog >/dev/null; then
    lexgrog "$page" >/dev/null || complain "whatis finds no name in $page: $(sed -n 2,3p "$page")"
  fi
done
if command -v man >/dev/null; then
  MANPATH=$share/man MANPAGER=cat MANWIDTH=80 man hplan-simulate >text 2>&1
  grep -q "machine=NAME" text || complain "man hplan-simulate: $(head -3 text)"
fi

# --- a TAB in each shell ---
# A stub stands for hplan: it says what the shell would have run, and hands on what completion asks.
mkdir stub
cat >stub/hplan <<STUB
#!/bin/bash
[ "\${1:-}" = help ] && exec "$HPLAN" "\$@"
printf '%s\n' "\$*" >"$scratch/ran.tmp" && mv "$scratch/ran.tmp" "$scratch/ran"
STUB
chmod +x stub/hplan
touch "$scratch/measured.cost"
# typed SHELL SETUP KEYS WANT: SETUP is the shell's line that loads completion; KEYS end where TAB is pressed.
typed() {
  rm -f ran
  PATH=$scratch/stub:$PATH timeout -k 5 300 python3 "$here/press_tab.py" "$1" "$2" "$3" ran
  [ "$(cat ran 2>/dev/null)" = "$4" ] || complain "$1: '$3' and TAB ran '$(cat ran 2>/dev/null)', not '$4'"
}
each() {
  typed "$1" "$2" "hplan simul" "simulate"
  typed "$1" "$2" "hplan simulate --net densen" "simulate --net densenet121"
  typed "$1" "$2" "hplan simulate --net mobilenetv3-" "simulate --net mobilenetv3-small"
  typed "$1" "$2" "hplan simulate --batch-" "simulate --batch-per-gpu"
  typed "$1" "$2" "hplan simulate --machine=thes" "simulate --machine=thesis-a100"
  typed "$1" "$2" "hplan simulate --strategy dp=2,recomp" "simulate --strategy dp=2,recompute="
  typed "$1" "$2" "hplan plot timel" "plot timeline"
  typed "$1" "$2" "hplan simulate --cost meas" "simulate --cost measured.cost"
}
each "bash --norc -i" ". $share/bash-completion/completions/hplan"
if command -v zsh >/dev/null; then
  each "zsh -f -i" "fpath=($share/zsh/site-functions \$fpath); autoload -U compinit; compinit -u -D"
fi
if command -v fish >/dev/null; then
  each "fish --no-config -i" "source $share/fish/vendor_completions.d/hplan.fish"
fi
conclude "pages and completion"
