# SPDX-License-Identifier: Apache-2.0
#
# The Bash kernel: an interactive shell that reads its commands from a pipe. Each run is a few commands of ours (code/languages.c):
# variables, its beginning, the code itself, which is evaluated at the top level so that whatever it sets stays, and the end.
# An interactive shell comes back to the top level when it is interrupted, and so to the line that tells the end.
PS1= PS2= PS4='+ '
set +o history +H +m
unset HISTFILE PROMPT_COMMAND
exec 198>&1 199>&2
__cella_count=0 __cella_restore=
__cella_env() {
    if [[ -v $1 ]]; then
        printf -v __cella_old 'export %s=%q;' "$1" "${!1}"
    else
        __cella_old="unset $1;"
    fi
    __cella_restore=$__cella_old$__cella_restore
    export "$1=$2"
}
__cella_begin() {
    printf '\036\036cella S %s\036' "$1" >&198
    printf '\036\036cella S %s\036' "$1" >&199
}
__cella_end() {
    local status=$?
    exec 1>&198 2>&199
    eval "$__cella_restore"
    __cella_restore= __cella_count=$((__cella_count + 1))
    printf '\036\036cella D %s %s %s\036' "$1" "$__cella_count" "$status" >&198
    printf '\036\036cella D %s %s %s\036' "$1" "$__cella_count" "$status" >&199
}
printf '\036\036cella H\036'
