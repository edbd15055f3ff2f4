/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Puts the parts together: loop, store, auth, sandboxes, API, HTTP. Nothing is decided here.
 */

#include "main/cellad.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/api.h"
#include "api/connect/watchers.h"
#include "api/forwarded.h"
#include "api/signed_address.h"
#include "api/call_limits.h"
#include "api/live.h"
#include "api/memory_return.h"
#include "api/observed.h"
#include "api/port_callback.h"
#include "api/record.h"
#include "api/secret_source.h"
#include "api/port_doors.h"
#include "audit/log.h"
#include "auth/box_token.h"
#include "auth/auth.h"
#include "auth/issuers.h"
#include "auth/keys.h"
#include "auth/seal.h"
#include "auth/secrets.h"
#include "auth/workspaces.h"
#include "base/cleanup.h"
#include "base/layout.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/program.h"
#include "base/prompt.h"
#include "base/timetext.h"
#include "confine/confine.h"
#include "export/exporter.h"
#include "http/server.h"
#include "http/tls.h"
#include "http/webhook.h"
#include "loop/co.h"
#include "loop/loop.h"
#include "loop/work.h"
#include "main/options.h"
#include "main/pool_option.h"
#include "observe/meters.h"
#include "sandbox/history_git.h"
#include "sandbox/metrics.h"
#include "sandbox/monitors.h"
#include "sandbox/processes.h"
#include "sandbox/sandbox.h"
#include "store/store.h"
#include "wire/farewell.h"

enum { RECOVER_WAIT_MS = 15 * 1000 }; /* and then sandboxes are stopped: the supervisor waits */

struct cellad {
    struct loop *loop;
    struct store *store;
    struct auth *auth;
    struct sandboxes *sandboxes;
    struct code *code;
    struct webhook *webhook;
    struct webhook *key_fetcher; /* of issuers' keys; NULL: none were asked for */
    struct http_server *server;
    struct http_server *figures; /* of --metrics-listen; NULL: there is none */
    bool metrics_listen;
    struct tls_context *tls; /* NULL: plain HTTP only */
    const char *overcommit, *capacity, *network_private;
    bool no_history;
    uint64_t history_bytes;
    const char *audit_text, *rate_text, *quota_text;
    int audit_fd, audit_head_fd;
    struct audit *audit;
    struct limits limits;
    struct recorder recorder;
    struct workers *searchers;
    struct live_calls live;
    struct memory_return memory_return;
    struct connect_watchers watchers;
    struct signed_hints signed_hints;
    struct proxies proxies;
    struct api api;
    struct watch signals;
    int signal_fd;
    bool recovered; /* what runs is known */
    bool stopping;
    bool hurry; /* it was told so twice */
    struct co_cond hurried;
    int64_t drain_delay_ms, drain_timeout_ms;
    bool keep_sandboxes;
    bool trace_commands;
    struct meters *meters;
    const char *otlp, *trace_ratio; /* as given; "": not */
    struct exporter *exporter;      /* NULL: nothing is sent to a collector */
    int status;
    char *pools; /* of the command line */
    struct door_range host_ports;
    struct port_doors *doors;
};

/* Whoever sends requests here has been told to send them elsewhere (/ready), and is given time to
 * notice. */
static void let_others_notice(struct cellad *d)
{
    struct error err;
    if (d->drain_delay_ms > 0 && d->server != NULL && !d->hurry)
        co_cond_wait(d->loop, &d->hurried, d->drain_delay_ms, &err);
}

/* Told to end while it still finds out what runs, it does so first: nothing else can be stopped in
 * order. Where that takes too long sandboxes are left to the warden, which ends or keeps them. */
static bool wait_recovered(struct cellad *d)
{
    struct error err;
    if (!d->recovered && !d->hurry)
        co_cond_wait(d->loop, &d->hurried, RECOVER_WAIT_MS, &err);
    return d->recovered;
}

static void shut_down(void *arg)
{
    struct cellad *d = arg;
    if (!wait_recovered(d)) {
        log_warn("stopping before it is known what runs");
        loop_stop(d->loop);
        return;
    }
    log_info("stopping: requests under way have %lld s",
             (long long)((d->drain_delay_ms + d->drain_timeout_ms) / 1000));
    let_others_notice(d);
    if (d->server != NULL)
        http_server_shutdown(d->server, d->hurry ? 0 : d->drain_timeout_ms);
    if (d->figures != NULL)
        http_server_shutdown(d->figures, 0);
    code_stop(d->code);
    sandboxes_close_ports(d->sandboxes);
    port_doors_wait(d->doors);
    webhook_stop(d->webhook);
    webhook_stop(d->key_fetcher);
    exporter_stop(d->exporter);
    sandboxes_stop_all(d->sandboxes);
    loop_stop(d->loop);
}

/* Certificate and key come in a file without a name: the process that faces the network can open
 * none of those in the data folder. It stays open, and SIGHUP says that it holds others. */
static int read_nameless(int fd, const char *what, struct buf *text, struct error *err)
{
    char piece[4096];
    ssize_t n = 0;
    while (!text->failed && (n = pread(fd, piece, sizeof(piece), (off_t)text->len)) > 0)
        buf_add(text, piece, (size_t)n);
    explicit_bzero(piece, sizeof(piece));
    if (n < 0)
        return error_sys(err, "reading %s", what);
    return buf_check(text, what, err);
}

static int open_tls(struct tls_context **ret_tls, struct error *err)
{
    _cleanup_wipe_ struct buf pem = BUF_INIT(TLS_PEM_MAX);
    if (read_nameless(CELLAD_FD_TLS, "the TLS certificate", &pem, err) < 0)
        return -1;
    return pem.len == 0 ? 0 : tls_context_server((struct slice){pem.data, pem.len}, ret_tls, err);
}

/* Connections that are there go on with what they began with. */
static void renew_tls(struct cellad *d)
{
    struct tls_context *fresh = NULL;
    struct error err;
    if (open_tls(&fresh, &err) < 0)
        log_error("the TLS certificate stays as it is: %s", err.message);
    if (fresh == NULL)
        return;
    if (d->server != NULL)
        http_server_set_tls(d->server, fresh);
    if (d->figures != NULL)
        http_server_set_tls(d->figures, fresh);
    tls_context_free(d->tls);
    d->tls = fresh;
    log_info("new connections get the renewed TLS certificate");
}

/* The second SIGTERM: nobody is waited for any more. Sandboxes still end in order. */
static void hurry_up(struct cellad *d)
{
    log_warn("stopping at once: requests under way are cut");
    d->hurry = true;
    co_cond_wake_all(&d->hurried);
    if (d->server != NULL)
        http_server_hurry(d->server);
}

/* By threads of their own: callbacks of tenants that take long must not keep anybody out. They are
 * made for the first of them, as few servers have one. */
static int fetch_keys(void *ctx, const char *url, const char *authorities, size_t max,
                      char **ret_body, size_t *ret_len, struct error *err)
{
    struct cellad *d = ctx;
    const struct webhook_get get = {url, authorities, max};
    if (d->key_fetcher == NULL && (d->key_fetcher = webhook_new(d->loop, true, err)) == NULL)
        return -1;
    uint64_t begun = meter_now();
    int rc = webhook_fetch(d->key_fetcher, &get, ret_body, ret_len, err);
    meter_took(d->meters, METER_CALL_JWKS, begun);
    return rc;
}

/* The same for whose tokens are trusted. */
static int open_issuers(struct cellad *d, struct error *err)
{
    _cleanup_wipe_ struct buf config = BUF_INIT(JWT_CONFIG_MAX);
    if (read_nameless(CELLAD_FD_JWT, "whose tokens are trusted", &config, err) < 0)
        return -1;
    return auth_set_issuers(d->auth, (struct slice){config.data, config.len}, d->loop, fetch_keys,
                            d, err);
}

static void renew_issuers(struct cellad *d)
{
    struct error err;
    if (open_issuers(d, &err) < 0)
        log_error("whose tokens are trusted stays as it is: %s", err.message);
}

static void on_signal(struct watch *watch, uint32_t events)
{
    struct cellad *d = container_of(watch, struct cellad, signals);
    struct signalfd_siginfo info;
    struct error err;
    if (read(d->signal_fd, &info, sizeof(info)) != sizeof(info))
        return;
    if (info.ssi_signo == SERVER_KEEP) {
        d->keep_sandboxes = true;
        if (d->sandboxes != NULL)
            sandboxes_set_keep(d->sandboxes, true);
        return;
    }
    if (d->stopping) {
        if (info.ssi_signo == SIGTERM)
            hurry_up(d);
        return;
    }
    if (info.ssi_signo == SIGHUP) {
        renew_tls(d);
        renew_issuers(d);
        return;
    }
    d->stopping = true;
    d->api.draining = true; /* at once, for /ready */
    if (co_spawn(d->loop, shut_down, d, NULL, &err) < 0) {
        log_error("stopping: %s", err.message);
        loop_stop(d->loop);
    }
}

static int serve_figures(struct cellad *d, struct error *err)
{
    static const struct http_limits limits = {.connections_max = FIGURES_CONNECTIONS_MAX};
    if (!d->metrics_listen)
        return 0;
    d->figures = http_server_new(d->loop, api_handle_figures, &d->api, &limits, err);
    if (d->figures == NULL)
        return -1;
    http_server_set_tls(d->figures, d->tls);
    return http_server_add(d->figures, CELLAD_FD_METRICS, err);
}

static void serve(void *arg)
{
    struct cellad *d = arg;
    struct error err;
    if (sandboxes_recover(d->sandboxes, &err) < 0 ||
        pool_options_apply(d->sandboxes, d->pools, &err) < 0)
        goto fail;
    d->recovered = true;
    if (d->stopping) {
        co_cond_wake_all(&d->hurried);
        return;
    }
    d->server = http_server_new(d->loop, api_handle, &d->api, NULL, &err);
    if (d->server != NULL) {
        http_server_set_tls(d->server, d->tls);
        http_server_set_recorder(d->server, observed_request, exporter_tracer(d->exporter));
        http_server_memory(d->server)->max = d->limits.config.memory;
        d->api.server = d->server;
    }
    if (d->server == NULL || http_server_add(d->server, CELLAD_FD_LISTEN, &err) < 0 ||
        http_server_add(d->server, CELLAD_FD_UNIX, &err) < 0 || serve_figures(d, &err) < 0)
        goto fail;
    if (d->exporter != NULL && exporter_start(d->exporter, &err) < 0)
        goto fail;
    const struct port_gate gate = port_doors_gate(d->doors);
    sandboxes_open_ports(d->sandboxes, &gate);
    (void)!write(CELLAD_FD_READY, "1", 1);
    close(CELLAD_FD_READY);
    log_info("ready");
    return;
fail:
    log_error("starting: %s", err.message);
    d->status = 1;
    loop_stop(d->loop);
}

static int watch_signals(struct cellad *d, struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SERVER_KEEP);
    sigprocmask(SIG_SETMASK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    d->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (d->signal_fd < 0)
        return error_sys(err, "signalfd");
    return watch_start(d->loop, &d->signals, d->signal_fd, EPOLLIN, on_signal, err);
}

/* The hash of the first key, and the key that secrets are sealed with. */
struct first_keys {
    char hash[CELLAD_KEY_LEN + 1];
    unsigned char seal[SEAL_KEY_SIZE];
};

static int take_keys(struct first_keys *keys, struct error *err)
{
    char text[2 * CELLAD_KEY_LEN + 1];
    size_t have = 0;
    for (ssize_t n = 1; have < 2 * CELLAD_KEY_LEN && n > 0; have += n > 0 ? (size_t)n : 0)
        n = read(CELLAD_FD_KEY, text + have, 2 * CELLAD_KEY_LEN - have);
    close(CELLAD_FD_KEY);
    if (have != 2 * CELLAD_KEY_LEN)
        return error_set(err, ERROR_INTERNAL, "the keys that the server starts with are not whole");
    snprintf(keys->hash, sizeof(keys->hash), "%.*s", CELLAD_KEY_LEN, text);
    for (size_t i = 0; i < SEAL_KEY_SIZE; i++) {
        const char digits[3] = {text[CELLAD_KEY_LEN + 2 * i], text[CELLAD_KEY_LEN + 2 * i + 1]};
        keys->seal[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    explicit_bzero(text, sizeof(text));
    return 0;
}

static int open_auth(struct cellad *d, bool open_to_all, struct error *err)
{
    struct first_keys keys;
    if (take_keys(&keys, err) < 0 || auth_store_first_key(d->store, keys.hash, err) < 0 ||
        auth_new(d->store, open_to_all, &d->auth, err) < 0 ||
        auth_open_secrets(d->auth, keys.seal, err) < 0)
        return -1;
    explicit_bzero(&keys, sizeof(keys));
    return 0;
}

static int open_callbacks(struct cellad *d, bool any, struct error *err)
{
    d->webhook = webhook_new(d->loop, any, err);
    if (d->webhook == NULL)
        return -1;
    d->api.webhook = d->webhook;
    sandboxes_set_port_delivery(d->sandboxes, port_callback_deliver, d->webhook);
    return 0;
}

/* Those of workspaces. One that this version cannot read is as if it were not there. */
static bool has_sandbox(void *ctx, const char *sandbox_id)
{
    return sandboxes_has(ctx, sandbox_id);
}

static uint64_t audit_quota_of(const void *ctx, const char *workspace)
{
    return limits_quotas_of(ctx, workspace)->of[QUOTA_AUDIT];
}

static void load_limits(struct cellad *d)
{
    const struct principal all = {.scopes = SCOPE_ALL};
    struct arena *arena = arena_new();
    struct workspace_info *items;
    struct error err;
    size_t count;
    auth_workspaces(d->auth, &all, arena, &items, &count);
    for (size_t i = 0; i < count; i++)
        if (limits_set_workspace(&d->limits, items[i].name, items[i].rates, items[i].quotas, &err) <
            0)
            log_error("the limits of the workspace %s do not count: %s", items[i].name,
                      err.message);
    arena_free(arena);
}

/* Before anything is served, and after it is known who is told of commands. */
static int open_audit(struct cellad *d, struct error *err)
{
    struct audit_options options;
    struct limits_config config;
    if (audit_options_parse(d->audit_text, &options, err) < 0 ||
        limits_config_parse(d->rate_text, d->quota_text, &config, err) < 0)
        return -1;
    d->audit_fd = openat(CELLAD_FD_DATA, LAYOUT_AUDIT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->audit_fd < 0)
        return error_sys(err, "opening the folder of the audit log");
    d->audit_head_fd =
        openat(CELLAD_FD_DATA, LAYOUT_AUDIT_HEAD, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (d->audit_head_fd < 0)
        return error_sys(err, "opening the head of the audit log");
    d->searchers = workers_new(d->loop, 1, err);
    if (d->searchers == NULL ||
        audit_open(d->loop, d->audit_fd, d->audit_head_fd, &options, &d->audit, err) < 0)
        return -1;
    limits_init(&d->limits, &config);
    load_limits(d);
    audit_set_quota(d->audit, audit_quota_of, &d->limits);
    sandboxes_set_quotas(d->sandboxes, limits_quotas_of, &d->limits);
    recorder_init(&d->recorder, d->loop, d->audit, &d->limits, d->sandboxes);
    d->api.limits = &d->limits;
    d->api.recorder = &d->recorder;
    d->api.searchers = d->searchers;
    return 0;
}

static void tell_figures(void *ctx, struct meter_sink *sink)
{
    observed_tell(ctx, sink);
}

/* The data folder's id: the same after a restart, and another one in a copy that was restored. */
static int read_instance(char id[INSTANCE_ID_LEN + 1], struct error *err)
{
    _cleanup_fd_ int fd =
        openat(CELLAD_FD_DATA, LAYOUT_INSTANCE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, id, INSTANCE_ID_LEN);
    if (n < 0)
        return error_sys(err, "reading %s", LAYOUT_INSTANCE);
    id[n] = '\0';
    return 0;
}

static int open_exporter(struct cellad *d, struct error *err)
{
    struct export_settings settings;
    char instance[INSTANCE_ID_LEN + 1];
    if (read_instance(instance, err) < 0 ||
        export_settings_read(&settings, d->otlp, d->trace_ratio, instance, getenv, err) < 0)
        return -1;
    return exporter_new(d->loop, &settings, tell_figures, &d->api, &d->exporter, err);
}

static int open_parts(struct cellad *d, const char *data, bool open_to_all, unsigned interval,
                      bool any_callback, struct error *err)
{
    char path[4096 + 32];
    snprintf(path, sizeof(path), "%s/%s", data, LAYOUT_DB);

    d->loop = loop_new(err);
    d->meters = d->loop == NULL ? NULL : meters_new(err);
    if (d->meters == NULL)
        return -1;
    loop_set_meters(d->loop, d->meters);
    if (watch_signals(d, err) < 0 || store_open(d->loop, path, false, &d->store, err) < 0 ||
        open_auth(d, open_to_all, err) < 0 || open_tls(&d->tls, err) < 0 ||
        sandboxes_new(d->loop, d->store, CELLAD_FD_DATA, &d->sandboxes, err) < 0 ||
        sandboxes_set_capacity(d->sandboxes, d->overcommit, d->capacity, err) < 0 ||
        sandboxes_set_network_exceptions(d->sandboxes, d->network_private, err) < 0 ||
        code_new(d->loop, d->sandboxes, &d->code, err) < 0 ||
        open_callbacks(d, any_callback, err) < 0 || open_audit(d, err) < 0 ||
        open_exporter(d, err) < 0 || open_issuers(d, err) < 0)
        return -1;
    auth_set_sandboxes(d->auth, has_sandbox, d->sandboxes);
    sandboxes_set_secrets(d->sandboxes, secret_source_fill, secret_source_check, d->auth);
    sandboxes_set_metrics_interval(d->sandboxes, interval);
    sandboxes_set_history(d->sandboxes, !d->no_history);
    sandboxes_set_history_size(d->sandboxes, d->history_bytes);
    sandboxes_set_keep(d->sandboxes, d->keep_sandboxes);
    sandboxes_set_trace_commands(d->sandboxes, d->trace_commands);
    d->api.loop = d->loop;
    d->api.sandboxes = d->sandboxes;
    d->api.code = d->code;
    d->api.auth = d->auth;
    d->api.live = &d->live;
    d->api.memory_return = &d->memory_return;
    d->api.watchers = &d->watchers;
    d->api.signed_hints = &d->signed_hints;
    d->api.proxies = &d->proxies;
    d->doors = port_doors_new(&d->api);
    sandboxes_set_host_ports(d->sandboxes, d->host_ports.from, d->host_ports.to);
    return co_spawn(d->loop, serve, d, NULL, err);
}

/* The value of a setting, "" when it is not there. */
static const char *setting(int count, char **words, const char *name)
{
    size_t len = strlen(name);
    for (int i = 0; i < count; i++)
        if (strncmp(words[i], name, len) == 0 && words[i][len] == '=')
            return words[i] + len + 1;
    return "";
}

static void take_settings(struct cellad *d, int count, char **words)
{
    d->api.started_ms = time_now_ms();
    d->api.access_log = setting(count, words, "access-log")[0] != '\0';
    d->api.metrics_open = setting(count, words, "metrics-open")[0] != '\0';
    d->metrics_listen = setting(count, words, "metrics-listen")[0] != '\0';
    d->otlp = setting(count, words, "otlp-endpoint");
    d->trace_ratio = setting(count, words, "trace-ratio");
    d->trace_commands = setting(count, words, "trace-commands")[0] != '\0';
    d->keep_sandboxes = setting(count, words, "keep-sandboxes")[0] != '\0';
    d->history_bytes = strtoull(setting(count, words, "history-size"), NULL, 10);
    d->drain_delay_ms = 1000 * strtoll(setting(count, words, "drain-delay"), NULL, 10);
    d->drain_timeout_ms = 1000 * strtoll(setting(count, words, "drain-timeout"), NULL, 10);
}

/* Confines this process: from here on it can open only its data and system files. */
static int confine(struct error *err)
{
    char report[CONFINE_REPORT_MAX];
    _cleanup_fd_ int histories =
        openat(CELLAD_FD_DATA, LAYOUT_HISTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    unsigned orphans = histories < 0 ? 0 : git_end_orphans(histories);
    if (orphans > 0)
        log_info("ended %u git of a server that was killed", orphans);
    if (confine_cellad(CELLAD_FD_DATA, err) < 0)
        return -1;
    confine_describe(report);
    log_info("confined by %s", report);
    return 0;
}

int cellad_main(int argc, char **argv)
{
    struct cellad d = {.signal_fd = -1, .audit_fd = -1, .audit_head_fd = -1};
    struct error err;
    if (argc < CELLAD_ARGS) {
        fprintf(stderr, "cellad is started by `cella server`\n");
        return 2;
    }
    log_init("cellad", (enum log_level)log_level_parse(argv[3]));
    prctl(PR_SET_NAME, "cellad");
    memory_return_init();
    program_allow_files();
    prompt_turns();
    if (confine(&err) < 0) {
        log_error("%s", err.message);
        return 1;
    }
    if (argv[4][0] != '\0')
        d.api.public_url = argv[4];
    if (argv[6][0] != '\0')
        d.api.cors_origin = argv[6];
    d.overcommit = argv[8];
    d.capacity = argv[9];
    d.pools = argv[10];
    if (strcmp(argv[11], "off") != 0)
        d.api.domain = argv[11];
    if (door_range_parse(argv[12], &d.host_ports, &err) < 0) {
        log_error("%s", err.message);
        return 1;
    }
    d.api.host_address = d.host_ports.address;
    d.network_private = argv[13];
    d.no_history = strcmp(argv[14], "none") == 0;
    d.audit_text = argv[15];
    d.rate_text = argv[16];
    d.quota_text = argv[17];
    d.api.open = strcmp(argv[2], "open") == 0;
    take_settings(&d, argc - CELLAD_ARGS, argv + CELLAD_ARGS);
    const char *proxies = setting(argc - CELLAD_ARGS, argv + CELLAD_ARGS, "trusted-proxy");
    if (proxies_add(&d.proxies, proxies, &err) < 0 ||
        open_parts(&d, argv[1], strcmp(argv[2], "open") == 0, (unsigned)strtoul(argv[5], NULL, 10),
                   strcmp(argv[7], "any") == 0, &err) < 0 ||
        loop_run(d.loop, &err) < 0) {
        log_error("%s", err.message);
        d.status = 1;
    }
    http_server_free(d.server);
    http_server_free(d.figures);
    memory_return_stop(&d.memory_return);
    tls_context_free(d.tls);
    code_free(d.code);
    connect_watchers_release(&d.watchers);
    signed_hints_release(&d.signed_hints);
    sandboxes_free(d.sandboxes);
    port_doors_free(d.doors);
    webhook_free(d.webhook);
    webhook_free(d.key_fetcher);
    exporter_free(d.exporter);
    auth_free(d.auth);
    store_close(d.store);
    audit_close(d.audit);
    workers_free(d.searchers);
    limits_release(&d.limits);
    if (d.audit_fd >= 0)
        close(d.audit_fd);
    if (d.audit_head_fd >= 0)
        close(d.audit_head_fd);
    watch_stop(&d.signals);
    if (d.signal_fd >= 0)
        close(d.signal_fd);
    loop_free(d.loop);
    meters_free(d.meters);
    return d.status;
}
