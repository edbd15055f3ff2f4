/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Code contexts: interpreters inside a sandbox whose variables live on from run to run. On
 * coroutines.
 *
 * A context is a process of its sandbox (called code.LANGUAGE.ID there) that runs a kernel: a small
 * program of ours, sent along when it is started, which needs nothing of the image but the
 * interpreter. The sandbox's agent is what knows which of them there are; what is kept here is a
 * cache of it, and connections. So contexts outlive the server, and go with their sandbox.
 *
 * Each language has a default context, which is made when it is first needed. Runs in one context
 * come one after the other, in the order of their coming; several contexts run at once.
 *
 * A kernel is not trusted: whatever comes from it is checked, and one that sends what it should not
 * is ended.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "loop/loop.h"
#include "sandbox/sandbox.h"

struct code;

int code_new(struct loop *loop, struct sandboxes *sandboxes, struct code **ret_code,
             struct error *err);
/* On a coroutine: nothing is under way afterwards. Kernels go on. */
void code_stop(struct code *code);
void code_free(struct code *code); /* NULL is fine */

/* Where, and on whose behalf. */
struct code_place {
    const char *workspace;
    const char *sandbox;
    const char *actor;
};

/* --- languages --- */

/* The name of a language as it is told ("python" for "Python3" or "py"), or NULL: in any case. */
const char *code_language(const char *name);
enum { CODE_LIST_SIZE = 128 };
/* Adds a language, by any of its names, to a list of them with spaces in between, unless it is in
 * there. CODE_LANGUAGE_UNKNOWN. */
int code_list_add(char list[CODE_LIST_SIZE], const char *name, struct error *err);
/* Their names, NULL at the end. */
extern const char *const code_languages[];

/* --- contexts --- */

struct code_context {
    const char *id;
    const char *language;
    const char *cwd;
    const char *user;
    uint64_t pid; /* of its interpreter, in the sandbox */
    uint64_t started_ms;
    uint64_t runs;   /* that this server knows of */
    int64_t used_ms; /* Unix time of when somebody last worked in it; 0: not since this server is */
    bool is_default; /* its language's */
    bool busy;       /* something runs in it, as far as this server knows */
    bool dead;       /* its interpreter has ended; the next run starts another */
};

struct code_context_request {
    /* NULL: one is made up. Lower-case letters, digits and '-'; one that is there already is
     * answered with, whatever else the request says. */
    const char *id;
    const char *language; /* NULL: python */
    const char *cwd;      /* NULL: the sandbox's default, /workspace */
    const char *user;     /* NULL: root */
    struct slice env;     /* "NAME=value" …, over the sandbox's */
};

/*
 * Returns when its interpreter is ready. CODE_LANGUAGE_UNKNOWN; CODE_INTERPRETER_MISSING when the
 * image has none; LIMIT_EXCEEDED over CODE_CONTEXTS_MAX; CODE_KERNEL_FAILED when it does not come
 * up.
 */
int code_context_create(struct code *code, const struct code_place *place,
                        const struct code_context_request *request, struct arena *arena,
                        struct code_context *ret_context, struct error *err);
int code_context_list(struct code *code, const struct code_place *place, struct arena *arena,
                      struct code_context **ret_items, size_t *ret_count, struct error *err);
/* These: CODE_CONTEXT_NOT_FOUND. The id of a default context ("default-python") is always found. */
int code_context_get(struct code *code, const struct code_place *place, const char *id,
                     struct arena *arena, struct code_context *ret_context, struct error *err);
/* Its state is lost; what runs in it ends with an error. */
int code_context_restart(struct code *code, const struct code_place *place, const char *id,
                         struct arena *arena, struct code_context *ret_context, struct error *err);
int code_context_delete(struct code *code, const struct code_place *place, const char *id,
                        struct error *err);
/* Interrupts what runs in it, as ^C would; its state is kept. Nothing to interrupt is fine. */
int code_context_interrupt(struct code *code, const struct code_place *place, const char *id,
                           struct error *err);

/* The id of a language's default context, in the arena. `language` as code_language() says it. */
const char *code_default_id(struct arena *arena, const char *language);

/* --- runs --- */

enum code_event_kind {
    CODE_STDOUT,  /* text: bytes as they were written, which need not end with a character */
    CODE_STDERR,  /* the same */
    CODE_RESULT,  /* items: one thing in several representations */
    CODE_ERROR,   /* name, value, traceback. At most one, and then only CODE_END */
    CODE_DROPPED, /* dropped: so many bytes of output are missing here */
    CODE_IDLE,    /* nothing came for a while */
    CODE_END,     /* count and status. The last one, always */
};

/* One representation. Its format is a short name (text, html, markdown, svg, png, jpeg, pdf, latex,
 * json, javascript, data, chart) or else a media type; what is binary is base64. */
struct code_item {
    const char *format;
    struct slice value;
    bool is_json; /* value is meant to be JSON, and has still to be parsed; else text */
};

struct code_event {
    enum code_event_kind kind;
    struct slice text;
    const struct code_item *items;
    size_t item_count;
    bool is_main; /* the value of the last expression, not something that was displayed */
    struct slice name, value, traceback;
    uint64_t dropped;
    uint64_t count;        /* which run of the context it was, from 1 */
    unsigned status;       /* as of a program that did the same: 0 is success */
    const char *execution; /* CODE_END: what history calls it (sandbox/history.h) */
};

/* Everything in the event is good during the call only; it may wait, and the kernel waits with it.
 * -1: nobody listens any more, and the run is interrupted. */
typedef int code_listener(void *ctx, const struct code_event *event, struct error *err);

struct code_run {
    const char *context;   /* an id; NULL: the default one of … */
    const char *language;  /* … this language; NULL: python. Only one of the two */
    struct slice code;     /* at most CODE_SOURCE_MAX: PAYLOAD_TOO_LARGE */
    struct slice env;      /* "NAME=value" …: for this run alone */
    int64_t timeout_ms;    /* then it is interrupted, and later its interpreter killed; 0: never */
    int64_t idle_ms;       /* CODE_IDLE after this; 0: never */
    const char *execution; /* of history_run_begin()'s, for who tells it before CODE_END; NULL: one
                            * is made up */
};

/*
 * Runs code to its end. An error of the code itself, a time-out (name "TimeoutError"), an interrupt
 * and the death of the interpreter (name "KernelDied") are events; what could not be run at all is
 * an error, and the listener was not called then. When the caller is cancelled, or does not listen,
 * the run is interrupted behind its back.
 */
int code_run(struct code *code, const struct code_place *place, const struct code_run *run,
             code_listener *listener, void *ctx, struct error *err);

/*
 * Goes on with a run that nobody listens to any more, since the server was started anew: from its
 * first event on, as far as they were kept, whether it is still under way or has ended. CONFLICT
 * when somebody here listens to it, or nothing was run yet.
 */
int code_follow(struct code *code, const struct code_place *place, const char *id, int64_t idle_ms,
                code_listener *listener, void *ctx, struct error *err);
