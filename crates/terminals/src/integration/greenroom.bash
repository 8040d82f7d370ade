# Read by bash in place of ~/.bashrc, which it reads first. Says where commands begin and end, by escape sequences that the
# host takes out of the output again.
__greenroom_nonce=$GREENROOM_SHELL_NONCE
unset GREENROOM_SHELL_NONCE
[ -r /etc/bash.bashrc ] && . /etc/bash.bashrc
[ -r ~/.bashrc ] && . ~/.bashrc

# PS0 and the history are what this needs.
if [ -n "$__greenroom_nonce" ] && [ "${BASH_VERSINFO[0]}${BASH_VERSINFO[1]}" -ge 44 ]; then
  __greenroom_say() {
    builtin printf '\e]633;%s;%s\a' "$__greenroom_nonce" "$1"
  }
  __greenroom_escape() {
    local LC_ALL=C text=$1
    text=${text//\\/\\\\}
    text=${text//;/\\x3b}
    text=${text//$'\n'/\\x0a}
    text=${text//$'\e'/\\x1b}
    text=${text//$'\a'/\\x07}
    builtin printf '%s' "$text"
  }
  # Run by PS0, when a line was read and before it is carried out.
  __greenroom_before() {
    local HISTTIMEFORMAT= line number
    line=$(builtin history 1)
    line=${line#"${line%%[![:space:]]*}"}
    number=${line%%[!0-9]*}
    line=${line#"$number"}
    line=${line#[\* ]}
    line=${line# }
    # A line that is not in the history was begun with a space to keep it out of it: it stays out of here too.
    if [ "$number" = "$__greenroom_number" ] && [[ $HISTCONTROL == *ignoreboth* || $HISTCONTROL == *ignorespace* ]]; then
      line=
    fi
    __greenroom_say "C;$(__greenroom_escape "$line")"
  }
  # Run before each prompt.
  __greenroom_after() {
    local code=$? line
    line=$(HISTTIMEFORMAT= builtin history 1)
    line=${line#"${line%%[![:space:]]*}"}
    __greenroom_number=${line%%[!0-9]*}
    __greenroom_say "D;$code"
    __greenroom_say "P;$(__greenroom_escape "$PWD")"
    return "$code"
  }
  PS0='$(__greenroom_before)'"${PS0-}"
  if [ "${BASH_VERSINFO[0]}${BASH_VERSINFO[1]}" -ge 51 ]; then
    PROMPT_COMMAND=(__greenroom_after "${PROMPT_COMMAND[@]}")
  else
    PROMPT_COMMAND="__greenroom_after${PROMPT_COMMAND:+; $PROMPT_COMMAND}"
  fi
  __greenroom_say A
fi
