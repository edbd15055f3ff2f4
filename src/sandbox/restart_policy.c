/* SPDX-License-Identifier: Apache-2.0 */

/* The names of restart policies, and the delay between restarts. Pure functions. */

#include "sandbox/restart.h"

#include <string.h>

#include "base/cleanup.h"

enum { FIRST_DELAY_MS = 500, DELAY_MAX_MS = 60 * 1000 };

static const char *const names[] = {
    [RESTART_ON_USE] = "on-use",
    [RESTART_ON_BOOT] = "on-boot",
    [RESTART_ALWAYS] = "always",
    [RESTART_NO] = "no",
};

const char *restart_policy_text(enum restart_policy policy)
{
    return names[policy];
}

int restart_policy_parse(const char *text, enum restart_policy *ret_policy, struct error *err)
{
    if (text == NULL) {
        *ret_policy = RESTART_ON_USE;
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(names[i], text) == 0) {
            *ret_policy = (enum restart_policy)i;
            return 0;
        }
    }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "spec.restart: \"%.40s\" is none of on-use, on-boot, always, no", text);
}

int64_t restart_delay_ms(unsigned failures)
{
    int64_t delay = FIRST_DELAY_MS;
    for (unsigned i = 1; i < failures && delay < DELAY_MAX_MS; i++)
        delay *= 2;
    return delay < DELAY_MAX_MS ? delay : DELAY_MAX_MS;
}
