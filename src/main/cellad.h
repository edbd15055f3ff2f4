/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cellad: the unprivileged process that serves every API. Started by the supervisor, with the
 * descriptors below and an argv of CELLAD_ARGS words; returns its exit status.
 */

enum {
    CELLAD_FD_DATA = 3,   /* the data folder */
    CELLAD_FD_LISTEN = 4, /* listening TCP socket */
    CELLAD_FD_READY = 5,  /* a byte is written here once requests are served */
    CELLAD_FD_UNIX = 6,   /* listening unix socket, for the same requests */
    /* A pipe that holds the hash of the first key, and the key that secrets are sealed with, both
     * in hex: argv is for everybody. */
    CELLAD_FD_KEY = 7,
    /* Certificate and key in PEM; empty: TLS is not spoken. Read again after SIGHUP. */
    CELLAD_FD_TLS = 8,
    /* Whose tokens are trusted (auth/issuers.h); empty: nobody's. The same. 9 is the lock. */
    CELLAD_FD_JWT = 10,
    CELLAD_FD_METRICS = 11, /* with the setting metrics-listen: another listening TCP socket */
};

/* argv: "cellad", data folder, "auth" or "open", log level, public URL or "", seconds between
 * samples of what sandboxes use, origins of pages or "", "any" or "public": where callbacks may go,
 * overcommit factors or "", capacity or "", pools that are to be there, each as pool_option.h says
 * and ended by a line break, the domain of sandboxes' host names or "off", which ports of the host
 * are for sandboxes (api/port_doors.h), private ranges that sandboxes may be let into or "",
 * "history" or "none": whether histories of sandboxes' files are kept, the audit log's options
 * (audit/log.h), rates and quotas (api/call_limits.h), each of the three or "". */
enum { CELLAD_ARGS = 18, CELLAD_KEY_LEN = 64 };

/* Behind them: any number of settings as "name=value", in any order; cellad.c has the names. */

int cellad_main(int argc, char **argv);
