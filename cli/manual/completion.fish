# fish completion for hplan: the program itself knows what may come next (hplan help --complete).
function __hplan_words
    set -l words (commandline -opc)
    set -l found ($words[1] help --complete $words[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c hplan -f -a '(__hplan_words)'
