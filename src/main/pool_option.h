/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A pool on the command line: "image=host,size=8,trust=untrusted,ttl=30m,refill=2,name=NAME", in
 * any order, all but the image optional.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "code/code.h"
#include "sandbox/pools.h"
#include "sandbox/trust.h"

struct pool_option {
    char image[256];
    char name[NAME_MAX_LEN + 1]; /* "": made up of the image's */
    const char *trust;           /* literal; NULL: standard */
    char code[CODE_LIST_SIZE];   /* languages with spaces between them */
    bool has_code;
    bool has_size, has_ttl, has_refill;
    int64_t size, ttl_s, refill;
};

/* INVALID_ARGUMENT shows what would be right. */
int pool_option_parse(const char *text, struct pool_option *ret_option, struct error *err);

/* Makes or changes the pools of a text with one per line, which is taken apart. On a coroutine. */
int pool_options_apply(struct sandboxes *s, char *lines, struct error *err);
