# Read by zsh in place of ~/.zshrc, which it reads first. Says where commands begin and end, by escape sequences that the host
# takes out of the output again.
typeset -g __greenroom_nonce=$GREENROOM_SHELL_NONCE
unset GREENROOM_SHELL_NONCE
if [[ -n $__greenroom_user ]]; then
  ZDOTDIR=$__greenroom_user
else
  unset ZDOTDIR
fi
unset __greenroom_user __greenroom_own
# What /etc/zshrc set from our directory.
[[ $HISTFILE == */shell-integration/zsh/* ]] && HISTFILE=${ZDOTDIR:-$HOME}/.zsh_history
[[ -r ${ZDOTDIR:-$HOME}/.zshrc ]] && . "${ZDOTDIR:-$HOME}/.zshrc"

if [[ -n $__greenroom_nonce ]]; then
  __greenroom_say() {
    builtin printf '\e]633;%s;%s\a' "$__greenroom_nonce" "$1"
  }
  __greenroom_escape() {
    emulate -L zsh
    local text=$1
    text=${text//\\/\\\\}
    text=${text//;/\\x3b}
    text=${text//$'\n'/\\x0a}
    text=${text//$'\e'/\\x1b}
    text=${text//$'\a'/\\x07}
    builtin printf '%s' "$text"
  }
  __greenroom_before() {
    __greenroom_say "C;$(__greenroom_escape "$1")"
  }
  __greenroom_after() {
    local code=$?
    __greenroom_say "D;$code"
    __greenroom_say "P;$(__greenroom_escape "$PWD")"
    return $code
  }
  autoload -Uz add-zsh-hook
  add-zsh-hook preexec __greenroom_before
  # First of all, so that the exit code is that of the command.
  typeset -ga precmd_functions
  precmd_functions=(__greenroom_after $precmd_functions)
  __greenroom_say A
fi
