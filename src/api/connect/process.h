/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* process.Process, for this folder's own use: what its files share. */

#include "api/connect/box.h"
#include "sandbox/processes.h"
#include "sandbox/terminals.h"

/* What a selector names: a process that runs, or a terminal. */
struct process_target {
    bool is_terminal;
    struct agent_process process;
    struct agent_terminal terminal;
    const char *name; /* of the process: its pid, as text */
};

/* {"pid": 7} or {"tag": "web"}. PROCESS_NOT_FOUND: also one that has ended. */
int process_select(const struct connect_box *box, struct arena *arena, yyjson_val *message,
                   struct process_target *ret_target, struct error *err);

/* One of the two. */
struct process_input {
    struct slice to_stdin, to_pty;
};

/* {"input": {"stdin" or "pty": base64}}, into the arena. INVALID_ARGUMENT. */
int process_input_read(struct arena *arena, yyjson_val *message, struct process_input *ret_input,
                       struct error *err);
/* Returns when it has been taken. INVALID_ARGUMENT when it is not for what the process has. */
int process_input_give(const struct connect_box *box, const struct process_target *target,
                       const struct process_input *input, struct error *err);

int process_start_method(struct http_exchange *x, const struct connect_box *box,
                         yyjson_val *message, struct error *err);
int process_stream_input_method(struct http_exchange *x, const struct connect_box *box,
                                yyjson_val *message, struct error *err);
int process_connect_method(struct http_exchange *x, const struct connect_box *box,
                           yyjson_val *message, struct error *err);

/* ProcessEvent's EndEvent, as the member "end". */
void process_end_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *event,
                      uint64_t exit_code, uint64_t signal);
