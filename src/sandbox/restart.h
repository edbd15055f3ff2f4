/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Restart policies: what becomes of a sandbox that went down although nobody stopped it, because
 * the server was stopped, the machine was rebooted, or (RESTART_ALWAYS) its pid 1 ended. What its
 * owner or its life span stopped stays stopped under every policy.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum restart_policy {
    RESTART_ON_USE,  /* the first request that needs it starts it; the default */
    RESTART_ON_BOOT, /* the server starts it when it starts itself */
    RESTART_ALWAYS,  /* the same, and whenever its pid 1 ends or a start fails, after a delay */
    RESTART_NO,      /* it stays stopped */
};

const char *restart_policy_text(enum restart_policy policy);
/* NULL: the default. INVALID_ARGUMENT lists the policies there are. */
int restart_policy_parse(const char *text, enum restart_policy *ret_policy, struct error *err);

/* Runs that end sooner than this count as failures one after the other. */
enum { RESTART_STABLE_MS = 10 * 1000 };

/* How long to wait before the next start, after so many failures one after the other (1, 2, …): it
 * doubles up to a limit. */
int64_t restart_delay_ms(unsigned failures);
