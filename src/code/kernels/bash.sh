# SPDX-License-Identifier: Apache-2.0
#
# The Bash kernel: an interactive shell that reads its commands from a pipe. Each run is a few commands of ours (code/languages.c):
# variables, its beginning, the code itself, which is evaluated at the top level so that whatever it sets stays, and the end.
# An interactive shell comes back to the top level when it is interrupted, and so to the line that tells the end.
PS1= PS2= PS4='+ '
set +o history +H +m
unset HISTFILE PROMPT_COMMAND
exec 198>&1 199>&2
__cella_count=0 __cella_restore= __cella_trace=
__cella_env() {
    if [[ -v $1 ]]; then
        printf -v __cella_old 'export %s=%q;' "$1" "${!1}"
    else
        __cella_old="unset $1;"
    fi
    __cella_restore=$__cella_old$__cella_restore
    export "$1=$2"
}
# Tracing is the code's: it is off while we are at work, and nobody is told that it goes on (code/languages.c has 2>/dev/null there).
__cella_begin() {
    printf '\036\036cella S %s\036' "$1" >&198
    printf '\036\036cella S %s\036' "$1" >&199
    if [[ $__cella_trace ]]; then set -x; fi
}
__cella_end() {
    local status=$?
    __cella_trace=
    if [[ $- == *x* ]]; then __cella_trace=x; fi
    set +xv
    eval "$__cella_restore"
    __cella_restore= __cella_count=$((__cella_count + 1))
    printf '\036\036cella D %s %s %s\036' "$1" "$__cella_count" "$status" >&198
    printf '\036\036cella D %s %s %s\036' "$1" "$__cella_count" "$status" >&199
}
readonly -f __cella_env __cella_begin __cella_end
printf '\036\036cella H\036'
printf '\036\036cella H\036' >&2
