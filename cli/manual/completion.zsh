#compdef hplan
# zsh completion for hplan: the program itself knows what may come next (hplan help --complete).
_hplan() {
  local line
  local -a names open texts opens
  for line in ${(f)"$(${words[1]} help --complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)"}; do
    if [[ ${line%%$'\t'*} == *= ]]; then
      open+=("${line%%$'\t'*}") opens+=("${line/$'\t'/  -- }")
    else
      names+=("${line%%$'\t'*}") texts+=("${line/$'\t'/  -- }")
    fi
  done
  (( $#names + $#open )) || { _files; return }
  (( $#names )) && compadd -l -d texts -a names
  (( $#open )) && compadd -S '' -l -d opens -a open
}
_hplan "$@"
