/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Being where a process is. Three coroutines at most, each with a connection of its own: one reads
 * the output, one writes the input, one ends the process on Ctrl-C.
 */

#include "cli/live.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/output.h"
#include "http/client.h"
#include "loop/co.h"

#define STREAM_TYPE "application/vnd.cella.stream"

enum {
    /* Types of frames, as docs/api.md has them. */
    FRAME_STDOUT = 1,
    FRAME_STDERR = 2,
    FRAME_ERROR = 3,
    FRAME_RESULT = 4,
    FRAME_DROPPED = 6,

    FRAME_HEADER = 8,
    TEXT_MAX = 4 << 20, /* of a frame that is no output */
    PIECE = 64 * 1024,
    TRIES = 60, /* to reach a server again that was lost */
    TRY_PAUSE_MS = 500,
    EXIT_INTERRUPTED = 130,
};

struct live {
    const struct live_request *request;
    struct client *client; /* the caller's */
    struct client *again;  /* the one after a connection was lost, or NULL */
    struct loop *loop;
    char *process; /* who it is, once that is known */
    uint64_t offset;
    struct live_end *end;

    /* the frame that has begun */
    unsigned char header[FRAME_HEADER];
    size_t header_len;
    uint32_t left;
    struct buf text;

    struct co *input;
    struct watch signals;
    int signal_fd;
    unsigned interrupts;
    unsigned helpers; /* coroutines that are not at their end */
    struct co_cond helper_ended;
};

static void process_target(const struct live *l, struct buf *target, const char *below)
{
    buf_adds(target, l->request->processes);
    buf_addc(target, '/');
    target_add(target, l->process, false);
    buf_adds(target, below);
}

static void helper_end(struct live *l)
{
    l->helpers--;
    co_cond_wake_all(&l->helper_ended);
}

/* --- frames --- */

/* What a frame that is no output says. *ret_last: nothing comes after it. */
static int take_text(struct live *l, bool *ret_last, struct error *err)
{
    struct arena *arena = client_arena(l->client);
    yyjson_val *root;
    unsigned type = l->header[0];
    if (type == FRAME_DROPPED) {
        uint64_t dropped = strtoull(l->text.data, NULL, 10);
        l->end->dropped += dropped;
        l->offset += dropped;
    }
    if (type != FRAME_ERROR && type != FRAME_RESULT)
        return 0;
    char *text = arena_dup(arena, l->text.data, l->text.len);
    if (json_parse(arena, (struct slice){text, l->text.len}, &root, err) < 0)
        return -1;
    *ret_last = true;
    if (type == FRAME_RESULT) {
        l->end->process = root;
        return 0;
    }
    struct slice code = client_text(root, "/code"), message = client_text(root, "/message");
    return error_set(err, error_from_name(code.data), "%s", message.data);
}

/* Uses up some of what has come. */
static int take_some(struct live *l, const char **data, size_t *len, bool *ret_last,
                     struct error *err)
{
    size_t n;
    if (l->header_len < FRAME_HEADER) {
        n = FRAME_HEADER - l->header_len < *len ? FRAME_HEADER - l->header_len : *len;
        memcpy(l->header + l->header_len, *data, n);
        l->header_len += n;
        memcpy(&l->left, l->header + 4, sizeof(l->left));
        l->left = ntohl(l->left);
    } else {
        n = l->left < *len ? l->left : *len;
        l->left -= (uint32_t)n;
        bool out = l->header[0] == FRAME_STDOUT, errors = l->header[0] == FRAME_STDERR;
        if (out || errors) {
            if (output_bytes(out ? STDOUT_FILENO : STDERR_FILENO, *data, n, err) < 0)
                return -1;
            l->offset += n;
        } else {
            buf_add(&l->text, *data, n);
        }
    }
    *data += n;
    *len -= n;
    if (l->header_len < FRAME_HEADER || l->left > 0)
        return 0;
    int rc = buf_check(&l->text, "the server's answer", err);
    if (rc == 0)
        rc = take_text(l, ret_last, err);
    l->header_len = 0;
    buf_clear(&l->text);
    return rc;
}

/* Reads the answer to its end. 1: that was the end; 0: the connection was lost. */
static int read_frames(struct live *l, struct client *client, struct error *err)
{
    char *piece = arena_alloc(client_arena(client), PIECE);
    bool last = false;
    l->header_len = 0;
    buf_clear(&l->text);
    for (;;) {
        struct error lost;
        ssize_t n = client_read(client, piece, PIECE, &lost);
        if (n < 0 && lost.code == ERROR_CANCELLED) {
            *err = lost;
            return -1;
        }
        if (n <= 0)
            return last;
        const char *data = piece;
        for (size_t len = (size_t)n; len > 0;)
            if (take_some(l, &data, &len, &last, err) < 0)
                return -1;
    }
}

static int join(struct live *l, struct client *client, bool hold, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    struct http_answer answer;
    process_target(l, &target, "/logs/stream");
    buf_addf(&target, "?offset=%" PRIu64 "%s", l->offset, hold ? "&hold=true" : "");
    return client_stream(client, "GET", &target, NULL, STREAM_TYPE, &answer, err);
}

/* Starts the command, or joins the process. */
static int begin(struct live *l, struct error *err)
{
    const struct live_request *request = l->request;
    if (request->exec == NULL) {
        l->process = arena_strdup(client_arena(l->client), request->process);
        l->offset = request->offset;
        return join(l, l->client, request->hold, err);
    }
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    struct http_answer answer;
    buf_adds(&target, request->processes);
    if (client_stream(l->client, "POST", &target, request->exec, STREAM_TYPE, &answer, err) < 0)
        return -1;
    const char *pid = http_answer_header(&answer, "X-Cella-Pid");
    if (pid == NULL)
        return error_set(err, ERROR_INTERNAL, "the server does not answer as a Cella server does");
    l->process = arena_strdup(client_arena(l->client), pid);
    return 0;
}

/* The server was restarted, or the network was away for a while: the process is still there. */
static int begin_again(struct live *l, struct error *err)
{
    for (int tries = 0; tries < TRIES; tries++) {
        client_free(steal_ptr(l->again));
        if (co_sleep(l->loop, TRY_PAUSE_MS, err) < 0 ||
            client_new(l->loop, client_settings(l->client), &l->again, err) < 0)
            return -1;
        if (join(l, l->again, l->request->exec != NULL || l->request->hold, err) == 0)
            return 0;
        if (err->code != ERROR_UNAVAILABLE && err->code != ERROR_TIMEOUT)
            return -1;
    }
    return error_prefix(err, "the connection was lost");
}

static int read_all(struct live *l, struct error *err)
{
    for (struct client *client = l->client;; client = l->again) {
        int got = read_frames(l, client, err);
        if (got != 0)
            return got < 0 ? -1 : 0;
        if (begin_again(l, err) < 0)
            return -1;
    }
}

/* --- input --- */

/* The next piece of stdin: 0 at its end. What cannot be waited for (a file) is there. */
static ssize_t read_input(struct live *l, char *to, struct error *err)
{
    for (;;) {
        struct error why;
        if (co_wait_fd(l->loop, STDIN_FILENO, EPOLLIN, -1, &why) < 0 &&
            why.code != ERROR_PERMISSION_DENIED) { /* how epoll refuses a file */
            *err = why;
            return -1;
        }
        ssize_t n = read(STDIN_FILENO, to, PIECE);
        if (n >= 0)
            return n;
        if (errno != EINTR && errno != EAGAIN)
            return error_sys(err, "reading stdin");
    }
}

static int pass_input(struct live *l, struct client *client, char *piece, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    yyjson_val *root;
    ssize_t n;
    process_target(l, &target, "/stdin");
    while ((n = read_input(l, piece, err)) > 0)
        if (client_post_bytes(client, &target, (struct slice){piece, (size_t)n}, err) < 0)
            return -1;
    return n < 0 ? -1 : client_json(client, "DELETE", &target, NULL, 0, &root, err);
}

static void input_run(void *arg)
{
    struct live *l = arg;
    struct client *client = NULL;
    struct error err = {0};
    char *piece = malloc(PIECE);
    l->input = co_self(l->loop);
    int rc = piece == NULL ? error_sys(&err, "reading stdin")
                           : client_new(l->loop, client_settings(l->client), &client, &err);
    if (rc == 0)
        rc = pass_input(l, client, piece, &err);
    /* A command need not read all of its input, as anywhere else. */
    if (rc < 0 && err.code != ERROR_STDIN_CLOSED && err.code != ERROR_CANCELLED)
        output_error(&err);
    client_free(client);
    free(piece);
    l->input = NULL;
    helper_end(l);
}

/* --- Ctrl-C --- */

static void interrupt_run(void *arg)
{
    struct live *l = arg;
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    bool kill = l->interrupts > 1;
    struct client *client = NULL;
    struct error err = {0};
    yyjson_val *root;
    process_target(l, &target, kill ? "/kill" : "");
    if (client_new(l->loop, client_settings(l->client), &client, &err) < 0 ||
        client_json(client, kill ? "POST" : "DELETE", &target, NULL, -1, &root, &err) < 0)
        output_error(&err);
    client_free(client);
    helper_end(l);
}

static void signal_came(struct watch *watch, uint32_t events)
{
    struct live *l = container_of(watch, struct live, signals);
    struct signalfd_siginfo info;
    if (read(l->signal_fd, &info, sizeof(info)) != sizeof(info))
        return;
    l->end->interrupted = true;
    if (++l->interrupts > 2 || l->process == NULL)
        exit(EXIT_INTERRUPTED);
    l->helpers++;
    if (co_spawn(l->loop, interrupt_run, l, NULL, NULL) < 0)
        exit(EXIT_INTERRUPTED);
}

static int watch_signals(struct live *l, struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->signal_fd < 0)
        return error_sys(err, "waiting for Ctrl-C");
    return watch_start(l->loop, &l->signals, l->signal_fd, EPOLLIN, signal_came, err);
}

/* --- all of it --- */

static int run(struct live *l, struct error *err)
{
    if ((l->request->stop_on_interrupt && watch_signals(l, err) < 0) || begin(l, err) < 0)
        return -1;
    if (l->request->input) {
        l->helpers++;
        if (co_spawn(l->loop, input_run, l, NULL, err) < 0) {
            l->helpers--;
            return -1;
        }
    }
    return read_all(l, err);
}

int live_run(struct client *client, const struct live_request *request, struct live_end *ret_end,
             struct error *err)
{
    struct live_end end = {0};
    struct live l = {
        .request = request,
        .client = client,
        .loop = client_loop(client),
        .end = &end,
        .text = BUF_INIT(TEXT_MAX),
        .signal_fd = -1,
    };
    int rc = run(&l, err);
    watch_stop(&l.signals);
    cleanup_fd(&l.signal_fd);
    while (l.helpers > 0) {
        if (l.input != NULL)
            co_cancel(l.input);
        if (co_cond_wait(l.loop, &l.helper_ended, -1, NULL) < 0)
            break;
    }
    client_free(l.again);
    buf_release(&l.text);
    if (rc == 0)
        *ret_end = end;
    return rc;
}
