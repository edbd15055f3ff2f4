/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The forms in which a host may echo a secret, as strings to look for: as it is, in hexadecimal,
 * and in base64 at each of the three places where it can begin in a group of three bytes. Escapes
 * (JSON, percent, HTML) are undone before (egress/redact.h), so they need no forms of their own.
 *
 * A form is found by a rolling hash: each byte of a stream costs the same, whatever was seen before
 * and however much of a secret it resembles.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

enum { REDACT_MIN = 8 }; /* shorter secrets would be found in anything */

/* How bytes are compared: each folding makes one of bytes that mean the same in the form. */
enum redact_fold { FOLD_TEXT, FOLD_HEX, FOLD_BASE64, FOLD_COUNT };

struct redact_form {
    uint8_t *bytes; /* folded */
    size_t len;
    enum redact_fold fold;
    bool head, tail; /* a byte in front of it, or behind it, holds bits of the secret as well */
    uint64_t hash;
    uint64_t
        drop; /* by which the hash of what stands in front of the form counts less than its own */
};

struct redact_set {
    struct redact_form *forms;
    size_t count;
    size_t longest; /* form */
    size_t window;  /* bytes of a stream that one form may take, at most */
    uint64_t base;
    uint8_t fold[FOLD_COUNT][256];
};

/* Of these secrets; shorter ones than REDACT_MIN are left out. Contains what they contain: wiped by
 * redact_set_free(). */
int redact_set_new(const struct slice *secrets, size_t count, struct redact_set **ret_set,
                   struct error *err);
void redact_set_free(struct redact_set *set); /* NULL is fine */

bool redact_is_base64(uint8_t c); /* of either alphabet, or padding */
