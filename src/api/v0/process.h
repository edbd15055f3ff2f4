/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the handlers of /process share. */

#include "api/call.h"
#include "http/router.h"
#include "sandbox/processes.h"

/* Who is meant: the route's sandbox and its {pid}, which is a pid or a name. */
struct process_place {
    struct sandboxes *sandboxes;
    const char *workspace;
    const char *sandbox;
    const char *process;
    const char *actor; /* who asks */
};
struct process_place process_place(const struct route_params *params, const struct api_call *call);

/* {"pid", "message"} */
int process_reply_message(struct http_exchange *x, uint64_t pid, const char *message,
                          struct error *err);

/* v0/process_stream.c: whether the request asks for its output as it comes, and that answer. */
int process_wants_stream(struct http_exchange *x, bool *ret_wants, struct error *err);
int process_exec_stream(struct http_exchange *x, const struct process_place *place,
                        const struct agent_exec *exec, struct error *err);
