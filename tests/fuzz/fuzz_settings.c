/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Settings as an operator or an administrator writes them: limits, quotas, the audit log, what the
 * machine has and how much of it may be promised. The first byte chooses the parser. Whatever the
 * text, no crash; a refusal says why and leaves what there was.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/call_limits.h"
#include "api/forwarded.h"
#include "audit/log.h"
#include "base/cleanup.h"
#include "sandbox/admission.h"
#include "sandbox/auto_lower.h"
#include "sandbox/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum setting {
    RATES,
    QUOTAS_OF_SERVER,
    WITHIN,
    AUDIT,
    CAPACITY,
    OVERCOMMIT,
    LOWER,
    PROXIES,
    COUNT
};

static int parse(enum setting setting, const char *text, struct error *err)
{
    struct limits_config limits, base;
    struct audit_options audit;
    struct machine machine = {.total = {0}};
    struct admission admission = {.overcommit = {0}};
    struct auto_lower lower;
    struct proxies proxies = {.count = 0};
    switch (setting) {
    case RATES:
        return limits_config_parse(text, NULL, &limits, err);
    case QUOTAS_OF_SERVER:
        return limits_config_parse(NULL, text, &limits, err);
    case WITHIN:
        if (limits_config_parse(NULL, NULL, &base, err) < 0)
            abort();
        return limits_config_refine(&base, "", text, &limits, err);
    case AUDIT:
        return audit_options_parse(text, &audit, err);
    case CAPACITY:
        return machine_configure(&machine, text, err);
    case OVERCOMMIT:
        return admission_set_overcommit(&admission, text, err);
    case LOWER:
        return auto_lower_parse(slice_of(text), &lower, err);
    case PROXIES:
    default:
        return proxies_add(&proxies, text, err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    _cleanup_free_ char *text = size < 1 ? NULL : strndup((const char *)data + 1, size - 1);
    if (text == NULL)
        return 0;
    if (parse((enum setting)(data[0] % COUNT), text, &err) < 0 &&
        (err.code == ERROR_NONE || err.message[0] == '\0'))
        abort();
    return 0;
}
