/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The languages: what starts an interpreter with our kernel in it. One more is a row in
 * languages.c, a kernel, and its test.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

struct language {
    const char *name;
    const char *aliases; /* others that it goes by, with a blank between them */
    const char *program; /* the interpreter */
    const char *needs;   /* … and what has to be installed for it, in words */
    /* What it says, in some part of its last words, when it is not what the kernel needs; NULL at
     * the end. NULL: it exits with 126 then, having said what it is. */
    const char *const *unfit;
    /* The arguments, in the arena, as a list of strings (the program is the first). */
    struct slice (*argv)(struct arena *arena, const struct language *language, const char *socket);
    /* What the interpreter reads from its stdin: the kernel. */
    struct slice (*input)(struct arena *arena);
    /* A run as the kernel reads it. */
    int (*request)(struct buf *out, uint32_t number, struct slice env, struct slice code,
                   struct error *err);
    bool piped;  /* it is spoken to over stdin and stdout (code/pipe.h), not over a socket */
    bool frames; /* … and writes frames to stdout, not plain output with marks in it */
};

/* By name or alias, in any case; NULL is python. NULL: there is none. */
const struct language *language_find(const char *name);
