/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `cella doctor` looks at. A check is a row and a function that fills a finding; it asks the
 * machine and changes nothing.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum finding_level {
    FINDING_OK,
    FINDING_WARNING, /* works without, but less well, or not for everybody */
    FINDING_MISSING, /* sandboxes need it */
};

enum { FINDING_TEXT_MAX = 256 };

struct finding {
    enum finding_level level;
    char text[FINDING_TEXT_MAX];
    char fix[FINDING_TEXT_MAX]; /* "" when there is nothing to do */
};

struct check_row {
    const char *name;
    void (*check)(const char *data, struct finding *finding);
};

/* Each ended by a row without a name. */
extern const struct check_row doctor_kernel_checks[];
extern const struct check_row doctor_host_checks[];
extern const struct check_row doctor_network_checks[];

/* Setters, so that a check reads as its conclusions. */
void finding_set(struct finding *finding, enum finding_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void finding_fix(struct finding *finding, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The first bytes of a file as a string; false when it cannot be read. */
bool doctor_read(const char *path, char *out, size_t size);
/* The whole number at the beginning of a file; -1 when there is none. */
long long doctor_number(const char *path);

enum { FORWARD_NAME_MAX = 128 };

/* A chain of another program that drops what is forwarded. */
struct forward_drop {
    char table[FORWARD_NAME_MAX]; /* "ip filter" */
    char chain[FORWARD_NAME_MAX];
    bool docker;   /* Docker's chain for rules of others is there */
    bool excepted; /* some rule lets sandboxes through */
    bool legacy;   /* of the tables before nftables */
};

/* Looks for one in the output of `nft list ruleset`. */
bool forward_drop_find(const char *ruleset, struct forward_drop *ret_drop);

/* `cella doctor --leaks`, in leaks.c. *ret_status is the warden's. */
int doctor_leaks(const char *data, int *ret_status, struct error *err);
