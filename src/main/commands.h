/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the supervisor starts the warden and cellad with. The egress process's is in egress_child.h.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "main/command_line.h"
#include "main/options.h"

struct command_inputs {
    const struct server_options *options;
    const char *data;  /* the data folder */
    const char *agent; /* the agent's program */
    uid_t uid;         /* cellad's */
    gid_t gid;
    bool network; /* sandboxes may have one; the next two mean nothing without */
    uid_t egress_uid;
    const char *resolvers; /* for the warden's rules */
};

/* Both: INVALID_ARGUMENT when an option does not fit. */
int warden_command(const struct command_inputs *in, struct command_line *line, struct error *err);
int cellad_command(const struct command_inputs *in, struct command_line *line, struct error *err);
