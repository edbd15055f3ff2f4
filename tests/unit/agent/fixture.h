/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An agent to test against: it runs in a child, natively (no cgroups unless given), on a socket in
 * a folder of its own under /tmp; and a client that speaks to it with blocking calls.
 *
 * The agent is the library that the test is linked with, or, where CELLA_AGENT names it, the
 * program as it is shipped.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "wire/messages.h"

struct fixture {
    char dir[64]; /* scratch folder, removed with everything in it */
    char socket[96];
    pid_t agent;
};

struct fixture *fixture_start(int cgroup_fd, const int *join_fds, unsigned join_count);
/* Without cgroups, its commands under rules (wire/birth.h). */
struct fixture *fixture_start_ruled(const char *rules);
/* Ends the agent and fails the test when it did not end well (a sanitizer has its say there). */
void fixture_stop(struct fixture *f);

/* cmocka's setup and teardown, without cgroups. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* The path of a name in the scratch folder; valid until the eighth call after. */
const char *fixture_path(const struct fixture *f, const char *name);

/* A connection. */
struct client {
    int fd;
    struct buf in;
};

struct client client_open(const struct fixture *f);
void client_close(struct client *c);

void client_send(struct client *c, const struct wire_schema *schema, uint32_t id, const void *msg);
void client_send_raw(struct client *c, uint16_t type, uint32_t id, const void *data, size_t len);
/* The next frame, of any type. The payload is valid until the next call. */
struct frame_header client_next(struct client *c, struct slice *ret_payload);
/* The next frame, which has to be of that type, decoded. */
void client_expect(struct client *c, const struct wire_schema *schema, uint32_t id, void *ret_msg);
/* The next frame, which has to be a WIRE_ERROR with that code; its message is copied out. */
void client_expect_error(struct client *c, uint32_t id, enum error_code code,
                         struct error *ret_err);
/* The other end has closed. */
void client_expect_end(struct client *c);

/* AGENT_EXEC with EXEC_WAIT, as root (or whoever runs the test), in the scratch folder. */
void client_run(struct client *c, const struct fixture *f, const char *command,
                struct agent_process *ret_process);
/* The same without EXEC_WAIT: the pid. */
uint64_t client_start(struct client *c, const struct fixture *f, const char *command);
struct agent_process client_wait(struct client *c, uint64_t pid);
