/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cella-warden: the only privileged program of Cella. Started by the server's supervisor, not by
 * people; `--leaks` and `--cleanup` serve `cella doctor` and the tests.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/program.h"
#include "base/prompt.h"
#include "warden/child.h"
#include "warden/leaks.h"
#include "warden/net_rules.h"
#include "warden/warden.h"

enum mode { MODE_SERVE, MODE_LEAKS, MODE_CLEANUP, MODE_STEPS, MODE_HELP };

enum { EXIT_LEAKS = 1, EXIT_TROUBLE = 2 };

struct arguments {
    enum mode mode;
    struct warden_options options;
};

static int take_data(struct arguments *arguments, const char *value)
{
    arguments->options.data = value;
    return 0;
}

static int take_agent(struct arguments *arguments, const char *value)
{
    arguments->options.agent = value;
    return 0;
}

static int take_listen_fd(struct arguments *arguments, const char *value)
{
    char *end;
    long fd = strtol(value, &end, 10);
    if (*value == '\0' || *end != '\0' || fd < 3 || fd > 1023)
        return -1;
    arguments->options.listen_fd = (int)fd;
    return 0;
}

static int take_user(struct arguments *arguments, const char *value)
{
    unsigned uid, gid;
    int end = 0;
    if (sscanf(value, "%u:%u%n", &uid, &gid, &end) != 2 || value[end] != '\0')
        return -1;
    arguments->options.user = uid;
    arguments->options.group = gid;
    return 0;
}

static int take_volume_size(struct arguments *arguments, const char *value)
{
    char *end;
    errno = 0;
    arguments->options.volume_size = strtoull(value, &end, 10);
    return *value < '0' || *value > '9' || *end != '\0' || errno != 0 ? -1 : 0;
}

static int take_reserve(struct arguments *arguments, const char *value)
{
    return volume_reserve_parse(value, &arguments->options.reserve) ? 0 : -1;
}

static int take_storage(struct arguments *arguments, const char *value)
{
    return storage_kind_parse(value, &arguments->options.storage) ? 0 : -1;
}

static int take_network(struct arguments *arguments, const char *value)
{
    arguments->options.net.on = strcmp(value, "on") == 0;
    return arguments->options.net.on || strcmp(value, "off") == 0 ? 0 : -1;
}

static int take_network_range(struct arguments *arguments, const char *value)
{
    uint32_t range;
    unsigned bits;
    struct error err;
    arguments->options.net.router.range = value;
    return router_parse_range(value, &range, &bits, &err);
}

static int take_network_range6(struct arguments *arguments, const char *value)
{
    struct six_address range;
    unsigned bits;
    struct error err;
    arguments->options.net.router.range6 = value;
    return six_parse_range(value, &range, &bits, &err);
}

static int take_network_open(struct arguments *arguments, const char *value)
{
    arguments->options.net.router.opened = value;
    return rules_list_valid(value) ? 0 : -1;
}

static int take_resolvers(struct arguments *arguments, const char *value)
{
    arguments->options.net.router.resolvers = value;
    return rules_list_valid(value) ? 0 : -1;
}

static int take_egress_user(struct arguments *arguments, const char *value)
{
    char *end;
    unsigned long uid = strtoul(value, &end, 10);
    if (*value == '\0' || *end != '\0' || uid == 0 || uid >= UINT32_MAX)
        return -1;
    arguments->options.net.router.egress = (uid_t)uid;
    return 0;
}

static int take_egress_fd(struct arguments *arguments, const char *value)
{
    char *end;
    long fd = strtol(value, &end, 10);
    if (*value == '\0' || *end != '\0' || fd < 3 || fd > 1023)
        return -1;
    arguments->options.net.listen_fd = (int)fd;
    return 0;
}

static int take_fail_at(struct arguments *arguments, const char *value)
{
    const char *test = getenv("CELLA_TEST");
    if (test == NULL || strcmp(test, "1") != 0)
        return -1;
    arguments->options.fail_at = value;
    return 0;
}

static int take_leaks(struct arguments *arguments, const char *value)
{
    arguments->mode = MODE_LEAKS;
    return 0;
}

static int take_cleanup(struct arguments *arguments, const char *value)
{
    arguments->mode = MODE_CLEANUP;
    return 0;
}

static int take_steps(struct arguments *arguments, const char *value)
{
    arguments->mode = MODE_STEPS;
    return 0;
}

static int take_help(struct arguments *arguments, const char *value)
{
    arguments->mode = MODE_HELP;
    return 0;
}

static const struct option_row {
    const char *name;
    const char *value; /* NULL: takes none */
    int (*take)(struct arguments *arguments, const char *value);
    const char *help;
} option_rows[] = {
    {"--data", "DIR", take_data, "the data folder"},
    {"--listen-fd", "FD", take_listen_fd, "a listening unix socket to serve"},
    {"--agent", "FILE", take_agent, "the agent's program"},
    {"--user", "UID:GID", take_user, "who may connect, besides root"},
    {"--volume-size", "BYTES", take_volume_size, "that the volume may grow to; default: no limit"},
    {"--disk-reserve", "PERCENT%|BYTES", take_reserve,
     "that the volume leaves free on the disk; default: 5%"},
    {"--storage", "auto|btrfs|plain", take_storage, "where writable layers live"},
    {"--network", "on|off", take_network, "whether sandboxes can have one; default: off"},
    {"--network-range", "CIDR", take_network_range,
     "sandboxes' addresses; default: " NET_DEFAULT_RANGE},
    {"--network-range6", "CIDR", take_network_range6,
     "those of IPv6; default: a part of fd00::/8 that nobody else has"},
    {"--network-open", "CIDR,…", take_network_open, "private ranges that they may reach"},
    {"--resolvers", "ADDRESS,…", take_resolvers, "that the egress process asks"},
    {"--egress-user", "UID", take_egress_user, "whom the egress process runs as"},
    {"--egress-fd", "FD", take_egress_fd, "a listening unix socket for the egress process"},
    {"--leaks", NULL, take_leaks,
     "list what belongs to no sandbox (\"ID running|stopped\" on stdin)"},
    {"--cleanup", NULL, take_cleanup, "end everything of the data folder"},
    {"--fail-at", "STEP", take_fail_at, "for tests: fail there"},
    {"--list-steps", NULL, take_steps, "for tests: what --fail-at knows"},
    {"--help", NULL, take_help, "this text"},
};

static int usage(FILE *out, int status)
{
    fprintf(out, "usage: cella-warden OPTION…\n");
    for (size_t i = 0; i < ARRAY_LEN(option_rows); i++)
        fprintf(out, "  %-14s %-17s %s\n", option_rows[i].name,
                option_rows[i].value == NULL ? "" : option_rows[i].value, option_rows[i].help);
    return status;
}

static int parse(struct arguments *arguments, char **argv)
{
    for (char **arg = argv + 1; *arg != NULL; arg++) {
        const struct option_row *row = NULL;
        for (size_t i = 0; i < ARRAY_LEN(option_rows); i++)
            if (strcmp(option_rows[i].name, *arg) == 0)
                row = &option_rows[i];
        if (row == NULL) {
            fprintf(stderr, "cella-warden: unknown option %s\n", *arg);
            return -1;
        }
        const char *value = NULL;
        if (row->value != NULL)
            value = *++arg;
        if ((row->value != NULL && value == NULL) || row->take(arguments, value) < 0) {
            fprintf(stderr, "cella-warden: %s needs %s\n", row->name, row->value);
            return -1;
        }
    }
    return 0;
}

static int list_steps(void)
{
    for (size_t i = 0; sandbox_step_names[i] != NULL; i++)
        puts(sandbox_step_names[i]);
    for (size_t i = 0; child_step_names[i] != NULL; i++)
        puts(child_step_names[i]);
    return 0;
}

static int find_leaks(const struct arguments *arguments)
{
    struct error err;
    int count;
    if (leaks_print(arguments->options.data, stdin, stdout, &count, &err) < 0) {
        log_error("%s", err.message);
        return EXIT_TROUBLE;
    }
    return count == 0 ? 0 : EXIT_LEAKS;
}

static int serve(const struct arguments *arguments)
{
    struct error err;
    struct warden *warden = calloc(1, sizeof(*warden));
    program_allow_files(); /* each sandbox takes one */
    if (warden == NULL || warden_init(warden, &arguments->options, &err) < 0) {
        log_error("%s", warden == NULL ? "out of memory" : err.message);
        free(warden);
        return EXIT_TROUBLE;
    }
    log_info("ready: %s, cgroup %s, instance %s", warden->storage.description,
             warden->cgroups.backend->name, warden->instance);
    int r = arguments->mode == MODE_SERVE ? warden_run(warden, &err) : 0;
    if (r == 0)
        r = warden_shutdown(warden, &err);
    if (r < 0)
        log_error("%s", err.message);
    free(warden);
    return r < 0 ? EXIT_TROUBLE : 0;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {
        .options = {
            .listen_fd = -1,
            .reserve = {.percent = VOLUME_RESERVE_PERCENT},
            .net = {.listen_fd = -1,
                    .router = {.range = NET_DEFAULT_RANGE, .opened = "", .resolvers = ""}}}};
    log_init("warden", LOG_LEVEL_INFO);
    if (parse(&arguments, argv) < 0)
        return usage(stderr, EXIT_TROUBLE);
    if (arguments.mode == MODE_HELP)
        return usage(stdout, 0);
    if (arguments.mode == MODE_STEPS)
        return list_steps();
    if (arguments.options.data == NULL)
        return usage(stderr, EXIT_TROUBLE);
    if (arguments.mode == MODE_LEAKS)
        return find_leaks(&arguments);
    if (arguments.options.agent == NULL && arguments.mode == MODE_SERVE)
        return usage(stderr, EXIT_TROUBLE);
    if (geteuid() != 0) {
        log_error("the warden has to be root");
        return EXIT_TROUBLE;
    }
    prompt_turns();
    return serve(&arguments);
}
