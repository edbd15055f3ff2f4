/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What `cella server` was asked for. */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { SERVER_POOLS_MAX = 4096, SERVER_PROXIES_MAX = 1000 };

struct server_options {
    const char *listen;
    const char *data;
    const char *user;
    const char *public_url;     /* NULL: as each request's Host says */
    const char *tls;            /* on, off */
    const char *tls_cert;       /* files, in PEM; NULL: one of the server's own */
    const char *tls_key;        /* … NULL: it is in the same file */
    const char *jwt_config;     /* a file; NULL: nobody else's tokens are trusted */
    const char *domain;         /* of sandboxes' host names; "off": they have none */
    const char *ports;          /* of the host, as api/port_doors.h reads it */
    const char *cors_origin;    /* NULL: every origin, but none with no_auth; "none" */
    const char *volume_size;    /* as given: "20G"; NULL: no limit */
    uint64_t volume_bytes;      /* what that is */
    const char *disk_reserve;   /* as given: "5%", "10G"; NULL: the warden's default */
    char disk_reserve_text[24]; /* as the warden reads it */
    const char *storage;        /* auto, btrfs, plain */
    const char *network;        /* on, off */
    const char *network_range;  /* of sandboxes' addresses; NULL: the warden's default */
    const char *network_range6; /* the same of IPv6 */
    const char *resolver;       /* name servers with commas: "10.0.0.2,[fd00::2]:5353"; NULL: those
                                   of /etc/resolv.conf */
    const char *egress_ca; /* a file of authorities that hosts of secrets are believed for; NULL:
                              the machine's */
    const char *server_memory;    /* as given: "1Gi", "off"; NULL: the default */
    uint64_t server_memory_bytes; /* what that is; 0: no limit, and no group */
    const char *log_format;       /* text, json */
    const char *otlp;             /* a collector's address; NULL: as the environment says */
    const char *trace_ratio;      /* as given: "0.1"; NULL: all */
    const char *drain_delay;      /* as given; NULL: none */
    const char *drain_timeout;    /* as given; NULL: the default */
    uint64_t drain_delay_s, drain_timeout_s;
    const char *metrics_listen;       /* an address for /metrics alone, without a key; NULL: none */
    bool metrics_open;                /* /metrics needs no key */
    bool access_log;                  /* a line for each request */
    bool trace_commands;              /* commands get TRACEPARENT */
    bool keep_sandboxes;              /* … run on when the server is stopped */
    const char *log_level;            /* error, warn, info, debug */
    const char *metrics_interval;     /* as given: "10", "30s"; NULL: the default */
    uint64_t metrics_interval_s;      /* what that is */
    const char *overcommit;           /* as sandbox/admission.h reads it; NULL: the defaults */
    const char *capacity;             /* as sandbox/machine.h reads it; NULL: what is detected */
    char pools[SERVER_POOLS_MAX];     /* every --pool, each ended by a line break */
    char proxies[SERVER_PROXIES_MAX]; /* every --trusted-proxy, with commas: api/forwarded.h */
    const char *network_private;      /* ranges parted by commas: network/address.h; NULL: none */
    const char *audit;                /* as audit/log.h reads it; NULL: the defaults */
    const char *rate_limit;           /* as api/call_limits.h reads it; NULL: the defaults */
    const char *quota;                /* the same */
    bool no_auth;
    bool no_history;
    const char *history_size; /* of one sandbox's, as given: "500M"; NULL: the most */
    uint64_t history_bytes;   /* what that is */
    bool private_callbacks;   /* callbacks may go to any address */
};

/* argv as cli.h's server_main() gets it: "--name" and its value, checked against the verb's row. */
int server_options_parse(int argc, char **argv, struct server_options *ret_options,
                         struct error *err);

/* "info" → LOG_LEVEL_INFO; info for strangers. */
int log_level_parse(const char *text);
