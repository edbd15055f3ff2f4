/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages of …/exec/ws: what a client asks for, and what it is told. Pure: text in, structs
 * out, and back. Several commands share one connection, so each message names its stream by an id
 * that the client has chosen.
 */

#include "api/call.h"
#include "api/v0/process_exec.h"
#include "base/limits.h"
#include "wire/messages.h"

/* --- where a stream is --- */

/*
 * A place in a process's output, to go on from after a lost connection. Besides the offset it holds
 * the beginnings of characters that were read and not told yet: the two streams mix at any byte, so
 * an offset alone would tell twice, or lose, what came from one while the other was in the middle
 * of a character. As text: "1234", or with what is held of stdout and stderr as hex, "1234:e282:".
 */
struct exec_place {
    uint64_t offset;
    unsigned char held_len[2];
    char held[2][3]; /* of stdout, of stderr */
};

enum { EXEC_PLACE_TEXT = 20 + 2 * (1 + 6) + 1 };

void exec_place_text(const struct exec_place *place, char out[EXEC_PLACE_TEXT]);
/* INVALID_ARGUMENT when no server can have said so. */
int exec_place_parse(const char *text, struct exec_place *ret_place, struct error *err);

/* --- from a client --- */

enum exec_ask {
    EXEC_ASK_START,  /* a command */
    EXEC_ASK_ATTACH, /* to one that was started before, or has ended */
    EXEC_ASK_STDIN,
    EXEC_ASK_SIGNAL,
    EXEC_ASK_RESIZE, /* refused: these commands have no terminal */
    EXEC_ASK_CANCEL, /* end the command, with its tree */
    EXEC_ASK_DETACH, /* hear no more of it; it goes on */
    EXEC_ASK_PING,
};

struct exec_ask_message {
    enum exec_ask ask;
    const char *id;         /* of the stream; NULL only for a ping */
    bool base64;            /* start, attach: output as exact bytes */
    struct agent_exec exec; /* start */
    const char *process;    /* attach: a pid or a name */
    struct exec_place from; /* attach */
    bool hold;              /* attach: the process waits for this reader */
    struct slice data;      /* stdin */
    bool end;               /* stdin: nothing comes after this */
    int signal;             /* signal */
    uint64_t grace_ms;      /* cancel: between SIGTERM and SIGKILL; 0: SIGKILL at once */
};

/* Everything handed out lives in the arena. On failure, too, *ret_id is the stream that was named,
 * if one was (else NULL). INVALID_JSON, INVALID_ARGUMENT, UNKNOWN_FIELD, … */
int exec_message_read(struct arena *arena, struct slice text, struct exec_ask_message *ret_message,
                      const char **ret_id, struct error *err);

/* --- to a client: each is a whole message, in the arena --- */

struct slice exec_ready_message(struct arena *arena, const char *sandbox);
/* "started" or "attached": the process, and where its output is read from */
struct slice exec_started_message(struct arena *arena, const char *id, bool attached,
                                  const struct agent_process *process,
                                  const struct exec_place *place);
/* "stdout" or "stderr" (stream 0, 1) */
struct slice exec_output_message(struct arena *arena, const char *id, unsigned stream, bool base64,
                                 struct slice data, const struct exec_place *place);
struct slice exec_gap_message(struct arena *arena, const char *id, uint64_t bytes,
                              const struct exec_place *place);
struct slice exec_exit_message(struct arena *arena, const char *id,
                               const struct agent_process *process, const struct exec_place *place);
/* `taken`: bytes of stdin that its pipe has taken, in all */
struct slice exec_stdin_message(struct arena *arena, const char *id, uint64_t taken, bool ended);
struct slice exec_detached_message(struct arena *arena, const char *id,
                                   const struct exec_place *place);
/* id NULL: of no stream. ended: the stream is not there (any more); place (or NULL): how far it
 * got. */
struct slice exec_error_message(struct arena *arena, const char *id, const struct error *why,
                                bool ended, const struct exec_place *place);
struct slice exec_pong_message(struct arena *arena);

/*
 * The text of a piece of output: what was held, and the piece, up to where a character is not
 * whole; that is held from now on. data stays as it is when nothing was held and nothing is.
 * With flush the rest is given up on.
 */
struct slice exec_text_take(struct arena *arena, struct exec_place *place, unsigned stream,
                            struct slice data, bool flush);
