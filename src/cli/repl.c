/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella code`: one piece of code after the other, in one interpreter. ^C is for the code while it
 * runs and for the line while one is typed; ^D, or exit, is the end. With something else than a
 * terminal as its input it runs that.
 */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "cli/args.h"
#include "cli/cell.h"
#include "cli/client.h"
#include "cli/code.h"
#include "cli/line_input.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "loop/co.h"

struct repl {
    struct invocation *inv;
    const char *language;
    struct line_input input;
    struct history history;
    struct watch signals;
    int signal_fd;
    bool running;
    struct client *other; /* for interrupts: the first one is busy with the answer */
    bool interrupting;
    bool pressed; /* once more, meanwhile */
};

/* --- interrupts --- */

static void send_interrupt(struct repl *r)
{
    const struct invocation *inv = r->inv;
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    const char *context = args_option(inv->args, "context", NULL);
    yyjson_val *root;
    struct error err;
    if (r->other == NULL &&
        client_new(client_loop(inv->client), client_settings(inv->client), &r->other, &err) < 0) {
        output_error(&err);
        return;
    }
    target_sandbox(r->other, &target, args_word(inv->args, "NAME"), "/code/contexts/");
    target_add(&target, context == NULL ? "default-" : context, false);
    if (context == NULL)
        target_add(&target, r->language, false);
    buf_adds(&target, "/interrupt");
    if (client_json(r->other, "POST", &target, NULL, 0, &root, &err) < 0)
        output_error(&err);
}

static void interrupt(void *arg)
{
    struct repl *r = arg;
    while (r->pressed) {
        r->pressed = false;
        send_interrupt(r);
    }
    r->interrupting = false;
}

static void signal_came(struct watch *watch, uint32_t events)
{
    struct repl *r = container_of(watch, struct repl, signals);
    struct signalfd_siginfo info;
    if (read(r->signal_fd, &info, sizeof(info)) != sizeof(info))
        return;
    if (info.ssi_signo != SIGINT) {
        keyboard_restore(&r->input.keyboard);
        _exit(128 + (int)info.ssi_signo);
    }
    if (!r->running)
        return;
    r->pressed = true;
    if (r->interrupting)
        return;
    r->interrupting = true;
    if (co_spawn(client_loop(r->inv->client), interrupt, r, NULL, NULL) < 0)
        r->interrupting = false;
}

static int watch_signals(struct repl *r, struct error *err)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r->signal_fd < 0)
        return error_sys(err, "waiting for signals");
    return watch_start(client_loop(r->inv->client), &r->signals, r->signal_fd, EPOLLIN, signal_came,
                       err);
}

/* --- asking --- */

static const char *prompt(const struct repl *r, bool more)
{
    static const struct {
        const char *language, *prompt;
    } rows[] = {{"python", ">>> "}, {"bash", "$ "}};
    if (more)
        return "... ";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].language, r->language) == 0)
            return rows[i].prompt;
    return "> ";
}

/* One that is whole, as far as can be told from here; LINE_CANCELLED: start anew. */
static int ask(struct repl *r, struct buf *code, enum line_key *ret_how, struct error *err)
{
    buf_clear(code);
    for (bool more = false;;) {
        if (line_input_read(&r->input, prompt(r, more), code, ret_how, err) < 0)
            return -1;
        if (*ret_how == LINE_CANCELLED || (*ret_how == LINE_ENDED && !more))
            return 0;
        if (*ret_how == LINE_ENDED) {
            *ret_how = LINE_DONE;
            return 0;
        }
        buf_addc(code, '\n');
        if (buf_check(code, "the code", err) < 0)
            return -1;
        more = cell_wants_more(r->language, (struct slice){code->data, code->len});
        if (!more)
            return 0;
    }
}

static bool is_goodbye(const struct buf *code)
{
    static const char *const words[] = {"exit\n", "quit\n", "exit()\n", "quit()\n"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(code->data, words[i]) == 0)
            return true;
    return false;
}

/* After these the next one may go better. */
static bool goes_on(const struct error *err)
{
    static const enum error_code codes[] = {ERROR_CODE_KERNEL_FAILED,
                                            ERROR_CODE_INTERPRETER_MISSING,
                                            ERROR_CODE_INTERPRETER_UNFIT,
                                            ERROR_TIMEOUT,
                                            ERROR_UNAVAILABLE,
                                            ERROR_NOT_RUNNING,
                                            ERROR_LIMIT_EXCEEDED,
                                            ERROR_PAYLOAD_TOO_LARGE,
                                            ERROR_INVALID_ARGUMENT};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (err->code == codes[i])
            return true;
    return false;
}

static int run(struct repl *r, const struct buf *code, struct error *err)
{
    struct error why = {0};
    int status;
    r->running = true;
    line_input_pause(&r->input);
    int rc = code_run_shown(r->inv, (struct slice){code->data, code->len}, NULL, &status, &why);
    r->running = false;
    while (r->interrupting) /* one that is under way is not for the next run */
        if (co_sleep(client_loop(r->inv->client), 1, err) < 0)
            return -1;
    if (rc == 0)
        return 0;
    if (goes_on(&why)) {
        output_error(&why);
        return 0;
    }
    *err = why;
    return -1;
}

static int converse(struct repl *r, struct error *err)
{
    _cleanup_buf_ struct buf code = BUF_INIT(CODE_SOURCE_MAX);
    for (;;) {
        enum line_key how;
        if (ask(r, &code, &how, err) < 0)
            return -1;
        if (how == LINE_ENDED || is_goodbye(&code))
            return 0;
        if (how == LINE_CANCELLED || strspn(code.data, " \t\r\n") == code.len)
            continue;
        if (run(r, &code, err) < 0)
            return -1;
    }
}

int verb_code(struct invocation *inv, int *ret_status, struct error *err)
{
    if (!isatty(STDIN_FILENO) || args_option(inv->args, "from-file", NULL) != NULL)
        return verb_code_run(inv, ret_status, err);
    struct repl r = {.inv = inv, .language = args_option(inv->args, "language", "python")};
    r.input.loop = client_loop(inv->client);
    r.input.history = &r.history;
    if (watch_signals(&r, err) < 0)
        return -1;
    history_open(&r.history);
    int rc = converse(&r, err);
    line_input_release(&r.input);
    history_release(&r.history);
    watch_stop(&r.signals);
    close(r.signal_fd);
    if (r.other != NULL)
        client_free(r.other);
    return rc;
}
