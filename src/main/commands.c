/* SPDX-License-Identifier: Apache-2.0 */

/* The command lines of the warden and cellad: a table each, from the options of the server. */

#include "main/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "main/cellad.h"

int warden_command(const struct command_inputs *in, struct command_line *line, struct error *err)
{
    const struct server_options *options = in->options;
    char user[32], volume[24], egress[16];
    snprintf(user, sizeof(user), "%u:%u", in->uid, in->gid);
    snprintf(volume, sizeof(volume), "%" PRIu64, options->volume_bytes);
    snprintf(egress, sizeof(egress), "%u", in->egress_uid);
    const struct {
        const char *name, *value; /* value NULL: left out */
        const char *option;       /* of the server, that it comes from */
    } rows[] = {
        {"--data", in->data, "--data"},
        {"--listen-fd", "3", "its socket"},
        {"--agent", in->agent, "the program's folder"},
        {"--user", user, "--user"},
        {"--storage", options->storage, "--storage"},
        {"--volume-size", options->volume_size == NULL ? NULL : volume, "--volume-size"},
        {"--disk-reserve", options->disk_reserve == NULL ? NULL : options->disk_reserve_text,
         "--disk-reserve"},
        {"--network", in->network ? "on" : NULL, "--network"},
        {"--egress-fd", in->network ? "4" : NULL, "its socket"},
        {"--egress-user", in->network ? egress : NULL, "--user"},
        {"--resolvers", in->network ? in->resolvers : NULL, "--resolver"},
        {"--network-open", in->network ? options->network_private : NULL,
         "--network-allow-private"},
        {"--network-range", in->network ? options->network_range : NULL, "--network-range"},
        {"--network-range6", in->network ? options->network_range6 : NULL, "--network-range6"},
    };
    command_line_begin(line, "cella-warden");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].value != NULL)
            command_line_add_pair(line, rows[i].option, rows[i].name, rows[i].value);
    return command_line_check(line, err);
}

/* Pages of every origin may read answers, because keys are in fields that a page has to set itself.
 * Without keys that would be an invitation. */
static const char *cors_origin(const struct server_options *options)
{
    if (options->cors_origin == NULL)
        return options->no_auth ? "" : "*";
    return strcmp(options->cors_origin, "none") == 0 ? "" : options->cors_origin;
}

/* "name=value" words behind the others. */
static void add_settings(const struct server_options *options, struct command_line *line)
{
    char delay[24], timeout[24], history[24];
    snprintf(delay, sizeof(delay), "%" PRIu64, options->drain_delay_s);
    snprintf(timeout, sizeof(timeout), "%" PRIu64, options->drain_timeout_s);
    snprintf(history, sizeof(history), "%" PRIu64, options->history_bytes);
    const struct {
        const char *name, *value;
    } rows[] = {
        {"history-size", history},
        {"access-log", options->access_log ? "on" : ""},
        {"metrics-open", options->metrics_open ? "on" : ""},
        {"metrics-listen", options->metrics_listen},
        {"otlp-endpoint", options->otlp},
        {"trace-ratio", options->trace_ratio},
        {"trace-commands", options->trace_commands ? "on" : ""},
        {"drain-delay", delay},
        {"drain-timeout", timeout},
        {"trusted-proxy", options->proxies},
        {"keep-sandboxes", options->keep_sandboxes ? "on" : ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        command_line_add_setting(line, rows[i].name, rows[i].value);
}

int cellad_command(const struct command_inputs *in, struct command_line *line, struct error *err)
{
    const struct server_options *options = in->options;
    char interval[24];
    snprintf(interval, sizeof(interval), "%" PRIu64, options->metrics_interval_s);
    const struct {
        const char *option, *value; /* value NULL: "" */
    } rows[CELLAD_ARGS - 1] = {
        {"--data", in->data},
        {"--no-auth", options->no_auth ? "open" : "auth"},
        {"--log-level", options->log_level},
        {"--public-url", options->public_url},
        {"--metrics-interval", interval},
        {"--cors-origin", cors_origin(options)},
        {"--allow-private-callbacks", options->private_callbacks ? "any" : "public"},
        {"--overcommit", options->overcommit},
        {"--capacity", options->capacity},
        {"--pool", options->pools},
        {"--domain", options->domain},
        {"--ports", options->ports},
        {"--network-allow-private", options->network_private},
        {"--no-history", options->no_history ? "none" : "history"},
        {"--audit", options->audit},
        {"--rate-limit", options->rate_limit},
        {"--quota", options->quota},
    };
    command_line_begin(line, "cellad");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        command_line_add(line, rows[i].option, rows[i].value == NULL ? "" : rows[i].value);
    add_settings(options, line);
    return command_line_check(line, err);
}
