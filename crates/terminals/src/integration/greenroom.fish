# Read by fish after the user's own configuration. Says where commands begin and end, by escape sequences that the host takes
# out of the output again.
set -g __greenroom_nonce $GREENROOM_SHELL_NONCE
set -e GREENROOM_SHELL_NONCE

if test -n "$__greenroom_nonce"
    function __greenroom_say
        printf '\e]633;%s;%s\a' $__greenroom_nonce "$argv[1]"
    end
    function __greenroom_escape
        string replace --all '\\' '\\\\' -- $argv | string replace --all ';' '\\x3b' | string replace --all \e '\\x1b' | string replace --all \a '\\x07' | string join '\\x0a'
    end
    function __greenroom_before --on-event fish_preexec
        __greenroom_say "C;"(__greenroom_escape $argv[1])
    end
    function __greenroom_after --on-event fish_postexec
        __greenroom_say "D;$status"
    end
    function __greenroom_prompt --on-event fish_prompt
        __greenroom_say "P;"(__greenroom_escape $PWD)
    end
    __greenroom_say A
end
