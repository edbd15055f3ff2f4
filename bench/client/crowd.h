/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Many sandboxes, several at a time, each worker on a connection of its own. */

#include <stdint.h>

#include "base/error.h"

enum crowd_kind {
    CROWD_CHURN,  /* create, first output, delete, gone */
    CROWD_CREATE, /* create, first output; they stay */
    CROWD_DELETE, /* delete, gone */
};

struct crowd {
    const char *address;
    char *key;
    const char *prefix; /* sandboxes are called PREFIX-<first>, … */
    const char *command;
    enum crowd_kind kind;
    int first; /* the number that the first one is called by */
    int count;
    int workers;
    int64_t *ready_ns; /* count of each: create → first output … */
    int64_t *gone_ns;  /* … and delete → gone */
};

/* Fails with the first worker's error; the others then stop as well. */
int crowd_run(struct crowd *crowd, struct error *err);

int64_t now_ns(void);
