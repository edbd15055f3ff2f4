/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella port-forward`: ports of this machine that lead into a sandbox. Every connection has a
 * coroutine and a tunnel of its own (GET …/tunnel/PORT), so that a slow one holds up nobody.
 */

#include "cli/verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/output.h"
#include "loop/net.h"
#include "loop/task.h"

enum { FORWARDS_MAX = 64, ADDRESS_MAX = 128, BACKLOG = 128, RETRY_MS = 100 };

struct forwarder;

struct forward {
    struct forwarder *owner;
    uint16_t local;
    uint16_t remote;
    int fd; /* listens; -1: not yet */
    struct task task;
};

struct connection {
    struct forward *forward;
    struct connection *next;
    struct connection **link; /* what points to it */
    struct co *co;
    int fd;
};

struct forwarder {
    struct invocation *inv;
    struct loop *loop;
    const char *name;
    const char *address;
    struct forward forwards[FORWARDS_MAX];
    size_t count;
    struct connection *connections;
    struct co_cond ended;
};

/* --- what to forward --- */

static bool take_port(const char **text, bool zero, uint16_t *ret_port)
{
    unsigned long port = 0;
    const char *at = *text;
    for (; *at >= '0' && *at <= '9' && port <= UINT16_MAX; at++)
        port = port * 10 + (unsigned long)(*at - '0');
    if (at == *text || port > UINT16_MAX || (port == 0 && !zero))
        return false;
    *ret_port = (uint16_t)port;
    *text = at;
    return true;
}

/* "3000", "8080:3000", "0:3000": any free port here. */
static int parse_forward(const char *text, struct forward *forward, struct error *err)
{
    const char *at = text;
    if (take_port(&at, true, &forward->local) && *at == ':') {
        at++;
        if (take_port(&at, false, &forward->remote) && *at == '\0')
            return 0;
    } else if (forward->local != 0 && *at == '\0') {
        forward->remote = forward->local;
        return 0;
    }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "\"%.40s\" is not [LOCAL:]REMOTE: two ports, such as 8080:3000, or one", text);
}

/* --- connections --- */

static void complain(const struct connection *c, const struct error *err)
{
    struct error told = *err;
    error_prefix(&told, "%u → %s:%u", c->forward->local, c->forward->owner->name,
                 c->forward->remote);
    output_error(&told);
}

static int join(struct connection *c, struct client *client, struct error *err)
{
    struct forwarder *f = c->forward->owner;
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    _cleanup_fd_ int tunnel = -1;
    struct slice early;
    target_sandbox(client, &target, f->name, "/tunnel/");
    buf_addf(&target, "%u", c->forward->remote);
    if (client_upgrade(client, &target, "tcp", &tunnel, &early, err) < 0 ||
        net_write(f->loop, c->fd, early.data, early.len, HTTP_BODY_TIMEOUT_MS, err) < 0)
        return -1;
    struct error why;
    /* That one side hung up is what happens to connections, and nothing to report. */
    if (net_relay(f->loop, c->fd, tunnel, TUNNEL_IDLE_MS, &why) < 0 &&
        why.code != ERROR_UNAVAILABLE && why.code != ERROR_CANCELLED)
        return error_set(err, why.code, "%s", why.message);
    return 0;
}

static void connection_main(void *arg)
{
    struct connection *c = arg;
    struct forwarder *f = c->forward->owner;
    struct client *client = NULL;
    struct error err = {0};
    c->co = co_self(f->loop);
    if ((client_new(f->loop, client_settings(f->inv->client), &client, &err) < 0 ||
         join(c, client, &err) < 0) &&
        err.code != ERROR_CANCELLED)
        complain(c, &err);
    client_free(client);
    close(c->fd);
    *c->link = c->next;
    if (c->next != NULL)
        c->next->link = c->link;
    free(c);
    co_cond_wake_all(&f->ended);
}

static void connection_start(struct forward *forward, int fd)
{
    struct forwarder *f = forward->owner;
    struct connection *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        close(fd);
        return;
    }
    *c = (struct connection){
        .forward = forward, .fd = fd, .next = f->connections, .link = &f->connections};
    if (c->next != NULL)
        c->next->link = &c->next;
    f->connections = c;
    if (co_spawn(f->loop, connection_main, c, NULL, NULL) == 0)
        return;
    f->connections = c->next;
    if (c->next != NULL)
        c->next->link = &f->connections;
    close(fd);
    free(c);
}

static void accept_main(void *arg)
{
    struct forward *forward = arg;
    struct error err;
    for (;;) {
        int fd;
        if (net_accept(forward->owner->loop, forward->fd, &fd, &err) == 0)
            connection_start(forward, fd);
        else if (err.code == ERROR_CANCELLED ||
                 co_sleep(forward->owner->loop, RETRY_MS, &err) < 0) /* out of descriptors */
            return;
    }
}

/* --- the verb --- */

static int listen_all(struct forwarder *f, struct error *err)
{
    struct in6_addr v6;
    bool brackets = inet_pton(AF_INET6, f->address, &v6) == 1;
    for (size_t i = 0; i < f->count; i++) {
        struct forward *forward = &f->forwards[i];
        char address[ADDRESS_MAX];
        snprintf(address, sizeof(address), brackets ? "[%s]:%u" : "%s:%u", f->address,
                 forward->local);
        if (net_listen(address, BACKLOG, &forward->fd, &forward->local, err) < 0)
            return err->sys == EADDRINUSE
                       ? error_set(err, ERROR_CONFLICT,
                                   "port %u of %s is in use: name another one, as in %u:%u",
                                   forward->local, f->address,
                                   forward->local == 0 ? 8080 : forward->local + 1, forward->remote)
                       : -1;
    }
    return 0;
}

static int announce(struct forwarder *f, struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = client_body(f->inv->client, &root);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "forwards");
    _cleanup_buf_ struct buf text = BUF_INIT(OUTPUT_MAX);
    for (size_t i = 0; i < f->count; i++) {
        const struct forward *forward = &f->forwards[i];
        yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);
        yyjson_mut_obj_add_str(doc, item, "address", f->address);
        yyjson_mut_obj_add_uint(doc, item, "localPort", forward->local);
        yyjson_mut_obj_add_uint(doc, item, "port", forward->remote);
        buf_addf(&text, "Forwarding %s:%u to port %u of %s\n", f->address, forward->local,
                 forward->remote, f->name);
    }
    if (f->inv->json) {
        struct slice json = json_write(client_arena(f->inv->client), doc, false);
        buf_clear(&text);
        buf_add(&text, json.data, json.len);
        buf_addc(&text, '\n');
    } else
        buf_adds(&text, "Ctrl-C ends it.\n");
    return output_buf(&text, err);
}

/* Until Ctrl-C, or a polite request to end. */
static int serve(struct forwarder *f, struct error *err)
{
    sigset_t set;
    struct signalfd_siginfo info;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    _cleanup_fd_ int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0)
        return error_sys(err, "signalfd");
    for (size_t i = 0; i < f->count; i++)
        if (task_start(f->loop, &f->forwards[i].task, accept_main, &f->forwards[i], err) < 0)
            return -1;
    if (announce(f, err) < 0)
        return -1;
    return net_read(f->loop, signals, &info, sizeof(info), -1, err) < 0 ? -1 : 0;
}

static void end_all(struct forwarder *f)
{
    for (size_t i = 0; i < f->count; i++) {
        task_stop(&f->forwards[i].task);
        if (f->forwards[i].fd >= 0)
            close(f->forwards[i].fd);
    }
    while (f->connections != NULL) {
        for (struct connection *c = f->connections; c != NULL; c = c->next)
            co_cancel(c->co);
        if (co_cond_wait(f->loop, &f->ended, -1, NULL) < 0)
            return;
    }
}

int verb_port_forward(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    size_t count;
    const char **words = args_rest(inv->args, &count);
    if (count > FORWARDS_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT, "at most %d ports at once", FORWARDS_MAX);
    struct forwarder f = {.inv = inv,
                          .loop = client_loop(inv->client),
                          .name = args_word(inv->args, "NAME"),
                          .address = args_option(inv->args, "address", "127.0.0.1")};
    for (size_t i = 0; i < count; i++) {
        f.forwards[i] = (struct forward){.owner = &f, .fd = -1};
        if (parse_forward(words[i], &f.forwards[i], err) < 0)
            return -1;
    }
    f.count = count;
    /* A wrong name is found out now, not at the first connection. */
    yyjson_val *root;
    target_sandbox(inv->client, &target, f.name, "");
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    int rc = listen_all(&f, err);
    if (rc == 0)
        rc = serve(&f, err);
    end_all(&f);
    return rc;
}
