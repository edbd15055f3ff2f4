/* SPDX-License-Identifier: Apache-2.0 */

/* Raw keys, and the few that are for us. */

#include "cli/keyboard.h"

#include <unistd.h>

int keyboard_raw(struct keyboard *k, struct error *err)
{
    if (k->raw)
        return 0;
    if (tcgetattr(STDIN_FILENO, &k->before) < 0)
        return error_sys(err, "asking for the terminal's settings");
    struct termios raw = k->before;
    cfmakeraw(&raw);
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
        return error_sys(err, "changing the terminal's settings");
    k->raw = true;
    return 0;
}

void keyboard_restore(struct keyboard *k)
{
    if (k->raw)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &k->before);
    k->raw = false;
}

enum keys keyboard_filter(struct keyboard *k, const char *in, size_t len, struct buf *out,
                          size_t *ret_used)
{
    for (size_t i = 0; i < len; i++) {
        *ret_used = i + 1;
        if (!k->inside && !k->tilde && in[i] == '~') {
            k->tilde = true;
            continue;
        }
        if (k->tilde) {
            k->tilde = false;
            if (in[i] == '.')
                return KEYS_DETACH;
            if (in[i] == '?')
                return KEYS_HELP;
            buf_addc(out, '~');
            k->inside = true;
            if (in[i] == '~')
                continue;
        }
        buf_addc(out, in[i]);
        k->inside = in[i] != '\r' && in[i] != '\n';
    }
    *ret_used = len;
    return KEYS_TYPED;
}
