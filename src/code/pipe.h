/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kernels that are spoken to over stdin and stdout; what kernel.c's functions are for those with a
 * socket. Of a context that is locked. */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "code/code.h"

struct context;
struct code_frame;

/* PORT_NOT_LISTENING when it does not run. mode as in frames.h: 'F' begins with what is kept. */
int pipe_open(struct context *c, const struct code_place *place, char mode, struct error *err);
void pipe_close(struct context *c); /* fine when it is not open */
/* Until the next pipe_open(), which goes on from here. */
void pipe_rest(struct context *c);
bool pipe_is_open(const struct context *c);
int pipe_send(struct context *c, const struct code_place *place, struct slice bytes,
              struct error *err);
int pipe_next(struct context *c, int64_t timeout_ms, struct code_frame *ret_frame,
              struct error *err);
