/* SPDX-License-Identifier: Apache-2.0 */

/* The setting, the measurements, and what follows from both; lower.c acts on it. */

#include "sandbox/auto_lower.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/quantity.h"
#include "sandbox/spec.h"

enum { PAGE = 4096 };

static int read_factor(const char *text, uint64_t *ret_millis, struct error *err)
{
    uint64_t millis;
    if (strspn(text, "0123456789.") != strlen(text) || quantity_cpu(text, &millis, NULL) < 0 ||
        millis <= 1000 || millis > AUTO_LOWER_FACTOR_MAX * 1000)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "spec.autoLower.factor: \"%.40s\" is not a number above 1, and %d at most",
                         text, AUTO_LOWER_FACTOR_MAX);
    *ret_millis = millis;
    return 0;
}

int auto_lower_parse(struct slice list, struct auto_lower *ret_lower, struct error *err)
{
    struct auto_lower lower = {0};
    if (!strv_valid(list))
        return error_set(err, ERROR_INVALID_ARGUMENT, "spec.autoLower is no list");
    strv_each (item, list) {
        const char *eq = strchr(item, '=');
        size_t len = eq == NULL ? 0 : (size_t)(eq - item);
        if (len == strlen("factor") && memcmp(item, "factor", len) == 0) {
            if (read_factor(eq + 1, &lower.factor_millis, err) < 0)
                return -1;
            continue;
        }
        enum resource found = resource_find(item, len);
        if (found > RESOURCE_DISK)
            return error_set(
                err, ERROR_INVALID_ARGUMENT,
                "spec.autoLower.minimum.%.*s: what is measured is cpu, memory and disk", (int)len,
                item);
        if (spec_quantity(found, eq + 1, &lower.minimum.of[found], err) < 0)
            return error_prefix(err, "spec.autoLower.minimum.%s", resource_name(found));
    }
    if (lower.factor_millis == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "spec.autoLower.factor is missing: a number above 1, as 1.5");
    *ret_lower = lower;
    return 0;
}

void auto_lower_push(struct auto_lower *lower, double cpu_millis, double memory, double disk)
{
    double *slot;
    if (lower->count == AUTO_LOWER_SAMPLES) {
        memmove(lower->recent, lower->recent + 1, sizeof(lower->recent) - sizeof(lower->recent[0]));
        lower->count--;
    }
    slot = lower->recent[lower->count++];
    slot[RESOURCE_CPU] = cpu_millis;
    slot[RESOURCE_MEMORY] = memory;
    slot[RESOURCE_DISK] = disk;
}

/* NAN when one of the measurements is not known. */
static double most_of(const struct auto_lower *lower, int resource)
{
    double most = 0;
    for (size_t i = 0; i < lower->count; i++) {
        double value = lower->recent[i][resource];
        if (isnan(value))
            return NAN;
        most = value > most ? value : most;
    }
    return most;
}

static uint64_t at_least(uint64_t value, uint64_t least)
{
    return value > least ? value : least;
}

bool auto_lower_wants(const struct auto_lower *lower, const struct spec_limits *limits,
                      struct spec_limits *ret_limits)
{
    struct spec_limits wanted = *limits;
    bool any = false;
    if (lower->count < AUTO_LOWER_SAMPLES)
        return false;
    for (int i = 0; i <= (int)RESOURCE_DISK; i++) {
        double most = most_of(lower, i);
        if (isnan(most))
            continue;
        double target = most * (double)lower->factor_millis / 1000;
        uint64_t value = (uint64_t)target + ((double)(uint64_t)target < target);
        if (i != (int)RESOURCE_CPU)
            value = (value + PAGE - 1) / PAGE * PAGE;
        value = at_least(value, at_least(spec_minimum((enum resource)i), lower->minimum.of[i]));
        if (value > limits->of[i] - limits->of[i] / 10)
            continue;
        wanted.of[i] = value;
        any = true;
    }
    *ret_limits = wanted;
    return any;
}
