/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Admission of sandboxes. The sum of what sandboxes were promised never passes what the machine
 * has, times an overcommit factor per resource (--overcommit), nor the quotas of their workspace.
 * A single sandbox is never promised more than the machine has, whatever the factor.
 *
 * A promise is made when a sandbox is recorded, not when it starts. While it runs, or is meant to,
 * it is promised all of its limits; one that is stopped keeps its disk alone, since that is what it
 * still takes, and starting it again may be refused. Nothing is stored: promises follow from the
 * records of the sandboxes, and are counted again when those are loaded.
 *
 * All of it is arithmetic in memory: nothing here waits or asks anybody.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sandbox/machine.h"
#include "sandbox/resources.h"
#include "sandbox/tenants.h"

enum promise_kind { PROMISE_NONE, PROMISE_DISK, PROMISE_ALL };

/* What one sandbox is counted with. All zero: with nothing. */
struct promise {
    enum promise_kind kind;
    struct spec_limits limits;
    struct tenant *tenant; /* whose quotas it counts against; borrowed. NULL: nobody's (a spare) */
};

struct admission {
    struct tenants tenants;
    struct machine machine;
    uint64_t overcommit[RESOURCE_COUNT]; /* in hundredths: 150 is one and a half */
    uint64_t promised[RESOURCE_COUNT];
    uint64_t disk_free; /* really free, below the volume, when that was last looked at */
    uint64_t disk_used; /* by the volume */
};

/* Detects the machine; factors are the defaults. */
void admission_init(struct admission *admission, int data_dir_fd);

/* "cpu=4,memory=1.5", or one factor for all: "1". Each from 0.01 to 1000000. Nothing changes on
 * failure: INVALID_ARGUMENT. */
int admission_set_overcommit(struct admission *admission, const char *text, struct error *err);

/* How much may be promised of it in all, and how much still may be. */
uint64_t admission_capacity(const struct admission *admission, enum resource resource);
uint64_t admission_free(const struct admission *admission, enum resource resource);

/*
 * Makes the promise one of this kind with these limits: less is given back at once, more has to be
 * free. INSUFFICIENT_RESOURCES says how much was asked for and is free, LIMIT_EXCEEDED which quota
 * of the workspace is reached; the promise is unchanged then.
 */
int admission_reserve(struct admission *admission, struct promise *promise, enum promise_kind kind,
                      const struct spec_limits *limits, struct error *err);
/* Whether admission_reserve() would succeed. */
int admission_check(const struct admission *admission, const struct promise *promise,
                    enum promise_kind kind, const struct spec_limits *limits, struct error *err);
/* Whether the machine could give these limits to a single sandbox; NULL or what it has already
 * (`before`) is not looked at. INSUFFICIENT_RESOURCES. */
int admission_check_single(const struct admission *admission, const struct spec_limits *before,
                           const struct spec_limits *limits, struct error *err);
/* The same, whatever is free: for what exists already. */
void admission_count(struct admission *admission, struct promise *promise, enum promise_kind kind,
                     const struct spec_limits *limits);
/* Gives back all but the disk of one that does not run any more. */
void admission_shrink(struct admission *admission, struct promise *promise);
void admission_release(struct admission *admission, struct promise *promise);

/* An amount for people: "1.5 cores", "512 MiB", "100". */
enum { AMOUNT_TEXT_SIZE = 40 };
void admission_amount(enum resource resource, uint64_t value, char text[AMOUNT_TEXT_SIZE]);
