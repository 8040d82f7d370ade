# Read by zsh in place of ~/.zshenv, which it reads first.
__greenroom_own=$ZDOTDIR
if [[ -n $GREENROOM_ZDOTDIR ]]; then
  ZDOTDIR=$GREENROOM_ZDOTDIR
else
  unset ZDOTDIR
fi
unset GREENROOM_ZDOTDIR
[[ -r ${ZDOTDIR:-$HOME}/.zshenv ]] && . "${ZDOTDIR:-$HOME}/.zshenv"
# The start file after this one is ours too; it puts this back.
typeset -g __greenroom_user=${ZDOTDIR-}
ZDOTDIR=$__greenroom_own
