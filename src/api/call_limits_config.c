/* SPDX-License-Identifier: Apache-2.0 */

/* The limits' numbers: what they are by default, and how they are written. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call_limits.h"
#include "base/cleanup.h"
#include "base/quantity.h"

#define REQUEST_MEMORY         "request-memory"
#define REQUEST_MEMORY_PER_KEY "request-memory-per-key"

enum { TEXT_MAX = 512, RATE_MAX = 1000000, MEMORY_LEAST = 4 << 20 };

/* Far above what one agent does, and below what one machine can serve. */
static const struct limits_config defaults = {
    .classes =
        {
            [ROUTE_CLASS_READ] = {1000, 5000},
            [ROUTE_CLASS_WRITE] = {200, 1000},
            [ROUTE_CLASS_CREATE] = {50, 500},
            [ROUTE_CLASS_EXEC] = {300, 2000},
            [ROUTE_CLASS_FILES] = {1000, 5000},
            [ROUTE_CLASS_STREAM] = {100, 1000},
            [ROUTE_CLASS_PROXY] = {2000, 10000},
            [ROUTE_CLASS_LOGIN] = {10, 100},
            [ROUTE_CLASS_FREE] = {0, 0},
        },
    .address = {3000, 15000},
    /* One key's holds the largest JSON body with what is made of it, once. */
    .memory = 160 << 20,
    .memory_per_caller = 64 << 20,
};

static bool parse_number(const char *text, size_t len, uint32_t most, uint32_t *ret_number)
{
    char digits[12];
    if (len == 0 || len >= sizeof(digits) || strspn(text, "0123456789") < len)
        return false;
    snprintf(digits, sizeof(digits), "%.*s", (int)len, text);
    unsigned long number = strtoul(digits, NULL, 10);
    *ret_number = (uint32_t)number;
    return number >= 1 && number <= most;
}

/* "200:1000", "200", "off" */
static bool parse_rate(const char *text, struct bucket_rate *ret_rate)
{
    struct bucket_rate rate = {0};
    size_t len = strcspn(text, ":");
    if (strcmp(text, "off") != 0) {
        if (!parse_number(text, len, RATE_MAX, &rate.per_second))
            return false;
        rate.burst = rate.per_second;
        if (text[len] == ':' &&
            !parse_number(text + len + 1, strlen(text + len + 1), RATE_MAX, &rate.burst))
            return false;
    }
    *ret_rate = rate;
    return true;
}

static int set_rate(const char *name, const char *value, struct limits_config *config,
                    struct error *err)
{
    if (strcmp(name, "local") == 0) {
        config->local = strcmp(value, "on") == 0;
        if (config->local || strcmp(value, "off") == 0)
            return 0;
        return error_set(err, ERROR_INVALID_ARGUMENT, "local: \"%.40s\" is not on or off", value);
    }
    enum route_class class = route_class_parse(slice_of(name));
    struct bucket_rate *rate = strcmp(name, "address") == 0 ? &config->address
                               : class < ROUTE_CLASS_COUNT  ? &config->classes[class]
                                                            : NULL;
    if (rate == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "\"%.40s\" is not a class of routes (read, write, create, exec, files, "
                         "stream, proxy, login), \"address\" or \"local\"",
                         name);
    if (!parse_rate(value, rate))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s: \"%.40s\" is not requests a second, with how many at once behind a "
                         "colon (200:1000, each 1 to %d), or off",
                         name, value, RATE_MAX);
    return 0;
}

/* "64Mi", "off" */
static int set_memory(const char *name, const char *value, struct limits_config *config,
                      struct error *err)
{
    uint64_t *place =
        strcmp(name, REQUEST_MEMORY) == 0 ? &config->memory : &config->memory_per_caller;
    uint64_t bytes = 0;
    if (strcmp(value, "off") != 0 &&
        (quantity_bytes(value, &bytes, NULL) < 0 || bytes < MEMORY_LEAST))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s: \"%.40s\" is not an amount of at least 4Mi, as 64Mi, or off", name,
                         value);
    *place = bytes;
    return 0;
}

static int set_quota(const char *name, const char *value, struct limits_config *config,
                     struct error *err)
{
    if (strcmp(name, REQUEST_MEMORY) == 0 || strcmp(name, REQUEST_MEMORY_PER_KEY) == 0)
        return set_memory(name, value, config, err);
    return quotas_set(&config->quotas, name, value, err);
}

static int each_pair(const char *text, struct limits_config *config,
                     int (*set)(const char *, const char *, struct limits_config *, struct error *),
                     struct error *err)
{
    char copy[TEXT_MAX], *rest = copy;
    if (strlen(text) >= sizeof(copy))
        return error_set(err, ERROR_INVALID_ARGUMENT, "this is too much of it");
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *item; (item = strsep(&rest, ",")) != NULL;) {
        char *equals = strchr(item, '=');
        if (item[0] == '\0')
            continue;
        if (equals == NULL)
            return error_set(err, ERROR_INVALID_ARGUMENT, "\"%.40s\" is not NAME=VALUE", item);
        *equals = '\0';
        if (set(item, equals + 1, config, err) < 0)
            return -1;
    }
    return 0;
}

/* What is said of each address, and of this machine, no workspace has a say in. */
static int set_rate_within(const char *name, const char *value, struct limits_config *config,
                           struct error *err)
{
    if (strcmp(name, "address") == 0 || strcmp(name, "local") == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s is for the whole server to say (--rate-limit), not for a workspace",
                         name);
    return set_rate(name, value, config, err);
}

static int set_quota_within(const char *name, const char *value, struct limits_config *config,
                            struct error *err)
{
    if (strncmp(name, REQUEST_MEMORY, strlen(REQUEST_MEMORY)) == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "%s is for the whole server to say (--quota), not for a workspace", name);
    return set_quota(name, value, config, err);
}

int limits_config_refine(const struct limits_config *base, const char *rates, const char *quotas,
                         struct limits_config *ret_config, struct error *err)
{
    struct limits_config config = *base;
    config.quotas.of[QUOTA_STREAMS] = 0; /* those of the whole server are counted anyway */
    if (rates[0] != '\0')
        config.off = strcmp(rates, "off") == 0;
    if (base->off && !config.off && strcmp(rates, "on") != 0) /* what is named, and nothing else */
        memset(config.classes, 0, sizeof(config.classes));
    if (strcmp(rates, "on") != 0 && !config.off &&
        each_pair(rates, &config, set_rate_within, err) < 0)
        return error_prefix(err, "rateLimit");
    if (each_pair(quotas, &config, set_quota_within, err) < 0)
        return error_prefix(err, "quota");
    *ret_config = config;
    return 0;
}

int limits_config_parse(const char *rates, const char *quotas, struct limits_config *ret_config,
                        struct error *err)
{
    struct limits_config config = defaults;
    quotas_default(&config.quotas);
    if (rates == NULL || strcmp(rates, "on") == 0)
        rates = "";
    config.off = strcmp(rates, "off") == 0;
    if (!config.off && each_pair(rates, &config, set_rate, err) < 0)
        return error_prefix(err, "--rate-limit");
    if (quotas != NULL && each_pair(quotas, &config, set_quota, err) < 0)
        return error_prefix(err, "--quota");
    *ret_config = config;
    return 0;
}
