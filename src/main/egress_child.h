/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the supervisor has to know to start the egress process: whom it runs as, which name servers
 * it asks, and the words on its command line.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "main/command_line.h"

enum {
    EGRESS_FD_CONTROL = 3, /* listens for cellad */
    EGRESS_FD_WARDEN = 4,  /* the socket file that the warden listens at, O_PATH */
    EGRESS_FD_CA = 5,      /* a file of certificate authorities, wherever it is; only with has_ca */
    EGRESS_LIST_MAX = 1024,
};

struct egress_settings {
    uid_t uid;
    gid_t gid;
    uid_t cellad;
    const char *resolvers; /* with commas; "": its own default */
    const char *opened;    /* private ranges, with commas; or "" */
    const char *log_level;
    bool has_ca;
};

/* An id that nobody has, another one for each data folder: rules of the firewall go by it. */
void egress_user(const char *instance, uid_t *ret_uid, gid_t *ret_gid);

/* The machine's name servers as the warden's rules want them, "10.0.0.2#53,…": those of the list
 * as given on the command line, or (NULL) of /etc/resolv.conf. INVALID_ARGUMENT. */
int egress_resolvers(const char *list, char out[EGRESS_LIST_MAX], struct error *err);

/* INVALID_ARGUMENT when the lists are too long for a command line. */
int egress_command(const struct egress_settings *settings, struct command_line *line,
                   struct error *err);
