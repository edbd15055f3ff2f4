/* SPDX-License-Identifier: Apache-2.0 */

/* The options' defaults, and the rows that put each into its place. */

#include "main/options.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call_limits.h"
#include "api/forwarded.h"
#include "api/port_doors.h"
#include "api/port_host.h"
#include "audit/log.h"
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/layout.h"
#include "base/log.h"
#include "base/quantity.h"
#include "loop/address.h"
#include "main/pool_option.h"
#include "network/address.h"
#include "sandbox/admission.h"
#include "sandbox/metrics.h"

enum {
    DRAIN_DEFAULT_S = 5,
    DRAIN_MAX_S = 600,
    SERVER_MEMORY_DEFAULT = 1 << 30,
    SERVER_MEMORY_MIN = 64 << 20,
};

enum kind {
    FLAG,
    VALUE,
    LIST, /* may be given several times */
};

struct option_place {
    const char *name;
    enum kind kind;
    size_t offset;
    int (*add)(char *at, const char *text, struct error *err); /* of a LIST: one more */
};

static int add_pool(char *pools, const char *text, struct error *err)
{
    struct pool_option option;
    size_t len = strlen(pools);
    if (pool_option_parse(text, &option, err) < 0)
        return error_prefix(err, "--pool");
    if (strchr(text, '\n') != NULL || len + strlen(text) + 2 > SERVER_POOLS_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "--pool: this is too much of it");
    snprintf(pools + len, SERVER_POOLS_MAX - len, "%s\n", text);
    return 0;
}

static int add_proxy(char *proxies, const char *text, struct error *err)
{
    struct proxies all = {.count = 0};
    size_t len = strlen(proxies);
    if (proxies_add(&all, proxies, err) < 0 || proxies_add(&all, text, err) < 0)
        return error_prefix(err, "--trusted-proxy");
    if (text[0] == '\0' || len + strlen(text) + 2 > SERVER_PROXIES_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "--trusted-proxy: this is %s",
                         text[0] == '\0' ? "no address" : "too much of it");
    snprintf(proxies + len, SERVER_PROXIES_MAX - len, "%s%s", len > 0 ? "," : "", text);
    return 0;
}

static const struct option_place places[] = {
    {"--listen", VALUE, offsetof(struct server_options, listen)},
    {"--data", VALUE, offsetof(struct server_options, data)},
    {"--user", VALUE, offsetof(struct server_options, user)},
    {"--public-url", VALUE, offsetof(struct server_options, public_url)},
    {"--tls", VALUE, offsetof(struct server_options, tls)},
    {"--tls-cert", VALUE, offsetof(struct server_options, tls_cert)},
    {"--tls-key", VALUE, offsetof(struct server_options, tls_key)},
    {"--jwt-config", VALUE, offsetof(struct server_options, jwt_config)},
    {"--domain", VALUE, offsetof(struct server_options, domain)},
    {"--ports", VALUE, offsetof(struct server_options, ports)},
    {"--volume-size", VALUE, offsetof(struct server_options, volume_size)},
    {"--disk-reserve", VALUE, offsetof(struct server_options, disk_reserve)},
    {"--storage", VALUE, offsetof(struct server_options, storage)},
    {"--network", VALUE, offsetof(struct server_options, network)},
    {"--network-range", VALUE, offsetof(struct server_options, network_range)},
    {"--network-range6", VALUE, offsetof(struct server_options, network_range6)},
    {"--resolver", VALUE, offsetof(struct server_options, resolver)},
    {"--egress-ca", VALUE, offsetof(struct server_options, egress_ca)},
    {"--server-memory", VALUE, offsetof(struct server_options, server_memory)},
    {"--log-level", VALUE, offsetof(struct server_options, log_level)},
    {"--log-format", VALUE, offsetof(struct server_options, log_format)},
    {"--access-log", FLAG, offsetof(struct server_options, access_log)},
    {"--metrics-open", FLAG, offsetof(struct server_options, metrics_open)},
    {"--metrics-listen", VALUE, offsetof(struct server_options, metrics_listen)},
    {"--otlp-endpoint", VALUE, offsetof(struct server_options, otlp)},
    {"--trace-ratio", VALUE, offsetof(struct server_options, trace_ratio)},
    {"--trace-commands", FLAG, offsetof(struct server_options, trace_commands)},
    {"--drain-delay", VALUE, offsetof(struct server_options, drain_delay)},
    {"--drain-timeout", VALUE, offsetof(struct server_options, drain_timeout)},
    {"--keep-sandboxes", FLAG, offsetof(struct server_options, keep_sandboxes)},
    {"--metrics-interval", VALUE, offsetof(struct server_options, metrics_interval)},
    {"--overcommit", VALUE, offsetof(struct server_options, overcommit)},
    {"--capacity", VALUE, offsetof(struct server_options, capacity)},
    {"--network-allow-private", VALUE, offsetof(struct server_options, network_private)},
    {"--audit", VALUE, offsetof(struct server_options, audit)},
    {"--rate-limit", VALUE, offsetof(struct server_options, rate_limit)},
    {"--quota", VALUE, offsetof(struct server_options, quota)},
    {"--cors-origin", VALUE, offsetof(struct server_options, cors_origin)},
    {"--pool", LIST, offsetof(struct server_options, pools), add_pool},
    {"--trusted-proxy", LIST, offsetof(struct server_options, proxies), add_proxy},
    {"--allow-private-callbacks", FLAG, offsetof(struct server_options, private_callbacks)},
    {"--no-auth", FLAG, offsetof(struct server_options, no_auth)},
    {"--no-history", FLAG, offsetof(struct server_options, no_history)},
    {"--history-size", VALUE, offsetof(struct server_options, history_size)},
};

/* As it is listened on, not as it is written: names are not looked up there, either. */
static bool is_loopback(const char *text)
{
    struct socket_address address;
    if (socket_address_parse(text, &address, NULL) < 0)
        return false;
    if (address.as.any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&address.as.in6.sin6_addr);
    return address.as.any.sa_family == AF_INET && ntohl(address.as.in.sin_addr.s_addr) >> 24 == 127;
}

static int check_open(const struct server_options *options, struct error *err)
{
    if (!options->no_auth)
        return 0;
    if (!is_loopback(options->listen))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--no-auth is for loopback addresses only (127.0.0.1:7070, [::1]:7070), "
                         "not for --listen %.60s",
                         options->listen);
    if (options->cors_origin != NULL && strchr(options->cors_origin, '*') != NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--no-auth with --cors-origin '*' would let in every page of every "
                         "browser on this machine: name the origins");
    return 0;
}

static int check_admission(const struct server_options *options, struct error *err)
{
    struct admission admission = {0};
    if (options->overcommit != NULL &&
        admission_set_overcommit(&admission, options->overcommit, err) < 0)
        return error_prefix(err, "--overcommit");
    if (options->capacity != NULL &&
        machine_configure(&admission.machine, options->capacity, err) < 0)
        return error_prefix(err, "--capacity");
    return 0;
}

static int check_limits(const struct server_options *options, struct error *err)
{
    struct audit_options audit;
    struct limits_config limits;
    if (audit_options_parse(options->audit, &audit, err) < 0)
        return error_prefix(err, "--audit");
    return limits_config_parse(options->rate_limit, options->quota, &limits, err);
}

static int check_ports(const struct server_options *options, struct error *err)
{
    struct door_range range;
    if (strcmp(options->domain, "off") != 0 && port_domain_check(options->domain, err) < 0)
        return error_prefix(err, "--domain");
    if (door_range_parse(options->ports, &range, err) < 0)
        return error_prefix(err, "--ports");
    return 0;
}

/* Told here, before anything is started. */
static int check_private(const char *list, struct error *err)
{
    struct net_exceptions exceptions = {0};
    while (list != NULL && *list != '\0') {
        size_t len = strcspn(list, ",");
        if (net_exceptions_add(&exceptions, (struct slice){list, len}, err) < 0)
            return error_prefix(err, "--network-allow-private");
        list += len + (list[len] == ',');
    }
    return 0;
}

/* As the warden has it. */
static int check_range6(const char *text, struct error *err)
{
    struct net_prefix prefix;
    static const struct net_prefix private = {.address = {NET_IPV6, {0xfc}}, .bits = 7};
    if (text == NULL)
        return 0;
    if (net_prefix_parse(slice_of(text), &prefix, err) < 0)
        return error_prefix(err, "--network-range6");
    if (!net_prefix_within(&prefix, &private) || prefix.bits < 8 || prefix.bits > 96)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--network-range6: \"%.60s\" is not a part of fc00::/7 with 8 to 96 bits, "
                         "such as fd12:3456:789a::/64",
                         text);
    return 0;
}

static int check_seconds(const char *name, const char *text, uint64_t fallback, uint64_t *ret_s,
                         struct error *err)
{
    uint64_t seconds = fallback;
    if (text != NULL && (duration_seconds(text, &seconds, NULL) < 0 || seconds > DRAIN_MAX_S))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s: \"%.40s\" is not a time from 0s to %ds",
                         name, text, DRAIN_MAX_S);
    *ret_s = seconds;
    return 0;
}

/* What is told to others about the server, and how it ends. */
static int check_observation(struct server_options *options, struct error *err)
{
    if (options->trace_ratio != NULL) {
        char *end;
        double ratio = strtod(options->trace_ratio, &end);
        if (*end != '\0' || end == options->trace_ratio || !(ratio >= 0 && ratio <= 1))
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "--trace-ratio: \"%.40s\" is not a number from 0 to 1",
                             options->trace_ratio);
    }
    if (options->otlp != NULL && strncmp(options->otlp, "http://", 7) != 0 &&
        strncmp(options->otlp, "https://", 8) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--otlp-endpoint: \"%.60s\" is not an address such as "
                         "http://127.0.0.1:4318",
                         options->otlp);
    if (check_seconds("--drain-delay", options->drain_delay, 0, &options->drain_delay_s, err) < 0)
        return -1;
    return check_seconds("--drain-timeout", options->drain_timeout, DRAIN_DEFAULT_S,
                         &options->drain_timeout_s, err);
}

static int check_history(struct server_options *options, struct error *err)
{
    uint64_t bytes = HISTORY_REPOSITORY_MAX;
    if (options->history_size != NULL &&
        (quantity_bytes(options->history_size, &bytes, NULL) < 0 ||
         bytes < HISTORY_REPOSITORY_MIN || bytes > HISTORY_REPOSITORY_MAX))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--history-size: \"%.40s\" is not a size from %dMi to %dMi",
                         options->history_size, HISTORY_REPOSITORY_MIN >> 20,
                         HISTORY_REPOSITORY_MAX >> 20);
    options->history_bytes = bytes;
    return 0;
}

/* A percentage stays one, since the warden knows the disk; whole ones are fine enough. */
static int check_volume(struct server_options *options, struct error *err)
{
    const char *reserve = options->disk_reserve;
    uint64_t bytes;
    if (options->volume_size != NULL &&
        quantity_bytes(options->volume_size, &options->volume_bytes, err) < 0)
        return error_prefix(err, "--volume-size");
    if (reserve == NULL)
        return 0;
    size_t len = strlen(reserve), digits = strspn(reserve, "0123456789");
    if (len > 0 && reserve[len - 1] == '%') {
        if (digits + 1 != len || digits < 1 || digits > 2)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "--disk-reserve: \"%.40s\" is neither 0%% to 99%%, in whole numbers, "
                             "nor a number of bytes, as 10G",
                             reserve);
        snprintf(options->disk_reserve_text, sizeof(options->disk_reserve_text), "%s", reserve);
        return 0;
    }
    if (quantity_bytes(reserve, &bytes, err) < 0)
        return error_prefix(err, "--disk-reserve");
    snprintf(options->disk_reserve_text, sizeof(options->disk_reserve_text), "%" PRIu64, bytes);
    return 0;
}

static int check_server_memory(struct server_options *options, struct error *err)
{
    const char *text = options->server_memory;
    uint64_t bytes = SERVER_MEMORY_DEFAULT;
    if (text != NULL && strcmp(text, "off") == 0)
        bytes = 0;
    else if (text != NULL && (quantity_bytes(text, &bytes, NULL) < 0 || bytes < SERVER_MEMORY_MIN))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--server-memory: \"%.40s\" is not an amount of at least %dMi, as 1Gi, or "
                         "off",
                         text, SERVER_MEMORY_MIN >> 20);
    options->server_memory_bytes = bytes;
    return 0;
}

int server_options_parse(int argc, char **argv, struct server_options *ret_options,
                         struct error *err)
{
    struct server_options options = {
        .listen = DEFAULT_LISTEN,
        .data = DEFAULT_DATA_DIR,
        .user = DEFAULT_USER,
        .domain = DEFAULT_DOMAIN,
        .ports = DEFAULT_PORTS,
        .tls = "on",
        .storage = "auto",
        .network = "on",
        .log_level = "info",
        .log_format = "text",
    };
    uint64_t interval = METRICS_INTERVAL_DEFAULT_S;
    for (int i = 1; i < argc; i++) {
        const struct option_place *place = NULL;
        for (size_t k = 0; k < ARRAY_LEN(places); k++)
            if (strcmp(places[k].name, argv[i]) == 0)
                place = &places[k];
        if (place == NULL)
            return error_set(err, ERROR_INVALID_ARGUMENT, "unknown option %.60s", argv[i]);
        char *at = (char *)&options + place->offset;
        if (place->kind == FLAG) {
            memcpy(at, &(bool){true}, sizeof(bool));
            continue;
        }
        if (++i == argc)
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s needs a value", place->name);
        if (place->kind == LIST) {
            if (place->add(at, argv[i], err) < 0)
                return -1;
            continue;
        }
        memcpy(at, &argv[i], sizeof(argv[i]));
    }
    if (check_volume(&options, err) < 0)
        return -1;
    if (options.metrics_interval != NULL &&
        (duration_seconds(options.metrics_interval, &interval, err) < 0 || interval < 1 ||
         interval > METRICS_INTERVAL_MAX_S))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--metrics-interval: \"%.40s\" is not between 1 and %d seconds",
                         options.metrics_interval, METRICS_INTERVAL_MAX_S);
    options.metrics_interval_s = interval;
    if (check_open(&options, err) < 0 || check_history(&options, err) < 0 ||
        check_server_memory(&options, err) < 0 || check_observation(&options, err) < 0 ||
        check_admission(&options, err) < 0 || check_limits(&options, err) < 0 ||
        check_ports(&options, err) < 0 || check_private(options.network_private, err) < 0 ||
        check_range6(options.network_range6, err) < 0)
        return -1;
    *ret_options = options;
    return 0;
}

int log_level_parse(const char *text)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (strcmp(levels[i], text) == 0)
            return (int)i;
    return LOG_LEVEL_INFO;
}
