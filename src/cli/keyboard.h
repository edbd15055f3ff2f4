/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The keyboard of who sits here, passed on key by key, but for what is meant for us: at the
 * beginning of a line `~.` detaches, `~?` asks for help, and `~~` is a plain `~`, as with ssh.
 */

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "base/buf.h"
#include "base/error.h"

struct keyboard { /* start from a zeroed struct */
    bool raw;
    struct termios before;
    bool inside; /* a line: what comes is not its first character */
    bool tilde;  /* … and a '~' was its first */
};

/* stdin, which has to be a terminal, gives every key as it comes. */
int keyboard_raw(struct keyboard *keyboard, struct error *err);
/* As it was; fine when it is. */
void keyboard_restore(struct keyboard *keyboard);

enum keys { KEYS_TYPED, KEYS_DETACH, KEYS_HELP };

/* Appends what is to be passed on, up to the end or to something that is for us. *ret_used says how
 * far that was. */
enum keys keyboard_filter(struct keyboard *keyboard, const char *in, size_t len, struct buf *out,
                          size_t *ret_used);
