/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cella-egress: the resolver and the proxies of sandboxes. Started by the server's supervisor, not
 * by people, as a user of its own that has no rights to anything.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "confine/confine.h"
#include "egress/control.h"
#include "egress/egress.h"
#include "loop/net.h"

#define RESOLV_CONF "/etc/resolv.conf"

enum {
    RETRY_MS = 500, /* for a warden that is not there yet */
    RETRY_MAX_MS = 60 * 1000,
    FDS_OF_OTHERS = 512, /* that are not connections' */
    FDS_PER_FLOW = 6,    /* two sockets, and pipes that bytes move through */
    EXIT_TROUBLE = 2,
};

struct arguments {
    int control_fd;
    const char *warden;
    uid_t user;
    enum log_level level;
    struct egress egress;
};

/* --- options --- */

static int take_number(const char *value, unsigned long max, unsigned long *ret_number)
{
    char *end;
    errno = 0;
    *ret_number = strtoul(value, &end, 10);
    return *value < '0' || *value > '9' || *end != '\0' || errno != 0 || *ret_number > max ? -1 : 0;
}

static int take_control_fd(struct arguments *a, const char *value, struct error *err)
{
    unsigned long fd;
    if (take_number(value, 1023, &fd) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%.20s is no descriptor", value);
    a->control_fd = (int)fd;
    return 0;
}

static int take_warden(struct arguments *a, const char *value, struct error *err)
{
    a->warden = value;
    return 0;
}

static int take_user(struct arguments *a, const char *value, struct error *err)
{
    unsigned long uid;
    if (take_number(value, UINT32_MAX - 1, &uid) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%.20s is no user's number", value);
    a->user = (uid_t)uid;
    return 0;
}

/* The next item of a list that is separated by commas; false: there is none. */
static bool next_item(const char **at, char *out, size_t size)
{
    size_t len = strcspn(*at, ",");
    snprintf(out, size, "%.*s", (int)len, *at);
    *at += len + ((*at)[len] == ',');
    return len > 0;
}

static int take_resolvers(struct arguments *a, const char *value, struct error *err)
{
    char item[80];
    while (next_item(&value, item, sizeof(item)))
        if (resolver_add_server(&a->egress.resolver, item, err) != 0)
            return -1;
    return 0;
}

static int take_exceptions(struct arguments *a, const char *value, struct error *err)
{
    char item[80];
    while (next_item(&value, item, sizeof(item)))
        if (net_exceptions_add(&a->egress.guests.exceptions, slice_of(item), err) != 0)
            return -1;
    return 0;
}

static int take_ca(struct arguments *a, const char *value, struct error *err)
{
    a->egress.ca_file = value;
    return 0;
}

static int take_level(struct arguments *a, const char *value, struct error *err)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], value) == 0) {
            a->level = (enum log_level)i;
            return 0;
        }
    return error_set(err, ERROR_INVALID_ARGUMENT, "%.20s is no log level", value);
}

static const struct option_row {
    const char *name;
    const char *value;
    int (*take)(struct arguments *a, const char *value, struct error *err);
    const char *help;
} option_rows[] = {
    {"--control-fd", "FD", take_control_fd, "a listening unix socket for policies"},
    {"--warden", "PATH", take_warden, "where the warden takes this process's requests"},
    {"--user", "UID", take_user, "who may send policies, besides root"},
    {"--resolver", "ADDRESS[:PORT],…", take_resolvers, "name servers; default: " RESOLV_CONF},
    {"--allow-private", "CIDR,…", take_exceptions, "private ranges that policies may open"},
    {"--ca", "FILE", take_ca, "whom servers are believed for, where secrets are sent to them"},
    {"--log-level", "LEVEL", take_level, "error, warn, info, debug"},
};

static int usage(FILE *out, int status)
{
    fprintf(out, "usage: cella-egress OPTION…\n");
    for (size_t i = 0; i < ARRAY_LEN(option_rows); i++)
        fprintf(out, "  %-16s %-15s %s\n", option_rows[i].name, option_rows[i].value,
                option_rows[i].help);
    return status;
}

static int parse(struct arguments *a, char **argv, struct error *err)
{
    for (char **arg = argv + 1; *arg != NULL; arg += 2) {
        const struct option_row *row = NULL;
        for (size_t i = 0; i < ARRAY_LEN(option_rows); i++)
            if (strcmp(option_rows[i].name, *arg) == 0)
                row = &option_rows[i];
        if (row == NULL)
            return error_set(err, ERROR_INVALID_ARGUMENT, "unknown option %.60s", *arg);
        if (arg[1] == NULL)
            return error_set(err, ERROR_INVALID_ARGUMENT, "%s needs a value", *arg);
        if (row->take(a, arg[1], err) != 0)
            return -1;
    }
    if (a->control_fd < 0 || a->warden == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "--control-fd and --warden are needed");
    return 0;
}

/* --- running --- */

/* Sockets that others have made: one call that waits would hold everybody up. */
static void set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        log_error("a socket that was handed over: %s", strerror(errno));
}

struct service {
    struct arguments *arguments;
    enum net_listener which;
    void (*serve)(struct egress *egress, int fd);
    const char *name;
    bool six;      /* for IPv6, which not every machine has */
    bool optional; /* the machine may have none: it is asked for more and more rarely */
};

/* A listener is asked for until it is there: at the first start the warden may be slower, and after
 * a crash the one before may still be dying. */
static void service_main(void *arg)
{
    struct service *service = arg;
    struct egress *egress = &service->arguments->egress;
    struct error err;
    int fd;
    int64_t retry_ms = RETRY_MS;
    bool told = false;
    enum net_listener which = service->which + (service->six ? NET_LISTEN_SIX : 0);
    while (warden_link_listen(&egress->warden, which, &fd, &err) != 0) {
        if (service->six && err.code == ERROR_NETWORK_UNAVAILABLE)
            return;
        if (!told)
            log_info("waiting for the %s socket: %s", service->name, err.message);
        told = true;
        if (co_sleep(egress->loop, retry_ms, &err) != 0)
            return;
        if (service->optional && retry_ms < RETRY_MAX_MS)
            retry_ms *= 2;
    }
    log_debug("serving %s", service->name);
    set_nonblocking(fd);
    service->serve(egress, fd);
    loop_stop(egress->loop); /* whoever starts us does it again */
}

static void control_main(void *arg)
{
    struct arguments *a = arg;
    set_nonblocking(a->control_fd);
    control_serve(&a->egress, a->control_fd, a->user);
    loop_stop(a->egress.loop);
}

static void count_main(void *arg)
{
    direct_count(arg);
}

enum { LISTENERS = 4, SERVICES = 2 * LISTENERS + 2 };

static int start(struct arguments *a, struct service services[SERVICES], struct error *err)
{
    if (co_spawn(a->egress.loop, control_main, a, NULL, err) != 0 ||
        co_spawn(a->egress.loop, count_main, &a->egress, NULL, err) != 0)
        return -1;
    for (size_t i = 0; i < SERVICES; i++) {
        services[i].arguments = a;
        if (co_spawn(a->egress.loop, service_main, &services[i], NULL, err) != 0)
            return -1;
    }
    return 0;
}

static void end(int signal)
{
    _exit(0); /* there is nothing to put in order: sandboxes' connections end with us */
}

/* As many connections as there are descriptors for. */
static unsigned flows_max(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return 0;
    if (files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        getrlimit(RLIMIT_NOFILE, &files);
    }
    rlim_t most =
        files.rlim_cur > FDS_OF_OTHERS ? (files.rlim_cur - FDS_OF_OTHERS) / FDS_PER_FLOW : 0;
    return most < EGRESS_FLOWS_MAX ? (unsigned)most : EGRESS_FLOWS_MAX;
}

static int run(struct arguments *a, struct error *err)
{
    struct egress *egress = &a->egress;
    struct service services[SERVICES] = {
        {.which = NET_LISTEN_DNS_UDP, .serve = dns_serve_udp, .name = "resolver's UDP"},
        {.which = NET_LISTEN_DNS_TCP, .serve = dns_serve_tcp, .name = "resolver's TCP"},
        {.which = NET_LISTEN_HTTP, .serve = http_proxy_serve, .name = "HTTP proxy's"},
        {.which = NET_LISTEN_TLS, .serve = tls_proxy_serve, .name = "TLS proxy's"},
        {.which = NET_LISTEN_CONNECTIONS,
         .serve = direct_serve,
         .name = "kernel's connections'",
         .optional = true},
        {.which = NET_LISTEN_REFUSALS,
         .serve = direct_serve,
         .name = "kernel's refusals'",
         .optional = true},
    };
    for (size_t i = 0; i < LISTENERS; i++) {
        services[SERVICES - LISTENERS + i] = services[i];
        services[SERVICES - LISTENERS + i].six = true;
    }
    char resolvers[200];
    egress->loop = loop_new(err);
    if (egress->loop == NULL || reach_init(&egress->reach, egress->loop, err) != 0)
        return -1;
    egress->resolver.loop = egress->loop;
    egress->warden = (struct warden_link){.loop = egress->loop, .path = a->warden, .fd = -1};
    egress->started_ms = wall_ms();
    egress->flows_max = flows_max();
    if (egress->resolver.server_count == 0 &&
        resolver_read_servers(&egress->resolver, RESOLV_CONF, err) != 0)
        log_warn("%s: no names will be resolved", err->message);
    resolver_describe(&egress->resolver, resolvers, sizeof(resolvers));
    log_info("name servers: %s; at most %u connections", resolvers, egress->flows_max);
    if (start(a, services, err) != 0)
        return -1;
    return loop_run(egress->loop, err);
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.control_fd = -1, .level = LOG_LEVEL_INFO};
    struct error err = {0};
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return usage(stdout, 0);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, end);
    /* Connections of all sandboxes are in its memory: nobody else's debugger looks at it. */
    prctl(PR_SET_DUMPABLE, 0);
    if (parse(&arguments, argv, &err) != 0) {
        fprintf(stderr, "cella-egress: %s\n", err.message);
        return usage(stderr, EXIT_TROUBLE);
    }
    log_init("egress", arguments.level);
    prctl(PR_SET_NAME, "cella-egress"); /* it is started by a descriptor, which has no name */
    if (confine_egress(arguments.egress.ca_file, &err) != 0) {
        log_error("%s", err.message);
        return 1;
    }
    char confinement[CONFINE_REPORT_MAX];
    confine_describe(confinement);
    log_info("confined by %s", confinement);
    if (run(&arguments, &err) != 0) {
        log_error("%s", err.message);
        return 1;
    }
    return 0;
}
