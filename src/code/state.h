/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of this folder share: contexts as they are cached here.
 *
 * A box is one start of one sandbox. A context is held by pointer only while a reference is held
 * (context_hold(), context_drop()): any wait can see it forgotten.
 */

#include <stdbool.h>
#include <stdint.h>

#include <uthash.h>

#include "base/buf.h"
#include "code/code.h"
#include "code/languages.h"
#include "loop/co.h"
#include "sandbox/ahead.h"
#include "sandbox/link.h"

enum { CONTEXT_ID_SIZE = 41, PROCESS_NAME_SIZE = 80 };
/* As a shell exits when it can not start a program. */
enum { CANNOT_BE_RUN = 126, NO_SUCH_COMMAND = 127 };

struct box {
    struct code *code;
    char id[SANDBOX_ID_LEN + 1];
    unsigned start;
    int64_t made_ms; /* of the sandbox, and whether … */
    bool plain;      /* … it can use what was started before (sandbox/link.h) */
    bool known;      /* the agent was asked which contexts there are */
    bool looking;    /* … it is being asked */
    unsigned refs;
    struct context *contexts;
    unsigned count;
    struct co_cond looked;
    UT_hash_handle by_id;
};

struct context {
    struct box *box; /* NULL once it is forgotten */
    struct code *code;
    struct context *next;
    char id[CONTEXT_ID_SIZE];
    const struct language *language;
    char *cwd, *user; /* NULL: the defaults */
    char *env;
    size_t env_len;
    unsigned refs;
    uint64_t pid, started_ms;
    uint64_t runs; /* that were begun here */
    int64_t used_ms;
    bool started; /* there is a process, as far as we know */
    bool lacking; /* … which was started ahead, and has not what this sandbox gives to its own */
    bool busy;    /* somebody works with its kernel; the next one waits at `free` */
    unsigned ending; /* so many restart or delete it: the kernel's end is meant, and runs wait */
    struct co_cond free;

    /* kernel.c's: the connection, on a watch that it keeps */
    struct sandbox_link *link; /* NULL: none */
    struct watch watch;
    bool readable; /* perhaps */
    bool hung_up;  /* there is an end to be read */
    struct co_cond arrived;
    struct buf in;
    size_t used;            /* of `in`, by the frame that was handed out last */
    struct pipe_link *pipe; /* pipe.c's, for languages without a socket; NULL: not open */
    bool fresh;             /* its process has just been started */
    uint32_t last_number;   /* of a run */
    uint32_t under_way;     /* number of the run that was under way when we connected; 0: none */
};

struct code {
    struct loop *loop;
    struct sandboxes *sandboxes;
    struct box *boxes; /* by id */
    bool stopping;
    unsigned drains; /* coroutines that bring abandoned runs to their end */
    struct co_cond drained;
};

/* boxes.c */
void context_hold(struct context *c);
void context_drop(struct context *c);
/* Takes it out of the cache; whoever holds it may go on. */
void context_forget(struct context *c);
/* Its kernel has gone while nobody worked with it. */
void context_lost(struct context *c);
/* Waits until nobody else works with its kernel; release with context_unlock().
 * CODE_CONTEXT_NOT_FOUND when it was forgotten meanwhile. */
int context_lock(struct context *c, struct error *err);
void context_unlock(struct context *c);
/* The same, before those that wait to run something. */
int context_lock_first(struct context *c, struct error *err);
/* By id; or (NULL) the default one of a language, which is made (not started) when there is none.
 * Held. CODE_CONTEXT_NOT_FOUND. */
int context_find(struct code *code, const struct code_place *place, const char *id,
                 const struct language *language, struct context **ret_context, struct error *err);
void context_process_name(const struct context *c, char name[PROCESS_NAME_SIZE]);
/* … that a language's default context has. */
void default_process_name(const struct language *language, char name[PROCESS_NAME_SIZE]);
/* The language whose default context it is; NULL: of none. */
const struct language *context_default_of(const char *id);

/* The box of a sandbox that runs, with a reference, and with what is in it. */
int box_enter(struct code *code, const struct code_place *place, struct box **ret_box,
              struct error *err);
void box_leave(struct box **box);
#define _cleanup_box_ __attribute__((cleanup(box_leave)))
/* The one that is asked for, or a new one (not started); held. LIMIT_EXCEEDED. */
int box_make_context(struct box *box, const struct code_context_request *request,
                     const struct language *language, struct context **ret_context,
                     struct error *err);

/* environ.c: the variables of one that runs and was made by another server; none when they can not
 * be had. */
void context_learn_env(struct context *c, const struct code_place *place);

static inline void cleanup_context(struct context **c)
{
    if (*c != NULL)
        context_drop(*c);
}
#define _cleanup_context_ __attribute__((cleanup(cleanup_context)))

/* kernel.c. All of a context that is locked. */
/* Starts the interpreter if it does not run, and connects. mode: 'A' or 'F' (frames.h). */
int kernel_ready(struct context *c, const struct code_place *place, char mode, struct error *err);
/* What a pool starts ahead: the default context of a language. */
int kernel_ahead(const char *language, struct arena *arena, struct ahead *ret_ahead,
                 struct error *err);
/* Ends the interpreter with all that it has started, and closes the connection. */
int kernel_kill(struct context *c, const struct code_place *place, struct error *err);
void kernel_close(struct context *c);
bool kernel_connected(const struct context *c);
/* A run begins, or has ended: from there on it may idle. */
void kernel_begin(struct context *c);
void kernel_rest(struct context *c);
int kernel_send(struct context *c, const struct code_place *place, struct slice bytes,
                struct error *err);
struct code_frame;
/* The next frame, good until the next call. 1; 0 after timeout_ms (-1: never); -1: UNAVAILABLE when
 * the connection is lost, CODE_KERNEL_FAILED when it holds garbage. */
int kernel_next(struct context *c, int64_t timeout_ms, struct code_frame *ret_frame,
                struct error *err);
