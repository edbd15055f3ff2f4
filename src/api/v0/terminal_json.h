/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Terminals as JSON: sessions, and the frames of the WebSocket. */

#include "api/call.h"
#include "base/buf.h"
#include "sandbox/terminals.h"
#include "wire/messages.h"

/* --- from a client --- */

enum terminal_message_kind { TERMINAL_IS_INPUT, TERMINAL_IS_RESIZE, TERMINAL_IS_PING };

struct terminal_message {
    enum terminal_message_kind kind;
    struct slice data;   /* input: in the arena */
    uint64_t cols, rows; /* resize: 0 where it was not said */
};

/* INVALID_JSON, INVALID_ARGUMENT, UNKNOWN_FIELD. */
int terminal_message_from_json(struct arena *arena, struct slice text,
                               struct terminal_message *ret_message, struct error *err);

/* The body of POST …/terminal/sessions; NULL is an empty one. */
int terminal_open_from_json(struct arena *arena, yyjson_val *body,
                            struct agent_terminal_open *ret_open, struct error *err);

/* workingDir as a query or body has it: absolute. *ret_path is in the arena; NULL stays NULL. */
int terminal_dir(struct arena *arena, const char *given, const char **ret_path, struct error *err);

/* --- to a client: each is a whole frame, in the arena --- */

struct slice terminal_session_frame(struct arena *arena, const struct agent_terminal *about,
                                    uint64_t offset);
struct slice terminal_dropped_frame(struct arena *arena, uint64_t dropped, uint64_t offset);
struct slice terminal_taken_frame(struct arena *arena, uint64_t taken);
struct slice terminal_exit_frame(struct arena *arena, const struct agent_terminal_exit *end);
struct slice terminal_error_frame(struct arena *arena, const struct error *why);
struct slice terminal_pong_frame(struct arena *arena);

/*
 * Output as text. Programs write bytes, and the kernel cuts them anywhere: a character that is cut
 * is held back until its rest comes, or is given up on (`flush`: nothing more came for a while, or
 * it is the end). What is no UTF-8 at all is replaced in `data`, and given exactly in `dataBase64`.
 */
struct terminal_text {
    uint64_t offset; /* of held[0], or of what comes next */
    char held[4];
    size_t held_len;
};

/* The frame for these bytes, which begin at `offset`; an empty slice when there is none to send
 * yet. */
struct slice terminal_output_frame(struct arena *arena, struct terminal_text *text, uint64_t offset,
                                   struct slice data, bool flush);

/* --- sessions --- */

void terminal_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                   const struct agent_terminal *terminal);
