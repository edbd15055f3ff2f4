/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The stdin of a process that was started with EXEC_STDIN. What its pipe does not take at once
 * waits here, in order, and is answered when it was taken: so whoever sends is paced by the
 * process, and no more than PROCESS_INPUTS_MAX pieces of PROCESS_INPUT_CHUNK bytes are ever in
 * memory.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agent/watch.h"
#include "base/error.h"
#include "base/slice.h"

struct connection;
struct piece;

struct input {
    struct watch watch; /* our end of the pipe; -1: there is none, or no longer */
    bool given;         /* it was started with one */
    bool ending;        /* to be closed after what waits */
    struct piece *first, **last;
    unsigned count;
};

void input_init(struct input *input);
/* Takes fd over. */
void input_open(struct agent *agent, struct input *input, int fd);

/* Answers with WIRE_OK once the data was taken. connection NULL: nobody wants to know. NO_STDIN,
 * STDIN_CLOSED, LIMIT_EXCEEDED. */
int input_write(struct agent *agent, struct input *input, struct connection *connection,
                uint32_t id, struct slice data, struct error *err);
/* The end of the input, after what waits. Answers at once. */
int input_end(struct agent *agent, struct input *input, struct error *err);

/* Nobody reads any more: what waits is answered with STDIN_CLOSED. */
void input_close(struct agent *agent, struct input *input);
/* Drops what a connection (and id; 0: any) waits for. */
void input_forget(struct input *input, const struct connection *connection, uint32_t id);
