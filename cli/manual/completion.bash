# bash completion for hplan: the program itself knows what may come next (hplan help --complete).
_hplan() {
  local line=${COMP_LINE:0:COMP_POINT} word words candidates=()
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  word=${words[-1]}
  # bash replaces only what follows the last = or :
  local kept=${word%"${word##*[=:]}"} candidate
  while IFS=$'\t' read -r candidate _; do
    candidates+=("${candidate#"$kept"}")
  done < <("${words[0]}" help --complete "${words[@]:1}" 2>/dev/null)
  COMPREPLY=("${candidates[@]}")
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -o default -o bashdefault -F _hplan hplan
