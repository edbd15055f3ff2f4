/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Three coroutines: one reads the WebSocket (and makes it again when it is lost), one writes to it,
 * one reads the keyboard. Input is kept until the server says that it has arrived for good; what
 * has not is sent again after a lost connection, so no key is lost and none comes twice.
 */

#include "cli/attach.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/names.h"
#include "cli/keyboard.h"
#include "cli/output.h"
#include "http/websocket.h"
#include "loop/co.h"
#include "loop/task.h"

/* What a program may have left switched on when somebody detaches from it: colours, a hidden
 * cursor, the other page, the mouse, bracketed paste. */
#define PLAIN_SCREEN "\033[0m\033[?25h\033[?1049l\033[?1000l\033[?1002l\033[?2004l"
#define HELP_TEXT                                                                                  \
    "\r\nAt the beginning of a line:\r\n  ~.  detach; the session goes on\r\n"                     \
    "  ~~  a plain ~\r\n  ~?  this text\r\n"

enum {
    INPUT_MAX = 64 * 1024, /* that has not arrived: then the keyboard waits */
    PIECE = 4096,
    SEND_MAX = 16 * 1024,
    CLIENT_ID_LEN = 16,
    LOST_MS = 5 * 60 * 1000, /* how long a lost connection is tried for again */
    TRY_PAUSE_MS = 300,
    KEY_END = 4,
};

struct attach {
    struct client *client;
    struct loop *loop;
    const struct attach_request *request;
    char id[CLIENT_ID_LEN + 1]; /* who we are to the session */
    struct keyboard keyboard;
    bool at_terminal; /* stdin is one */

    struct websocket *ws; /* NULL: not connected */
    uint64_t offset;      /* of the next byte of output */
    struct buf input;     /* what has not arrived for good … */
    uint64_t taken;       /* … begins here … */
    uint64_t sent;        /* … and was sent up to here, on this connection */
    bool met;             /* the session has said how much it had: before, nothing is sent again */
    bool resized;
    struct co_cond to_send;
    struct co_cond room;

    struct watch signals;
    int signal_fd;
    bool leaving; /* detaching, or ended by a signal */
    int signal;
    bool over; /* the session has ended */
    struct attach_end end;
    struct error told; /* what the server said before it closed */
};

/* --- the size --- */

static bool window_size(struct winsize *ret_size)
{
    static const int fds[] = {STDOUT_FILENO, STDIN_FILENO};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (ioctl(fds[i], TIOCGWINSZ, ret_size) == 0 && ret_size->ws_col > 0 &&
            ret_size->ws_row > 0)
            return true;
    return false;
}

/* --- leaving --- */

static void leave(struct attach *a)
{
    a->leaving = true;
    if (a->ws != NULL) {
        co_cond_wake_all(&a->to_send);
        return;
    }
    /* Nobody is there to say goodbye to. */
    keyboard_restore(&a->keyboard);
    fprintf(stderr, "cella: left while the connection was lost; the session goes on: %s\n",
            a->request->session);
    exit(a->signal == 0 ? 0 : 128 + a->signal);
}

/* From outside: raw keys do not make one. */
static void suspend(struct attach *a)
{
    bool was_raw = a->keyboard.raw;
    keyboard_restore(&a->keyboard);
    raise(SIGSTOP);
    if (was_raw)
        keyboard_raw(&a->keyboard, NULL);
    a->resized = true;
}

static void signal_came(struct watch *watch, uint32_t events)
{
    struct attach *a = container_of(watch, struct attach, signals);
    struct signalfd_siginfo info;
    if (read(a->signal_fd, &info, sizeof(info)) != sizeof(info))
        return;
    switch (info.ssi_signo) {
    case SIGWINCH:
        a->resized = true;
        break;
    case SIGTSTP:
        suspend(a);
        break;
    default:
        a->signal = (int)info.ssi_signo;
        leave(a);
        return;
    }
    co_cond_wake_all(&a->to_send);
}

static int watch_signals(struct attach *a, struct error *err)
{
    static const int signals[] = {SIGWINCH, SIGTSTP, SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    a->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (a->signal_fd < 0)
        return error_sys(err, "waiting for signals");
    return watch_start(a->loop, &a->signals, a->signal_fd, EPOLLIN, signal_came, err);
}

/* --- the keyboard --- */

static int take_keys(struct attach *a, const char *keys, size_t len)
{
    while (len > 0 && !a->leaving) {
        size_t used = 0;
        switch (keyboard_filter(&a->keyboard, keys, len, &a->input, &used)) {
        case KEYS_TYPED:
            break;
        case KEYS_HELP:
            (void)!write(STDERR_FILENO, HELP_TEXT, sizeof(HELP_TEXT) - 1);
            break;
        case KEYS_DETACH:
            a->end.detached = true;
            leave(a);
        }
        keys += used;
        len -= used;
    }
    co_cond_wake_all(&a->to_send);
    return 0;
}

/* The next piece of stdin: 0 at its end. What cannot be waited for (a file) is there. */
static ssize_t read_stdin(struct attach *a, char *to, struct error *err)
{
    for (;;) {
        struct error why;
        while (a->input.len >= INPUT_MAX)
            if (co_cond_wait(a->loop, &a->room, -1, err) < 0)
                return -1;
        if (co_wait_fd(a->loop, STDIN_FILENO, EPOLLIN, -1, &why) < 0 &&
            why.code != ERROR_PERMISSION_DENIED) /* how epoll refuses a file */
            return error_set(err, why.code, "%s", why.message);
        ssize_t n = read(STDIN_FILENO, to, PIECE);
        if (n >= 0)
            return n;
        if (errno != EINTR && errno != EAGAIN)
            return error_sys(err, "reading stdin");
    }
}

static void read_keyboard(void *arg)
{
    struct attach *a = arg;
    struct error err;
    char piece[PIECE];
    ssize_t n;
    while ((n = read_stdin(a, piece, &err)) > 0) {
        if (a->at_terminal)
            take_keys(a, piece, (size_t)n);
        else
            buf_add(&a->input, piece, (size_t)n);
        co_cond_wake_all(&a->to_send);
    }
    if (n < 0 && err.code == ERROR_CANCELLED)
        return;
    if (a->at_terminal) {
        a->signal = SIGHUP; /* it is gone, with who sat at it */
        leave(a);
    } else {
        buf_addc(&a->input, KEY_END);
        co_cond_wake_all(&a->to_send);
    }
}

/* --- to the server --- */

static int send_size(struct attach *a, struct error *err)
{
    struct winsize size;
    char text[80];
    a->resized = false;
    if (!window_size(&size))
        return 0;
    int len = snprintf(text, sizeof(text), "{\"type\":\"resize\",\"cols\":%u,\"rows\":%u}",
                       size.ws_col, size.ws_row);
    return websocket_send(a->ws, WS_TEXT, text, (size_t)len, err);
}

static int send_input(struct attach *a, struct error *err)
{
    char piece[SEND_MAX]; /* a copy: while it is being sent, the buffer may move */
    size_t from = (size_t)(a->sent - a->taken), len = a->input.len - from;
    if (len > sizeof(piece))
        len = sizeof(piece);
    memcpy(piece, a->input.data + from, len);
    a->sent += len;
    return websocket_send(a->ws, WS_BINARY, piece, len, err);
}

static void write_to_server(void *arg)
{
    struct attach *a = arg;
    struct error err;
    int rc = 0;
    while (rc == 0 && !a->leaving) {
        if (a->resized)
            rc = send_size(a, &err);
        else if (a->met && a->sent < a->taken + a->input.len)
            rc = send_input(a, &err);
        else
            rc = co_cond_wait(a->loop, &a->to_send, -1, &err);
    }
    if (rc == 0)
        websocket_close(a->ws, WS_CLOSE_NORMAL, "detached", NULL);
}

/* --- from the server --- */

static void input_arrived(struct attach *a, uint64_t taken)
{
    if (taken <= a->taken || taken > a->taken + a->input.len)
        return;
    buf_consume(&a->input, (size_t)(taken - a->taken));
    a->taken = taken;
    if (a->sent < taken)
        a->sent = taken;
    co_cond_wake_all(&a->room);
}

static uint64_t number(yyjson_val *root, const char *key)
{
    return yyjson_get_uint(yyjson_obj_get(root, key));
}

static void take_exit(struct attach *a, yyjson_val *root)
{
    a->over = true;
    a->end.status = (int)(number(root, "exitCode") & 0xff);
    a->end.closed = !slice_eq(client_text(root, "/reason"), slice_of("exited"));
}

static void take_frame(struct attach *a, yyjson_val *root)
{
    struct slice type = client_text(root, "/type");
    if (slice_eq(type, slice_of("session"))) {
        input_arrived(a, number(root, "taken"));
        a->met = true;
        co_cond_wake_all(&a->to_send);
    } else if (slice_eq(type, slice_of("taken"))) {
        input_arrived(a, number(root, "taken"));
    } else if (slice_eq(type, slice_of("dropped"))) {
        a->offset += number(root, "dropped");
        fprintf(stderr, "\r\ncella: %" PRIu64 " bytes of output are lost\r\n",
                number(root, "dropped"));
    } else if (slice_eq(type, slice_of("exit"))) {
        take_exit(a, root);
    } else if (slice_eq(type, slice_of("error"))) {
        error_set(&a->told, error_from_name(client_text(root, "/code").data), "%s",
                  client_text(root, "/data").data);
    }
}

static int take_message(struct attach *a, const struct ws_message *message, struct error *err)
{
    if (!message->text) {
        a->offset += message->data.len;
        return output_bytes(STDOUT_FILENO, message->data.data, message->data.len, err);
    }
    struct arena *arena = arena_new();
    yyjson_val *root;
    if (json_parse(arena, message->data, &root, NULL) == 0)
        take_frame(a, root);
    arena_free(arena);
    return 0;
}

/* One connection: 1 when it was the last one, 0 when it was lost. */
static int converse(struct attach *a, struct error *err)
{
    struct task writer = {0};
    struct ws_message message;
    int rc;
    a->told = (struct error){0};
    a->sent = a->taken;
    a->met = false;
    if (task_start(a->loop, &writer, write_to_server, a, err) < 0)
        return -1;
    while ((rc = websocket_read(a->ws, &message, err)) > 0)
        if (take_message(a, &message, err) < 0)
            break;
    task_stop(&writer);
    websocket_free(steal_ptr(a->ws));
    if (rc > 0)
        return -1; /* stdout is broken */
    if (a->over || a->leaving)
        return 1;
    if (rc == 0 && a->told.code != ERROR_NONE) {
        *err = a->told;
        return -1;
    }
    return 0;
}

static int open_connection(struct attach *a, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    struct winsize size;
    target_sandbox(a->client, &target, a->request->sandbox,
                   "/terminal/ws?create=false&binary=true");
    buf_addf(&target, "&client=%s&offset=%" PRIu64 "&sessionId=", a->id, a->offset);
    target_add(&target, a->request->session, false);
    if (window_size(&size))
        buf_addf(&target, "&cols=%u&rows=%u", size.ws_col, size.ws_row);
    return client_websocket(a->client, &target, &a->ws, err);
}

static int open_again(struct attach *a, struct error *err)
{
    int64_t began = loop_now(a->loop);
    fprintf(stderr,
            "\r\ncella: the connection was lost; trying again (~. at the beginning of a line "
            "leaves)\r\n");
    do {
        if (co_sleep(a->loop, TRY_PAUSE_MS, err) < 0)
            return -1;
        if (open_connection(a, err) == 0)
            return 0;
        if (err->code != ERROR_UNAVAILABLE && err->code != ERROR_TIMEOUT)
            return -1;
    } while (loop_now(a->loop) - began < LOST_MS);
    return error_prefix(err, "the connection was lost");
}

static int stay_attached(struct attach *a, struct error *err)
{
    int rc = open_connection(a, err);
    while (rc == 0) {
        rc = converse(a, err);
        if (rc == 0)
            rc = open_again(a, err);
    }
    return rc < 0 ? -1 : 0;
}

/* --- all of it --- */

/* Ended by a signal: a session that nobody gave a name to is not come back to. */
static void say_goodbye(struct attach *a)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    yyjson_val *root;
    a->end.status = 128 + a->signal;
    if (a->request->keep)
        return;
    target_sandbox(a->client, &target, a->request->sandbox, "/terminal/");
    target_add(&target, a->request->session, false);
    client_json(a->client, "DELETE", &target, NULL, 0, &root, NULL);
}

int attach_run(struct client *client, const struct attach_request *request,
               struct attach_end *ret_end, struct error *err)
{
    struct attach a = {
        .client = client,
        .loop = client_loop(client),
        .request = request,
        .at_terminal = isatty(STDIN_FILENO) == 1,
        .signal_fd = -1,
        .input = BUF_INIT(INPUT_MAX + 2 * PIECE),
    };
    struct task keyboard = {0};
    random_id(a.id, CLIENT_ID_LEN);
    int rc = watch_signals(&a, err);
    if (rc == 0 && a.at_terminal)
        rc = keyboard_raw(&a.keyboard, err);
    if (rc == 0)
        rc = task_start(a.loop, &keyboard, read_keyboard, &a, err);
    if (rc == 0)
        rc = stay_attached(&a, err);
    task_stop(&keyboard);
    if (a.end.detached && isatty(STDOUT_FILENO))
        output_bytes(STDOUT_FILENO, PLAIN_SCREEN, sizeof(PLAIN_SCREEN) - 1, NULL);
    if (a.keyboard.raw && (a.end.detached || rc < 0))
        fputs("\r\n", stderr);
    keyboard_restore(&a.keyboard);
    if (rc == 0 && a.signal != 0)
        say_goodbye(&a);
    watch_stop(&a.signals);
    cleanup_fd(&a.signal_fd);
    buf_release(&a.input);
    *ret_end = a.end;
    return rc;
}
